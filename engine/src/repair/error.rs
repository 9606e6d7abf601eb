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
    /// Another repair builds at the same destination.
    #[error("{path} is being built by another repair; wait until it is done, or stop it")]
    InProgress {
        /// The temporary directory.
        path: PathBuf,
    },
}
