//! Do the publish protocols hold under every interleaving? loom runs the memtable's own code.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p chronolith-segments --lib memtable::model`.
//! Chunks and tables are tiny under loom, so that a few rows cross and grow them.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;

use super::cells::Cells;
use super::list::{HEADER_WORDS, View, push};
use super::table::Table;
use super::words::{Arena, Words};

/// A published count covers the words below it, across chunks.
#[test]
fn words_below_a_published_count_are_whole() {
    loom::model(|| {
        let shared = Arc::new((Words::new(), AtomicU32::new(0)));
        let writer = Arc::clone(&shared);
        let handle = thread::spawn(move || {
            for row in 0..3 {
                writer.0.reserve(row + 1);
                writer.0.set(row, 7);
                writer.1.store(row as u32 + 1, Release);
            }
        });
        let rows = shared.1.load(Acquire);
        for row in 0..rows {
            assert_eq!(shared.0.get(u64::from(row)), 7);
        }
        handle.join().expect("no panic");
    });
}

/// A list's count covers its entries and the links to their slices.
#[test]
fn a_list_is_read_as_a_prefix() {
    loom::model(|| {
        let arena = Arena::new();
        let header = arena.alloc(HEADER_WORDS);
        push(&arena, header, [10, 100]);
        let shared = Arc::new(arena);
        let writer = Arc::clone(&shared);
        let handle = thread::spawn(move || {
            push(&writer, header, [11, 101]);
            push(&writer, header, [12, 102]);
        });
        let view = View::<2>::new(&shared, header);
        assert!((1..=3).contains(&view.count()));
        for at in 0..view.count() {
            assert_eq!((view.get(at, 0), view.get(at, 1)), (10 + at, 100 + at));
        }
        handle.join().expect("no panic");
    });
}

/// What was inserted before a row was published is found by who sees the row, also while
/// the table grows, and a found value's target is whole.
#[test]
fn a_table_never_loses_what_a_reader_may_see() {
    loom::model(|| {
        let shared = Arc::new((Table::new(), Arena::new(), Cells::new(), AtomicU32::new(0)));
        let add = |shared: &(Table, Arena, Cells<u32>, AtomicU32), row: u32| {
            let (table, arena, cells, rows) = shared;
            let entry = arena.alloc(1);
            arena.words.set(u64::from(entry), 70 + row);
            cells.fill(entry, 70 + row);
            // All hashes meet in one slot.
            table.insert(4, entry);
            rows.store(row + 1, Release);
        };
        add(&shared, 0);
        let writer = Arc::clone(&shared);
        let handle = thread::spawn(move || {
            add(&writer, 1);
            add(&writer, 2);
        });
        let (table, arena, cells, rows) = &*shared;
        let seen = rows.load(Acquire);
        for row in 0..3 {
            let is_it = |entry: u32| {
                let value = arena.words.get(u64::from(entry));
                assert_eq!(cells.get(entry), Some(&value), "an entry is whole");
                assert!((70..73).contains(&value), "an entry is whole");
                value == 70 + row
            };
            let found = table.find(4, is_it).is_some();
            assert!(found || row >= seen, "row {row} of {seen} is lost");
        }
        handle.join().expect("no panic");
    });
}
