//! After a crash: which frames count, and is the end a torn tail or damage?
//!
//! Let `last` be the last seq of the whole, chained frames from the floor on, and X the
//! first thing that is not one. Evidence is every place that says "durable up to p":
//!
//! | source | trusted because |
//! | --- | --- |
//! | a frame before X, or any whole *header* behind X in the same file | own checksum, salted with store and offset; written after the sync it speaks of |
//! | a log file's header (`durable_upto`), its mere existence | renamed after its own sync and that of the file before |
//! | the manifest's `flushed_seq` | the engine syncs the log before it publishes |
//! | `STATUS.durable_upto`, if of the newest epoch | written after the sync it speaks of; never synced, so it may be stale, never early |
//!
//! * The newest file says that a later one was begun: that one is missing. `SuccessorMissing`.
//! * Any p > `last`: something that was durable cannot be read. `Corrupt`, naming file,
//!   offset and seqs. This also finds a zeroed end, a cut file and a missing newest file.
//! * X in a file that has a successor: `Corrupt`; the successor proves it.
//! * Else X was never proven durable: it and all behind it are dropped and counted. That
//!   whole frames stand behind X proves nothing: unsynced sectors land in any order.
//! * `ambiguous`: X might still have been the last synced group, damaged afterwards, with no
//!   later frame, seal or file to say so. `STATUS` settles this: if it says less than
//!   seq(X) and is at least as fresh as the log's own evidence, no acknowledgement of X at
//!   level `Synced` had returned. (After kill -9 that is exact. After a power cut `STATUS`
//!   may be one group old; only a power cut *and* damage of exactly that group together
//!   stay unseen.) Without such a `STATUS` the case is marked.
//! * A log that ends at a frame's end looks whole. `STATUS.acked_upto` > `last` says that it
//!   is not: what was acknowledged as `Buffered` behind it is gone, as after a power cut. That
//!   is a dropped tail, too, even where none of its bytes are left to count.

use std::path::Path;

use chronolith_vfs::Env;
use chronolith_vfs::planted::{self, Bug};

use crate::error::{Flaw, WalError};
use crate::files::{self, FileHeader, MARKED_SINCE, Successor, log_name};
use crate::frame::{FrameHeader, Kind};
use crate::options::LogOptions;
use crate::reader::{FileScan, Position, Step};
use crate::status::{Status, read_status};
use crate::tail::successor_missing;

/// What recovery found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Log files read.
    pub files: usize,
    /// Batches accepted.
    pub frames: u64,
    /// Ops in them.
    pub ops: u64,
    /// Bytes behind the last accepted frame that were dropped (without trailing zeros).
    pub bytes_dropped: u64,
    /// Where the dropped tail begins, and why it is none.
    pub dropped: Option<DroppedTail>,
    /// True where the dropped tail may have been acknowledged as `Synced`.
    pub ambiguous: bool,
    /// Last seq that was acknowledged (as `Buffered`) and that no file holds: all behind
    /// `last_seq` up to it is lost. `None`: no such loss is known of.
    pub acked_lost_upto: Option<u64>,
    /// True where the log was sealed: nothing was written after its last sync.
    pub sealed: bool,
    /// Last accepted seq; 0 for none ever.
    pub last_seq: u64,
    /// Last seq proven durable before this recovery.
    pub durable_upto: u64,
    /// Highest epoch in use; the next must be above.
    pub epoch_highest: u32,
    /// Files that have a successor and whose mark of it is damaged: harmless while that is there.
    pub damaged_marks: Vec<String>,
    /// The writer's last status, if it can be read.
    pub status: Option<Status>,
}

/// A tail that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedTail {
    /// File name.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// What is wrong with its first frame.
    pub flaw: Flaw,
}

/// One file, and how far its bytes count.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) header: FileHeader,
    /// Behind the last accepted frame.
    pub(crate) end: Position,
}

/// Validates every frame from the floor on and judges the end.
pub(crate) fn judge(
    env: &Env,
    dir: &Path,
    opts: &LogOptions,
) -> Result<(Vec<Part>, RecoveryReport), WalError> {
    let headers = read_headers(env, dir, opts)?;
    let status = read_status(env, dir, &opts.store_id)?;
    Judge::new(env, dir, opts, headers, status).run()
}

/// Headers of all files from the floor on, gaps refused.
fn read_headers(env: &Env, dir: &Path, opts: &LogOptions) -> Result<Vec<FileHeader>, WalError> {
    let mut numbers = files::list_logs(env, dir)?;
    numbers.retain(|&n| n >= opts.floor_file);
    let mut expected = opts.floor_file;
    if expected == 0 {
        // No floor known: begin with the oldest there is.
        expected = numbers.first().copied().unwrap_or(1);
    }
    if numbers.is_empty() {
        return Err(WalError::MissingFile {
            file: log_name(expected),
        });
    }
    let mut headers = Vec::<FileHeader>::with_capacity(numbers.len());
    for number in numbers {
        if number != expected {
            return Err(WalError::MissingFile {
                file: log_name(expected),
            });
        }
        expected = number.saturating_add(1);
        let (_, header) = files::open_log(env, dir, number, &opts.store_id)?;
        let falls = headers.last().is_some_and(|before| {
            before.epoch > header.epoch || before.durable_upto > header.durable_upto
        });
        if falls {
            return Err(broken_file(&header, Flaw::FileChain));
        }
        headers.push(header);
    }
    Ok(headers)
}

fn broken_file(header: &FileHeader, flaw: Flaw) -> WalError {
    WalError::Corrupt {
        file: header.name(),
        offset: 0,
        first_seq: header.first_seq,
        last_seq: header.durable_upto.max(header.first_seq),
        flaw,
    }
}

/// The walk over all files, and the evidence gathered on the way.
struct Judge<'a> {
    env: &'a Env,
    dir: &'a Path,
    opts: &'a LogOptions,
    headers: Vec<FileHeader>,
    /// `STATUS`, if it speaks of the newest epoch; known once the newest file was walked.
    status: Option<Status>,
    /// Highest proof from log and manifest.
    proof: u64,
    parts: Vec<Part>,
    report: RecoveryReport,
}

impl<'a> Judge<'a> {
    fn new(
        env: &'a Env,
        dir: &'a Path,
        opts: &'a LogOptions,
        headers: Vec<FileHeader>,
        status: Option<Status>,
    ) -> Self {
        let (newest, closed) = headers
            .split_last()
            .expect("read_headers returns at least one");
        let proof = newest.durable_upto.max(opts.flushed_seq);
        let damaged = closed.iter().filter(|h| h.successor == Successor::Damaged);
        let report = RecoveryReport {
            damaged_marks: damaged.map(FileHeader::name).collect(),
            files: headers.len(),
            epoch_highest: newest.epoch,
            status,
            ..RecoveryReport::default()
        };
        Self {
            env,
            dir,
            opts,
            headers,
            status: None,
            proof,
            parts: Vec::new(),
            report,
        }
    }

    fn run(mut self) -> Result<(Vec<Part>, RecoveryReport), WalError> {
        for index in 0..self.headers.len() - 1 {
            self.walk_closed(index)?;
        }
        self.walk_newest()?;
        Ok((self.parts, self.report))
    }

    fn open(&self, index: usize) -> Result<FileScan, WalError> {
        FileScan::open(
            self.env,
            self.dir,
            self.headers[index].number,
            &self.opts.store_id,
        )
    }

    /// A file with a successor: every byte up to its end was synced before that was born.
    fn walk_closed(&mut self, index: usize) -> Result<(), WalError> {
        let mut scan = self.open(index)?;
        let next = self.headers[index + 1];
        let end = next.cut.map(|cut| cut.offset);
        while end.is_none_or(|end| scan.at.offset < end) {
            match scan.step()? {
                Step::Frame(header) => self.count(&header),
                Step::End if end.is_none() => break,
                Step::End => return Err(scan.corrupt(Flaw::Zeros, next.base_seq)),
                Step::Bad(flaw) => return Err(scan.corrupt(flaw, next.base_seq)),
            }
        }
        if scan.at.epoch > next.epoch {
            return Err(broken_file(&next, Flaw::FileChain));
        }
        if scan.at.chain != next.prev || end.is_some_and(|end| end != scan.at.offset) {
            let flaw = if scan.at.last_seq < next.base_seq {
                Flaw::Zeros
            } else {
                Flaw::FileChain
            };
            return Err(scan.corrupt(flaw, next.base_seq));
        }
        if scan.at.last_seq != next.base_seq {
            return Err(broken_file(&next, Flaw::FileChain));
        }
        self.parts.push(Part {
            header: scan.header,
            end: scan.at,
        });
        Ok(())
    }

    /// The newest file: it may end torn.
    fn walk_newest(&mut self) -> Result<(), WalError> {
        let mut scan = self.open(self.headers.len() - 1)?;
        // A file's birth is a seal of all before it; any data frame ends that.
        self.report.sealed = true;
        let bad = loop {
            match scan.step()? {
                Step::Frame(header) => self.count(&header),
                Step::End => break None,
                Step::Bad(flaw) => break Some(flaw),
            }
        };
        let mut used_end = scan.at.offset;
        if bad.is_some() {
            let evidence = scan.evidence_behind()?;
            self.proof = self.proof.max(evidence.durable_upto);
            self.report.epoch_highest = evidence.epoch;
            used_end = evidence.used_end;
        } else {
            self.report.epoch_highest = scan.at.epoch;
        }
        self.check_is_newest(&scan)?;
        self.take_status(&scan, bad)?;
        let proof = self.proof.max(self.status.map_or(0, |s| s.durable_upto));
        if proof > scan.at.last_seq && !planted::is_on(Bug::StoppedAtBadFrame) {
            return Err(scan.corrupt(bad.unwrap_or(Flaw::Zeros), proof));
        }
        self.report.last_seq = scan.at.last_seq;
        self.report.durable_upto = proof;
        let acked_upto = self.status.map_or(0, |s| s.acked_upto);
        self.report.acked_lost_upto = Some(acked_upto).filter(|acked| *acked > scan.at.last_seq);
        if bad.is_some() || self.report.acked_lost_upto.is_some() {
            self.drop_tail(&scan, used_end, bad)?;
        }
        self.parts.push(Part {
            header: scan.header,
            end: scan.at,
        });
        Ok(())
    }

    /// Takes `STATUS` for what it is worth: one of an epoch before speaks of a tail that was
    /// judged since. One of a later epoch was written after that was durable, in a file of its
    /// own or in a frame of this one.
    fn take_status(&mut self, scan: &FileScan, bad: Option<Flaw>) -> Result<(), WalError> {
        let epoch = self.report.epoch_highest;
        let Some(status) = self.report.status.filter(|s| s.epoch >= epoch) else {
            return Ok(());
        };
        match bad {
            _ if status.epoch == epoch => self.status = Some(status),
            Some(flaw) => {
                let proof = self.proof.max(status.durable_upto);
                return Err(scan.corrupt(flaw, proof));
            }
            // A next file would have been told of before anything in it was acknowledged.
            None if scan.header.format >= MARKED_SINCE => {
                let proof = self.proof.max(status.durable_upto);
                return Err(scan.corrupt(Flaw::Zeros, proof));
            }
            None => {
                return Err(WalError::MissingFile {
                    file: log_name(scan.header.number.saturating_add(1)),
                });
            }
        }
        Ok(())
    }

    /// Refuses where the newest file there is says that there was a later one, or may say so.
    fn check_is_newest(&self, scan: &FileScan) -> Result<(), WalError> {
        if scan.header.successor == Successor::None {
            return Ok(());
        }
        let told = self.report.status.map_or(0, |status| status.durable_upto);
        let proof = self.proof.max(told);
        let last_seq = Some(proof).filter(|proof| *proof > scan.at.last_seq);
        Err(successor_missing(scan, last_seq))
    }

    /// Drops what is behind the last whole frame: from a bad one on, or, without one, frames
    /// that were acknowledged and of which nothing is left.
    fn drop_tail(
        &mut self,
        scan: &FileScan,
        used_end: u64,
        bad: Option<Flaw>,
    ) -> Result<(), WalError> {
        let settled = self.status.is_some_and(|s| s.durable_upto >= self.proof);
        let bytes = used_end - scan.at.offset;
        self.report.ambiguous = !settled;
        self.report.sealed = false;
        self.report.bytes_dropped = bytes;
        let (file, offset) = (scan.header.name(), scan.at.offset);
        if self.opts.strict_tail {
            let ambiguous = self.report.ambiguous;
            return Err(WalError::TornTail {
                file,
                offset,
                bytes,
                ambiguous,
                flaw: bad.unwrap_or(Flaw::Zeros),
            });
        }
        self.report.dropped = bad.map(|flaw| DroppedTail { file, offset, flaw });
        Ok(())
    }

    fn count(&mut self, header: &FrameHeader) {
        self.proof = self.proof.max(header.durable_upto);
        // An epoch frame follows a sync of all before it, as a seal does.
        self.report.sealed = header.kind != Kind::Data;
        if header.kind == Kind::Data {
            self.report.frames += 1;
            self.report.ops += u64::from(header.ops);
        }
    }
}
