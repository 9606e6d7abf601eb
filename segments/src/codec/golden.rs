//! Are the bytes of a batch still the ones that were committed? An annotated hexdump says so.
//!
//! `CHRONOLITH_BLESS=1 cargo test -p chronolith-segments golden` rewrites the file; a change
//! of a released format is a new file and a new version, not a blessing.

use std::fmt::Write;

use super::{Batch, Op, OpRef, PutMode, decode_batch, encode_batch};
use crate::record::{Record, SourceClass};
use crate::scope::Scope;
use crate::space::{SpaceNumber, StoredVectors};

/// Of versions 1 to 3, all of which are still written.
const PATHS: [&str; 3] = [
    "tests/golden/batch.txt",
    "tests/golden/batch-2.txt",
    "tests/golden/batch-3.txt",
];

fn sample() -> Batch {
    let scope = Scope::parse("user/ana").expect("a scope");
    let mut full = Record::new(scope.clone(), "m1", 1_683_417_600_000_000, "Met Bo at 7.");
    full.summary = Some("Met Bo".into());
    full.speaker = Some("Ana".into());
    full.source = Some("chat".into());
    full.source_class = Some(SourceClass::UserConfirmed);
    full.importance = Some(0.5);
    full.source_id = Some("d1".into());
    full.attributes = r#"{"n":1}"#.into();
    full.tags = vec!["bo".into(), "met".into()];
    let plain = Record::new(scope.clone(), "m2", -1, "");
    let ops = vec![
        Op::Put {
            mode: PutMode::Upsert,
            record: full.into(),
            vectors: StoredVectors::main(Some(vec![0, 60, 0, 0])),
            known_since_us: None,
        },
        Op::Put {
            mode: PutMode::Insert,
            record: plain.into(),
            vectors: StoredVectors::default(),
            known_since_us: None,
        },
        Op::Delete {
            scope,
            id: "m0".into(),
        },
    ];
    Batch {
        commit_time_us: 1_700_000_000_000_000,
        ops,
    }
}

/// One record with impacts.
fn sample_2() -> Batch {
    let scope = Scope::parse("a").expect("a scope");
    let mut record = Record::new(scope, "m1", 0, "port");
    record.impacts = vec![("##ing".into(), 0.5), ("port".into(), 2.0)];
    Batch {
        commit_time_us: 1_700_000_000_000_000,
        ops: vec![Op::Put {
            mode: PutMode::Upsert,
            record: record.into(),
            vectors: StoredVectors::default(),
            known_since_us: None,
        }],
    }
}

/// One record with vectors in two spaces, known before its commit.
fn sample_3() -> Batch {
    let scope = Scope::parse("a").expect("a scope");
    let mut vectors = StoredVectors::main(Some(vec![0, 60]));
    vectors.put(SpaceNumber::new(2), vec![0, 0, 128, 63]);
    Batch {
        commit_time_us: 1_700_000_000_000_000,
        ops: vec![Op::Put {
            mode: PutMode::Upsert,
            record: Record::new(scope, "m1", 0, "port").into(),
            vectors,
            known_since_us: Some(1_600_000_000_000_000),
        }],
    }
}

/// Widths and meanings of its fields.
const FIELDS_3: &[(usize, &str)] = &[
    (1, "version"),
    (8, "commit time, i64 us"),
    (1, "operations"),
    (1, "op: put that has more"),
    (1, "flags: spaces, known since"),
    (1, "mode: upsert"),
    (1, "presence: vector"),
    (3, "scope: length, key a 00"),
    (3, "id: m1"),
    (8, "event time, i64 us"),
    (5, "text"),
    (1, "attributes: empty"),
    (1, "tags: none"),
    (3, "vector: length, bytes as stored"),
    (1, "spaces"),
    (1, "space: 2"),
    (5, "vector: length, bytes as stored"),
    (8, "known since, i64 us"),
];

/// Widths and meanings of its fields.
const FIELDS_2: &[(usize, &str)] = &[
    (1, "version"),
    (8, "commit time, i64 us"),
    (1, "operations"),
    (1, "op: put"),
    (1, "mode: upsert"),
    (1, "presence: impacts"),
    (3, "scope: length, key a 00"),
    (3, "id: m1"),
    (8, "event time, i64 us"),
    (5, "text"),
    (1, "attributes: empty"),
    (1, "tags: none"),
    (1, "impacts"),
    (6, "token: ##ing"),
    (2, "weight 0.5: 128 steps of 1/256"),
    (5, "token: port"),
    (2, "weight 2: 512 steps"),
];

/// Widths and meanings of the sample's fields, in order; together all of its bytes.
const FIELDS: &[(usize, &str)] = &[
    (1, "version"),
    (8, "commit time, i64 us"),
    (1, "operations"),
    (1, "op: put"),
    (1, "mode: upsert"),
    (1, "presence: all seven"),
    (10, "scope: length, key user 00 ana 00"),
    (3, "id: m1"),
    (8, "event time, i64 us"),
    (13, "text"),
    (7, "summary"),
    (4, "speaker"),
    (5, "source"),
    (1, "source class: user_confirmed"),
    (4, "importance, f32"),
    (3, "source id"),
    (8, "attributes"),
    (1, "tags"),
    (3, "tag: bo"),
    (4, "tag: met"),
    (5, "vector: length, bytes as stored"),
    (1, "op: put"),
    (1, "mode: insert"),
    (1, "presence: none"),
    (10, "scope"),
    (3, "id: m2"),
    (8, "event time, i64 us: -1"),
    (1, "text: empty"),
    (1, "attributes: empty"),
    (1, "tags: none"),
    (1, "op: delete"),
    (10, "scope"),
    (3, "id: m0"),
];

fn hexdump(bytes: &[u8], fields: &[(usize, &str)]) -> String {
    let mut dump = format!(
        "# One batch, format version {}. offset: bytes # meaning\n",
        bytes[0]
    );
    let mut offset = 0;
    for (width, meaning) in fields {
        let hex: Vec<String> = bytes[offset..offset + width]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        writeln!(dump, "{offset:04x}: {:<38} # {meaning}", hex.join(" ")).expect("to a string");
        offset += width;
    }
    assert_eq!(offset, bytes.len(), "every byte has a meaning");
    dump
}

/// The bytes of a hexdump, comments left out.
fn parse(dump: &str) -> Vec<u8> {
    let lines = dump
        .lines()
        .filter_map(|line| line.split('#').next()?.split_once(": "));
    let hex = lines.flat_map(|(_, hex)| hex.split_whitespace());
    hex.map(|byte| u8::from_str_radix(byte, 16).expect("hex"))
        .collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its committed file, not a store"
)]
fn the_bytes_of_a_batch_are_the_committed_ones() {
    for (path, ops, fields) in [
        (PATHS[0], sample(), FIELDS),
        (PATHS[1], sample_2(), FIELDS_2),
        (PATHS[2], sample_3(), FIELDS_3),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let borrowed: Vec<OpRef<'_>> = ops.ops.iter().map(Op::borrowed).collect();
        let mut bytes = Vec::new();
        encode_batch(&borrowed, ops.commit_time_us, &mut bytes).expect("small");
        let dump = hexdump(&bytes, fields);
        if std::env::var_os("CHRONOLITH_BLESS").is_some() {
            std::fs::write(&path, &dump).expect("the golden file is written");
        }
        let golden = std::fs::read(&path).expect("the golden file");
        let golden = String::from_utf8(golden).expect("text");
        assert_eq!(dump, golden);
        assert_eq!(
            decode_batch(&parse(&golden)),
            Ok(ops),
            "the committed bytes still read"
        );
    }
}
