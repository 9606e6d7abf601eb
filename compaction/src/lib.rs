//! What to compact and into which bucket: pure decisions from metadata, each with its reason.
//!
//! ```text
//!   rows of a memtable --choose_buckets--> one segment a bucket
//!   live segments ------pick-------------> inputs, bucket, reason
//! ```
//!
//! * [`Bucket`], [`bucket_of`]: the ladder of half-open windows of event time.
//! * [`choose_buckets`]: how a flush cuts a memtable.
//! * [`pick`]: which segments become one; `climb`: when those of neighbouring buckets do.
//! * [`Clusterer`]: which rows of a scope a merge puts together; [`plan_runs`]: how many runs.
//! * [`simulate`]: picks replayed over metadata alone.
//!
//! The rows themselves are merged by `chronolith_segments::write_segment`, the one path for
//! flush and compaction. What this crate does not do: it knows no log, no manifest and no
//! catalog, and publishes nothing; it returns *these out, those in* and the engine does it.

mod bucket;
mod climb;
mod cluster;
mod pick;
mod simulate;

pub use bucket::{
    Bucket, FLUSH_BYTES_MIN, FLUSH_ROWS_MIN, RowAge, bucket_of, choose_buckets, smallest_bucket,
};
pub use climb::{CLIMB_BYTES_MAX, CLIMB_ROWS_MAX, CLIMB_SEGMENTS_MIN};
pub use cluster::{Clusterer, RunPlan, RunPolicy, RunReason, plan_runs};
pub use pick::{
    Candidate, DEAD_SHARE, LOOSE_ROWS_MIN, MERGE_ROWS_MAX, Pick, Reason, SMALL_ROWS, pick,
};
pub use simulate::simulate;
