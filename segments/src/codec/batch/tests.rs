use proptest::prelude::*;

use super::*;
use crate::impacts::{IMPACT_FREQ_MAX, impact_weight};
use crate::limits::TEXT_BYTES_MAX;
use crate::record::SourceClass;
use crate::space::SpaceNumber;

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", ".{0,6}", "[\u{4e00}-\u{4eff}]{0,9}"]
}

fn some_record() -> impl Strategy<Value = Record> {
    let names = (proptest::option::of(text()), proptest::option::of(text()));
    let more = (proptest::option::of(text()), proptest::option::of(text()));
    let class = proptest::option::of(0..5usize);
    let marks = (class, proptest::option::of(0.0..=1.0f32), "[{}a-z]{0,5}");
    let tags = proptest::collection::vec("[a-d]{1,3}", 0..4);
    let impacts = proptest::collection::btree_map("[a-d]{1,3}", 1..=IMPACT_FREQ_MAX, 0..4);
    let tags = (tags, impacts);
    let key = (
        "[a-c/]{0,3}[a-c]",
        "[a-z0-9]{1,8}",
        -9_000_000i64..9_000_000,
        text(),
    );
    (key, names, more, marks, tags).prop_map(|(key, names, more, marks, tags)| {
        let path = key
            .0
            .split('/')
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/");
        let mut record = Record::new(Scope::parse(&path).expect("a path"), key.1, key.2, key.3);
        (record.summary, record.speaker) = names;
        (record.source, record.source_id) = more;
        record.source_class = marks.0.map(|at| SourceClass::ALL[at]);
        record.importance = marks.1;
        record.attributes = marks.2;
        record.tags = tags.0;
        let impacts = tags.1.into_iter();
        record.impacts = impacts
            .map(|(token, freq)| (token, impact_weight(freq)))
            .collect();
        record
    })
}

fn some_op() -> impl Strategy<Value = Op> {
    let vector = proptest::collection::vec(any::<u8>(), 0..9);
    let vectors =
        proptest::collection::btree_map(prop_oneof![3 => Just(0), 1 => any::<u8>()], vector, 0..3);
    let vectors = vectors.prop_map(|of_spaces| {
        let mut vectors = StoredVectors::default();
        for (number, vector) in of_spaces {
            vectors.put(SpaceNumber::new(number), vector);
        }
        vectors
    });
    let more = (vectors, proptest::option::weighted(0.2, any::<i64>()));
    prop_oneof![
        3 => (any::<bool>(), some_record(), more).prop_map(|(insert, record, more)| Op::Put {
            mode: if insert { PutMode::Insert } else { PutMode::Upsert },
            record: Box::new(record),
            vectors: more.0,
            known_since_us: more.1,
        }),
        1 => some_record().prop_map(|record| Op::Delete { scope: record.scope, id: record.id }),
    ]
}

fn encoded(batch: &Batch) -> Vec<u8> {
    let ops: Vec<OpRef<'_>> = batch.ops.iter().map(Op::borrowed).collect();
    let mut bytes = Vec::new();
    encode_batch(&ops, batch.commit_time_us, &mut bytes).expect("small");
    bytes
}

fn some_batch() -> impl Strategy<Value = Batch> {
    (any::<i64>(), proptest::collection::vec(some_op(), 0..5)).prop_map(|(commit_time_us, ops)| {
        Batch {
            commit_time_us,
            ops,
        }
    })
}

proptest! {
    #[test]
    fn a_batch_comes_back_as_it_was(batch in some_batch()) {
        prop_assert_eq!(decode_batch(&encoded(&batch)), Ok(batch));
    }

    #[test]
    fn a_cut_or_longer_batch_is_damaged(batch in some_batch(), cut in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&batch);
        prop_assert!(decode_batch(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(0);
        prop_assert!(decode_batch(&bytes).is_err());
    }

    #[test]
    fn what_is_accepted_after_mutation_has_this_one_encoding(
        batch in some_batch(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
    ) {
        let mut bytes = encoded(&batch);
        for (at, value, kind) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = value,
                1 => bytes[at] ^= 1 << (value % 8),
                _ => bytes.insert(at, value),
            }
        }
        if let Ok(read) = decode_batch(&bytes) {
            prop_assert_eq!(encoded(&read), bytes);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _first = decode_batch(&bytes);
        for version in [PLAIN, BATCH_VERSION] {
            bytes.insert(0, version);
            let _with_version = decode_batch(&bytes);
        }
    }
}

#[test]
fn a_huge_count_is_refused_before_anything_is_allocated() {
    let mut bytes = vec![BATCH_VERSION];
    bytes.extend([0; 8]);
    put_varint(&mut bytes, u64::MAX >> 1);
    bytes.extend([0; 64]);
    let error = decode_batch(&bytes).expect_err("too many");
    assert!(
        matches!(error, CodecError::Damaged { offset: 9, .. }),
        "{error}"
    );
}

#[test]
fn later_ops_and_versions_are_named() {
    let bytes = |version, tag| [&[version, 0, 0, 0, 0, 0, 0, 0, 0, 1, tag][..], &[0; 9]].concat();
    assert_eq!(
        decode_batch(&bytes(1, 6)),
        Err(CodecError::UnknownOp { tag: 6, offset: 10 })
    );
    assert_eq!(
        decode_batch(&bytes(4, 1)),
        Err(CodecError::Version { found: 4 })
    );
}

#[test]
fn a_batch_is_of_the_oldest_version_that_has_what_is_in_it() {
    let scope = Scope::parse("a").expect("a scope");
    let mut record = Record::new(scope, "x", 0, "t");
    let mut versions = Vec::new();
    let mut in_space = StoredVectors::main(Some(vec![1]));
    in_space.put(SpaceNumber::new(1), vec![2]);
    let main = StoredVectors::main(Some(vec![1]));
    let impacts = vec![("t".to_owned(), 1.0)];
    for (impacts, vectors, known_since_us) in [
        (vec![], &main, None),
        (impacts.clone(), &main, None),
        (impacts, &in_space, None),
        (vec![], &main, Some(7)),
    ] {
        record.impacts = impacts;
        let op = OpRef::Put {
            mode: PutMode::Upsert,
            record: &record,
            vectors,
            known_since_us,
        };
        let mut bytes = Vec::new();
        encode_batch(&[op], 0, &mut bytes).expect("small");
        versions.push(bytes[0]);
        for other in (PLAIN..=BATCH_VERSION).filter(|other| *other != versions[versions.len() - 1])
        {
            bytes[0] = other;
            let error = decode_batch(&bytes).expect_err("another version");
            assert!(error.to_string().contains("does not fit"), "{error}");
        }
    }
    assert_eq!(versions, [PLAIN, IMPACTS, BATCH_VERSION, BATCH_VERSION]);
}

#[test]
fn a_batch_above_a_frame_is_refused_and_leaves_no_bytes() {
    let scope = Scope::parse("a").expect("a scope");
    let record = Record::new(scope, "x", 0, "t".repeat(TEXT_BYTES_MAX));
    let op = OpRef::Put {
        mode: PutMode::Upsert,
        record: &record,
        vectors: StoredVectors::NONE,
        known_since_us: None,
    };
    let mut out = vec![7];
    assert_eq!(
        encode_batch(&[op; 16], 0, &mut out)
            .expect_err("too big")
            .field,
        "batch"
    );
    assert_eq!(out, [7]);
    encode_batch(&[op; 15], 0, &mut out).expect("fits");
}
