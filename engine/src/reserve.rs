//! What lets `forget` and `close` succeed on a full disk?
//!
//! `RESERVE`, a file of zeros that takes space and holds nothing. Where the disk is full for a
//! batch that only forgets, for a close or for an open, the file is removed and the work done
//! in its space. Nothing else may use that space: until the reserve can be had again, puts,
//! flushes and compactions are refused with [`Error::DiskFull`], before they change anything.
//!
//! Nobody reads the file and nothing depends on its content, so it is not synced. One that a
//! crash left shorter is made again by the next open. A file system that compresses, or shares
//! blocks, gives less back than the file's length.

use std::io::{self, ErrorKind as IoKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chronolith_vfs::Vfs;

use crate::error::{Error, ErrorKind};
use crate::manifest::names::RESERVE;
use crate::settings::Shared;

/// Share of a memtable's limit that is kept in reserve.
const MEMTABLE_SHARE: u64 = 64;
/// Smallest and largest reserve. The smallest takes a frame, a log file and a manifest.
const RESERVE_BYTES: (u64, u64) = (32 << 10, 1 << 20);

/// The reserve of a store that is open for writing.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// Changes under the lock; read without it where a wrong answer only costs a retry.
    is_held: AtomicBool,
    lock: Mutex<()>,
}

impl Reserve {
    /// The reserve of a store; not held yet.
    pub(crate) fn new(shared: &Shared) -> Self {
        let share = shared.memtable_bytes_max / MEMTABLE_SHARE;
        Self {
            path: shared.dir.join(RESERVE),
            bytes: share.clamp(RESERVE_BYTES.0, RESERVE_BYTES.1),
            is_held: AtomicBool::new(false),
            lock: Mutex::new(()),
        }
    }

    /// Takes the space again where it was given up.
    ///
    /// # Errors
    /// `DiskFull` where it cannot be had. Other failures are no reason to refuse work: a
    /// system that lets no file be made says so where it matters.
    pub(crate) fn hold(&self, vfs: &dyn Vfs) -> Result<(), Error> {
        if self.is_held.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.lock();
        if vfs
            .stat(&self.path)
            .is_ok_and(|stat| stat.len == self.bytes)
        {
            self.is_held.store(true, Ordering::Release);
            return Ok(());
        }
        match self.make(vfs) {
            Ok(()) => self.is_held.store(true, Ordering::Release),
            Err(error) => {
                // A part would take space and give none.
                let _ = vfs.remove_file(&self.path);
                if is_no_space(&error) {
                    return Err(Error::DiskFull {
                        what: format!("{} cannot be made again", self.path.display()),
                        source: error,
                    });
                }
            }
        }
        Ok(())
    }

    fn make(&self, vfs: &dyn Vfs) -> io::Result<()> {
        match vfs.remove_file(&self.path) {
            Err(error) if error.kind() != IoKind::NotFound => return Err(error),
            _ => {}
        }
        let zeros = vec![0; usize::try_from(self.bytes).unwrap_or(0)];
        vfs.create_new(&self.path)?.write_all_at(&zeros, 0)
    }

    /// Gives the space up. While the guard lives nobody takes it back.
    pub(crate) fn give_up(&self, vfs: &dyn Vfs) -> MutexGuard<'_, ()> {
        let guard = self.lock();
        self.is_held.store(false, Ordering::Release);
        // Where it is gone already there is nothing to give.
        let _ = vfs.remove_file(&self.path);
        guard
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // It guards a file's being there, which is looked at afresh each time.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), IoKind::StorageFull | IoKind::QuotaExceeded)
}

/// True where the cause is a full disk and nothing was changed.
pub(crate) fn is_full(error: &Error) -> bool {
    full_cause(error).is_some()
}

fn full_cause(error: &Error) -> Option<&io::Error> {
    if error.kind() == ErrorKind::Reopen {
        return None;
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>()
            && is_no_space(io)
        {
            return Some(io);
        }
        cause = error.source();
    }
    None
}

/// The error as a caller is told: a full disk by its own kind, anything else as it is.
pub(crate) fn name_full(error: Error) -> Error {
    let Some(kind) = full_cause(&error).map(io::Error::kind) else {
        return error;
    };
    match error {
        Error::DiskFull { .. } => error,
        other => Error::DiskFull {
            what: other.to_string(),
            source: kind.into(),
        },
    }
}
