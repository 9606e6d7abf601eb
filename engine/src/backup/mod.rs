//! How does a store get a second life elsewhere? A backup beside the writer, and its way back.
//!
//! ```text
//! BACKUP/
//!   BACKUP                    the index: every file of the backup with length and digest
//!   LOCK                      one backup into this directory at a time
//!   segments/<16 hex>.seg     what never changes: hard links to the store's files, or copies
//!   segments/<16 hex>.del  .tags
//!   point-<16 hex>/           what does: always copies, a new directory with every backup
//!     CURRENT  manifest/MANIFEST-<16 hex>.a .b  wal/<16 hex>.log  wal/STATUS
//! ```
//!
//! * [`backup`] makes or renews a backup from any process, beside any writer: `source` takes
//!   one generation of the manifest and the whole frames of its log, `create` brings what is
//!   not there yet, `check` reads all of it back. Then, and not before, the index is replaced,
//!   at once. So a crash at any point leaves the backup before it whole.
//! * [`restore`] believes nothing: `index` has no names in it, only kinds and numbers from
//!   which the engine's own names are made; lengths are compared before a byte is read and
//!   digests while it is copied; links and whatever is no regular file are refused. The copy is
//!   verified as a store before it is renamed into place.
//!
//! What a backup holds is the state that a recovery would find had the writer been killed at
//! that instant: every batch acknowledged before the backup began, and a prefix of all.
//!
//! A restored store keeps its store id. Its next writer begins a new epoch, as at every open;
//! but the store it was taken from does the same, so the two give the same seqs to different
//! writes. They are two histories of one store: go on with one of them. A backup directory
//! follows one history and refuses the other by name.
//!
//! A hard link is no second copy: a flipped bit on the disk is in both. A backup meant to
//! outlive its disk is on another one (where links are impossible and copies are made), or is
//! made with [`BackupOptions::copy`].
//!
//! What is not in a backup: the catalog, which every store can rebuild, and the lock.

mod check;
mod create;
mod error;
mod index;
mod place;
mod restore;
mod source;
mod transfer;

#[cfg(test)]
mod tests;

pub use create::{BackupOptions, BackupReport, backup};
pub use error::BackupError;
pub use restore::{RestoreReport, restore};
pub use transfer::{BackupProgress, BackupStage};
