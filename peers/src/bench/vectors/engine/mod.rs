//! What is an engine that searches vectors? Something that takes rows, settles, and answers a
//! vector with ten row numbers.

mod chronolith;
mod flat;
mod hnsw;
mod usearch;

use std::path::Path;

use super::rows::{Ask, Columns, Filter, Kind, Row, Rows};
use crate::engine::Failure;

pub use self::flat::exact;

/// Hits of an answer.
pub const K: usize = 10;

/// Takes rows.
pub trait Filler {
    /// Adds rows.
    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failure>;

    /// Makes all of it durable and lets the engine come to rest.
    fn settle(self: Box<Self>) -> Result<(), Failure>;
}

/// Answers from a settled store.
pub trait Asker {
    /// Told before the queries of a kind, with its filter: what an engine prepares once.
    fn prepare(&mut self, _columns: &Columns, _filter: Filter) {}

    /// The best [`K`] rows that pass, best first. `knob` trades time for recall.
    fn ask(
        &mut self,
        ask: &Ask,
        kind: Kind,
        filter: Filter,
        knob: Option<usize>,
    ) -> Result<Vec<usize>, Failure>;
}

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// This checkout.
    Chronolith,
    /// The graph in C++.
    Usearch,
    /// The graph in Rust.
    Hnsw,
    /// Every row, f32.
    Flat,
}

impl Subject {
    /// All of them, in the order of the table.
    const ALL: [Self; 4] = [Self::Chronolith, Self::Usearch, Self::Hnsw, Self::Flat];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chronolith => "chronolith",
            Self::Usearch => "usearch",
            Self::Hnsw => "hnsw",
            Self::Flat => "flat",
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
            Self::Chronolith => {
                "public API, default options, f16 vectors and text, ids only; knob: candidates"
            }
            Self::Usearch => {
                "usearch 2.26, HNSW M16, f16, expansion 128 at build; filters by a predicate; \
                 knob: expansion"
            }
            Self::Hnsw => {
                "hnsw_rs 0.3, HNSW M16, f32, ef 200 at build; filters by a predicate; knob: ef"
            }
            Self::Flat => {
                "every f32 row that passes is scored, one plain loop; passing rows listed once"
            }
        }
    }

    /// Values of its recall knob, cheap first; `None` is the engine's own choice.
    pub fn knobs(self) -> &'static [Option<usize>] {
        match self {
            Self::Chronolith => &[None, Some(400), Some(800), Some(1600)],
            Self::Usearch | Self::Hnsw => &[
                Some(16),
                Some(32),
                Some(64),
                Some(128),
                Some(256),
                Some(512),
            ],
            Self::Flat => &[None],
        }
    }

    /// Whether it can answer a kind.
    pub fn can(self, kind: Kind) -> bool {
        kind != Kind::Hybrid || self == Self::Chronolith
    }

    /// A new store in the empty directory `dir`.
    pub fn filler(self, dir: &Path, rows: &Rows) -> Result<Box<dyn Filler>, Failure> {
        match self {
            Self::Chronolith => chronolith::filler(dir, rows),
            Self::Usearch => usearch::filler(dir, rows),
            Self::Hnsw => Ok(hnsw::filler(dir, rows)),
            Self::Flat => flat::filler(dir),
        }
    }

    /// Opens a settled store.
    pub fn asker(self, dir: &Path, rows: &Rows) -> Result<Box<dyn Asker>, Failure> {
        match self {
            Self::Chronolith => chronolith::asker(dir),
            Self::Usearch => usearch::asker(dir, rows),
            Self::Hnsw => hnsw::asker(dir),
            Self::Flat => flat::asker(dir, rows),
        }
    }
}
