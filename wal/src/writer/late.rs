//! When does the writer of a log that was closed cleanly begin? At its first append.
//!
//! A new file, its name and its epoch take syncs, and nobody needs them who only reads. Where the
//! log is settled ([`Recovered::is_settled`]) there is nothing else that a writer would have to
//! write before it answers: all of it is durable and says so, in the log and in `STATUS`. So the
//! writer stands behind the last frame and keeps the recovery. Its first append begins what
//! [`Recovered::start`] would have begun, and goes on once that is durable:
//!
//! * The epoch is durable before a seq of it is given, as ever. A writer that never appended has
//!   given none, and the next one takes the same epoch.
//! * Until then not a byte is written, of `STATUS` neither: for other processes, and after any
//!   crash, it is the log that was closed.
//! * On a disk that has no file to give the epoch begins in the newest file there is, as in
//!   [`Recovered::take_over`]. On a full one the append fails, and the next one tries again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chronolith_vfs::Env;
use chronolith_vfs::sync::Mutex;

use super::{Log, Start, Tail, is_no_space};
use crate::birth::Untold;
use crate::error::WalError;
use crate::files::Successor;
use crate::options::LogOptions;
use crate::reader::Position;
use crate::recover::Recovered;
use crate::status::StatusFile;
use crate::sync::GroupSync;

impl Recovered {
    /// True where a writer has nothing to write before its first append: the log was sealed,
    /// nothing was dropped, every file that has a successor says so, and `STATUS` says that all
    /// of it is acknowledged and durable.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let report = self.report();
        let closed = &self.parts[..self.parts.len() - 1];
        report.sealed
            && report.dropped.is_none()
            && report.durable_upto >= report.last_seq
            && report.status == Some(self.all_durable(report.epoch_highest))
            && closed
                .iter()
                .all(|part| part.header.successor == Successor::Begun)
    }

    /// As [`Recovered::start`], at the first append: for a log that is settled, any other is
    /// started at once.
    ///
    /// # Errors
    /// `BadEpoch`; `Io` where the newest file cannot be written. What else can fail, fails an
    /// append.
    pub fn start_late(mut self, epoch: u32) -> Result<Log, WalError> {
        if !self.is_settled() {
            return self.start(epoch);
        }
        self.check_start(epoch)?;
        let (env, dir, opts) = (self.env.clone(), self.dir.clone(), self.opts.clone());
        let end = self.newest().end;
        let Untold { file, header } = Untold::open(&env, &dir, self.newest().header)?;
        let start = Start {
            file,
            header,
            at: Position { epoch, ..end },
            written_upto: end.offset,
            spans: self.spans_found(),
            untold: None,
        };
        Ok(Log::standing(&env, &dir, &opts, start, Some(self)))
    }
}

impl Log {
    /// A log that stands where `start` says; with `late` it has not begun there.
    pub(super) fn standing(
        env: &Env,
        dir: &Path,
        opts: &LogOptions,
        start: Start,
        late: Option<Recovered>,
    ) -> Self {
        let (epoch, last_seq) = (start.at.epoch, start.at.last_seq);
        let group = GroupSync::new(Arc::clone(&start.file), last_seq);
        Self {
            env: env.clone(),
            dir: dir.to_path_buf(),
            opts: opts.clone(),
            epoch,
            tail: Mutex::new(Tail::new(start, late)),
            group,
            status: Mutex::new(None),
            next: Mutex::new(None),
            has_future: AtomicBool::new(true),
        }
    }

    /// Begins the file, or the epoch, that a late begin has put off.
    ///
    /// # Errors
    /// As [`Recovered::start`]. Where the writer may have begun all the same the log is poisoned.
    pub(super) fn begin_late(&self, tail: &mut Tail) -> Result<(), WalError> {
        let Some(recovered) = &mut tail.late else {
            return Ok(());
        };
        let (start, status) = self.begin_now(recovered).inspect_err(|error| {
            if error.is_final() {
                self.group.poison(error.to_string());
            }
        })?;
        self.group.switch_file(Arc::clone(&start.file));
        *tail = Tail::new(start, None);
        *self.lock_status() = Some(status);
        // Where it cannot be written it says what it said, and all of that is true.
        let _ = self.write_status(tail.last_seq);
        Ok(())
    }

    fn begin_now(&self, recovered: &mut Recovered) -> Result<(Start, StatusFile), WalError> {
        let mut status = StatusFile::open(&self.env, &self.dir, self.opts.store_id)?;
        let ahead = self.preallocate_bytes();
        let start = match recovered.begin_file(self.epoch, ahead) {
            Err(WalError::Io { op, file, source }) if is_no_space(&source) => {
                // No zeros ahead: the space must last for what is appended, and for opens to come.
                self.wind_down();
                match op {
                    "create" => recovered.begin_epoch(self.epoch, &mut status),
                    _ => Err(WalError::Io { op, file, source }),
                }
            }
            begun => begun,
        };
        Ok((start?, status))
    }
}
