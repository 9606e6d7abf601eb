//! What can go wrong with the manifest, and what the caller is to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What is wrong with one file, and where. The same four fields that `verify` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path of the file below the store directory.
    pub file: String,
    /// Part of the file.
    pub section: &'static str,
    /// Where that part, or the wrong field in it, begins.
    pub offset: u64,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} at offset {}: {}",
            self.file, self.section, self.offset, self.message
        )
    }
}

/// A rule that a manifest breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("manifest field {field}: {message}")]
pub struct Invalid {
    /// The field.
    pub field: &'static str,
    /// Which rule, with the values.
    pub message: String,
}

/// Why a store's manifest could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The path does not exist.
    #[error("{}: no such directory; create a store there first", path.display())]
    Missing {
        /// The store path.
        path: PathBuf,
    },
    /// The directory holds nothing.
    #[error("{}: the directory is empty; create a store there first", path.display())]
    EmptyDirectory {
        /// The store path.
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error("{}: not a chronolith store (no CURRENT and no store layout); check the path", path.display())]
    NotAStore {
        /// The store path.
        path: PathBuf,
    },
    /// A creation was cut short before anything could be written to the store.
    #[error("{}: its creation never finished and it holds no data; create it again", path.display())]
    CreationUnfinished {
        /// The store path.
        path: PathBuf,
    },
    /// The directory is a backup.
    #[error("{}: this is a backup (it has BACKUP), not a store; use `chronolith restore`", path.display())]
    IsBackup {
        /// The path.
        path: PathBuf,
    },
    /// There is a store, but its pointer is gone.
    #[error("{}: CURRENT is missing though the store has data; restore a backup, or run repair into a new store", path.display())]
    CurrentMissing {
        /// The store path.
        path: PathBuf,
    },
    /// The pointer is damaged.
    #[error("{0}; restore a backup, or run repair into a new store")]
    CurrentDamaged(Finding),
    /// `CURRENT` names a generation that has no file. A reader in another process retries
    /// from `CURRENT`; for the writer it is damage.
    #[error(
        "manifest/MANIFEST-{generation:016x}: both copies are missing though CURRENT names them; restore a backup, or run repair into a new store"
    )]
    GenerationMissing {
        /// The generation.
        generation: u64,
    },
    /// Neither copy is whole.
    #[error(
        "both copies of manifest generation {generation} are damaged ({a}; {b}); restore a backup, or run repair into a new store"
    )]
    BothCopiesDamaged {
        /// The generation.
        generation: u64,
        /// What is wrong with copy a.
        a: Box<Finding>,
        /// What is wrong with copy b.
        b: Box<Finding>,
    },
    /// One copy, asked for alone, is damaged.
    #[error("{0}")]
    CopyDamaged(Finding),
    /// Written by a newer release. Nothing was touched.
    #[error(
        "{file}: format version {found}, this release reads up to {supported}; use a newer release"
    )]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The newest version read here.
        supported: u32,
    },
    /// The system failed a call; the files may be whole.
    #[error("{}: {step} failed: {source}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Why a generation was not published, or may not have been.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The manifest breaks a rule: a mistake of the caller. Nothing was written.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The encoded manifest is over the cap. Nothing was written.
    #[error("manifest: {bytes} bytes encoded, at most {bytes_max}; compact to fewer segments")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        bytes_max: u64,
    },
    /// `CURRENT` does not name the generation before this one. Nothing was written.
    #[error(
        "manifest generation {generation} cannot follow {current:?} in this store; reopen the store"
    )]
    OutOfOrder {
        /// What `CURRENT` names: the store's generation if it is this store's at all.
        current: Option<u64>,
        /// What was to be published.
        generation: u64,
    },
    /// A store cannot be made here. Nothing was written.
    #[error("{}: {reason}; choose an empty or new directory", path.display())]
    NotEmpty {
        /// The path.
        path: PathBuf,
        /// What is there.
        reason: &'static str,
    },
    /// `CURRENT` could not be read before the publish. Nothing was written.
    #[error("before publishing: {0}")]
    Current(#[source] Box<ManifestError>),
    /// The generation is definitely not published; the one before it counts. The caller may
    /// try again, for instance when there is space again.
    #[error("{}: {step} failed, the manifest was not published: {source}", path.display())]
    NotPublished {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A sync or rename failed: either generation may be found at the next open. The caller
    /// publishes no more, unlinks nothing and refuses writes until the store is reopened.
    #[error("{}: {step} failed, the outcome of the publish is unknown; reopen the store: {source}", path.display())]
    OutcomeUnknown {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl PublishError {
    /// True where either generation may count from now on.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. })
    }
}

/// Why a side file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SideFileError {
    /// The file is damaged, or not the one the manifest names.
    #[error("{0}; restore a backup, or run repair into a new store")]
    Damaged(Finding),
    /// The manifest names it and it is not there.
    #[error(
        "{file}: the manifest names this file and it is missing; restore a backup, or run repair into a new store"
    )]
    Missing {
        /// The file.
        file: String,
    },
    /// Written by a newer release. Nothing was touched.
    #[error(
        "{file}: format version {found}, this release reads up to {supported}; use a newer release"
    )]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The newest version read here.
        supported: u32,
    },
    /// What was to be written breaks a rule or cap. Nothing was written.
    #[error("side file not written: {message}")]
    Refused {
        /// Which rule, with the values.
        message: String,
    },
    /// The system failed a call other than a sync or rename.
    #[error("{}: {step} failed: {source}", path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A sync or rename of the new file failed. It was never named by a manifest: write
    /// another one under a new number, and do not name this one.
    #[error("{}: {step} failed; write the side file anew under another number: {source}", path.display())]
    NotDurable {
        /// What was tried.
        step: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
