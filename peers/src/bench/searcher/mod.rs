//! What is an engine that searches? Something that takes records, settles, and answers a query
//! with ten ids and times.

mod chronolith;
mod sqlite;
mod tantivy;

use std::collections::BTreeMap;
use std::path::Path;

use super::corpus::{Query, Record};
use crate::engine::Failure;

/// Hits of an answer.
pub const K: usize = 10;

/// One hit: what a user needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Record id.
    pub id: String,
    /// Event time, µs.
    pub time_us: i64,
}

/// What an engine says of its last answer: a name, a number.
pub type Counters = BTreeMap<String, f64>;

/// What is chosen for Chronolith's store; the others have one layout.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Buckets of level 0, µs.
    pub bucket_us: i64,
    /// Compacts by force at the end: one segment a bucket.
    pub force: bool,
}

/// Takes records.
pub trait Loader {
    /// Adds a chunk. `terms` holds the analysed text of each, where the engine asked for it.
    fn put(&mut self, records: &[Record], terms: &[String]) -> Result<(), Failure>;

    /// Makes all of it durable and lets the engine come to rest, by its default policy.
    fn settle(self: Box<Self>) -> Result<(), Failure>;
}

/// Answers queries from a settled store.
pub trait Searcher {
    /// The best [`K`] hits, best first.
    fn search(&mut self, query: &Query) -> Result<Vec<Found>, Failure>;

    /// What the last answer took, as far as the engine tells.
    fn counters(&self) -> Result<Counters, Failure> {
        Ok(Counters::new())
    }

    /// Parts of the store that a query may have to visit.
    fn partitions(&self) -> Result<u64, Failure>;
}

/// An engine and the way it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// This checkout.
    Chronolith,
    /// Ids from stored documents, times from a fast column.
    Tantivy,
    /// Both from fast columns of numbers.
    TantivyColumns,
    /// Addresses only: the search alone.
    TantivyBare,
    /// SQLite with FTS5.
    Sqlite,
}

impl Subject {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::Chronolith,
        Self::Tantivy,
        Self::TantivyColumns,
        Self::TantivyBare,
        Self::Sqlite,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chronolith => "chronolith",
            Self::Tantivy => "tantivy",
            Self::TantivyColumns => "tantivy-columns",
            Self::TantivyBare => "tantivy-bare",
            Self::Sqlite => "sqlite",
        }
    }

    /// The engine of this name.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|subject| subject.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|subject| subject.name()).collect();
            format!("no engine {name}: there are {}", names.join(", ")).into()
        })
    }

    /// What it is, for the legend.
    pub fn about(self) -> &'static str {
        match self {
            Self::Chronolith => "public API, ids only, sparse mode; analyses the query itself",
            Self::Tantivy => {
                "tantivy 0.27, one searching thread, one writer of 128 MB, default merges; the \
                 same terms pre-analysed; ids from stored documents, times from a fast column"
            }
            Self::TantivyColumns => {
                "the same index; ids too from a fast column: possible where ids are numbers"
            }
            Self::TantivyBare => "the same index; addresses only, nothing fetched",
            Self::Sqlite => "SQLite as bundled, FTS5 contentless with detail=none; joined rows",
        }
    }

    /// The folder of its store: three ways to read tantivy share one.
    pub fn folder(self) -> &'static str {
        match self {
            Self::TantivyColumns | Self::TantivyBare => Self::Tantivy.name(),
            _ => self.name(),
        }
    }

    /// Whether it is given analysed terms instead of analysing itself.
    pub fn wants_terms(self) -> bool {
        self != Self::Chronolith
    }

    /// A new store in the empty directory `dir`.
    pub fn loader(self, dir: &Path, layout: Layout) -> Result<Box<dyn Loader>, Failure> {
        match self {
            Self::Chronolith => chronolith::loader(dir, layout),
            Self::Tantivy | Self::TantivyColumns | Self::TantivyBare => tantivy::loader(dir),
            Self::Sqlite => sqlite::loader(dir),
        }
    }

    /// Opens a settled store.
    pub fn searcher(self, dir: &Path) -> Result<Box<dyn Searcher>, Failure> {
        match self {
            Self::Chronolith => chronolith::searcher(dir),
            Self::Tantivy => tantivy::searcher(dir, tantivy::Fetch::Documents),
            Self::TantivyColumns => tantivy::searcher(dir, tantivy::Fetch::Columns),
            Self::TantivyBare => tantivy::searcher(dir, tantivy::Fetch::Nothing),
            Self::Sqlite => sqlite::searcher(dir),
        }
    }
}
