//! How does another process follow a log that is being written?
//!
//! It reads frames one by one, no later than `STATUS.acked_upto`, and never locks, cuts or
//! writes. Frames at or below an acknowledged seq were whole before `STATUS` said so; what
//! lies behind may be half-written and is not looked at, so a live end is never "damage".
//!
//! The file may get a successor (rotation, or a writer that recovered and copied frames: the
//! copies have seqs already seen and are passed over) and may be removed after a publish:
//! an open file stays readable, a file that is gone is `Removed`: begin from the manifest.

use std::path::{Path, PathBuf};

use chronolith_vfs::Env;

use crate::error::{Flaw, WalError};
use crate::files::{FileNumber, MARK_AT, Successor, list_logs, log_name, open_log};
use crate::reader::{FileScan, Frame, Step};
use crate::status::Status;

/// Reads acknowledged frames in order.
#[derive(Debug)]
pub struct LogReader {
    env: Env,
    dir: PathBuf,
    store_id: [u8; 16],
    scan: FileScan,
    /// Last seq handed out (or before the first file). Never goes back.
    last_seq: u64,
    /// Bytes read ahead are true for frames up to here: they were read after a status that
    /// acknowledged them.
    fresh_upto: u64,
}

impl LogReader {
    /// Stands before the first frame of file `floor`.
    ///
    /// # Errors
    /// `Removed` where the file is gone: read the manifest again. Else as recovery.
    pub fn open(
        env: &Env,
        dir: &Path,
        store_id: [u8; 16],
        floor: FileNumber,
    ) -> Result<Self, WalError> {
        let scan = open_or_removed(env, dir, floor, &store_id)?;
        let last_seq = scan.at.last_seq;
        Ok(Self {
            env: env.clone(),
            dir: dir.to_path_buf(),
            store_id,
            scan,
            last_seq,
            fresh_upto: 0,
        })
    }

    /// Last seq handed out; before the first frame, the last seq before the floor file.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The file being read.
    #[must_use]
    pub fn current_file(&self) -> FileNumber {
        self.scan.header.number
    }

    /// The next frame that `status` acknowledges, `None` where there is none yet.
    ///
    /// Read the status afresh for each run of calls. Where none can be read, a caller that
    /// knows that no writer is alive may pass `acked_upto: u64::MAX, durable_upto: 0` and
    /// gets all whole frames.
    ///
    /// # Errors
    /// `Removed`: begin again from the manifest. `Corrupt`: bytes that were durable are
    /// damaged. `Io`: a read failed; the same call may be repeated.
    pub fn next(&mut self, status: &Status) -> Result<Option<Frame>, WalError> {
        while self.last_seq < status.acked_upto {
            if self.fresh_upto < status.acked_upto {
                self.scan.refresh()?;
                self.fresh_upto = status.acked_upto;
            }
            let before = self.scan.at;
            match self.scan.step()? {
                Step::Frame(header) => match header.last_seq() {
                    Some(last) if last > status.acked_upto => {
                        self.scan.at = before;
                        return Ok(None);
                    }
                    Some(last) if last > self.last_seq => {
                        let body = self.scan.body()?.to_vec();
                        self.last_seq = last;
                        return Ok(Some(Frame {
                            first_seq: header.first_seq,
                            ops: header.ops,
                            body,
                        }));
                    }
                    _ => {}
                },
                Step::End => {
                    if !self.move_on(Flaw::Zeros, status)? {
                        return Ok(None);
                    }
                }
                Step::Bad(flaw) => {
                    if !self.move_on(flaw, status)? {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(None)
    }

    /// The highest seq that frames behind the current place and later files call durable, 0
    /// where there are none. Above what a status knows to be durable for more than a moment,
    /// that status is an old copy.
    ///
    /// # Errors
    /// `Io` where a read failed; damage in the header of a later file.
    pub fn proven_ahead(&mut self) -> Result<u64, WalError> {
        let before = self.scan.at;
        self.scan.refresh()?;
        let mut proven = durable_in(&mut self.scan)?;
        self.scan.at = before;
        self.scan.refresh()?;
        let current = self.scan.header.number;
        for number in list_logs(&self.env, &self.dir)? {
            if number <= current {
                continue;
            }
            match FileScan::open(&self.env, &self.dir, number, &self.store_id) {
                Ok(mut scan) => {
                    let in_it = durable_in(&mut scan)?;
                    proven = proven.max(scan.header.durable_upto).max(in_it);
                }
                // Removed since it was listed: the manifest has moved on.
                Err(WalError::MissingFile { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(proven)
    }

    /// Makes sure that the newest file there is does not say that there was a later one.
    ///
    /// # Errors
    /// `SuccessorMissing`, or `Corrupt` where that cannot be told: a writer has removed it
    /// since, if the manifest has moved on, else it is lost. `Removed` where no file is left.
    /// `Io` where a read failed.
    pub fn check_newest(&self) -> Result<(), WalError> {
        let newest = || -> Result<FileNumber, WalError> {
            let numbers = list_logs(&self.env, &self.dir)?;
            let current = log_name(self.current_file());
            numbers
                .last()
                .copied()
                .ok_or(WalError::Removed { file: current })
        };
        let mut number = newest()?;
        loop {
            let opened = open_log(&self.env, &self.dir, number, &self.store_id);
            let (file, header) = match opened {
                Err(WalError::MissingFile { file }) => return Err(WalError::Removed { file }),
                opened => opened?,
            };
            if header.successor == Successor::None {
                return Ok(());
            }
            // The mark was read after the names: the file it tells of may be there by now.
            let now = newest()?;
            if now > number {
                number = now;
                continue;
            }
            let mut scan = FileScan::new(file, header, &self.dir)?;
            durable_in(&mut scan)?;
            return Err(successor_missing(&scan, None));
        }
    }

    /// No frame here: go to the successor if there is one. False: nothing more for now.
    fn move_on(&mut self, flaw: Flaw, status: &Status) -> Result<bool, WalError> {
        let current = self.scan.header.number;
        let later: Vec<_> = list_logs(&self.env, &self.dir)?
            .into_iter()
            .filter(|&n| n > current)
            .collect();
        match later.first() {
            Some(&number) if number == current + 1 => {}
            Some(_) => {
                return Err(WalError::Removed {
                    file: log_name(current + 1),
                });
            }
            None if status.durable_upto > self.last_seq && status.acked_upto < u64::MAX => {
                return self.look_again(flaw, status.durable_upto);
            }
            None => return Ok(false),
        }
        // The file may have grown between the look at it and the successor's birth.
        self.scan.refresh()?;
        let before = self.scan.at;
        if let Step::Frame(_) = self.scan.step()? {
            self.scan.at = before;
            return Ok(true);
        }
        let next = open_or_removed(&self.env, &self.dir, current + 1, &self.store_id)?;
        let at = self.scan.at;
        let follows = match next.header.cut {
            Some(cut) => cut.offset < at.offset || cut.digest == at.chain,
            None => next.header.prev == at.chain,
        };
        if !follows {
            return Err(self.scan.corrupt(flaw, next.header.base_seq));
        }
        self.scan = next;
        self.fresh_upto = 0;
        Ok(true)
    }

    /// A durable frame is not here: read once more before calling it damage.
    fn look_again(&mut self, flaw: Flaw, durable_upto: u64) -> Result<bool, WalError> {
        self.scan.refresh()?;
        let before = self.scan.at;
        let seen = matches!(self.scan.step()?, Step::Frame(_));
        if !seen {
            return Err(self.scan.corrupt(flaw, durable_upto));
        }
        self.scan.at = before;
        Ok(true)
    }
}

/// The highest seq that the whole frames from here on call durable.
fn durable_in(scan: &mut FileScan) -> Result<u64, WalError> {
    let mut proven = 0;
    while let Step::Frame(header) = scan.step()? {
        proven = proven.max(header.durable_upto);
    }
    Ok(proven)
}

/// What the mark of the newest file there is says, once `scan` stands behind its frames.
pub(crate) fn successor_missing(scan: &FileScan, last_seq: Option<u64>) -> WalError {
    let first_seq = scan.at.last_seq.saturating_add(1);
    match scan.header.successor {
        Successor::Damaged => WalError::Corrupt {
            file: scan.header.name(),
            offset: MARK_AT,
            first_seq,
            last_seq: u64::MAX,
            flaw: Flaw::SuccessorMark,
        },
        Successor::None | Successor::Begun => WalError::SuccessorMissing {
            file: log_name(scan.header.number.saturating_add(1)),
            before: scan.header.name(),
            first_seq,
            last_seq,
        },
    }
}

pub(crate) fn open_or_removed(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    store_id: &[u8; 16],
) -> Result<FileScan, WalError> {
    FileScan::open(env, dir, number, store_id).map_err(|e| match e {
        WalError::MissingFile { file } => WalError::Removed { file },
        other => other,
    })
}
