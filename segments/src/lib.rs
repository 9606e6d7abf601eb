//! Rows: the record and its analyzer, the memtable, and one immutable segment file.
//!
//! ```text
//!   Record --check--> Prepared --+--> Memtable --+
//!            (limits, analyze)   |               |  write_segment (flush and merge alike)
//!                                |               v
//!   both answer [`Partition`] <--+----------- Segment file
//! ```
//!
//! * [`Record`], [`Scope`], [`limits`]: what a memory is and what is refused.
//! * [`analyze`]: text to terms.
//! * [`Partition`]: what a query may ask of a memtable or a segment; operators are written
//!   against it once.
//! * [`Memtable`]: the searchable form of what the log holds and segments do not yet.
//! * [`Segment`], [`write_segment`]: one immutable file of rows in (scope, cluster, event
//!   time, seq) order with all its indexes.
//! * [`DeleteSet`], [`DeathLog`]: which rows of a partition no longer count, on disk and in
//!   memory.
//!
//! What this crate does not do: it knows no store, no log, no manifest and no catalog; all
//! I/O goes through `chronolith_vfs`.

pub mod analyze;
mod deletes;
mod error;
pub mod format;
pub mod limits;
mod prepared;
mod read;
mod record;
mod scope;

pub use deletes::{Death, DeathKind, DeathLog, DeleteSet};
pub use error::{Refused, SegmentError};
pub use prepared::{
    Prepared, TokenCounter, VectorFormat, VectorSpace, check_vector, prepare_vector,
};
pub use read::{
    Partition, Population, Postings, Run, ScopeEntry, Stored, TermStream, TimeOrder, Zone,
};
pub use record::{Record, RowFields, SourceClass, TIME_MAX_US, TIME_MIN_US};
pub use scope::{KeyRange, Scope, ScopeRanges, ScopeSelector};
