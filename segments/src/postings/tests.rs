use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::SegmentError;
use crate::format::{Section, VecSink};
use crate::limits::ROWS_MAX;
use crate::read::Postings;

/// The definition: pairs in a row range, read by looking at all of them.
#[derive(Debug, Clone)]
struct Naive(Vec<(u32, u32)>);

impl Naive {
    fn new(pairs: &[(u32, u32)], rows: std::ops::Range<u32>) -> Self {
        Self(
            pairs
                .iter()
                .copied()
                .filter(|pair| rows.contains(&pair.0))
                .collect(),
        )
    }

    fn read_until(&mut self, end: u32) -> Vec<(u32, u32)> {
        let taken = self.0.iter().filter(|pair| pair.0 < end).count();
        self.0.drain(..taken).collect()
    }

    fn freq_at(&mut self, row: u32) -> u32 {
        self.0.retain(|pair| pair.0 >= row);
        self.0
            .first()
            .filter(|pair| pair.0 == row)
            .map_or(0, |pair| pair.1)
    }
}

struct Written {
    lists: PostingLists,
    df: u32,
    place: ListPlace,
}

fn bytes_of(pairs: &[(u32, u32)]) -> (Vec<u8>, Vec<u8>, ListPlace) {
    let mut writer = PostingsWriter::default();
    let mut sink = VecSink::default();
    // Another list before, so that offsets are not 0.
    let other: Vec<u32> = (0..200).collect();
    writer
        .add(
            &mut sink,
            &other,
            &other.iter().map(|row| row + 1).collect::<Vec<_>>(),
        )
        .expect("in memory");
    let (rows, freqs): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    let place = writer.add(&mut sink, &rows, &freqs).expect("in memory");
    (sink.bytes, writer.finish(), place)
}

fn written(pairs: &[(u32, u32)], rows: u32) -> Written {
    let (postings, skip, place) = bytes_of(pairs);
    let sections = (
        Section::in_memory("postings", postings),
        Section::in_memory("postings_skip", skip),
    );
    Written {
        lists: PostingLists::new(sections.0, sections.1, rows),
        df: pairs.len() as u32,
        place,
    }
}

impl Written {
    fn open(&self, rows: std::ops::Range<u32>) -> Result<Option<PostingsCursor<'_>>, SegmentError> {
        PostingsCursor::open(&self.lists, self.df, self.place, rows)
    }
}

/// What a reader does: `true` reads up to a row, `false` asks for one.
type Steps = Vec<(bool, u32)>;

fn check(written: &Written, pairs: &[(u32, u32)], rows: std::ops::Range<u32>, steps: &Steps) {
    let mut naive = Naive::new(pairs, rows.clone());
    let Some(mut cursor) = written.open(rows.clone()).expect("intact") else {
        assert!(naive.0.is_empty(), "{rows:?} holds {:?}", naive.0.first());
        return;
    };
    assert_eq!(cursor.count() as usize, naive.0.len());
    for (read, row) in steps {
        if *read {
            let (mut rows, mut freqs) = (vec![7], vec![8]);
            cursor
                .read_until(*row, &mut rows, &mut freqs)
                .expect("intact");
            let found: Vec<_> = rows.into_iter().zip(freqs).collect();
            let expected: Vec<_> = std::iter::once((7, 8))
                .chain(naive.read_until(*row))
                .collect();
            assert_eq!(found, expected, "up to {row}");
        } else {
            assert_eq!(
                cursor.freq_at(*row).expect("intact"),
                naive.freq_at(*row),
                "at {row}"
            );
        }
    }
    assert_eq!(
        cursor.count() as usize,
        Naive::new(pairs, rows).0.len(),
        "reading changes no count"
    );
}

fn frequency() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(1_u32), 3 => 1_u32..20, 1 => 1_u32..=1 << 31, 1 => Just(u32::MAX)]
}

fn gap() -> impl Strategy<Value = u32> {
    prop_oneof![5 => Just(0_u32), 5 => 0_u32..10, 2 => 0_u32..5000, 1 => 0_u32..1 << 20]
}

/// Lists around the borders of blocks; rows below `ROWS_MAX`.
fn postings() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let len = prop_oneof![
        1_usize..5,
        120_usize..135,
        250_usize..260,
        380_usize..390,
        1_usize..900
    ];
    let gaps = len.prop_flat_map(|len| {
        (
            vec((gap(), frequency()), len),
            any::<bool>(),
            0_u32..1 << 29,
        )
    });
    gaps.prop_map(|(gaps, all_once, first)| {
        let mut next = if all_once { 0 } else { u64::from(first) };
        let mut pairs = Vec::new();
        for (gap, freq) in gaps {
            let row = next + u64::from(gap);
            let Some(row) = u32::try_from(row).ok().filter(|row| *row < ROWS_MAX) else {
                break;
            };
            pairs.push((row, if all_once { 1 } else { freq }));
            next = u64::from(row) + 1;
        }
        if pairs.is_empty() {
            vec![(ROWS_MAX - 1, 1)]
        } else {
            pairs
        }
    })
}

/// A row that is in the list, beside it, or anywhere.
fn row_near(pairs: &[(u32, u32)], pick: (prop::sample::Index, u32)) -> u32 {
    let row = pairs[pick.0.index(pairs.len())].0;
    match pick.1 % 4 {
        0 => row,
        1 => row + 1,
        2 => row.saturating_sub(1),
        _ => pick.1 % ROWS_MAX,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_cursor_reads_counts_and_skips_as_the_naive_one(
        pairs in postings(),
        ends in (any::<(prop::sample::Index, u32)>(), any::<(prop::sample::Index, u32)>()),
        whole in any::<bool>(),
        steps in vec((any::<bool>(), any::<(prop::sample::Index, u32)>()), 0..40),
    ) {
        let written = written(&pairs, ROWS_MAX);
        let (a, b) = (row_near(&pairs, ends.0), row_near(&pairs, ends.1));
        let rows = if whole { 0..ROWS_MAX } else { a.min(b)..a.max(b) };
        let mut steps: Steps = steps.into_iter().map(|(read, pick)| (read, row_near(&pairs, pick))).collect();
        steps.sort_by_key(|step| step.1);
        steps.push((true, u32::MAX));
        check(&written, &pairs, rows, &steps);
    }

    #[test]
    fn damaged_lists_give_an_error_or_ascending_rows_of_the_segment(
        pairs in postings(),
        at in any::<prop::sample::Index>(),
        with in 1_u8..=255,
        in_skip in any::<bool>(),
        df_off in prop_oneof![8 => Just(0_i64), 1 => -300_i64..300],
    ) {
        let (mut postings, mut skip, place) = bytes_of(&pairs);
        let damaged = if in_skip { &mut skip } else { &mut postings };
        let at = at.index(damaged.len());
        damaged[at] ^= with;
        let rows = pairs.last().expect("never empty").0 + 1;
        let sections = (Section::in_memory("postings", postings), Section::in_memory("postings_skip", skip));
        let lists = PostingLists::new(sections.0, sections.1, rows);
        let df = u32::try_from((pairs.len() as i64 + df_off).max(0)).expect("small");
        for range in [0..rows, rows / 3..rows / 2] {
            let Ok(Some(mut cursor)) = PostingsCursor::open(&lists, df, place, range.clone()) else { continue };
            let (mut found, mut freqs) = (Vec::new(), Vec::new());
            if cursor.read_until(u32::MAX, &mut found, &mut freqs).is_ok() {
                prop_assert_eq!(found.len(), freqs.len());
                prop_assert!(found.iter().all(|row| *row < rows));
                prop_assert!(freqs.iter().all(|freq| *freq > 0));
            }
            if let Ok(Some(mut cursor)) = PostingsCursor::open(&lists, df, place, range.clone()) {
                for row in range.step_by((rows as usize / 50).max(1)) {
                    if cursor.freq_at(row).is_err() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn borders_of_blocks_and_of_numbers_come_back() {
    for len in [1_u32, 2, 3, 127, 128, 129, 255, 256, 257, 1000] {
        let wide = (ROWS_MAX - 1) / len;
        for step in [1, 2, wide] {
            let pairs: Vec<_> = (0..len)
                .map(|i| (i * step, if i % 5 == 0 { 1 << 31 } else { i + 1 }))
                .collect();
            let written = written(&pairs, ROWS_MAX);
            check(&written, &pairs, 0..ROWS_MAX, &vec![(true, u32::MAX)]);
            for i in [0, 1, 126, 127, 128, 129, len - 1]
                .into_iter()
                .filter(|i| *i < len)
            {
                let row = i * step;
                check(&written, &pairs, 0..row, &vec![(true, u32::MAX)]);
                check(
                    &written,
                    &pairs,
                    row..ROWS_MAX,
                    &vec![(false, row), (true, u32::MAX)],
                );
            }
        }
    }
    check(
        &written(&[(ROWS_MAX - 1, 1)], ROWS_MAX),
        &[(ROWS_MAX - 1, 1)],
        5..ROWS_MAX,
        &vec![(true, u32::MAX)],
    );
}

#[test]
fn short_lists_are_tiny() {
    let bytes = |pairs: &[(u32, u32)]| match bytes_of(pairs).2 {
        ListPlace::One { .. } => 0,
        ListPlace::Short { bytes, .. } => bytes,
        ListPlace::Long { .. } => panic!("not long"),
    };
    assert_eq!(bytes(&[(70_000, 1)]), 0);
    assert_eq!(bytes(&[(5, 1), (60, 1)]), 2);
    assert_eq!(bytes(&[(500, 1), (9000, 2), (70_000, 1)]), 2 + 4 + 3);
}

#[test]
fn dense_rows_of_frequency_one_take_no_bytes_but_skip_data() {
    let pairs: Vec<_> = (0..128 * 8).map(|row| (row, 1)).collect();
    let (with, skip, _) = bytes_of(&pairs);
    let (without, skip_without, _) = bytes_of(&[(0, 1)]);
    assert_eq!(with.len(), without.len());
    assert_eq!(skip.len() - skip_without.len(), 16 + 8 * 12);
}

#[test]
fn damage_names_section_and_place() {
    let pairs: Vec<_> = (0..300).map(|row| (row * 3, 1)).collect();
    let (postings, mut skip, place) = bytes_of(&pairs);
    let ListPlace::Long { skip_offset } = place else {
        panic!("300 postings are long")
    };
    let at = skip_offset as usize;
    // Block bounds: a flag that this format does not have.
    skip[at + 12] = 1;
    let section = |name, bytes: &Vec<u8>| Section::in_memory(name, bytes.clone());
    let open = |skip: &Vec<u8>| {
        let lists = PostingLists::new(
            section("postings", &postings),
            section("postings_skip", skip),
            900,
        );
        PostingsCursor::open(&lists, 300, place, 0..400)
            .map(|_| ())
            .expect_err("damaged")
            .to_string()
    };
    let message = open(&skip);
    assert!(
        message.contains("section postings_skip") && message.contains(&format!("offset {at}")),
        "{message}"
    );
    skip[at + 12] = 0;
    skip[at + 16 + 12 + 8] = 33;
    assert!(open(&skip).contains("row_width: 33"));
    skip[at + 16 + 12 + 8] = 2;
    skip[at + 16 + 12] ^= 1;
    assert!(open(&skip).contains("do not ascend"));
}
