//! How does a caller's record become bytes of the log, and a row again after a restart?
//!
//! ```text
//!   Record --prepare--> Prepared --encode_batch--> bytes of one frame (the log keeps them)
//!                           |                             |
//!                       Memtable  <--prepare_replayed-- decode_batch      (at open)
//! ```
//!
//! Terms are not stored: they are analysed anew at replay, by the store's named analyzer.

mod batch;
mod bytes;
#[cfg(test)]
mod golden;
mod prepare;
mod row_terms;

pub use batch::{
    BATCH_VERSION, Batch, CodecError, Op, OpRef, PutMode, decode_batch, encode_batch,
    set_commit_time,
};
pub use prepare::{prepare, prepare_replayed};
pub use row_terms::RowTerms;
