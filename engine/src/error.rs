//! What can go wrong with a store, and what a caller does about it.

use std::io;
use std::path::PathBuf;

use chronolith_segments::{Refused, SegmentError};
use chronolith_wal::WalError;

use crate::backup::BackupError;
use crate::manifest::{ManifestError, PublishError, SideFileError};
use crate::repair::RepairError;
use crate::spaces::{ChangeError, SpaceError};

/// What a caller can do about an error. A kind exists only where the doing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is wrong: change it.
    FixCall,
    /// Nothing was done: try again later.
    Retry,
    /// Bytes on disk are damaged: verify, then restore or repair.
    Damaged,
    /// Another release wrote this store.
    WrongVersion,
    /// The handle is of no more use: reopen, and look whether the write is there.
    Reopen,
    /// The operating system refused: see the cause.
    System,
}

/// Any failure of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record or request was refused; nothing was written.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A record of a batch was refused; nothing of the batch was written.
    #[error("operation {index} of the batch: {refused}")]
    RefusedInBatch {
        /// Index of the operation, from 0.
        index: usize,
        /// Why.
        refused: Refused,
    },
    /// An insert-only write met a record of that id in that scope; nothing was written.
    #[error(
        "operation {index} of the batch: a record of this id is already in its scope; upsert it or use another id"
    )]
    Exists {
        /// Index of the operation, from 0.
        index: usize,
    },
    /// A record that was to get a vector was changed or forgotten meanwhile; nothing was written.
    #[error("operation {index} of the batch: the record was changed meanwhile; read it again")]
    Changed {
        /// Index of the operation, from 0.
        index: usize,
    },
    /// The embedder that a migration was given failed; what was filled before stays.
    #[error("the embedder failed: {cause}; what was filled before stays, go on when it works")]
    Embedder {
        /// What it said.
        cause: String,
    },
    /// A vector space cannot be added, made the default, or dropped; nothing was changed.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Another process or handle has the store open for writing.
    #[error("{path} is open for writing elsewhere; close it there, or open read-only")]
    Locked {
        /// The store's directory.
        path: PathBuf,
    },
    /// The media or the rights of this process let nobody write; nothing was changed.
    #[error(
        "{path} cannot be written: {source}; open the store read-only, or make its directory \
         writable for this process"
    )]
    NotWritable {
        /// What had to be written first.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A write was asked of a read-only handle.
    #[error("this handle is read-only; open the store for writing")]
    ReadOnly,
    /// The handle was closed.
    #[error("this handle is closed; open the store again")]
    Closed,
    /// Too much waits to be flushed; nothing was written.
    #[error("{what}; nothing was written, try again later")]
    Busy {
        /// What is waited for.
        what: String,
    },
    /// The disk, or a quota on it, is full; nothing was changed.
    #[error(
        "the disk is full: {what}; nothing was changed, free space and try again (forget and close work meanwhile)"
    )]
    DiskFull {
        /// What could not be written.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The write may or may not survive; later writes are refused.
    #[error("the outcome of seq {seq} is unknown after {cause}; reopen the store and look for it")]
    OutcomeUnknown {
        /// First seq of the write.
        seq: u64,
        /// What failed.
        cause: String,
    },
    /// An earlier failure made this handle refuse writes.
    #[error("writes are refused since {cause}; reopen the store")]
    Poisoned {
        /// What failed.
        cause: String,
    },
    /// Damage or failure in a segment.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Damage or failure in the log.
    #[error(transparent)]
    Log(#[from] WalError),
    /// A reader in another process found less in the log than the writer acknowledged, or a
    /// log whose status cannot be read: to show what is left would hide the loss.
    #[error(
        "{file}: {found}; after a power cut open the store for writing once (recovery reports what it drops), \
         otherwise run `chronolith verify`, then restore or `repair`"
    )]
    Behind {
        /// The file that ends early or proves nothing.
        file: PathBuf,
        /// What is there and what ought to be.
        found: String,
    },
    /// Damage or failure in the manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A new version could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Damage or failure in a side file of the manifest.
    #[error(transparent)]
    SideFile(#[from] SideFileError),
    /// A backup or restore was refused, or a backup is damaged.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A repair was refused.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// The operating system refused.
    #[error("{operation} {path}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Parts of a store contradict each other.
    #[error("damaged data: {0}; run `chronolith verify`, then restore or `repair`")]
    Internal(String),
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_)
            | Self::RefusedInBatch { .. }
            | Self::Exists { .. }
            | Self::Space(_)
            | Self::Embedder { .. }
            | Self::ReadOnly => ErrorKind::FixCall,
            Self::Locked { .. }
            | Self::Busy { .. }
            | Self::Changed { .. }
            | Self::DiskFull { .. } => ErrorKind::Retry,
            Self::Closed | Self::OutcomeUnknown { .. } | Self::Poisoned { .. } => ErrorKind::Reopen,
            Self::Segment(SegmentError::Version { .. }) => ErrorKind::WrongVersion,
            Self::Segment(SegmentError::Corrupt { .. })
            | Self::Behind { .. }
            | Self::Internal(_) => ErrorKind::Damaged,
            Self::Segment(_) | Self::Io { .. } | Self::NotWritable { .. } => ErrorKind::System,
            Self::Backup(error) => error.kind(),
            Self::Repair(RepairError::InProgress { .. }) => ErrorKind::Retry,
            Self::Repair(_) => ErrorKind::FixCall,
            Self::Log(error) => log_kind(error),
            Self::Manifest(error) => manifest_kind(error),
            Self::Publish(error) if error.is_outcome_unknown() => ErrorKind::Reopen,
            Self::Publish(_) => ErrorKind::System,
            Self::SideFile(error) => side_file_kind(error),
        }
    }

    /// What a change of the vector spaces was refused for.
    pub(crate) fn of_change(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(refused) => Self::Refused(refused),
            ChangeError::Space(error) => Self::Space(error),
        }
    }

    /// The system's refusal of `operation` on `path`.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.into(),
            source,
        }
    }
}

fn log_kind(error: &WalError) -> ErrorKind {
    match error {
        _ if error.is_final() => ErrorKind::Reopen,
        _ if error.is_damage() => ErrorKind::Damaged,
        WalError::UnknownFormat { .. } => ErrorKind::WrongVersion,
        WalError::BodyTooLarge { .. } | WalError::BadOption { .. } => ErrorKind::FixCall,
        _ => ErrorKind::System,
    }
}

fn manifest_kind(error: &ManifestError) -> ErrorKind {
    match error {
        ManifestError::Missing { .. }
        | ManifestError::EmptyDirectory { .. }
        | ManifestError::NotAStore { .. }
        | ManifestError::IsBackup { .. }
        | ManifestError::CreationUnfinished { .. } => ErrorKind::FixCall,
        ManifestError::NewerFormat { .. } => ErrorKind::WrongVersion,
        ManifestError::Io { .. } => ErrorKind::System,
        _ => ErrorKind::Damaged,
    }
}

fn side_file_kind(error: &SideFileError) -> ErrorKind {
    match error {
        SideFileError::Damaged(_) | SideFileError::Missing { .. } => ErrorKind::Damaged,
        SideFileError::NewerFormat { .. } => ErrorKind::WrongVersion,
        _ => ErrorKind::System,
    }
}
