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
//! * [`SpaceSet`], [`StoredVectors`]: which vector of a record belongs to which model.
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
mod codec;
mod columns;
mod deletes;
mod error;
pub mod format;
mod ids;
mod impacts;
mod kernels;
pub mod limits;
mod memtable;
mod postings;
mod prepared;
mod read;
mod record;
mod scope;
mod scope_dir;
mod scores;
mod segment;
mod space;
mod stream;
mod tags;
mod terms;
mod text;
mod timeline;
mod vectors;
mod writer;

pub use codec::{
    BATCH_VERSION, Batch, CodecError, Op, OpRef, PutMode, RowTerms, decode_batch, encode_batch,
    prepare, prepare_replayed, set_commit_time,
};
pub use columns::Column;
pub use deletes::{Death, DeathKind, DeathLog, DeleteSet};
pub use error::{Refused, SegmentError};
pub use format::{Bucket, Counts, ReadMode};
pub use impacts::{
    IMPACT_FREQ_MAX, IMPACT_MARK, IMPACT_MAX, IMPACT_STEP, IMPACT_TOKEN_BYTES_MAX, IMPACTS_MAX,
    check_impact_token, impact_term, impact_token,
};
pub use kernels::sums::RowSums;
pub use memtable::{Memtable, MemtableOptions};
pub use prepared::{
    Prepared, TokenCounter, VectorFormat, VectorSpace, check_vector, prepare_vector,
};
pub use read::{
    Accept, CodeRows, LENGTH_LONG, Near, Partition, Population, Postings, Run, ScopeEntry, Stored,
    TermBounds, TermEntry, TermStream, TermVisit, TimeOrder, WindowRows, Zone,
};
pub use record::{Record, RowFields, SourceClass, SpaceVector, TIME_MAX_US, TIME_MIN_US};
pub use scope::{KeyRange, Scope, ScopeRanges, ScopeSelector};
pub use scores::{CLASS_LENGTHS, LENGTH_CLASSES, Needs, ScoreTable, Scores, Sums};
pub use segment::{
    Description, Finding, InOrder, RowIdentity, SalvagedSegment, Scrub, SectionDescription, Segment,
};
pub use space::{NumberedSpace, SpaceNumber, SpaceSet, StoredVectors, check_space_name};
pub use stream::RowStream;
pub use vectors::{
    CodeQuery, Coder, Codes, Estimated, Nearest, ProbeShares, SHARE_ALL, ScopeRuns, VectorRuns,
    Vectors, code_distances, code_seed, dot, dot_many, error_bound, widen,
};
pub use writer::{
    ClusterRows, Clustering, MergeInput, ROW_DROPPED, SegmentMeta, SegmentRef, SegmentSpec,
    VectorRows, Written, parse_segment_file_name, segment_file_name, segment_temporary_name,
    write_segment, write_segment_clustered, write_segment_while,
};
