//! How does a batch become durable and visible?
//!
//! ```text
//! check, analyse, encode      outside every lock; the ids are looked for in the segments
//!   commit lock:              insert-only checks, seq, append to the log, queue
//!   log.sync_upto             one sync for all who wait (Synced only)
//!   apply lock:               in seq order, into the memtable; visible; STATUS
//! ```
//!
//! Nothing is visible before it is as durable as its writer asked, and nothing is visible
//! before everything with a lower seq is. After a failed sync nothing more is acknowledged.

mod apply;
mod batch;
mod commit;
mod prepare;
mod probe;

pub use batch::{Batch, Committed, PutMode};

pub(crate) use apply::Applier;
pub(crate) use commit::Pipeline;
pub(crate) use prepare::{Ready, ReadyBatch, decode, names_unknown_space};
pub(crate) use probe::Probed;
