//! How does a batch get into the log, and when does a file get its successor?
//!
//! One mutex orders appends: it assigns seqs, writes the frame and moves on. Syncs run
//! outside it (`sync`), so writers append while a sync runs. Lock order: append lock, then
//! the next file's or the group's; the group's leader holds none while it syncs.
//!
//! A frame that cannot be written whole is cut off again and that cut is synced, so that a
//! definite error never shows up later; only if this fails too is the log poisoned.

mod late;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::{Mutex, MutexGuard};
use chronolith_vfs::{Env, VfsFile};

use crate::birth::{Blank, NewFile, Untold, preallocate};
use crate::error::WalError;
use crate::files::{
    self, FILE_BYTES_CAP, FILE_HEADER_LEN, FORMAT_NEWEST, FileHeader, FileNumber, FileSpan,
    Successor, list_logs, log_name,
};
use crate::frame::{
    self, Digest, EPOCH_MAX, EPOCH_SHIFT, FrameHeader, Kind, Place, first_seq_of, frame_len,
};
use crate::options::LogOptions;
use crate::reader::Position;
use crate::recover::Recovered;
use crate::status::{Status, StatusFile};
use crate::sync::GroupSync;

/// A scratch buffer larger than this is given back after its frame.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;
/// A file that can have no successor grows no longer than this.
const GROWN_BYTES_MAX: u64 = FILE_BYTES_CAP / 2;
/// Highest counter inside an epoch.
const COUNTER_MAX: u64 = (1 << EPOCH_SHIFT) - 1;

/// The seqs a batch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Seq of its first op.
    pub first_seq: u64,
    /// Seq of its last op: what to wait for.
    pub last_seq: u64,
}

/// The writer of a log. Shared between threads; one per log directory at a time (the
/// caller's lock file sees to that).
#[derive(Debug)]
pub struct Log {
    env: Env,
    dir: PathBuf,
    opts: LogOptions,
    epoch: u32,
    tail: Mutex<Tail>,
    group: GroupSync<Arc<dyn VfsFile>>,
    /// `None` before a late begin: until then the status is that of the writer before.
    status: Mutex<Option<StatusFile>>,
    /// The next file's zeros, where somebody has made them ahead.
    next: Mutex<Option<Blank>>,
    /// False once the log is about to end: zeros ahead would only take space.
    has_future: AtomicBool,
}

/// The end of the log: where the next frame goes.
#[derive(Debug)]
struct Tail {
    number: FileNumber,
    /// The current file's.
    header: FileHeader,
    /// The file before, until it says that this one was begun: nothing is appended before.
    untold: Option<Untold>,
    file: Arc<dyn VfsFile>,
    /// Behind the last frame; a multiple of 8.
    offset: u64,
    chain: Digest,
    /// Last seq written; of an earlier epoch until the first append.
    last_seq: u64,
    next_seq: u64,
    /// Bytes of the file that are known to be written (frames, then zeros).
    written_upto: u64,
    /// True while the last frame is a seal, or the file's header says as much.
    sealed: bool,
    scratch: Vec<u8>,
    /// All files from the floor on; the last one is the current one.
    spans: Vec<FileSpan>,
    /// What the writer begins from at its first append, where it has not begun (`late`).
    late: Option<Recovered>,
}

impl Tail {
    /// Bytes of the frames in the current file, once the writer has begun in it.
    fn frame_bytes(&self) -> u64 {
        match self.late {
            Some(_) => 0,
            None => self.offset - FILE_HEADER_LEN as u64,
        }
    }

    fn new(start: Start, late: Option<Recovered>) -> Self {
        Self {
            number: start.header.number,
            header: start.header,
            untold: start.untold,
            file: start.file,
            offset: start.at.offset,
            chain: start.at.chain,
            last_seq: start.at.last_seq,
            next_seq: first_seq_of(start.at.epoch),
            written_upto: start.written_upto,
            sealed: true,
            scratch: Vec::new(),
            spans: start.spans,
            late,
        }
    }
}

/// What a log begins with.
pub(crate) struct Start {
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) header: FileHeader,
    /// Where the first frame goes, in the epoch to write in.
    pub(crate) at: Position,
    /// Bytes of the file that are known to be written.
    pub(crate) written_upto: u64,
    pub(crate) spans: Vec<FileSpan>,
    /// The file before, where it does not say yet that this one was begun.
    pub(crate) untold: Option<Untold>,
}

impl Log {
    /// The first log of a new store. Files left by a creation that did not get as far as a
    /// frame are passed over; `current_file` of the result is the floor to publish.
    ///
    /// # Errors
    /// `LogExists` where a log with frames lies in `dir`; `BadEpoch`, `BadOption`; `Io` and
    /// `SyncFailed` as for `append`.
    pub fn create(env: &Env, dir: &Path, opts: &LogOptions, epoch: u32) -> Result<Self, WalError> {
        opts.check()?;
        if !(1..=EPOCH_MAX).contains(&epoch) {
            return Err(WalError::BadEpoch { epoch, highest: 0 });
        }
        let numbers = list_logs(env, dir)?;
        for &number in &numbers {
            refuse_frames(env, dir, number)?;
        }
        let header = FileHeader {
            format: FORMAT_NEWEST,
            epoch,
            store_id: opts.store_id,
            number: numbers.last().map_or(1, |n| n.saturating_add(1)),
            first_seq: first_seq_of(epoch),
            base_seq: 0,
            durable_upto: 0,
            prev: [0; 16],
            cut: None,
            successor: Successor::None,
        };
        let new = NewFile::begin(env, dir, header, None)?;
        let at = Position {
            offset: new.offset,
            chain: new.chain,
            last_seq: 0,
            epoch,
        };
        let file = new.publish(env, dir, opts.preallocate_bytes)?;
        let status = StatusFile::open(env, dir, opts.store_id)?;
        let span = FileSpan {
            number: header.number,
            first_seq: header.first_seq,
            last_seq: 0,
            bytes: at.offset,
        };
        Self::begin(
            env,
            dir,
            opts,
            Start {
                file,
                header,
                at,
                written_upto: at.offset + opts.preallocate_bytes,
                spans: vec![span],
                untold: None,
            },
            status,
        )
    }

    pub(crate) fn begin(
        env: &Env,
        dir: &Path,
        opts: &LogOptions,
        start: Start,
        status: StatusFile,
    ) -> Result<Self, WalError> {
        let last_seq = start.at.last_seq;
        let log = Self::standing(env, dir, opts, start, None);
        *log.lock_status() = Some(status);
        // Everything recovered is durable now, and will be visible.
        log.write_status(last_seq)?;
        Ok(log)
    }

    /// Appends one batch of `ops` ops and assigns their seqs. The frame is written, not
    /// synced: `Durability::Buffered`. Call `sync_upto` for `Synced`.
    ///
    /// # Errors
    /// `BodyTooLarge`, `EmptyBatch`, `SeqExhausted`: nothing was written. `AppendFailed`,
    /// `Io`: it never will appear; later appends may succeed. `Poisoned`, `SyncFailed`:
    /// reopen.
    pub fn append(&self, body: &[u8], ops: u32) -> Result<Appended, WalError> {
        if body.len() > self.opts.body_bytes_max {
            let (len, len_max) = (body.len(), self.opts.body_bytes_max);
            return Err(WalError::BodyTooLarge { len, len_max });
        }
        if ops == 0 {
            return Err(WalError::EmptyBatch);
        }
        let mut tail = self.lock_tail();
        self.group.check()?;
        self.begin_late(&mut tail)?;
        self.tell_birth(&mut tail)?;
        let first_seq = tail.next_seq;
        let last_seq = last_seq_of(first_seq, ops)?;
        let has_frames = tail.offset > FILE_HEADER_LEN as u64;
        if has_frames && tail.offset + frame_len(body.len()) > self.opts.file_bytes_max {
            self.rotate_or_go_on(&mut tail, frame_len(body.len()))?;
        }
        self.write_frame(&mut tail, Kind::Data, body, ops)?;
        tail.last_seq = last_seq;
        tail.next_seq = last_seq + 1;
        if let Some(span) = tail.spans.last_mut() {
            span.last_seq = last_seq;
        }
        self.group.note_append(last_seq);
        if planted::is_on(Bug::AckedUptoTooEarly) {
            self.write_status(last_seq)?;
        }
        Ok(Appended {
            first_seq,
            last_seq,
        })
    }

    /// Returns once all seqs up to `seq` are durable, joining a group's sync where one runs.
    /// Seqs above the last appended one are taken as that one.
    ///
    /// # Errors
    /// `SyncFailed` where the sync this call waited for failed, `Poisoned` where an earlier
    /// one did: the outcome is unknown, and stays so until a reopen.
    pub fn sync_upto(&self, seq: u64) -> Result<(), WalError> {
        let seq = seq.min(self.last_seq());
        self.wait_durable(seq)
    }

    fn wait_durable(&self, seq: u64) -> Result<(), WalError> {
        let gather = || {
            if !self.opts.leader_wait.is_zero() {
                self.env.clock.sleep(self.opts.leader_wait);
            }
        };
        self.group.sync_upto(seq, gather, |file| {
            let upto = self.group.appended_upto();
            if !planted::is_on(Bug::AckBeforeSync) {
                file.sync_data()?;
            }
            self.tell_durable(upto);
            Ok(())
        })
    }

    /// Tells of a sync before any frame can: a status that says less than a frame does is an old
    /// copy, also where the writer died between its sync and its acknowledgement.
    fn tell_durable(&self, durable_upto: u64) {
        // After another failure it is in doubt what the sync covers.
        if self.group.check().is_err() {
            return;
        }
        if let Some(status) = &mut *self.lock_status() {
            // One that cannot be written only makes other processes wait for the next.
            let _ = status.write(Status {
                epoch: self.epoch,
                acked_upto: 0,
                durable_upto,
            });
        }
    }

    /// Last seq a finished sync covers.
    #[must_use]
    pub fn durable_upto(&self) -> u64 {
        self.group.durable_upto()
    }

    /// `Poisoned` once a sync has failed.
    ///
    /// # Errors
    /// See above.
    pub fn check(&self) -> Result<(), WalError> {
        self.group.check()
    }

    /// Tells other processes (and the next recovery) what is acknowledged and durable.
    /// Written, never synced, never backwards. Call it before an acknowledgement returns.
    ///
    /// # Errors
    /// `Io`: the log itself is not affected.
    pub fn write_status(&self, acked_upto: u64) -> Result<(), WalError> {
        let durable_upto =
            self.group.durable_upto() + u64::from(planted::is_on(Bug::DurableUptoTooHigh));
        match &mut *self.lock_status() {
            Some(status) => status.write(Status {
                epoch: self.epoch,
                acked_upto,
                durable_upto,
            }),
            None => Ok(()),
        }
    }

    /// Syncs, then appends and syncs a seal frame: proof for the next recovery that all
    /// before it was durable. For idle moments and the close; does nothing on a sealed log.
    ///
    /// # Errors
    /// As `append` and `sync_upto`.
    pub fn seal(&self) -> Result<(), WalError> {
        let mut tail = self.lock_tail();
        self.group.check()?;
        if tail.sealed {
            return Ok(());
        }
        self.wait_durable(tail.last_seq)?;
        self.write_frame(&mut tail, Kind::Seal, &[], 0)?;
        self.group.sync_now(|file| file.sync_data())
    }

    /// Syncs the current file and begins the next one; does nothing where it has no frames of
    /// this writer's. Returns the current file's number.
    ///
    /// # Errors
    /// `Io`: the old file goes on, retry later. `SyncFailed`, `Poisoned`: reopen.
    pub fn rotate(&self) -> Result<FileNumber, WalError> {
        let mut tail = self.lock_tail();
        self.group.check()?;
        if tail.frame_bytes() > 0 {
            self.rotate_tail(&mut tail)?;
        }
        Ok(tail.number)
    }

    /// As `rotate`, where the current file holds at least `bytes_min` of frames, and beside
    /// the writers: what is slow about it (the zeros and their sync, and the sync of what was
    /// appended) is done before the append lock is taken. True where a file was begun.
    ///
    /// For a flush: what it makes redundant can then go with the manifest that says so, and
    /// does not stay because later batches lie in the same file.
    ///
    /// # Errors
    /// As `rotate`.
    pub fn retire(&self, bytes_min: u64) -> Result<bool, WalError> {
        let (last_seq, next) = {
            let tail = self.lock_tail();
            let frames = tail.frame_bytes();
            if frames == 0 || frames < bytes_min {
                return Ok(false);
            }
            (tail.last_seq, tail.number + 1)
        };
        self.group.check()?;
        self.wait_durable(last_seq)?;
        self.prepare(next)?;
        self.rotate()?;
        Ok(true)
    }

    /// Makes the zeros of file `number`, unless they are there.
    fn prepare(&self, number: FileNumber) -> Result<(), WalError> {
        let mut next = self.lock_next();
        match next.take() {
            Some(blank) if blank.number == number => *next = Some(blank),
            stale => {
                if let Some(stale) = stale {
                    stale.discard(&self.env);
                }
                let ahead = self.preallocate_bytes();
                *next = Some(Blank::prepare(&self.env, &self.dir, number, ahead)?);
            }
        }
        Ok(())
    }

    /// The log is about to end: no more zeros are written ahead.
    pub fn wind_down(&self) {
        self.has_future.store(false, Ordering::Relaxed);
    }

    fn preallocate_bytes(&self) -> u64 {
        match self.has_future.load(Ordering::Relaxed) {
            true => self.opts.preallocate_bytes,
            false => 0,
        }
    }

    /// The seq the next op will get.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.lock_tail().next_seq
    }

    /// The last seq appended or recovered; 0 for none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.lock_tail().last_seq
    }

    /// This writer's epoch.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Number of the file that appends go to.
    #[must_use]
    pub fn current_file(&self) -> FileNumber {
        self.lock_tail().number
    }

    /// Bytes of all files from the floor on, up to the end of their frames.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock_tail().spans.iter().map(|s| s.bytes).sum()
    }

    /// All files from the floor on with their seqs, oldest first.
    #[must_use]
    pub fn files(&self) -> Vec<FileSpan> {
        self.lock_tail().spans.clone()
    }

    /// The file that holds `seq`.
    #[must_use]
    pub fn file_of(&self, seq: u64) -> Option<FileNumber> {
        let tail = self.lock_tail();
        tail.spans
            .iter()
            .find(|s| s.first_seq <= seq && seq <= s.last_seq)
            .map(|s| s.number)
    }

    /// The oldest file that holds a seq above `flushed_seq`; the current one if none does.
    #[must_use]
    pub fn floor_for(&self, flushed_seq: u64) -> FileNumber {
        let tail = self.lock_tail();
        let needed = tail
            .spans
            .iter()
            .find(|s| !s.is_empty() && s.last_seq > flushed_seq);
        let floor = needed.map_or(tail.number, |s| s.number);
        if planted::is_on(Bug::FloorTooHigh) {
            return tail.number.min(floor + 1);
        }
        floor
    }

    /// Removes the files below `floor`, never the current one; returns how many. Only after
    /// the manifest that names the floor is durable. A removal that a crash undoes is
    /// harmless and repeated by the next call.
    ///
    /// # Errors
    /// `Io`: files not yet removed stay until the next call.
    pub fn remove_below(&self, floor: FileNumber) -> Result<usize, WalError> {
        let floor = {
            let mut tail = self.lock_tail();
            let floor = floor.min(tail.number);
            tail.spans.retain(|s| s.number >= floor);
            if let Some(recovered) = &mut tail.late {
                recovered.forget_below(floor);
            }
            floor
        };
        files::remove_below(&self.env, &self.dir, floor)
    }

    fn lock_status(&self) -> MutexGuard<'_, Option<StatusFile>> {
        // Its bytes are written whole or not at all, as far as a panic is concerned.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_tail(&self) -> MutexGuard<'_, Tail> {
        // A panic inside leaves the tail behind the last whole frame: fields move after the
        // write they describe.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_next(&self) -> MutexGuard<'_, Option<Blank>> {
        // Taken or replaced whole.
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_frame(
        &self,
        tail: &mut Tail,
        kind: Kind,
        body: &[u8],
        ops: u32,
    ) -> Result<(), WalError> {
        let header = FrameHeader {
            kind,
            body_len: u32::try_from(body.len()).expect("bodies are capped at 16 MiB"),
            ops,
            first_seq: tail.next_seq,
            durable_upto: self.group.durable_upto(),
            epoch: self.epoch,
            prev: tail.chain,
        };
        let place = Place {
            store_id: &self.opts.store_id,
            offset: tail.offset,
        };
        let digest = frame::encode(&mut tail.scratch, &header, body, place);
        if let Err(e) = tail.file.write_all_at(&tail.scratch, tail.offset) {
            return Err(self.cut_back(tail, e));
        }
        tail.offset += tail.scratch.len() as u64;
        tail.chain = digest;
        tail.sealed = kind == Kind::Seal;
        if tail.offset > tail.written_upto {
            let ahead = self.preallocate_bytes();
            preallocate(&*tail.file, tail.offset, ahead);
            tail.written_upto = tail.offset + ahead;
        }
        if let Some(span) = tail.spans.last_mut() {
            span.bytes = tail.offset;
        }
        if tail.scratch.capacity() > SCRATCH_KEPT_BYTES {
            tail.scratch = Vec::new();
        }
        Ok(())
    }

    /// Removes what a failed append may have left, for good. Without the sync a power cut
    /// could bring a frame back whose caller was told that it failed.
    fn cut_back(&self, tail: &mut Tail, source: io::Error) -> WalError {
        let cut_at = match planted::is_on(Bug::RefusedAppendStays) {
            true => tail.file.len().unwrap_or(tail.offset),
            false => tail.offset,
        };
        let cut = tail
            .file
            .set_len(cut_at)
            .and_then(|()| tail.file.sync_data());
        if let Err(e) = cut {
            let reason = format!("cutting {} back after {source}: {e}", log_name(tail.number));
            self.group.poison(reason.clone());
            return WalError::SyncFailed { reason };
        }
        tail.written_upto = tail.offset;
        WalError::AppendFailed {
            file: log_name(tail.number),
            offset: tail.offset,
            source,
        }
    }

    /// Rotates; on a disk that has no file to give the old one grows on, within the format's
    /// bounds.
    fn rotate_or_go_on(&self, tail: &mut Tail, bytes: u64) -> Result<(), WalError> {
        let number = tail.number;
        match self.rotate_tail(tail) {
            Err(WalError::Io { source, .. })
                if is_no_space(&source)
                    && tail.number == number
                    && tail.offset + bytes <= GROWN_BYTES_MAX =>
            {
                Ok(())
            }
            rotated => rotated,
        }
    }

    fn rotate_tail(&self, tail: &mut Tail) -> Result<(), WalError> {
        self.tell_birth(tail)?;
        self.wait_durable(tail.last_seq)?;
        let header = FileHeader {
            format: FORMAT_NEWEST,
            epoch: self.epoch,
            store_id: self.opts.store_id,
            number: tail.number + 1,
            first_seq: tail.next_seq,
            base_seq: tail.last_seq,
            durable_upto: tail.last_seq,
            prev: tail.chain,
            cut: None,
            successor: Successor::None,
        };
        let new = NewFile::begin(&self.env, &self.dir, header, self.lock_next().take())?;
        let (offset, chain) = (new.offset, new.chain);
        let file = match new.publish(&self.env, &self.dir, self.preallocate_bytes()) {
            Ok(file) => file,
            Err(e) => {
                // The successor may exist; one more frame in the old file would contradict it.
                self.group.poison(e.to_string());
                return Err(e);
            }
        };
        self.group.switch_file(Arc::clone(&file));
        tail.untold = Some(Untold {
            file: std::mem::replace(&mut tail.file, file),
            header: std::mem::replace(&mut tail.header, header),
        });
        tail.number = header.number;
        tail.offset = offset;
        tail.chain = chain;
        tail.written_upto = offset + self.preallocate_bytes();
        tail.sealed = true;
        tail.spans.push(FileSpan {
            number: header.number,
            first_seq: header.first_seq,
            last_seq: header.base_seq,
            bytes: offset,
        });
        self.tell_birth(tail)
    }

    /// Lets the file before say that the current one was begun, unless it does.
    fn tell_birth(&self, tail: &mut Tail) -> Result<(), WalError> {
        let Some(untold) = &tail.untold else {
            return Ok(());
        };
        if let Err(error) = untold.tell() {
            if error.is_final() {
                self.group.poison(error.to_string());
            }
            return Err(error);
        }
        tail.untold = None;
        Ok(())
    }
}

fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// The last of `ops` seqs from `first_seq` on; the epoch's very last one is never given, so
/// that a next seq always exists.
fn last_seq_of(first_seq: u64, ops: u32) -> Result<u64, WalError> {
    let counter = (first_seq & COUNTER_MAX) + u64::from(ops) - 1;
    if counter >= COUNTER_MAX {
        return Err(WalError::SeqExhausted);
    }
    Ok(first_seq + u64::from(ops) - 1)
}

/// Errors unless file `number` has a header and zeros only: a creation cut short.
fn refuse_frames(env: &Env, dir: &Path, number: FileNumber) -> Result<(), WalError> {
    let path = dir.join(log_name(number));
    let read = |e| WalError::io("read", &path, e);
    let file = env.vfs.open_read(&path).map_err(read)?;
    let len = file.len().map_err(read)?;
    let mut buf = vec![0; 64 << 10];
    let mut at = FILE_HEADER_LEN as u64;
    while at < len {
        let n = usize::try_from(len - at).map_or(buf.len(), |n| n.min(buf.len()));
        file.read_exact_at(&mut buf[..n], at).map_err(read)?;
        if buf[..n].iter().any(|&b| b != 0) {
            return Err(WalError::LogExists {
                file: log_name(number),
            });
        }
        at += n as u64;
    }
    Ok(())
}
