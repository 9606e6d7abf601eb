//! What may a caller choose: once for a store's life ([`Setup`]), and at every open
//! ([`Options`]).

use std::time::Duration;

use chronolith_segments::analyze::{AnalyzerKind, AnalyzerOptions, Language};
use chronolith_segments::{Refused, TokenCounter, VectorSpace};
use chronolith_vfs::Env;
pub use chronolith_wal::Durability;

use crate::query::DENSE_WEIGHT_DEFAULT;
use crate::spaces::check_space;

/// One day, µs: the usual bucket of level 0.
pub const DAY_US: i64 = 86_400 * 1_000_000;
/// Smallest bucket of level 0, µs: a minute.
pub const BUCKET_MIN_US: i64 = 60 * 1_000_000;
/// Largest bucket of level 0, µs: 366 days.
pub const BUCKET_MAX_US: i64 = 366 * DAY_US;

/// What is chosen once, when a store is created.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// How text becomes terms.
    pub analyzer: AnalyzerKind,
    /// Whose stems.
    pub language: Language,
    /// Which words beyond the text are searchable.
    pub index: AnalyzerOptions,
    /// What vectors are, in the space `main`; `None` = the store keeps none yet. More spaces:
    /// [`crate::Store::add_space`].
    pub vectors: Option<VectorSpace>,
    /// How text is counted against a token budget.
    pub token_counter: TokenCounter,
    /// Width of a bucket of level 0, µs, from [`BUCKET_MIN_US`] to [`BUCKET_MAX_US`].
    pub bucket_us: i64,
    /// Share of dense in the convex combination, in [0, 1], where a request does not say.
    pub dense_weight: f64,
}

impl Default for Setup {
    /// English, text only, daily buckets, no vectors.
    fn default() -> Self {
        Self {
            analyzer: AnalyzerKind::Default,
            language: Language::ENGLISH,
            index: AnalyzerOptions::default(),
            vectors: None,
            token_counter: TokenCounter::default(),
            bucket_us: DAY_US,
            dense_weight: DENSE_WEIGHT_DEFAULT,
        }
    }
}

impl Setup {
    /// Checks every choice.
    ///
    /// # Errors
    /// [`Refused`] naming the first one at fault.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if !(BUCKET_MIN_US..=BUCKET_MAX_US).contains(&self.bucket_us) {
            return Err(Refused::new(
                "bucket",
                "must lie between one minute and 366 days",
            ));
        }
        if !(0.0..=1.0).contains(&self.dense_weight) {
            return Err(Refused::new("dense_weight", "must be a number from 0 to 1"));
        }
        let Some(space) = &self.vectors else {
            return Ok(());
        };
        check_space(space)
    }
}

use crate::query::PROBE_ROWS_MIN;
/// How large runs of vectors are.
pub use chronolith_compaction::RunPolicy;
/// How sealed segments are read.
pub use chronolith_segments::ReadMode;

/// Of a million records in 6 segments a look-up takes 19 us without the catalog and 199 us with it:
/// each further segment costs a look at its filter.
const CATALOG_SEGMENTS_MIN: usize = 128;

/// Who flushes and compacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Maintenance {
    /// Background threads of the store.
    #[default]
    Background,
    /// The caller, through [`crate::Store::maintain`]; a full memtable is flushed by the write
    /// that filled it. Runs repeat exactly.
    Manual,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Creates the store where the directory is new or empty.
    pub create: Option<Setup>,
    /// What a write waits for unless it says otherwise.
    pub durability: Durability,
    /// A memtable over this is sealed and flushed.
    pub memtable_bytes_max: u64,
    /// Sealed memtables that may wait for their flush before writers wait.
    pub sealed_max: usize,
    /// How long a writer waits for a flush before it gets [`crate::Error::Busy`].
    pub busy_wait: Duration,
    /// How sealed segments are read.
    pub read_mode: ReadMode,
    /// Refuses to open where the log's end is torn, instead of dropping the unsynced tail.
    pub strict_tail: bool,
    /// Who flushes and compacts.
    pub maintenance: Maintenance,
    /// A log file over this gets a successor.
    pub log_file_bytes_max: u64,
    /// Zeros written ahead in the log, so that a sync changes no metadata.
    pub log_preallocate_bytes: u64,
    /// How long the writer that syncs for a group waits for others to join it; 0 = not at all.
    /// Many writers of single records get more commits a sync, each a little later: a tenth of
    /// a sync's time is a good start. A single writer would only wait.
    pub leader_wait: Duration,
    /// How many vectors of a scope lie together where a merge lays them out by what they look
    /// like; scopes with fewer than two such runs stay as they are.
    pub runs: RunPolicy,
    /// A search by vector looks at every row that passes the filters up to so many, and where
    /// more pass at the runs that look most like the query: see [`crate::DenseWay::Runs`].
    pub probe_rows_min: u64,
    /// Live segments from which on the catalog keeps where each id lies. Fewer are asked one
    /// after the other, which is quick, and saves about 60 bytes a record and the writing of
    /// them. What is missing is written in the background once there are so many; 0 = always.
    pub catalog_segments_min: usize,
    /// Files, clock, seed and threads.
    pub env: Env,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: None,
            durability: Durability::Synced,
            memtable_bytes_max: 64 << 20,
            sealed_max: 2,
            busy_wait: Duration::from_secs(30),
            read_mode: ReadMode::Mapped,
            strict_tail: false,
            maintenance: Maintenance::Background,
            log_file_bytes_max: 64 << 20,
            log_preallocate_bytes: 1 << 20,
            leader_wait: Duration::ZERO,
            runs: RunPolicy::default(),
            probe_rows_min: PROBE_ROWS_MIN,
            catalog_segments_min: CATALOG_SEGMENTS_MIN,
            env: Env::real(),
        }
    }
}

impl Options {
    /// The defaults, creating the store with `setup` where there is none.
    pub fn create(setup: Setup) -> Self {
        Self {
            create: Some(setup),
            ..Self::default()
        }
    }
}
