//! Is there room, in memory and on the disk? Waiting for a flush, and work in the reserve's space.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chronolith_wal::WalError;

use super::{Core, FLUSH, Store};
use crate::error::Error;
use crate::manifest::names::RESERVE;
use crate::options::Options;
use crate::recover::{LogPlace, Opened, recover};
use crate::reserve::{is_full, name_full};

/// How long a write waits for a flush that a full disk holds up: long enough for one more try.
const FULL_WAIT: Duration = Duration::from_secs(1);

impl Store {
    /// Flushes everything; on a full disk in the reserve's space, and where that is not enough
    /// what is left stays in the log.
    pub(super) fn flush_or_leave(&self) -> Result<(), Error> {
        let core = self.core();
        match core.flush_all() {
            Err(error) if is_full(&error) => {}
            flushed => return flushed,
        }
        let _given = core.reserve.give_up(&*core.shared.env.vfs);
        match core.flush_all() {
            Err(error) if is_full(&error) => Ok(()),
            flushed => flushed,
        }
    }

    /// Seals the log; on a full disk in the reserve's space.
    pub(super) fn seal(&self) -> Result<(), Error> {
        let core = self.core();
        match core.pipeline.log().seal().map_err(Error::from) {
            Err(error) if is_full(&error) => {}
            sealed => return sealed,
        }
        let _given = core.reserve.give_up(&*core.shared.env.vfs);
        let sealed = core.pipeline.log().seal().map_err(Error::from);
        sealed.map_err(name_full)
    }

    /// Waits, with a limit, until few enough memtables wait for their flush. A batch that only
    /// forgets does not wait for a flush that a full disk holds up: it adds no row.
    pub(super) fn wait_for_room(&self, only_forgets: bool) -> Result<(), Error> {
        let core = self.core();
        let has_room = || core.current.version().sealed().len() <= self.inner.options.sealed_max;
        if has_room() || (only_forgets && core.signal.is_full(FLUSH)) {
            return Ok(());
        }
        core.writes_delayed.fetch_add(1, Ordering::Relaxed);
        let come = match self.inner.worker {
            Some(_) => self.wait_for_flush(has_room),
            None => match self.flush_sealed() {
                Err(error) if only_forgets && is_full(&error) => return Ok(()),
                flushed => flushed.map(|()| has_room())?,
            },
        };
        if come {
            return core.pipeline.check();
        }
        let is_full = core.signal.is_full(FLUSH);
        if only_forgets && is_full {
            return Ok(());
        }
        core.writes_refused.fetch_add(1, Ordering::Relaxed);
        let why = core
            .signal
            .last_error()
            .map(|error| format!(" (last try: {error})"))
            .unwrap_or_default();
        let what = format!("memtables wait for their flush{why}");
        if is_full {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(Error::DiskFull { what, source });
        }
        Err(Error::Busy { what })
    }

    /// Waits for room, or a reason to wait no longer; false where the time is over or the disk
    /// is full for longer than the flush needs to try again.
    fn wait_for_flush(&self, has_room: impl Fn() -> bool) -> bool {
        let core = self.core();
        let come = || has_room() || core.pipeline.check().is_err();
        let mut left = self.inner.options.busy_wait;
        loop {
            // The signal's lock is held while `come` is looked at: it cannot ask the signal.
            let piece = left.min(FULL_WAIT);
            if core.signal.wait_until(piece, come) {
                return true;
            }
            left -= piece;
            if left.is_zero() || core.signal.is_full(FLUSH) {
                return false;
            }
        }
    }

    /// Flushes every memtable that waits, on this thread.
    pub(super) fn flush_sealed(&self) -> Result<(), Error> {
        while self.core().flush_oldest().map_err(name_full)? {}
        Ok(())
    }
}

impl Core {
    /// Makes sure that the space of the reserve is not used for anything else.
    pub(super) fn hold_reserve(&self) -> Result<(), Error> {
        self.reserve.hold(&*self.shared.env.vfs)
    }
}

/// Recovers; on a disk that has no file to give in the newest log file, on one that is too full
/// to begin a log file in the reserve's space.
pub(super) fn recover_in_reserve(options: &Options, dir: &Path) -> Result<Opened, Error> {
    let first = match recover(options, dir, LogPlace::New) {
        Err(error) if is_full(&error) => error,
        recovered => return recovered,
    };
    // No zeros ahead: the space must last for this handle's forgets, and for opens to come.
    let sparing = Options {
        log_preallocate_bytes: 0,
        ..options.clone()
    };
    let is_without_files = has_no_file(&first);
    if is_without_files {
        // The reserve is one file: it would help the first open alone.
        match recover(&sparing, dir, LogPlace::Newest) {
            Err(error) if is_full(&error) => {}
            recovered => return recovered,
        }
    }
    match options.env.vfs.remove_file(&dir.join(RESERVE)) {
        // Nothing was published: recovery begins again from the same state.
        Ok(()) => recover(&sparing, dir, LogPlace::New).map_err(name_full),
        Err(_) => Err(name_full(first)),
    }
}

/// True where a log file could not even be made.
fn has_no_file(error: &Error) -> bool {
    matches!(error, Error::Log(WalError::Io { op: "create", .. }))
}
