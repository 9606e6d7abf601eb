//! Does a memtable take what it counts, and its flush little more? Counted by the allocator of
//! this binary, for records of several shapes.

use std::alloc::System;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chronolith_segments::analyze::{Analyzed, Analyzer, AnalyzerKind, AnalyzerOptions, Language};
use chronolith_segments::{
    Bucket, Memtable, MemtableOptions, MergeInput, Record, Scope, SegmentSpec, SpaceNumber,
    SpaceSet, TokenCounter, VectorFormat, VectorSpace, prepare, write_segment,
};
use chronolith_vfs::{RealVfs, Vfs};
use peakmem_alloc::{PeakMemAlloc, PeakMemAllocTrait};

#[global_allocator]
static COUNTING: PeakMemAlloc<System> = PeakMemAlloc::new(System);

/// Accounted bytes at which a memtable is full here.
const BYTES_MAX: u64 = 8 << 20;
/// What it may take at most when it is full, in percent of its budget.
const HELD_MAX_PERCENT: u64 = 125;
/// What its flush may take beside it, in percent of the budget.
const FLUSH_MAX_PERCENT: u64 = 50;
/// What is counted then, in percent of the budget: no table grows past it, and none is full long
/// before it.
const COUNTED_PERCENT: std::ops::RangeInclusive<u64> = 50..=110;
const DIM: u32 = 384;

/// One measurement at a time: the allocator counts for all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shape of records: its name, and the n-th one.
type Shape = (&'static str, fn(u64) -> Record);

fn word(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

fn record(scope: &str, n: u64, text: String) -> Record {
    let time_us = 1_700_000_000_000_000 + i64::try_from(n).unwrap_or(0);
    Record::new(
        Scope::parse(scope).expect("a scope"),
        format!("id-{n}"),
        time_us,
        text,
    )
}

fn words(n: u64, count: u64, vocabulary: u64) -> String {
    let words = (0..count).map(|at| format!("word{:05x} ", word(n * count + at) % vocabulary));
    words.collect()
}

const SHAPES: [Shape; 6] = [
    ("one word", |n| {
        record("user/ana", n, format!("w{}", word(n) % 100))
    }),
    ("a sentence", |n| {
        record("user/ana", n, words(n, 12, 20_000))
    }),
    ("a page", |n| record("user/ana", n, words(n, 80, 50_000))),
    ("words of its own", |n| {
        record("user/ana", n, words(n, 30, u64::MAX))
    }),
    ("many scopes", |n| {
        record(&format!("user/u{}", n % 5000), n, words(n, 12, 20_000))
    }),
    ("a vector", |n| {
        let mut record = record("user/ana", n, words(n, 12, 20_000));
        record.vector = Some(vec![0.5; DIM as usize]);
        record.tags = vec![format!("t{}", n % 50), "all".into()];
        record
    }),
];

fn space() -> VectorSpace {
    VectorSpace {
        model: "m".into(),
        dim: DIM,
        format: VectorFormat::F16,
        normalised: false,
    }
}

/// Fills a memtable; gives it with the most that was held on the way.
fn fill(make: fn(u64) -> Record) -> (Memtable, u64) {
    let options = AnalyzerOptions::default();
    let analyzer = Analyzer::new(AnalyzerKind::Default, Language::ENGLISH, options).expect("made");
    let (mut scratch, spaces) = (Analyzed::default(), SpaceSet::main(Some(space())));
    COUNTING.reset_peak_memory();
    let memtable = Memtable::new(MemtableOptions {
        spaces: spaces.spaces.clone(),
        bytes_max: BYTES_MAX,
        hash_seed: 1,
        code_seed: Some(1),
    });
    for n in 0.. {
        let counter = TokenCounter::BytesOverFour;
        let prepared = prepare(make(n), &analyzer, &mut scratch, &spaces, counter);
        memtable.insert(&prepared.expect("fits"), n + 1, 1);
        if memtable.is_full() {
            break;
        }
    }
    (memtable, COUNTING.get_peak_memory() as u64)
}

/// The most that is held beside a memtable while it is flushed.
fn flush(memtable: &Memtable, dir: &Path) -> u64 {
    memtable.seal();
    COUNTING.reset_peak_memory();
    let spec = SegmentSpec {
        store_id: [1; 16],
        file_number: 1,
        analyzer_id: "a".into(),
        spaces: SpaceSet::main(Some(space())).spaces,
        layout: SpaceNumber::MAIN,
        token_counter: TokenCounter::BytesOverFour,
        bucket: Bucket {
            level: 0,
            start_us: i64::MIN,
            end_us: i64::MAX,
        },
        lineage: Vec::new(),
        train_dictionary: false,
    };
    let input = MergeInput {
        partition: memtable,
        keep: (0..memtable.rows()).collect(),
    };
    write_segment(&RealVfs::new(), dir, &spec, &[input]).expect("written");
    COUNTING.get_peak_memory() as u64
}

#[test]
fn a_full_memtable_holds_what_it_counts_and_its_flush_little_more() {
    let _alone = alone();
    let vfs = RealVfs::new();
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path();
    let mut over = Vec::new();
    for (name, make) in SHAPES {
        let (memtable, held) = fill(make);
        let flush = flush(&memtable, dir);
        vfs.remove_file(&dir.join("0000000000000001.seg"))
            .expect("removed");
        let percent = |bytes: u64| bytes * 100 / BYTES_MAX;
        let [counted, held, flush] = [memtable.bytes(), held, flush].map(percent);
        println!(
            "{name}: {} rows; of the budget {counted} % counted, {held} % held, {flush} % more at \
             its flush",
            memtable.rows()
        );
        let is_bounded = held <= HELD_MAX_PERCENT && flush <= FLUSH_MAX_PERCENT;
        if !is_bounded || !COUNTED_PERCENT.contains(&counted) {
            over.push(name);
        }
    }
    assert!(over.is_empty(), "over their bounds: {over:?}");
}
