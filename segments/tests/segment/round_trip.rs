//! What goes in comes out, through one writing and through several.

use std::collections::BTreeMap;

use chronolith_segments::{
    MergeInput, Partition, ROW_DROPPED, ReadMode, RowFields, Scope, SegmentError, Stored,
    write_segment,
};
use proptest::prelude::*;
use roaring::RoaringBitmap;

use crate::memory::MemoryVfs;
use crate::naive::{DIM, Naive, OTHER_DIM, Row, dir, open, spec_of_two, write_all};
use crate::oracle::check;
use crate::plain::Plain;

fn name() -> impl Strategy<Value = Option<String>> {
    prop::option::of("\\PC{0,6}")
}

fn fields() -> impl Strategy<Value = RowFields> {
    let times = prop_oneof![3 => 0..40_i64, 1 => -1_000_000_000_000..1_000_000_000_000_i64];
    let end = prop_oneof![Just(i64::MAX), 0..1_000_000_i64, Just(i64::MIN)];
    let importance = prop_oneof![Just(f32::NAN), 0.0..=1.0_f32];
    (
        (times, end.clone(), end),
        (0..6_u8, importance, 0..50_u32, 0..3_u32, any::<i64>()),
    )
        .prop_map(
            |(
                (event_time_us, valid_to_us, expires_us),
                (source_class, importance, length, cluster, valid_from_us),
            )| {
                RowFields {
                    event_time_us,
                    commit_seq: 0,
                    commit_time_us: event_time_us.wrapping_mul(3),
                    valid_from_us,
                    valid_to_us,
                    expires_us,
                    source_class,
                    importance,
                    length,
                    text_tokens: length + 1,
                    summary_tokens: length / 2,
                    cluster,
                }
            },
        )
}

fn stored() -> impl Strategy<Value = Stored> {
    let text = prop_oneof![
        "\\PC{0,40}",
        "[a-z ]{0,40}".prop_map(|text| text.repeat(60))
    ];
    let impacts = prop::collection::btree_map("[a-c]{1,2}", 1..=64 * 256_u16, 0..4);
    (text, name(), name(), name(), "[{}a]{0,9}", impacts).prop_map(
        |(text, summary, speaker, source, attributes, impacts)| {
            let impacts = impacts.into_iter();
            Stored {
                text,
                summary,
                speaker,
                source,
                attributes,
                impacts: impacts
                    .map(|(token, steps)| (token, f32::from(steps) / 256.0))
                    .collect(),
            }
        },
    )
}

fn row() -> impl Strategy<Value = Row> {
    let scope = prop::sample::select(vec!["a", "a/b", "a/b/c", "a/b/d", "a-b", "c", "d"]);
    let id = prop_oneof![
        "[xyz]{1,2}",
        Just("0190163d-8694-739b-aea5-966c26f8ad91".to_owned())
    ];
    let tags = prop::collection::btree_set(prop::sample::select(vec!["t1", "t2", "t3"]), 0..3);
    let terms = prop::collection::btree_map(
        prop::collection::vec(prop::sample::select(vec![b'a', b'b', 0, 255]), 1..3),
        1..5_u32,
        0..5,
    );
    let vector = prop::option::of(prop::collection::vec(any::<u8>(), DIM as usize * 4));
    let other = prop::option::of(prop::collection::vec(any::<u8>(), OTHER_DIM as usize * 2));
    let vectors = (vector, other);
    (
        scope,
        id,
        fields(),
        tags,
        (terms, name(), vectors, stored()),
    )
        .prop_map(
            |(scope, id, fields, tags, (terms, source_id, vectors, stored))| Row {
                scope: Scope::parse(scope).expect("a scope"),
                id,
                fields,
                tags: tags.into_iter().map(str::to_owned).collect(),
                terms: terms.into_iter().collect::<BTreeMap<_, _>>(),
                source_id,
                vector: vectors.0,
                other: vectors.1,
                stored,
            },
        )
}

/// Rows with distinct seqs, some of them dropped, split over up to three partitions.
#[derive(Debug, Clone)]
struct Case {
    parts: Vec<Vec<(Row, bool)>>,
    positioned: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let rows = prop::collection::vec((row(), prop::bool::weighted(0.8), 0..3_usize), 1..40);
    (rows, any::<bool>(), any::<u64>()).prop_map(|(rows, positioned, salt)| {
        let mut parts = vec![Vec::new(), Vec::new(), Vec::new()];
        let count = rows.len() as u64;
        for (number, (mut row, keep, part)) in (0..).zip(rows) {
            // A rotation: seqs are distinct and do not follow the order of rows.
            row.fields.commit_seq = (7 << 40) + (number + salt % count) % count;
            parts[part].push((row, keep || number == 0));
        }
        Case { parts, positioned }
    })
}

fn mode(positioned: bool) -> ReadMode {
    if positioned {
        ReadMode::Positioned
    } else {
        ReadMode::Mapped
    }
}

fn kept(part: &[(Row, bool)]) -> RoaringBitmap {
    (0..)
        .zip(part)
        .filter(|(_, (_, keep))| *keep)
        .map(|(at, _)| at)
        .collect()
}

fn naive(part: &[(Row, bool)]) -> Naive {
    Naive {
        rows: part.iter().map(|(row, _)| row.clone()).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_segment_answers_as_the_rows_it_was_made_of(case in case()) {
        let vfs = MemoryVfs::default();
        let parts: Vec<Naive> = case.parts.iter().map(|part| naive(part)).collect();
        let inputs: Vec<MergeInput<'_>> = parts.iter().zip(&case.parts)
            .map(|(partition, part)| MergeInput { partition, keep: kept(part) }).collect();
        let mut expected: Vec<Row> = case.parts.iter().flatten()
            .filter(|(_, keep)| *keep).map(|(row, _)| row.clone()).collect();
        expected.sort_by(|a, b| a.place().cmp(&b.place()));
        let flushed = write_segment(&vfs, dir(), &spec_of_two(1), &inputs).expect("written");
        check(&open(&vfs, &flushed, mode(case.positioned)), &expected);
        for (part, remap) in case.parts.iter().zip(&flushed.remap) {
            prop_assert_eq!(part.len(), remap.len());
            for ((row, keep), to) in part.iter().zip(remap) {
                let place = expected.iter().position(|other| other.fields.commit_seq == row.fields.commit_seq);
                let place = place.map_or(ROW_DROPPED, |at| u32::try_from(at).expect("few"));
                prop_assert_eq!(*to, if *keep { place } else { ROW_DROPPED });
            }
        }

        // Each part alone, then all of them merged: the same rows in the same order.
        let mut segments = Vec::new();
        for (number, input) in (2..).zip(&inputs).filter(|(_, input)| !input.keep.is_empty()) {
            let input = MergeInput { partition: input.partition, keep: input.keep.clone() };
            let written = write_segment(&vfs, dir(), &spec_of_two(number), &[input]).expect("written");
            segments.push(open(&vfs, &written, mode(!case.positioned)));
        }
        let inputs: Vec<MergeInput<'_>> = segments.iter()
            .map(|segment| MergeInput { partition: segment, keep: (0..segment.zone().rows).collect() }).collect();
        let merged = write_segment(&vfs, dir(), &spec_of_two(9), &inputs).expect("written");
        check(&open(&vfs, &merged, mode(case.positioned)), &expected);
        prop_assert_eq!(merged.meta.zone, flushed.meta.zone);

        // What a segment tells a merge at once is what it tells of each row: the same bytes.
        let plain: Vec<Plain<'_>> = segments.iter().map(|segment| Plain(segment)).collect();
        for dropped in [0, 1_u32] {
            let keep = |rows: u32| (0..rows).filter(|row| row % 3 + 1 != dropped).collect();
            let inputs = |number: usize| (segments[number].zone().rows, number);
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            for (rows, number) in (0..segments.len()).map(inputs) {
                fast.push(MergeInput { partition: &segments[number], keep: keep(rows) });
                slow.push(MergeInput { partition: &plain[number], keep: keep(rows) });
            }
            if fast.iter().all(|input| input.keep.is_empty()) {
                continue;
            }
            let spec = spec_of_two(20 + u64::from(dropped));
            let fast = write_segment(&vfs, dir(), &spec, &fast).expect("written");
            let slow = write_segment(&MemoryVfs::default(), dir(), &spec, &slow).expect("written");
            prop_assert_eq!(fast, slow);
        }
    }
}

fn round_trip(rows: Vec<Row>) {
    let vfs = MemoryVfs::default();
    let mut expected = rows.clone();
    expected.sort_by(|a, b| a.place().cmp(&b.place()));
    let written = write_all(&vfs, &spec_of_two(1), rows);
    for mode in [ReadMode::Mapped, ReadMode::Positioned] {
        check(&open(&vfs, &written, mode), &expected);
    }
}

#[test]
fn one_row_without_anything_is_a_segment() {
    let mut row = Row::plain("a", "x", 0, 0, "");
    row.fields.length = 0;
    round_trip(vec![row]);
}

#[test]
fn many_rows_in_one_scope_and_one_row_in_each_of_many_scopes() {
    let text = |i: u64| {
        format!(
            "w{} w{} common {}",
            i % 7,
            i * 31 % 101,
            "pad ".repeat(i as usize % 9)
        )
    };
    let row = |scope: &str, i: u64| {
        Row::plain(
            scope,
            &format!("id-{}", i * 7919 % 1000),
            i as i64 * 1000,
            i,
            &text(i),
        )
    };
    round_trip((0..300).map(|i| row("a/b", i)).collect());
    round_trip(
        (0..200)
            .map(|i| row(&format!("a/{}", i * 37 % 200), i))
            .collect(),
    );
}

#[test]
fn no_rows_and_rows_outside_the_bucket_are_refused() {
    let vfs = MemoryVfs::default();
    let empty = Naive::default();
    let error = write_segment(
        &vfs,
        dir(),
        &spec_of_two(1),
        &[MergeInput {
            partition: &empty,
            keep: RoaringBitmap::new(),
        }],
    );
    assert!(matches!(error, Err(SegmentError::Limit(_))));
    let outside = std::panic::catch_unwind(|| {
        let vfs = MemoryVfs::default();
        write_all(
            &vfs,
            &spec_of_two(1),
            vec![Row::plain("a", "x", i64::MAX / 2, 1, "w")],
        )
    });
    assert!(outside.is_err());
}

/// Text as long and as repetitive as a chat turn, from a generator with a fixed seed.
fn chat_turns(count: u64) -> Vec<Row> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|i| {
            let words: Vec<String> = (0..28)
                .map(|_| {
                    // Log-uniform ranks: the law of words, nearly.
                    let rank = (2_f64.powf((next() % 1000) as f64 / 1000.0 * 14.0)) as u64;
                    let letters = rank.wrapping_mul(0x9e37_79b9) % 100_000_000;
                    (0..3 + rank % 5)
                        .map(|at| char::from(b'a' + (letters / 7_u64.pow(at as u32) % 26) as u8))
                        .collect()
                })
                .collect();
            Row::plain(
                "user/ana",
                &format!("turn-{i:07}"),
                1_700_000_000_000_000 + i as i64 * 61_000_000,
                i,
                &words.join(" "),
            )
        })
        .collect()
}

#[test]
fn a_record_takes_few_bytes_and_a_dictionary_makes_it_fewer() {
    let vfs = MemoryVfs::default();
    let rows = chat_turns(12_000);
    let plain = write_all(&vfs, &spec_of_two(1), rows.clone());
    let mut with_dictionary = spec_of_two(2);
    with_dictionary.train_dictionary = true;
    let trained = write_all(&vfs, &with_dictionary, rows.clone());
    let segment = open(&vfs, &trained, ReadMode::Mapped);
    let description = segment.describe();
    for section in &description.sections {
        println!("{:16} {:9}", section.name, section.bytes);
    }
    let per_record = |bytes: u64| bytes / rows.len() as u64;
    println!(
        "{} and {} bytes a record",
        per_record(plain.meta.file.bytes),
        per_record(trained.meta.file.bytes)
    );
    assert!(
        description
            .sections
            .iter()
            .any(|section| section.name == "text_dictionary")
    );
    assert!(per_record(trained.meta.file.bytes) < per_record(plain.meta.file.bytes));
    assert!(per_record(trained.meta.file.bytes) <= 200);
    assert_eq!(segment.verify_all().findings, []);
    for at in [0, 5_999, 11_999_u32] {
        assert_eq!(
            segment.stored(at).expect("stored"),
            rows[at as usize].stored
        );
    }
}
