//! Why is a repair refused?

use std::path::PathBuf;

/// A repair that was not begun, or that nothing could be made of. The source is untouched and
/// nothing is at the destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Something is where the new store is to be.
    #[error("{path} is not empty; name a new directory for the repaired store")]
    DestinationOccupied {
        /// The destination.
        path: PathBuf,
    },
    /// The new store would lie inside the damaged one, or the other way round.
    #[error("{path} and the damaged store lie inside each other; name a directory elsewhere")]
    DestinationInside {
        /// The destination.
        path: PathBuf,
    },
    /// No file says how the store was made.
    #[error(
        "no manifest and no segment footer is whole, so nothing says how the store was made \
         (analyzer, vectors); give its setup, or name a store that was made alike"
    )]
    SetupUnknown,
    /// No file says which store this is.
    #[error("no manifest, segment or log file is whole enough to say which store it belongs to")]
    IdentityUnknown,
    /// The source is a backup, not a store.
    #[error("{path} is a backup (it has BACKUP): use `chronolith restore`")]
    IsBackup {
        /// The source.
        path: PathBuf,
    },
    /// The place where the new store would be built is taken by something that no repair made.
    /// It is left alone.
    #[error("{path} is in the way and was not left by a repair; move it away")]
    NotALeftover {
        /// What is in the way.
        path: PathBuf,
    },
    /// Another repair builds at the same destination.
    #[error("{path} is being built by another repair; wait until it is done, or stop it")]
    InProgress {
        /// The temporary directory.
        path: PathBuf,
    },
}
