use proptest::collection::vec;
use proptest::prelude::*;

use super::format::widen;
use super::*;
use crate::SegmentError;
use crate::format::{Section, VecSink};
use crate::limits::ROWS_MAX;
use crate::read::{LENGTH_LONG, Postings, TermBounds};
use crate::scores::{ScoreTable, Scores, Sums};

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
    info: TermInfo,
}

/// The length of a row: most are like each other, some very short or long.
fn length_of(row: u32) -> u32 {
    let hash = row
        .wrapping_mul(0x9e37_79b9)
        .rotate_left(15)
        .wrapping_mul(0x85eb_ca6b);
    match hash % 64 {
        0 => hash % 3,
        1 => hash,
        2 => 250 + hash % 10,
        _ => 20 + hash % 40,
    }
}

fn bytes_of(pairs: &[(u32, u32)]) -> (Vec<u8>, Vec<u8>, TermInfo) {
    let mut writer = PostingsWriter::default();
    let mut sink = VecSink::default();
    // Another list before, so that offsets are not 0.
    let other: Vec<u32> = (0..200).collect();
    writer
        .add(
            &mut sink,
            &other,
            &other.iter().map(|row| row + 1).collect::<Vec<_>>(),
            &other,
        )
        .expect("in memory");
    let (rows, freqs): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    let lengths: Vec<u32> = rows.iter().copied().map(length_of).collect();
    let added = writer.add(&mut sink, &rows, &freqs, &lengths);
    let offset = writer.flush_short(&mut sink).expect("in memory");
    let skip = writer.finish();
    let info = match added.expect("in memory") {
        Added::One { row, freq, length } => TermInfo {
            df: 1,
            bounds: TermBounds::one(freq, length),
            place: ListPlace::One { row, freq },
        },
        Added::Short { df, bytes, bounds } => {
            let (freq, length) = widen(bounds);
            TermInfo {
                df,
                bounds: TermBounds::one(freq, length),
                place: ListPlace::Short { offset, bytes },
            }
        }
        Added::Long { skip_offset } => {
            let lists = PostingLists::new(
                Section::in_memory("postings", Vec::new()),
                Section::in_memory("postings_skip", skip.clone()),
                ROWS_MAX,
            );
            let (df, bounds) = lists.read_header(skip_offset).expect("intact");
            let place = ListPlace::Long { skip_offset };
            TermInfo { df, bounds, place }
        }
    };
    assert_eq!(info.df as usize, pairs.len());
    (sink.bytes, skip, info)
}

fn written(pairs: &[(u32, u32)], rows: u32) -> Written {
    let (postings, skip, info) = bytes_of(pairs);
    let sections = (
        Section::in_memory("postings", postings),
        Section::in_memory("postings_skip", skip),
    );
    Written {
        lists: PostingLists::new(sections.0, sections.1, rows),
        info,
    }
}

impl Written {
    fn open(&self, rows: std::ops::Range<u32>) -> Result<Option<PostingsCursor<'_>>, SegmentError> {
        PostingsCursor::open(&self.lists, &self.info, rows)
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
        let (mut postings, mut skip, info) = bytes_of(&pairs);
        let damaged = if in_skip { &mut skip } else { &mut postings };
        let at = at.index(damaged.len());
        damaged[at] ^= with;
        let rows = pairs.last().expect("never empty").0 + 1;
        let sections = (Section::in_memory("postings", postings), Section::in_memory("postings_skip", skip));
        let lists = PostingLists::new(sections.0, sections.1, rows);
        let df = u32::try_from((pairs.len() as i64 + df_off).max(0)).expect("small");
        let info = TermInfo { df, ..info };
        for range in [0..rows, rows / 3..rows / 2] {
            let Ok(Some(mut cursor)) = PostingsCursor::open(&lists, &info, range.clone()) else { continue };
            let (mut found, mut freqs) = (Vec::new(), Vec::new());
            if cursor.read_until(u32::MAX, &mut found, &mut freqs).is_ok() {
                prop_assert_eq!(found.len(), freqs.len());
                prop_assert!(found.iter().all(|row| *row < rows));
                prop_assert!(freqs.iter().all(|freq| *freq > 0));
            }
            if let Ok(Some(mut cursor)) = PostingsCursor::open(&lists, &info, range.clone()) {
                for row in range.step_by((rows as usize / 50).max(1)) {
                    if cursor.freq_at(row).is_err() {
                        break;
                    }
                }
            }
        }
    }
}

/// A cursor without ways of its own to add postings up.
struct Plain<'a>(PostingsCursor<'a>);

impl Postings for Plain<'_> {
    fn count(&self) -> u32 {
        self.0.count()
    }

    fn read_until(
        &mut self,
        end: u32,
        rows: &mut Vec<u32>,
        freqs: &mut Vec<u32>,
    ) -> Result<(), SegmentError> {
        self.0.read_until(end, rows, freqs)
    }

    fn freq_at(&mut self, row: u32) -> Result<u32, SegmentError> {
        self.0.freq_at(row)
    }
}

/// What a scorer does with the next rows: skips them, adds what is among them up, or asks for
/// some of them.
#[derive(Debug, Clone)]
enum Adding {
    Skip,
    Window { is_sparse: bool },
    Ask { step: usize },
}

fn adding() -> impl Strategy<Value = Adding> {
    prop_oneof![
        1 => Just(Adding::Skip),
        3 => any::<bool>().prop_map(|is_sparse| Adding::Window { is_sparse }),
        3 => (1_usize..90).prop_map(|step| Adding::Ask { step }),
    ]
}

/// The sums, touched rows and count of postings that some steps lead to.
fn added(
    cursor: &mut dyn Postings,
    scores: &Scores<'_>,
    rows: &std::ops::Range<u32>,
    steps: &[(u32, Adding)],
) -> Vec<(Vec<i32>, Vec<u32>, u64)> {
    let mut results = Vec::new();
    let mut start = rows.start;
    for (width, step) in steps {
        let window = start..rows.end.min(start + width);
        start = window.end;
        let mut sums = vec![0; window.len()];
        let (mut touched, mut postings) = (Vec::new(), 0);
        match step {
            Adding::Skip => {}
            Adding::Window { is_sparse } => {
                let mut into = Sums {
                    start: window.start,
                    sums: &mut sums,
                    touched: is_sparse.then_some(&mut touched),
                    postings: 0,
                };
                cursor.add_until(window, scores, &mut into).expect("intact");
                postings = into.postings;
            }
            Adding::Ask { step } => {
                let asked: Vec<u32> = window.step_by(*step).collect();
                sums.truncate(asked.len());
                cursor.add_at(&asked, scores, &mut sums).expect("intact");
            }
        }
        results.push((sums, touched, postings));
    }
    results
}

proptest! {
    #[test]
    fn postings_are_added_up_as_one_after_the_other(
        gaps in prop_oneof![1_usize..20, 100_usize..140, 1_usize..900].prop_flat_map(|len| {
            vec((prop_oneof![4 => 0_u32..4, 1 => 0_u32..60], 1_u32..7), len)
        }),
        all_once in any::<bool>(),
        with_lengths in any::<bool>(),
        cut in (0_u32..300, 0_u32..300),
        steps in vec((0_u32..1500, adding()), 1..12),
    ) {
        let mut next = 0;
        let pairs: Vec<(u32, u32)> = gaps.into_iter().map(|(gap, freq)| {
            let row = next + gap;
            next = row + 1;
            (row, if all_once { 1 } else { freq })
        }).collect();
        let all = next + 5;
        let written = written(&pairs, all);
        let lengths: Vec<u8> = (0..all)
            .map(|row| u8::try_from(length_of(row)).unwrap_or(LENGTH_LONG))
            .collect();
        let mut table = ScoreTable::UNKNOWN;
        table.set(1, (0..100).map(|length| 5000 - length));
        table.set(2, (0..50).map(|length| 9000 - length));
        let ask = |row: u32, freq: u32| Ok((row % 1000 + freq) as i32);
        let scores = Scores {
            table: &table,
            lengths: if with_lengths { &lengths } else { &[] },
            ask: &ask,
        };
        let rows = cut.0.min(all)..all.saturating_sub(cut.1).max(cut.0.min(all));
        let open = || written.open(rows.clone()).expect("intact");
        let (Some(mut fast), Some(plain)) = (open(), open()) else { return Ok(()) };
        let found = added(&mut fast, &scores, &rows, &steps);
        let expected = added(&mut Plain(plain), &scores, &rows, &steps);
        prop_assert_eq!(found, expected);
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
    let bytes = |pairs: &[(u32, u32)]| match bytes_of(pairs).2.place {
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
    assert_eq!(skip.len() - skip_without.len(), 32 + 8 * 12);
}

#[test]
fn damage_names_section_and_place() {
    let pairs: Vec<_> = (0..300).map(|row| (row * 3, 1)).collect();
    let (postings, mut skip, info) = bytes_of(&pairs);
    let ListPlace::Long { skip_offset } = info.place else {
        panic!("300 postings are long")
    };
    let at = skip_offset as usize;
    // A byte that must be zero.
    skip[at + 5] = 1;
    let section = |name, bytes: &Vec<u8>| Section::in_memory(name, bytes.clone());
    let open = |skip: &Vec<u8>| {
        let lists = PostingLists::new(
            section("postings", &postings),
            section("postings_skip", skip),
            900,
        );
        PostingsCursor::open(&lists, &info, 0..400)
            .map(|_| ())
            .expect_err("damaged")
            .to_string()
    };
    let message = open(&skip);
    assert!(
        message.contains("section postings_skip") && message.contains(&format!("offset {at}")),
        "{message}"
    );
    skip[at + 5] = 0;
    // Another count of postings, and a list without a bound.
    skip[at + 12] ^= 1;
    assert!(open(&skip).contains("300 postings"));
    skip[at + 12] ^= 1;
    let bound = std::mem::take(&mut skip[at + 16]);
    assert!(open(&skip).contains("no list header"));
    skip[at + 16] = bound;
    skip[at + 32 + 12 + 8] = 33;
    assert!(open(&skip).contains("row_width: 33"));
    skip[at + 32 + 12 + 8] = 2;
    skip[at + 32 + 12] ^= 1;
    assert!(open(&skip).contains("do not ascend"));
}

/// A term's part of BM25, without idf.
fn part(freq: u32, length: u32, (k1, b, average): (f64, f64, f64)) -> f64 {
    let freq = f64::from(freq);
    freq / (freq + k1 * (1.0 - b + b * f64::from(length) / average))
}

#[track_caller]
fn bounded(bounds: &TermBounds, pair: (u32, u32), statistics: (f64, f64, f64)) {
    let bound = bounds.pairs().iter().map(|(f, l)| part(*f, *l, statistics));
    let bound = bound.fold(0.0, f64::max);
    assert!(
        part(pair.0, pair.1, statistics) <= bound,
        "{pair:?} above {bounds:?}"
    );
    assert!(bounds.covers(pair.0, pair.1), "{pair:?} above {bounds:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_posting_scores_above_its_bounds_whatever_the_statistics(
        pairs in postings(),
        statistics in (0.0_f64..3.0, 0.0_f64..=1.0, 0.5_f64..5000.0),
        ends in vec(any::<(prop::sample::Index, u32)>(), 0..6),
    ) {
        let written = written(&pairs, ROWS_MAX);
        let blocks = written.lists.block_bounds(&written.info).expect("intact");
        prop_assert_eq!(blocks.len(), if pairs.len() < 128 { 0 } else { pairs.len() / 128 + 1 });
        for (at, (row, freq)) in pairs.iter().enumerate() {
            let pair = (*freq, length_of(*row));
            bounded(&written.info.bounds, pair, statistics);
            if let Some(bounds) = blocks.get(at / 128) {
                bounded(bounds, pair, statistics);
            }
        }
        let mut ends: Vec<u32> = ends.into_iter().map(|pick| row_near(&pairs, pick)).collect();
        ends.sort_unstable();
        ends.push(u32::MAX);
        let mut cursor = written.open(0..ROWS_MAX).expect("intact").expect("some");
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        for end in ends {
            let bounds = cursor.bounds_until(end).expect("intact");
            rows.clear();
            freqs.clear();
            cursor.read_until(end, &mut rows, &mut freqs).expect("intact");
            for (row, freq) in rows.iter().zip(&freqs) {
                bounded(&bounds, (*freq, length_of(*row)), statistics);
            }
        }
        prop_assert_eq!(cursor.bounds_until(u32::MAX).expect("the end"), TermBounds::NONE);
    }

    #[test]
    fn bounds_to_which_pairs_are_added_cover_them_all(
        pairs in vec((prop_oneof![1_u32..6, any::<u32>()], prop_oneof![0_u32..50, any::<u32>()]), 0..40),
    ) {
        let mut bounds = TermBounds::NONE;
        for (at, (freq, length)) in pairs.iter().enumerate() {
            bounds.add(*freq, *length);
            for (freq, length) in &pairs[..=at] {
                prop_assert!(bounds.covers(*freq, *length));
            }
            for (at, pair) in bounds.pairs().iter().enumerate() {
                let mut others = bounds.pairs().iter().enumerate().filter(|(other, _)| *other != at);
                prop_assert!(!others.any(|(_, other)| other.0 >= pair.0 && other.1 <= pair.1));
            }
        }
    }
}

#[test]
fn a_front_of_few_pairs_is_kept_as_it_is() {
    // Rows 0, 1, 2 with the lengths that their numbers stand for here.
    let front = |pairs: &[(u32, u32)]| bounds::Front::of(pairs.iter().copied()).pairs();
    assert_eq!(
        front(&[(1, 9), (3, 30), (2, 20), (1, 10), (2, 40)]),
        [(1, 9), (2, 20), (3, 30), (0, 0)]
    );
    assert_eq!(front(&[(5, 3), (4, 3), (5, 4)])[..2], [(5, 3), (0, 0)]);
    // What does not fit two bytes stays above the truth.
    assert_eq!(front(&[(70_000, 80_000)])[0], (u16::MAX, u16::MAX));
    assert_eq!(widen([u8::MAX, u8::MAX]), (u32::MAX, 255));
}
