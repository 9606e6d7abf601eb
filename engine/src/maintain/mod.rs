//! What a store does behind its callers' backs: flush, compact, publish, clean up.
//!
//! * [`Publisher`]: the manifest in memory; one publish at a time.
//! * `flush`: the oldest sealed memtable becomes segments.
//! * `compact`: small segments become larger ones; policy lives in `chronolith_compaction`.
//! * `worker`: the background thread that calls the two.

mod compact;
mod flush;
mod publish;
mod worker;

pub use compact::Compacted;

pub(crate) use compact::{compact_once, would_pick};
pub(crate) use flush::{fail_if_unknown, flush_oldest, open_segment, prove_found, release_log};
pub(crate) use publish::Publisher;
pub(crate) use worker::{Signal, Worker};
