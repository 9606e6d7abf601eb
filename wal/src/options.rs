//! What may a caller choose, within which bounds?

use std::time::Duration;

use crate::error::WalError;
use crate::files::{FILE_BYTES_CAP, FileNumber};
use crate::frame::BODY_BYTES_CAP;

/// How a log is opened and run.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The store the log belongs to.
    pub store_id: [u8; 16],
    /// Oldest log file still needed, from the manifest. Files below it are ignored.
    pub floor_file: FileNumber,
    /// From the manifest: seqs up to here were durable *in the log* when it was published
    /// (call `sync_upto` before a publish). Recovery takes it as proof.
    pub flushed_seq: u64,
    /// Refuse with `TornTail` instead of dropping an unsynced tail, or going on without one.
    pub strict_tail: bool,
    /// Zeros written ahead of the frames, so that a sync changes no metadata. 0: none.
    pub preallocate_bytes: u64,
    /// A file that would grow over this gets a successor first.
    pub file_bytes_max: u64,
    /// Longest body of a frame, at most 16 MiB.
    pub body_bytes_max: usize,
    /// How long the leader of a group waits for more writers. Zero: not at all; writers
    /// that come while a sync runs join the next one anyway.
    pub leader_wait: Duration,
}

impl LogOptions {
    /// The defaults: 1 MiB of zeros ahead, files of 64 MiB, bodies up to 16 MiB, no wait.
    #[must_use]
    pub fn new(store_id: [u8; 16]) -> Self {
        Self {
            store_id,
            floor_file: 0,
            flushed_seq: 0,
            strict_tail: false,
            preallocate_bytes: 1 << 20,
            file_bytes_max: 64 << 20,
            body_bytes_max: BODY_BYTES_CAP,
            leader_wait: Duration::ZERO,
        }
    }

    pub(crate) fn check(&self) -> Result<(), WalError> {
        let refuse = |name, allowed: String, found| {
            Err(WalError::BadOption {
                name,
                allowed,
                found,
            })
        };
        if self.body_bytes_max > BODY_BYTES_CAP {
            return refuse(
                "body_bytes_max",
                format!("at most {BODY_BYTES_CAP}"),
                self.body_bytes_max as u64,
            );
        }
        // Room for one longest frame behind the limit, and for copies of a recovery.
        if self.file_bytes_max > FILE_BYTES_CAP / 4 {
            let allowed = format!("at most {}", FILE_BYTES_CAP / 4);
            return refuse("file_bytes_max", allowed, self.file_bytes_max);
        }
        if self.preallocate_bytes > FILE_BYTES_CAP / 4 {
            let allowed = format!("at most {}", FILE_BYTES_CAP / 4);
            return refuse("preallocate_bytes", allowed, self.preallocate_bytes);
        }
        Ok(())
    }
}
