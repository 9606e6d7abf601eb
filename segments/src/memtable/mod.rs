//! What is searchable before it is a segment? The rows that the log holds and segments do not.
//!
//! ```text
//!   insert (one writer) --> columns, bodies        one entry a row
//!                           terms, (scope, term) -> [(row, tf)]
//!                           scopes -> [(row, summed length, time range so far)]
//!                           tags, untagged -> [row]      (scope, id) -> newest row -> ...
//!                       --> rows := row + 1              the row is published
//!   readers (any number)    see rows below the first one above their seq
//! ```
//!
//! Nothing moves and nothing is overwritten, so readers never wait for the writer and the
//! writer never waits for readers. The concurrent parts are four small structures, each
//! with its protocol at its head and a loom model in `model`: [`words`] (chunked integers),
//! [`cells`] (chunked boxes), [`list`] (growing lists) and [`table`] (hash table);
//! [`order`] is a skip list on top. All integers live in one arena of words.
//!
//! Good for: appends, exact scopes and subtrees, one term in one scope, the newest row of
//! an id. Not for: deletes (kept beside it, see [`crate::DeathLog`]) and time ranges of a
//! scope whose rows came out of time order (collected and sorted for each walk).

mod cells;
mod codes;
mod insert;
mod list;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod naive;
mod order;
mod partition;
mod postings;
mod spaces;
mod stream;
mod sync;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;
mod words;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8};
use std::sync::{Mutex, OnceLock};

use foldhash::fast::FixedState;

use self::cells::Cells;
use self::list::{HEADER_WORDS, View};
use self::order::Order;
use self::postings::SortedPostings;
use self::spaces::SpaceRows;
use self::sync::{AtomicU32, AtomicU64, Ordering};
use self::table::Table;
use self::words::{Arena, Words};
use crate::space::{NumberedSpace, SpaceNumber};
use crate::vectors::CodeScratch;

/// How a memtable is made.
#[derive(Debug, Clone, Default)]
pub struct MemtableOptions {
    /// The store's vector spaces; rows carry vectors of these.
    pub spaces: Vec<NumberedSpace>,
    /// Accounted bytes at which [`Memtable::is_full`] says so; 0 = never. Nothing is
    /// allocated ahead, and inserts above it succeed.
    pub bytes_max: u64,
    /// Seed of the hash tables; from the store's seed, so that no caller can aim collisions.
    /// No result depends on it.
    pub hash_seed: u64,
    /// Seed of the codes of the store's vectors, see [`crate::code_seed`]; `None` = no codes
    /// are kept, and every search compares whole vectors.
    pub code_seed: Option<u64>,
}

/// Words of a row in the columns.
const ROW_WORDS: u64 = 13;
const EVENT_TIME: u64 = 0;
const COMMIT_SEQ: u64 = 2;
const COMMIT_TIME: u64 = 4;
const SCOPE: u64 = 6;
/// The row before this one with the same (scope, id), or [`NO_ROW`].
const OLDER_ROW: u64 = 7;
const LENGTH: u64 = 8;
const TEXT_TOKENS: u64 = 9;
const SUMMARY_TOKENS: u64 = 10;
const IMPORTANCE: u64 = 11;
const SOURCE_CLASS: u64 = 12;
const _: () = assert!(SOURCE_CLASS + 1 == ROW_WORDS);
const NO_ROW: u32 = u32::MAX;

/// Words of an entry of a scope's row list: row, summed lengths, smallest and largest event
/// time, each of the rows up to and with this one.
const SCOPE_ENTRY_WORDS: usize = 7;
const SCOPE_LENGTH_SUM: usize = 1;
const SCOPE_TIME_MIN: usize = 3;
const SCOPE_TIME_MAX: usize = 5;

/// What a row holds beside its columns.
#[derive(Debug)]
struct Body {
    id: Box<str>,
    text: Box<str>,
    summary: Option<Box<str>>,
    speaker: Option<Box<str>>,
    source: Option<Box<str>>,
    source_id: Option<Box<str>>,
    attributes: Box<str>,
    impacts: Box<[(String, f32)]>,
    /// Ordinals in [`Memtable::tags`], ascending by name.
    tags: Box<[u32]>,
    /// In the main space.
    vector: Option<Box<[u8]>>,
    /// In others, ascending by space.
    vectors: Box<[(SpaceNumber, Box<[u8]>)]>,
}

#[derive(Debug)]
struct ScopeInfo {
    key: Box<[u8]>,
    /// List of rows.
    rows: u32,
    /// Place in `rows` of the first row older than one before it; `u32::MAX` while all are
    /// in time order.
    disordered_at: AtomicU32,
}

/// A name and the list of its rows.
#[derive(Debug)]
struct Tag {
    name: Box<str>,
    rows: u32,
}

/// What only the writer needs; its lock is the proof that there is one.
#[derive(Debug, Default)]
struct Writer {
    terms: u32,
    tags: u32,
    code: Vec<u8>,
    code_scratch: CodeScratch,
}

/// Extremes over all rows; may run ahead of the row count, never behind.
#[derive(Debug)]
struct Extremes {
    event_time_us_min: AtomicI64,
    event_time_us_max: AtomicI64,
    source_class_max: AtomicU8,
}

/// The rows of recent commits, in memory. See the module.
#[derive(Debug)]
pub struct Memtable {
    options: MemtableOptions,
    hasher: FixedState,
    writer: Mutex<Writer>,
    sealed: AtomicBool,
    /// Published rows: everything of a row below is visible. Stored last.
    rows: AtomicU32,
    scope_count: AtomicU32,
    heap_bytes: AtomicU64,
    extremes: Extremes,
    arena: Arena,
    columns: Words,
    bodies: Cells<Box<Body>>,
    /// Ascending by number.
    spaces: Vec<SpaceRows>,
    scopes: Cells<ScopeInfo>,
    scope_order: Order,
    /// Scope key -> ordinal + 1.
    scope_table: Table,
    terms: Cells<Box<[u8]>>,
    /// Term -> ordinal + 1.
    term_table: Table,
    /// (scope, term) -> address of [scope, term, list of (row, tf)].
    pair_table: Table,
    tags: Cells<Tag>,
    /// Tag -> ordinal + 1.
    tag_table: Table,
    /// List of rows without a tag.
    untagged: u32,
    /// (scope, id) -> address of [scope, newest row].
    id_table: Table,
    /// Filled once after the seal.
    sorted_postings: OnceLock<SortedPostings>,
}

impl Memtable {
    /// An empty memtable; takes a few KiB.
    pub fn new(options: MemtableOptions) -> Self {
        let arena = Arena::new();
        let spaces = options.spaces.iter().cloned();
        let spaces = spaces.map(|own| SpaceRows::new(own, options.code_seed));
        Self {
            hasher: FixedState::with_seed(options.hash_seed),
            spaces: spaces.collect(),
            options,
            writer: Mutex::default(),
            sealed: AtomicBool::new(false),
            rows: AtomicU32::new(0),
            scope_count: AtomicU32::new(0),
            heap_bytes: AtomicU64::new(0),
            extremes: Extremes {
                event_time_us_min: AtomicI64::new(i64::MAX),
                event_time_us_max: AtomicI64::new(i64::MIN),
                source_class_max: AtomicU8::new(0),
            },
            scope_order: Order::new(&arena),
            untagged: arena.alloc(HEADER_WORDS),
            arena,
            columns: Words::new(),
            bodies: Cells::new(),
            scopes: Cells::new(),
            scope_table: Table::new(),
            terms: Cells::new(),
            term_table: Table::new(),
            pair_table: Table::new(),
            tags: Cells::new(),
            tag_table: Table::new(),
            id_table: Table::new(),
            sorted_postings: OnceLock::new(),
        }
    }

    /// Published rows.
    pub fn rows(&self) -> u32 {
        self.rows.load(Ordering::Acquire)
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Memory in use by rows and their indexes, bytes; what the budget is compared with.
    pub fn bytes(&self) -> u64 {
        let tables = self.tables();
        self.arena.bytes()
            + u64::from(self.rows.load(Ordering::Relaxed))
                * (ROW_WORDS + self.spaces.len() as u64)
                * 4
            + self.heap_bytes.load(Ordering::Relaxed)
            + tables.iter().map(|table| table.bytes()).sum::<u64>()
    }

    /// True once [`Memtable::bytes`] has reached the budget, or the next inserts would take it
    /// far over: a table that grows is four times as large at once.
    pub fn is_full(&self) -> bool {
        let ahead = || {
            self.tables()
                .iter()
                .map(|table| table.bytes_ahead())
                .sum::<u64>()
        };
        self.options.bytes_max > 0 && self.bytes() + ahead() >= self.options.bytes_max
    }

    fn tables(&self) -> [&Table; 5] {
        [
            &self.scope_table,
            &self.term_table,
            &self.pair_table,
            &self.tag_table,
            &self.id_table,
        ]
    }

    /// Ends the inserts; from here on the memtable is immutable and may be merged.
    pub fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// True after [`Memtable::seal`].
    pub fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// The store's vector spaces, as given at the start.
    pub fn spaces(&self) -> &[NumberedSpace] {
        &self.options.spaces
    }

    fn hash<T: std::hash::Hash + ?Sized>(&self, key: &T) -> u32 {
        // The high half: multiplication mixes upwards.
        words::split(self.hasher.hash_one(key))[1]
    }

    fn scope(&self, ordinal: u32) -> &ScopeInfo {
        self.scopes
            .get(ordinal)
            .expect("a scope is filled before its ordinal is published")
    }

    fn term(&self, ordinal: u32) -> &[u8] {
        self.terms
            .get(ordinal)
            .expect("a term is filled before its ordinal is published")
    }

    fn tag(&self, ordinal: u32) -> &Tag {
        self.tags
            .get(ordinal)
            .expect("a tag is filled before its ordinal is published")
    }

    fn body(&self, row: u32) -> &Body {
        self.bodies
            .get(row)
            .expect("a body is filled before its row is published")
    }

    fn find_scope(&self, key: &[u8]) -> Option<u32> {
        let found = self
            .scope_table
            .find(self.hash(key), |value| *self.scope(value - 1).key == *key);
        found.map(|value| value - 1)
    }

    fn find_term(&self, term: &[u8]) -> Option<u32> {
        let is_it = |value| self.term(value - 1) == term;
        self.term_table
            .find(self.hash(term), is_it)
            .map(|value| value - 1)
    }

    fn find_tag(&self, name: &str) -> Option<u32> {
        let found = self
            .tag_table
            .find(self.hash(name), |value| *self.tag(value - 1).name == *name);
        found.map(|value| value - 1)
    }

    /// Address of the list of (row, tf) of a term in a scope.
    fn find_pair(&self, scope: u32, term: u32) -> Option<u32> {
        let words = &self.arena.words;
        let is_it = |entry: u32| {
            words.get(u64::from(entry)) == scope && words.get(u64::from(entry) + 1) == term
        };
        self.pair_table
            .find(self.hash(&(scope, term)), is_it)
            .map(|entry| entry + 2)
    }

    /// Address of [scope, newest row] of an id.
    fn find_id(&self, scope: u32, id: &str) -> Option<u32> {
        let words = &self.arena.words;
        self.id_table.find(self.hash(&(scope, id)), |entry| {
            words.get(u64::from(entry)) == scope
                && *self.body(words.observe(u64::from(entry) + 1)).id == *id
        })
    }

    fn scope_rows(&self, ordinal: u32) -> View<'_, SCOPE_ENTRY_WORDS> {
        View::new(&self.arena, self.scope(ordinal).rows)
    }

    /// A column of a published row.
    fn column(&self, row: u32, column: u64) -> u32 {
        assert!(row < self.rows(), "row {row} is not in the memtable");
        self.columns.get(u64::from(row) * ROW_WORDS + column)
    }

    fn column_u64(&self, row: u32, column: u64) -> u64 {
        assert!(row < self.rows(), "row {row} is not in the memtable");
        self.columns.get_u64(u64::from(row) * ROW_WORDS + column)
    }

    fn event_time(&self, row: u32) -> i64 {
        self.column_u64(row, EVENT_TIME).cast_signed()
    }

    /// First row above `at_seq`: seqs ascend with rows.
    fn rows_at(&self, at_seq: u64) -> u32 {
        let rows = self.rows();
        let above = |row: u32| self.column_u64(row, COMMIT_SEQ) > at_seq;
        if rows == 0 || !above(rows - 1) {
            return rows;
        }
        let (mut low, mut high) = (0, rows - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if above(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}
