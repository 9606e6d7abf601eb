//! Do the publish protocols hold under every interleaving? loom runs the memtable's own code.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p chronolith-segments --lib memtable::model`.
//! Chunks and tables are tiny under loom, so that a few rows cross and grow them.
//!
//! The reader is the spawned thread on purpose: loom remembers only the last access to an
//! atomic, so a writer that loads a word before it stores it hides an earlier load of the
//! reader, and a reader that runs first is never interrupted. The other way round all stores
//! lie before the reader's loads, and loom tries every store that a load may return.
//! Each model was seen to fail with the `Release` of its subject made `Relaxed`.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;

use super::cells::Cells;
use super::list::{HEADER_WORDS, View, push};
use super::table::Table;
use super::words::{Arena, Words};

/// Runs `write` against `read` in every interleaving.
fn race<S: Send + Sync + 'static>(
    setup: impl Fn() -> S + Send + Sync + 'static,
    write: impl Fn(&S) + Send + Sync + 'static,
    read: fn(&S),
) {
    loom::model(move || {
        let shared = Arc::new(setup());
        let readers = Arc::clone(&shared);
        let reader = thread::spawn(move || read(&readers));
        write(&shared);
        reader.join().expect("no panic");
    });
}

/// A published word covers the words below it, across chunks.
#[test]
fn words_below_a_published_count_are_whole() {
    let count = 0;
    race(
        move || {
            let words = Words::new();
            words.reserve(1);
            words
        },
        move |words| {
            for row in 1..4 {
                words.reserve(row + 1);
                words.set(row, 7);
                words.publish(count, u32::try_from(row).expect("few rows"));
            }
        },
        |words| {
            for row in 1..=words.observe(0) {
                assert_eq!(words.get(u64::from(row)), 7);
            }
        },
    );
}

/// A list's count covers its entries and the links to their slices.
#[test]
fn a_list_is_read_as_a_prefix() {
    const HEADER: u32 = 1;
    race(
        || {
            let arena = Arena::new();
            assert_eq!(arena.alloc(HEADER_WORDS), HEADER);
            push(&arena, HEADER, [10, 100]);
            arena
        },
        |arena| {
            push(arena, HEADER, [11, 101]);
            push(arena, HEADER, [12, 102]);
        },
        |arena| {
            let view = View::<2>::new(arena, HEADER);
            assert!((1..=3).contains(&view.count()));
            for at in 0..view.count() {
                assert_eq!((view.get(at, 0), view.get(at, 1)), (10 + at, 100 + at));
            }
        },
    );
}

/// A table with what its values point at, and the published rows.
struct Rows {
    table: Table,
    arena: Arena,
    cells: Cells<u32>,
    rows: AtomicU32,
}

impl Rows {
    /// Adds a row; all hashes meet in one slot.
    fn add(&self, row: u32) {
        let entry = self.arena.alloc(1);
        self.arena.words.set(u64::from(entry), 70 + row);
        self.cells.fill(entry, 70 + row);
        self.table.insert(4, entry);
        self.rows.store(row + 1, Release);
    }

    fn find(&self, row: u32) -> bool {
        let is_it = |entry: u32| {
            let value = self.arena.words.get(u64::from(entry));
            assert!((70..73).contains(&value), "an entry is whole");
            assert_eq!(self.cells.get(entry), Some(&value), "an entry is whole");
            value == 70 + row
        };
        self.table.find(4, is_it).is_some()
    }
}

/// What was inserted before a row was published is found by who sees the row, also while
/// the table grows, and a found value's target is whole.
#[test]
fn a_table_never_loses_what_a_reader_may_see() {
    race(
        || {
            let rows = Rows {
                table: Table::new(),
                arena: Arena::new(),
                cells: Cells::new(),
                rows: AtomicU32::new(0),
            };
            rows.add(0);
            rows
        },
        |rows| {
            rows.add(1);
            rows.add(2);
        },
        |rows| {
            let seen = rows.rows.load(Acquire);
            for row in 0..3 {
                assert!(rows.find(row) || row >= seen, "row {row} of {seen} is lost");
            }
        },
    );
}
