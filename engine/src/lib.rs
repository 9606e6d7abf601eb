//! Chronolith: an embedded storage engine for the long-term memory of AI agents.
//!
//! A service links this crate, opens a directory, writes records (text, time, scope, tags,
//! vector, source class, importance) and asks for the few that matter now.
//!
//! ```text
//!  write(batch) -> check, analyse -> log -> sync -> memtable          (acknowledged)
//!                                             flush |    ^ replay at open
//!                                                   v    |
//!                              segments <- compaction -> manifest
//!
//!  retrieve(request) -> one version -> prune -> sparse -> dense -> fuse -> pack -> hits
//! ```
//!
//! * [`Store`]: the writing handle. [`ReadOnlyStore`]: the same store from another process.
//! * [`Batch`], [`Record`], [`Scope`]: what is written. [`Committed`]: the acknowledgement.
//! * [`Request`], [`Response`], [`Hit`], [`Plan`]: what is asked and what comes back.
//! * [`Snapshot`]: one consistent view. [`Stats`]: the store, counted.
//! * [`backup`](fn@backup), [`restore`]: a copy elsewhere, taken beside a writer, and its way back.
//! * [`verify()`], [`VerifyReport`]: is every byte as it was written, and do the files agree?
//! * [`Setup`], [`Options`]: what is chosen once, and at every open. [`Error`]: what to do.
//!
//! ```
//! use chronolith::{Batch, Options, Record, Request, Scope, ScopeSelector, Setup, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("memory");
//! let store = Store::open(&path, Options::create(Setup::default()))?;
//! let scope = Scope::parse("user/ana/project/apollo")?;
//!
//! let mut batch = Batch::new();
//! batch.upsert(Record::new(scope, "fact-1", 1_700_000_000_000_000, "The staging proxy listens on 8443"));
//! store.write(batch)?;
//!
//! let request = Request::within(ScopeSelector::parse("user/ana")?).text("staging proxy port");
//! let response = store.retrieve(&request)?;
//! assert_eq!(response.hits[0].id, "fact-1");
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! How a call travels: `store` takes it; `write` brings a batch through log and memtable;
//! `maintain` flushes, compacts and publishes; `manifest` says which files count; `version` is
//! what a reader holds; `query` answers; `recover` brings everything back; `reader` reads
//! beside a writer in another process; `spaces` are the vector spaces, which `store` changes and
//! fills; `verify` scrubs; `repair` makes a new store of what is left of a damaged one.
//!
//! What this crate does not do: no network, no async runtime, no embedding model.

mod backup;
mod catalog;
mod error;
mod located;
mod maintain;
pub mod manifest;
#[cfg(all(any(loom, shuttle), test))]
mod model;
mod options;
mod paths;
mod query;
mod reader;
mod recover;
mod repair;
mod reserve;
mod settings;
mod snapshot;
mod spaces;
mod stats;
mod store;
mod swap;
mod tag_graph;
mod verify;
mod version;
mod write;

pub use backup::{
    BackupError, BackupOptions, BackupProgress, BackupReport, BackupStage, RestoreReport, backup,
    restore,
};
pub use chronolith_segments::analyze::{AnalyzerKind, AnalyzerOptions, Language};
pub use chronolith_segments::{
    IMPACT_MAX, IMPACT_STEP, IMPACT_TOKEN_BYTES_MAX, IMPACTS_MAX, Record, Refused, Scope,
    ScopeSelector, SegmentError, SourceClass, SpaceVector, TIME_MAX_US, TIME_MIN_US, TokenCounter,
    VectorFormat, VectorSpace, limits,
};
pub use chronolith_wal::WalError;
pub use error::{Error, ErrorKind};
pub use maintain::Compacted;
pub use options::{
    BUCKET_MAX_US, BUCKET_MIN_US, DAY_US, Durability, Maintenance, Options, ReadMode, RunPolicy,
    Setup,
};
pub use query::*;
pub use reader::ReadOnlyStore;
pub use recover::RecoveryReport;
pub use repair::{
    DamagedFile, DeletesAtRisk, LostId, ManifestState, Missing, RepairError, RepairOptions,
    RepairProgress, RepairReport, RepairStage, repair,
};
pub use snapshot::{Snapshot, StoredRecord};
pub use spaces::{SpaceError, SpaceInfo};
pub use stats::{ScopeStats, SegmentStats, SpaceStats, Stats};
pub use store::{MigrateOptions, Migrated, Store};
pub use tag_graph::{DEPTH_MAX, EDGES_MAX, TagEdge};
pub use verify::{FindingKind, VerifiedFile, VerifyFinding, VerifyProgress, VerifyReport, verify};
pub use write::{Batch, Committed, PutMode};
