//! How does a validated log become one that can be written to?
//!
//! [`Recovered::start`] begins a *new* file: frames above the proven seq may live in the
//! page cache only, so they are copied; the new header names the cut in the old file. Of the old
//! file nothing changes but its mark, last of all (`birth`). Each step may be cut short by another crash: before the rename the new file
//! does not exist and all repeats; after it the new file is whole, because it was synced
//! first; the directory is synced before the rename too, so that a file of an earlier
//! recovery cannot vanish under one that names it.

use std::path::{Path, PathBuf};

use chronolith_vfs::Env;
use chronolith_vfs::planted::{self, Bug};

use crate::birth::{NewFile, Untold};
use crate::error::WalError;
use crate::files::{Cut, FORMAT_NEWEST, FileHeader, FileNumber, FileSpan, Successor};
use crate::frame::{EPOCH_MAX, first_seq_of};
use crate::judge::{Part, RecoveryReport, judge};
use crate::options::LogOptions;
use crate::reader::{FileScan, Frame, Position};
use crate::status::{Status, StatusFile};
use crate::writer::{Log, Start};

/// A validated log: read its frames, then start writing.
#[derive(Debug)]
pub struct Recovered {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) opts: LogOptions,
    pub(crate) parts: Vec<Part>,
    pub(crate) report: RecoveryReport,
    pub(crate) started: bool,
}

impl Log {
    /// Validates every frame from `opts.floor_file` on and judges the end. Writes nothing.
    ///
    /// # Errors
    /// `Corrupt`, `MissingFile`, `WrongStore`, `UnknownFormat`: see the module's rules.
    /// `TornTail` under `strict_tail`. `Io`: a read error is never the end of the log.
    pub fn recover(env: &Env, dir: &Path, opts: &LogOptions) -> Result<Recovered, WalError> {
        opts.check()?;
        let (parts, report) = judge(env, dir, opts)?;
        Ok(Recovered {
            env: env.clone(),
            dir: dir.to_path_buf(),
            opts: opts.clone(),
            parts,
            report,
            started: false,
        })
    }
}

impl Recovered {
    /// What was found.
    #[must_use]
    pub fn report(&self) -> &RecoveryReport {
        &self.report
    }

    /// Last seq before the floor file; 0: none. Above what the caller has settled elsewhere,
    /// the seqs between are in no file.
    #[must_use]
    pub fn base_seq(&self) -> u64 {
        self.parts.first().map_or(0, |part| part.header.base_seq)
    }

    /// Number the next log file will get.
    #[must_use]
    pub fn next_file(&self) -> FileNumber {
        self.newest().header.number + 1
    }

    /// All accepted frames from the floor on, in seq order, read one by one. Those at or
    /// below `flushed_seq` are among them: the caller skips by seq.
    #[must_use]
    pub fn frames(&self) -> Frames<'_> {
        Frames {
            recovered: self,
            next_part: 0,
            scan: None,
            failed: false,
        }
    }

    /// Begins a new log file of `epoch` with copies of all accepted frames that are not
    /// proven durable, and returns the writer. Frames may be read before or after this.
    ///
    /// # Errors
    /// `BadEpoch`. `Io`: the log says what it said before, call again; where the new writer was
    /// begun already that second call is `Poisoned`: recover again. `SyncFailed`: the outcome is
    /// unknown, recover again. `Poisoned` also where this has been called with success before.
    pub fn start(&mut self, epoch: u32) -> Result<Log, WalError> {
        self.check_start(epoch)?;
        let mut status = StatusFile::open(&self.env, &self.dir, self.opts.store_id)?;
        let mut start = self.begin_file(epoch, self.opts.preallocate_bytes)?;
        // At once: other processes can read by now that all of it is durable, and take a status
        // that does not say so for an old copy.
        status.write(self.all_durable(epoch))?;
        if let Some(untold) = start.untold.take() {
            untold.tell()?;
        }
        Log::begin(&self.env, &self.dir, &self.opts, start, status)
    }

    /// Begins the new file, with `ahead` bytes of zeros; the file before does not say so yet.
    pub(crate) fn begin_file(&mut self, epoch: u32, ahead: u64) -> Result<Start, WalError> {
        self.settle_names()?;
        let (env, dir) = (&self.env, &self.dir);
        // Whatever can be refused is asked for before anything is begun.
        let untold = Untold::open(env, dir, self.newest().header)?;
        let (mut scan, cut, first_copy) = self.find_cut()?;
        let header = FileHeader {
            format: FORMAT_NEWEST,
            epoch,
            store_id: self.opts.store_id,
            number: self.next_file(),
            first_seq: first_copy.unwrap_or(first_seq_of(epoch)),
            base_seq: cut.last_seq,
            durable_upto: self.report.last_seq,
            prev: cut.chain,
            cut: (!planted::is_on(Bug::TailNotCut)).then_some(Cut {
                file: scan.header.number,
                offset: cut.offset,
                digest: cut.chain,
            }),
            successor: Successor::None,
        };
        let mut new = NewFile::begin(env, dir, header, None)?;
        let end = self.newest().end.offset;
        while let Some(frame) = scan.next_before(end)? {
            if planted::is_on(Bug::CopiesLeftOut) {
                continue;
            }
            new.copy(env, &frame, scan.body()?)?;
        }
        let at = Position {
            offset: new.offset,
            chain: new.chain,
            last_seq: self.report.last_seq,
            epoch,
        };
        // From here on the new file may exist: never twice from one recovery.
        self.started = true;
        let file = new.publish(&self.env, &self.dir, ahead)?;
        Ok(Start {
            file,
            header,
            at,
            written_upto: at.offset + ahead,
            spans: self.spans(&cut, &header, &at),
            untold: Some(untold),
        })
    }

    /// Makes the names durable that are there, and lets every file that has a successor say so.
    pub(crate) fn settle_names(&self) -> Result<(), WalError> {
        let synced = self.env.vfs.sync_dir(&self.dir);
        synced.map_err(|e| WalError::sync_failed("sync", &self.dir, &e))?;
        self.tell_births(self.parts.len() - 1)
    }

    /// Refuses a wrong epoch and a second start.
    pub(crate) fn check_start(&self, epoch: u32) -> Result<(), WalError> {
        let highest = self.report.epoch_highest;
        if epoch <= highest || epoch > EPOCH_MAX {
            return Err(WalError::BadEpoch { epoch, highest });
        }
        if self.started {
            return Err(WalError::Poisoned {
                reason: "this recovery has started a log".into(),
            });
        }
        Ok(())
    }

    /// Lets each of the first `count` files, which have a successor, say that it was begun.
    /// The newest of them is told again: a process that died right after a birth may have left a
    /// mark that is in the page cache alone.
    fn tell_births(&self, count: usize) -> Result<(), WalError> {
        for (at, part) in self.parts[..count].iter().enumerate() {
            let is_certain = part.header.successor == Successor::Begun;
            if !is_certain || at + 2 >= self.parts.len() {
                Untold::open(&self.env, &self.dir, part.header)?.tell()?;
            }
        }
        Ok(())
    }

    /// The files below `floor` have gone, or may go: nothing is left to say of them.
    pub(crate) fn forget_below(&mut self, floor: FileNumber) {
        let newest = self.newest().header.number;
        self.parts
            .retain(|part| part.header.number >= floor.min(newest));
    }

    /// What `STATUS` says once all that was recovered is durable.
    pub(crate) fn all_durable(&self, epoch: u32) -> Status {
        let last_seq = self.report.last_seq;
        Status {
            epoch,
            acked_upto: last_seq,
            durable_upto: last_seq,
        }
    }

    pub(crate) fn newest(&self) -> &Part {
        self.parts.last().expect("a recovery has at least one file")
    }

    /// Stands the newest file's scan behind the last batch proven durable, and returns the
    /// first seq behind it. A seal behind that batch proves it, but may itself live in the
    /// page cache only: it stays outside, or a power cut would leave a cut nobody can reach.
    pub(crate) fn find_cut(&self) -> Result<(FileScan, Position, Option<u64>), WalError> {
        let newest = self.newest();
        let (env, dir) = (&self.env, &self.dir);
        let mut scan = FileScan::open(env, dir, newest.header.number, &self.opts.store_id)?;
        let mut cut = scan.at;
        while let Some(frame) = scan.next_before(newest.end.offset)? {
            if scan.at.last_seq > self.report.durable_upto {
                scan.at = cut;
                return Ok((scan, cut, Some(frame.first_seq)));
            }
            cut = scan.at;
        }
        Ok((scan, cut, None))
    }

    fn spans(&self, cut: &Position, header: &FileHeader, at: &Position) -> Vec<FileSpan> {
        let mut spans = self.spans_found();
        if let (Some(last), Some(part)) = (spans.last_mut(), self.parts.last()) {
            *last = span(&part.header, cut);
        }
        spans.push(span(header, at));
        spans
    }

    /// The files as they were found.
    pub(crate) fn spans_found(&self) -> Vec<FileSpan> {
        self.parts.iter().map(|p| span(&p.header, &p.end)).collect()
    }
}

pub(crate) fn span(header: &FileHeader, end: &Position) -> FileSpan {
    FileSpan {
        number: header.number,
        first_seq: header.first_seq,
        last_seq: end.last_seq,
        bytes: end.offset,
    }
}

/// The accepted frames of a recovery, one file and one window in memory at a time.
#[derive(Debug)]
pub struct Frames<'a> {
    recovered: &'a Recovered,
    next_part: usize,
    scan: Option<(FileScan, u64)>,
    failed: bool,
}

impl Frames<'_> {
    fn advance(&mut self) -> Result<Option<Frame>, WalError> {
        loop {
            if let Some((scan, end)) = &mut self.scan
                && let Some(header) = scan.next_before(*end)?
            {
                let body = scan.body()?.to_vec();
                return Ok(Some(Frame {
                    first_seq: header.first_seq,
                    ops: header.ops,
                    body,
                }));
            }
            let Some(part) = self.recovered.parts.get(self.next_part) else {
                return Ok(None);
            };
            self.next_part += 1;
            let (env, dir) = (&self.recovered.env, &self.recovered.dir);
            let store_id = &self.recovered.opts.store_id;
            let scan = FileScan::open(env, dir, part.header.number, store_id)?;
            self.scan = Some((scan, part.end.offset));
        }
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.advance().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}
