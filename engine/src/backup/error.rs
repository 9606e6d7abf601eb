//! What is wrong with a backup, or with the place where one is to be?

use std::path::PathBuf;

use crate::error::ErrorKind;
use crate::located::path_or_name;

/// Why a backup or a restore was refused. What the system refused is [`crate::Error::Io`];
/// damage inside the store's own formats keeps the errors of those.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no finished backup.
    #[error("{path} is not a backup: {reason}")]
    NotABackup {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// The directory to write into is of no use.
    #[error("{path} cannot be used: {reason}")]
    BadDestination {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The directory holds backups of another store.
    #[error("{path} holds a backup of another store; choose another directory")]
    OtherStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds a backup of the same store that went on otherwise.
    #[error(
        "{file} in the backup is another file of that name: the backup is of this store, but was \
         taken from a restored or copied twin of it; choose another directory"
    )]
    OtherHistory {
        /// The file.
        file: String,
    },
    /// The store ends before the backup that the directory holds.
    #[error(
        "the store ends at seq {store_seq}, its backup at seq {backup_seq}: this is an older copy of the \
         store; choose another directory to keep both"
    )]
    OlderThanBackup {
        /// Last seq of the store.
        store_seq: u64,
        /// Last seq of the backup.
        backup_seq: u64,
    },
    /// Another backup or restore into the directory is running, or the backup was replaced
    /// while it was read.
    #[error("{path} is being written by another backup or restore; try again later")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Another release wrote the index.
    #[error("{file} has format version {found}, this release reads up to {supported}")]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The newest version this release knows.
        supported: u32,
    },
    /// Bytes are not as they were written, or never were a backup's.
    #[error(
        "{} is damaged at {section}, offset {offset}: {message}{}",
        path_or_name(path, file),
        advice(path)
    )]
    Damaged {
        /// The file.
        file: String,
        /// Its part.
        section: &'static str,
        /// Where, in bytes.
        offset: u64,
        /// Found and expected.
        message: String,
        /// Where the file lies, if that is in a backup.
        path: Option<PathBuf>,
    },
}

/// What to do about damage in a backup.
fn advice(path: &Option<PathBuf>) -> &'static str {
    match path {
        Some(_) => "; restore another backup, or make a new one of the store in another directory",
        None => "",
    }
}

impl BackupError {
    pub(super) fn damaged(
        file: impl Into<String>,
        section: &'static str,
        offset: u64,
        message: impl Into<String>,
    ) -> Self {
        Self::Damaged {
            file: file.into(),
            section,
            offset,
            message: message.into(),
            path: None,
        }
    }

    pub(super) fn bad_destination(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::BadDestination {
            path: path.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::NotABackup { .. }
            | Self::BadDestination { .. }
            | Self::OtherStore { .. }
            | Self::OtherHistory { .. }
            | Self::OlderThanBackup { .. } => ErrorKind::FixCall,
            Self::InUse { .. } => ErrorKind::Retry,
            Self::NewerFormat { .. } => ErrorKind::WrongVersion,
            Self::Damaged { .. } => ErrorKind::Damaged,
        }
    }
}
