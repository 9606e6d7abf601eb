//! A log of opaque frames: what is appended and synced is there after any crash, in order.
//!
//! ```text
//!   append(body) ---> one frame ---> 0000000000000007.log      (page cache: Buffered)
//!        |                               |
//!        | seq                           | one sync for all who wait
//!        v                               v
//!   sync_upto(seq) <------------- durable_upto                 (disk: Synced)
//!
//!   open:  Log::recover ---> Recovered { frames(), report() } ---start(epoch)---> Log
//!   other processes:  read_status ---> LogReader::next(&status)
//! ```
//!
//! * [`Log`]: the writer. `append` assigns seqs, `sync_upto` joins a group commit, `seal`
//!   proves a clean end, `rotate` and `remove_below` bound the log's size.
//! * [`Recovered`]: a log after a crash, validated; its [`RecoveryReport`] says what was
//!   dropped and whether that is certain.
//! * [`LogReader`], [`read_status`]: for processes that only read. [`WholeLog`]: for a backup.
//! * [`salvage_log`]: what of a damaged log can still be proved, for `repair`.
//! * [`WalError`]: what went wrong and what to do.
//!
//! How a commit travels: the caller encodes, calls `append` under its own commit lock,
//! leaves the lock, calls `sync_upto`, makes the batch visible, calls `write_status`, answers.
//! How an open travels: `recover` (all bytes checked, the end judged), `start` (a new file
//! with a new epoch; durable when it returns) or, for a log that was closed cleanly, `start_late`
//! (the same at the first append), `frames` (replay).
//!
//! What this crate does not do: it knows no record, no segment, no manifest and no lock
//! file; it does no I/O except through `chronolith_vfs`.
//!
//! Bytes: `frame` (one append), `files` (one file), `status`. Doing: `writer` and its late begin, `birth`, `sync` (group
//! commit), `take_over` (a writer without a file of its own), `reader` (one file's frames), `judge` (torn tail or damage),
//! `recover`, `tail` (followers).

mod birth;
mod copy;
mod error;
mod files;
mod frame;
mod judge;
mod options;
mod reader;
mod recover;
mod salvage;
mod status;
mod sync;
#[cfg(all(test, loom))]
mod sync_model;
mod tail;
mod take_over;
mod writer;

pub use copy::{WholeLog, WholePart};
pub use error::{Flaw, WalError};
pub use files::{
    FILE_BYTES_CAP, FORMAT_NEWEST, FileNumber, FileSpan, MARK_AT as LOG_MARK_AT, list_logs,
    log_name, parse_log_name, sweep_temps,
};
pub use frame::{BODY_BYTES_CAP, EPOCH_MAX, EPOCH_SHIFT, epoch_of, first_seq_of};
pub use judge::{DroppedTail, RecoveryReport};
pub use options::LogOptions;
pub use reader::Frame;
pub use recover::{Frames, Recovered};
pub use salvage::{
    FrameReader, LogGap, LogSalvage, LostSeqs, SalvagedFrame, peek_store_id, salvage_log,
};
pub use status::{STATUS_LEN, STATUS_NAME, Status, read_status};
pub use sync::Durability;
pub use tail::LogReader;
pub use writer::{Appended, Log};
