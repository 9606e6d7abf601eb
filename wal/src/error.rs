//! What can go wrong with a log, and what the caller should do about it.

use std::fmt;
use std::io;
use std::path::Path;

/// Why the bytes at some place are not the frame that should be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The file ends inside a frame header.
    PartialHeader,
    /// The frame header does not begin with the frame magic.
    Magic,
    /// The header's checksum does not match: length, kind, seq or promise is damaged.
    HeaderChecksum,
    /// The header is whole, but a field has a value no writer gives it.
    Field,
    /// The header is whole, but its body is longer than a frame may be.
    BodyLength,
    /// The seq is not the one that follows.
    Sequence,
    /// The frame does not follow the frame before it (another predecessor's digest).
    Chain,
    /// The file ends inside the frame's body or digest.
    Truncated,
    /// Header, body or padding do not match the digest.
    Digest,
    /// Only zeros where a frame is known to have been.
    Zeros,
    /// The file's header is damaged, or the file is too short to have one.
    FileHeader,
    /// The file does not continue the file before it.
    FileChain,
    /// The file is longer than a log file may be.
    FileLength,
    /// The file's mark of its successor is damaged, and there is none.
    SuccessorMark,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartialHeader => "the file ends inside a frame header",
            Self::Magic => "no frame begins here",
            Self::HeaderChecksum => "frame header checksum mismatch",
            Self::Field => "frame header field out of range",
            Self::BodyLength => "frame body length over the limit",
            Self::Sequence => "seq does not follow the frame before",
            Self::Chain => "frame does not follow the frame before (digest chain)",
            Self::Truncated => "the file ends inside a frame",
            Self::Digest => "frame digest mismatch",
            Self::Zeros => "zeros where a frame was",
            Self::FileHeader => "file header damaged",
            Self::FileChain => "file does not continue the file before (digest chain)",
            Self::FileLength => "file longer than a log file may be",
            Self::SuccessorMark => "the mark that says whether a later file was begun is damaged",
        })
    }
}

/// An error of the log.
///
/// What to do: `BodyTooLarge`, `EmptyBatch`, `BadOption`, `BadEpoch`, `LogExists`: fix the
/// call. `AppendFailed`, `Io`: nothing happened, retry when the cause is gone. `SyncFailed`,
/// `Poisoned`: the outcome is unknown, reopen. `Corrupt`, `MissingFile`,
/// `SuccessorMissing`, `WrongStore`, `TornTail`: the files are damaged or not ours. `Removed`: read the manifest again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// A file operation failed; the log is as it was before.
    #[error("{op} {file} failed: {source}; nothing was changed, retry when the cause is gone")]
    Io {
        /// The operation, as a verb.
        op: &'static str,
        /// File name inside the log directory.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A frame could not be written and has been cut off again: it will never appear.
    #[error(
        "append to {file} at offset {offset} failed: {source}; the frame was cut off again, retry when the cause is gone"
    )]
    AppendFailed {
        /// File name.
        file: String,
        /// Where the frame would have begun.
        offset: u64,
        /// The system's error, `StorageFull` included.
        source: io::Error,
    },
    /// The sync (or rename) this caller depended on failed: its outcome is unknown.
    #[error(
        "sync of the log failed: {reason}; the outcome of unacknowledged writes is unknown, reopen the store"
    )]
    SyncFailed {
        /// The system's error, as text.
        reason: String,
    },
    /// An earlier sync failed. Nothing is accepted any more.
    #[error("the log refuses since a sync failed: {reason}; reopen the store")]
    Poisoned {
        /// The first failure, as text.
        reason: String,
    },
    /// Bytes that are proven to have been durable are damaged or gone.
    #[error(
        "{file} is damaged at offset {offset}: {flaw}; seqs {first_seq} to {last_seq} were durable and cannot be read; restore a backup, or repair what is left into a new store"
    )]
    Corrupt {
        /// File name.
        file: String,
        /// Where the damaged frame (or header) begins.
        offset: u64,
        /// First seq that cannot be read.
        first_seq: u64,
        /// Last seq that is proven to have been durable.
        last_seq: u64,
        /// What is wrong there.
        flaw: Flaw,
    },
    /// The end of the log is torn and the caller asked for `strict_tail`.
    #[error(
        "{file} has a torn tail at offset {offset} ({bytes} bytes: {flaw}; ambiguous: {ambiguous}); open without strict_tail to drop it"
    )]
    TornTail {
        /// File name.
        file: String,
        /// Where the torn tail begins.
        offset: u64,
        /// Bytes that would be dropped.
        bytes: u64,
        /// True where the tail may belong to the last synced group.
        ambiguous: bool,
        /// What is wrong with its first frame.
        flaw: Flaw,
    },
    /// A log file that must exist does not.
    #[error(
        "{file} is missing from the log; restore a backup, or repair what is left into a new store"
    )]
    MissingFile {
        /// File name.
        file: String,
    },
    /// The newest log file does not exist, and the one before it says that it was begun.
    #[error(
        "{file} is missing from the log: {before} says that it was begun; commits from seq {first_seq} on {} cannot be read; restore a backup, or repair what is left into a new store",
        upto(*.last_seq)
    )]
    SuccessorMissing {
        /// File name.
        file: String,
        /// Name of the file that says so.
        before: String,
        /// First seq that the file may have held.
        first_seq: u64,
        /// Last seq that is proven to have been in it; `None` = nothing says how many.
        last_seq: Option<u64>,
    },
    /// A log file belongs to another store.
    #[error(
        "{file} belongs to another store (found {found}, expected {expected}); put the right file back"
    )]
    WrongStore {
        /// File name.
        file: String,
        /// Store id in the file, in hex.
        found: String,
        /// Store id expected, in hex.
        expected: String,
    },
    /// A log file has a format this version does not know. It was not touched.
    #[error(
        "{file} has log format {found}, this version knows up to {newest}; use a newer version"
    )]
    UnknownFormat {
        /// File name.
        file: String,
        /// Format found.
        found: u32,
        /// Newest format known.
        newest: u32,
    },
    /// The body is longer than a frame may be.
    #[error("a batch of {len} bytes is over the limit of {len_max}; split it")]
    BodyTooLarge {
        /// Length asked for.
        len: usize,
        /// Longest body.
        len_max: usize,
    },
    /// A frame must hold at least one op.
    #[error("a frame needs at least one op")]
    EmptyBatch,
    /// The epoch has no seqs left.
    #[error("the epoch has no seqs left; reopen the store")]
    SeqExhausted,
    /// The epoch is not above every epoch seen, or over 24 bits.
    #[error("epoch {epoch} must be above {highest} and below 2^24")]
    BadEpoch {
        /// Epoch asked for.
        epoch: u32,
        /// Highest epoch in use.
        highest: u32,
    },
    /// An option is out of range.
    #[error("option {name} must be {allowed}, is {found}")]
    BadOption {
        /// Name of the option.
        name: &'static str,
        /// The range.
        allowed: String,
        /// What was given.
        found: u64,
    },
    /// A new log was asked for where one with frames lies.
    #[error("{file} already holds frames; open the store instead of creating it")]
    LogExists {
        /// File name.
        file: String,
    },
    /// A file the tail reader needs was removed: read the manifest again and begin anew.
    #[error("{file} was removed while following the log; begin again from the manifest")]
    Removed {
        /// File name.
        file: String,
    },
}

impl WalError {
    pub(crate) fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            op,
            file: file_name(path),
            source,
        }
    }

    pub(crate) fn sync_failed(op: &'static str, path: &Path, source: &io::Error) -> Self {
        Self::SyncFailed {
            reason: format!("{op} {}: {source}", file_name(path)),
        }
    }

    /// The error with the path of its file, which lies in `dir`.
    #[must_use]
    pub fn in_dir(mut self, dir: &Path) -> Self {
        let place = |file: &mut String| *file = dir.join(&*file).display().to_string();
        match &mut self {
            Self::Io { file, .. }
            | Self::AppendFailed { file, .. }
            | Self::Corrupt { file, .. }
            | Self::TornTail { file, .. }
            | Self::MissingFile { file }
            | Self::SuccessorMissing { file, .. }
            | Self::WrongStore { file, .. }
            | Self::UnknownFormat { file, .. }
            | Self::LogExists { file }
            | Self::Removed { file } => place(file),
            Self::SyncFailed { .. }
            | Self::Poisoned { .. }
            | Self::BodyTooLarge { .. }
            | Self::EmptyBatch
            | Self::SeqExhausted
            | Self::BadEpoch { .. }
            | Self::BadOption { .. } => {}
        }
        self
    }

    /// The name of the damaged file, and where in it.
    #[must_use]
    pub fn place(&self) -> (Option<&str>, u64) {
        match self {
            Self::Corrupt { file, offset, .. } | Self::TornTail { file, offset, .. } => {
                (Some(file), *offset)
            }
            Self::MissingFile { file }
            | Self::SuccessorMissing { file, .. }
            | Self::WrongStore { file, .. } => (Some(file), 0),
            _ => (None, 0),
        }
    }

    /// True where the log refuses from now on and only a reopen helps.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::SyncFailed { .. } | Self::Poisoned { .. })
    }

    /// True where bytes on disk are damaged, missing or of another store.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::TornTail { .. }
                | Self::MissingFile { .. }
                | Self::SuccessorMissing { .. }
                | Self::WrongStore { .. }
        )
    }
}

fn upto(last_seq: Option<u64>) -> String {
    match last_seq {
        Some(last) => format!("(proven up to {last})"),
        None => "(how many is not known)".into(),
    }
}

/// The last component of a path: errors name files inside the store only.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}
