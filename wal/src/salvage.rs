//! What of a damaged log can still be proved? For `repair` alone.
//!
//! Every file is walked to its end. Where no whole frame begins, the walk goes on at the next
//! multiple of 8 whose header checks out; a frame counts if its salted digest does. So a
//! damaged frame costs its own batch and no other. What is given up is the chain: behind a gap
//! nothing says that a frame follows the one before, so order may have holes (promise A2 does
//! not hold for what was salvaged) and the caller has to say so.
//!
//! * A dropped tail stays dropped: a frame whose seq is above what the next file's header calls
//!   accepted was never part of the log, however whole it is.
//! * A frame that a recovery copied is there twice with one seq; either place will do.
//! * Bytes that cannot be read are as good as damaged ones, 4 KiB at a time.
//! * A body that quotes a log is searched only where its own header is lost, and a quoted frame
//!   would need this store's id and its own offset to pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile, is_refusal};

use crate::error::{Flaw, WalError};
use crate::files::{
    FILE_BYTES_CAP, FILE_HEADER_LEN, FileHeader, FileNumber, list_logs, log_name, open_log,
};
use crate::frame::{
    DIGEST_LEN, FRAME_HEADER_LEN, FrameHeader, Kind, Place, epoch_of, first_seq_of, frame_digest,
};
use crate::reader::Frame;
use crate::status::{Status, read_status};

/// Unit of what counts as unreadable, bytes.
const PAGE_BYTES: usize = 4 << 10;
/// Bytes read ahead.
const WINDOW_BYTES: usize = 256 << 10;

/// Seqs from `first` to `last`, both inclusive; `last: None` where nothing says how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSeqs {
    /// First seq that is not there.
    pub first: u64,
    /// Last one; `None` = unknown.
    pub last: Option<u64>,
}

/// A stretch of a log file that holds no frame where one is known or likely to have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGap {
    /// File name.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// Its length, as far as bytes are there.
    pub bytes: u64,
    /// The seqs that were there; `None` where none is missing.
    pub seqs: Option<LostSeqs>,
    /// What is wrong at its begin.
    pub why: String,
}

/// A whole frame and where it lies. Its body is read again with [`FrameReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalvagedFrame {
    /// The file.
    pub file: FileNumber,
    /// Where the frame begins.
    pub offset: u64,
    /// Seq of its first op.
    pub first_seq: u64,
    /// Number of ops.
    pub ops: u32,
}

impl SalvagedFrame {
    /// Seq of the last op.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.ops) - 1
    }
}

/// What a salvage found. Holds no bodies.
#[derive(Debug)]
pub struct LogSalvage {
    /// Log files that could be opened.
    pub files: usize,
    /// Whole frames of the log, ascending by seq, each seq once.
    pub frames: Vec<SalvagedFrame>,
    /// Damage, by file and offset.
    pub gaps: Vec<LogGap>,
    /// The writer's last status, where it speaks of the newest epoch.
    pub status: Option<Status>,
    /// True where a status can be read: then a newest file that is missing is known of.
    pub end_is_proven: bool,
    env: Env,
    dir: PathBuf,
    store_id: [u8; 16],
    /// Seqs that are proven to have been accepted.
    evidence: Vec<u64>,
    /// Last seq before the oldest file, as far as it is known.
    base_seq: u64,
}

/// The store that log file `number` says it belongs to; `None` where its header is damaged.
#[must_use]
pub fn peek_store_id(env: &Env, dir: &Path, number: FileNumber) -> Option<[u8; 16]> {
    let file = env.vfs.open_read(&dir.join(log_name(number))).ok()?;
    let mut bytes = [0; FILE_HEADER_LEN];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let store_id = bytes[16..32].try_into().ok()?;
    FileHeader::decode(&bytes, number, &store_id).ok()?;
    Some(store_id)
}

/// Walks every log file of `dir`, whatever is wrong with it. Changes nothing.
///
/// `floor` is the oldest file that must be there; 0 = not known. Older ones are read all the
/// same.
///
/// # Errors
/// `UnknownFormat`: the log is of a newer release. `Io`: the directory cannot be listed, or the
/// system opens no more files.
pub fn salvage_log(
    env: &Env,
    dir: &Path,
    store_id: [u8; 16],
    floor: FileNumber,
) -> Result<LogSalvage, WalError> {
    let numbers = match list_logs(env, dir) {
        Err(WalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Vec::new()
        }
        numbers => numbers?,
    };
    let mut files = Vec::with_capacity(numbers.len());
    for number in &numbers {
        files.push(FileSalvage::read(env, dir, *number, &store_id)?);
    }
    let status = read_status(env, dir, &store_id).unwrap_or(None);
    let end_is_proven = status.is_some();
    let mut gaps = missing_files(&numbers, floor);
    drop_ghosts(&mut files);
    let (evidence, status) = evidence_of(&files, status);
    for at in 0..files.len() {
        let (file, later) = (&files[at], &files[at + 1..]);
        gaps.extend(file.gaps(later, status.as_ref(), &evidence));
    }
    gaps.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
    let base_seq = files.first().map_or(0, FileSalvage::base_seq);
    let mut frames: Vec<SalvagedFrame> = files
        .iter()
        .flat_map(|file| file.frames.iter().map(|(frame, _)| *frame))
        .collect();
    // Of copies of one frame the oldest stands first.
    frames.sort_by_key(|frame| (frame.first_seq, frame.file));
    frames.dedup_by_key(|frame| frame.first_seq);
    Ok(LogSalvage {
        files: files.iter().filter(|file| file.opened).count(),
        frames,
        gaps,
        status,
        end_is_proven,
        env: env.clone(),
        dir: dir.to_path_buf(),
        store_id,
        evidence,
        base_seq,
    })
}

impl LogSalvage {
    /// Reads bodies of the frames found.
    #[must_use]
    pub fn reader(&self) -> FrameReader<'_> {
        FrameReader {
            salvage: self,
            open: None,
        }
    }

    /// True if every operation from `first` to `last` is in a whole frame: then nothing that
    /// happened in between is unknown.
    #[must_use]
    pub fn covers(&self, first: u64, last: u64) -> bool {
        let reaches = self.frames.last().is_some_and(|f| f.last_seq() >= last);
        let from = first.saturating_sub(1);
        let is_whole = || self.missing(Some(from)).iter().all(|(gap, _)| *gap > last);
        reaches && self.base_seq <= from && is_whole()
    }

    /// Ranges of seqs above `flushed_seq` that are proven to have been accepted and that no
    /// whole frame holds; ascending. `None` = as far back as the oldest file goes.
    ///
    /// A tail of which nothing says how long it was is not among them: see the gaps.
    #[must_use]
    pub fn missing(&self, flushed_seq: Option<u64>) -> Vec<(u64, u64)> {
        let from = flushed_seq.unwrap_or(self.base_seq);
        // Inside an epoch seqs have no holes: every one up to a proven one was given.
        let mut tops: BTreeMap<u32, u64> = BTreeMap::new();
        let last = self.frames.iter().map(SalvagedFrame::last_seq);
        for seq in self.evidence.iter().copied().chain(last) {
            if seq > from {
                let top = tops.entry(epoch_of(seq)).or_default();
                *top = (*top).max(seq);
            }
        }
        let mut missing = Vec::new();
        for (epoch, top) in tops {
            let mut next = first_seq_of(epoch).max(from.saturating_add(1));
            let own = self
                .frames
                .iter()
                .filter(|frame| epoch_of(frame.first_seq) == epoch && frame.last_seq() > from);
            for frame in own {
                if frame.first_seq > next {
                    missing.push((next, frame.first_seq - 1));
                }
                next = next.max(frame.last_seq() + 1);
            }
            if next <= top {
                missing.push((next, top));
            }
        }
        missing
    }
}

/// Reads salvaged frames again, one open file at a time.
#[derive(Debug)]
pub struct FrameReader<'a> {
    salvage: &'a LogSalvage,
    open: Option<(FileNumber, Arc<dyn VfsFile>)>,
}

impl FrameReader<'_> {
    /// The frame with its body, verified again.
    ///
    /// # Errors
    /// `Io`; `Corrupt` where the bytes are no longer what the salvage saw.
    pub fn read(&mut self, frame: &SalvagedFrame) -> Result<Frame, WalError> {
        let path = self.salvage.dir.join(log_name(frame.file));
        let file = match &self.open {
            Some((number, file)) if *number == frame.file => Arc::clone(file),
            _ => {
                let file = self.salvage.env.vfs.open_read(&path);
                let file = file.map_err(|e| WalError::io("open", &path, e))?;
                self.open = Some((frame.file, Arc::clone(&file)));
                file
            }
        };
        let place = Place {
            store_id: &self.salvage.store_id,
            offset: frame.offset,
        };
        let changed = |flaw| WalError::Corrupt {
            file: log_name(frame.file),
            offset: frame.offset,
            first_seq: frame.first_seq,
            last_seq: frame.last_seq(),
            flaw,
        };
        let mut head = [0; FRAME_HEADER_LEN];
        file.read_exact_at(&mut head, frame.offset)
            .map_err(|e| WalError::io("read", &path, e))?;
        let header = FrameHeader::decode(&head, place).map_err(changed)?;
        let len = usize::try_from(header.frame_len()).map_err(|_| changed(Flaw::BodyLength))?;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, frame.offset)
            .map_err(|e| WalError::io("read", &path, e))?;
        let (covered, stored) = bytes.split_at(len - DIGEST_LEN);
        let same = header.first_seq == frame.first_seq && header.ops == frame.ops;
        if !same || frame_digest(covered, &header, place) != *stored {
            return Err(changed(Flaw::Digest));
        }
        bytes.truncate(FRAME_HEADER_LEN + header.body_len as usize);
        bytes.drain(..FRAME_HEADER_LEN);
        Ok(Frame {
            first_seq: header.first_seq,
            ops: header.ops,
            body: bytes,
        })
    }
}

/// Files that must have been between two others, or above the floor.
fn missing_files(numbers: &[FileNumber], floor: FileNumber) -> Vec<LogGap> {
    let is_missing = |number: FileNumber| LogGap {
        file: log_name(number),
        offset: 0,
        bytes: 0,
        seqs: None,
        why: "the file is missing".into(),
    };
    let mut missing = Vec::new();
    let mut expected = match floor {
        0 => numbers.first().copied().unwrap_or(0),
        floor => floor,
    };
    for number in numbers.iter().copied().filter(|number| *number >= floor) {
        // One line for a run: a hostile name must not ask for 2^64 of them.
        if number > expected {
            missing.push(is_missing(expected));
        }
        expected = number.saturating_add(1);
    }
    if floor != 0 && expected == floor {
        missing.push(is_missing(floor));
    }
    missing
}

/// Takes out frames that a recovery dropped: the header of the next whole file says how far
/// the log went.
fn drop_ghosts(files: &mut [FileSalvage]) {
    let mut accepted = u64::MAX;
    for file in files.iter_mut().rev() {
        file.frames
            .retain(|(frame, _)| frame.last_seq() <= accepted);
        if let Some(header) = &file.header {
            accepted = accepted.min(header.durable_upto);
        }
    }
}

/// Every seq that something whole says was accepted, and the status if it still speaks.
fn evidence_of(files: &[FileSalvage], status: Option<Status>) -> (Vec<u64>, Option<Status>) {
    let headers = files.iter().filter_map(|file| file.header.as_ref());
    let mut evidence: Vec<u64> = headers
        .clone()
        .flat_map(|header| [header.base_seq, header.durable_upto])
        .collect();
    let frames = files.iter().flat_map(|file| &file.frames);
    evidence.extend(frames.map(|(_, durable_upto)| *durable_upto));
    let newest = headers.map(|header| header.epoch).max().unwrap_or(0);
    // A status of an epoch before speaks of a tail that the recovery since has judged.
    let status = status.filter(|status| status.epoch >= newest);
    if let Some(status) = &status {
        evidence.extend([status.acked_upto, status.durable_upto]);
    }
    (evidence, status)
}

/// One file, walked to its end.
#[derive(Debug)]
struct FileSalvage {
    number: FileNumber,
    opened: bool,
    header: Option<FileHeader>,
    /// Whole data frames with their `durable_upto`, ascending by offset.
    frames: Vec<(SalvagedFrame, u64)>,
    holes: Vec<Hole>,
}

/// Bytes without a whole frame, other than zeros up to the end of the file.
#[derive(Debug, Clone)]
struct Hole {
    offset: u64,
    end: u64,
    why: String,
    /// Highest seq that a whole header inside it speaks of.
    last_seq: Option<u64>,
}

impl FileSalvage {
    fn read(
        env: &Env,
        dir: &Path,
        number: FileNumber,
        store_id: &[u8; 16],
    ) -> Result<Self, WalError> {
        let mut salvage = Self {
            number,
            opened: false,
            header: None,
            frames: Vec::new(),
            holes: Vec::new(),
        };
        let opened = match open_log(env, dir, number, store_id) {
            Err(error @ WalError::UnknownFormat { .. }) => return Err(error),
            Err(WalError::Io { op, file, source }) if is_refusal(&source) => {
                return Err(WalError::Io { op, file, source });
            }
            Err(error @ (WalError::WrongStore { .. } | WalError::MissingFile { .. })) => {
                salvage.hole(0, 0, error.to_string());
                return Ok(salvage);
            }
            Ok((file, header)) => {
                salvage.header = Some(header);
                Ok(file)
            }
            Err(error) => {
                salvage.hole(0, FILE_HEADER_LEN as u64, error.to_string());
                env.vfs.open_read(&dir.join(log_name(number)))
            }
        };
        let pages = opened.and_then(Pages::open);
        match pages {
            Ok(mut pages) => {
                salvage.opened = true;
                salvage.walk(&mut pages, store_id);
            }
            Err(error) => salvage.hole(0, 0, format!("cannot be read: {error}")),
        }
        Ok(salvage)
    }

    fn hole(&mut self, offset: u64, end: u64, why: String) {
        self.holes.push(Hole {
            offset,
            end,
            why,
            last_seq: None,
        });
    }

    fn walk(&mut self, pages: &mut Pages, store_id: &[u8; 16]) {
        let mut at = FILE_HEADER_LEN as u64;
        let mut whole_end = at;
        let mut hole: Option<Hole> = None;
        while at < pages.len {
            let found = look(pages, store_id, at);
            let flaw = match found {
                Found::Frame(header) if self.follows(&header) => {
                    match hole.take() {
                        Some(hole) => self.holes.push(hole),
                        None if at > whole_end => self.hole(whole_end, at, Flaw::Zeros.to_string()),
                        None => {}
                    }
                    self.take(at, &header);
                    at += header.frame_len();
                    whole_end = at;
                    continue;
                }
                Found::Frame(_) => Flaw::Sequence,
                Found::Torn(_, flaw) | Found::Nothing(flaw) => flaw,
            };
            // Its own checksum vouches for a header's length: the body is jumped over.
            let step = match found {
                Found::Frame(header) | Found::Torn(header, _) => header.frame_len(),
                Found::Nothing(_) => 8,
            };
            let end = at.saturating_add(step).min(pages.len);
            if hole.is_some() || matches!(found, Found::Torn(..)) || !pages.is_zero(at, end) {
                let hole = hole.get_or_insert_with(|| Hole {
                    offset: at,
                    end: at,
                    why: flaw.to_string(),
                    last_seq: None,
                });
                if let Found::Torn(header, _) = found {
                    hole.last_seq = hole.last_seq.max(header.last_seq());
                }
                if !pages.is_zero(at, end) {
                    hole.end = end;
                }
            }
            at = end;
        }
        self.holes.extend(hole);
        for (offset, why) in std::mem::take(&mut pages.unreadable) {
            self.hole(offset, (offset + PAGE_BYTES as u64).min(pages.len), why);
        }
    }

    /// True where a whole frame may stand here: of this file's epoch, behind all before it.
    fn follows(&self, header: &FrameHeader) -> bool {
        let own_epoch = self
            .header
            .is_none_or(|file| file.epoch == header.epoch && header.first_seq > file.base_seq);
        let last = self.frames.last().map_or(0, |(frame, _)| frame.last_seq());
        own_epoch && header.first_seq > last && epoch_of(header.first_seq) <= header.epoch
    }

    fn take(&mut self, offset: u64, header: &FrameHeader) {
        if header.kind == Kind::Data {
            let frame = SalvagedFrame {
                file: self.number,
                offset,
                first_seq: header.first_seq,
                ops: header.ops,
            };
            self.frames.push((frame, header.durable_upto));
        }
    }

    /// Last seq before this file, as far as it is known.
    fn base_seq(&self) -> u64 {
        let first = || {
            let (frame, _) = self.frames.first()?;
            let is_first = frame.offset == FILE_HEADER_LEN as u64;
            let epoch_begin = first_seq_of(epoch_of(frame.first_seq));
            let base = if is_first {
                frame.first_seq
            } else {
                epoch_begin
            };
            Some(base - 1)
        };
        self.header
            .map_or_else(|| first().unwrap_or(0), |header| header.base_seq)
    }

    /// The holes as gaps with their seqs; those behind a cut belong to no log.
    fn gaps(
        &self,
        later: &[Self],
        status: Option<&Status>,
        evidence: &[u64],
    ) -> impl Iterator<Item = LogGap> {
        let next = later.iter().find_map(|file| file.header.as_ref());
        let cut = next
            .and_then(|header| header.cut)
            .filter(|cut| cut.file == self.number)
            .map_or(u64::MAX, |cut| cut.offset);
        let proof = evidence.iter().copied().max().unwrap_or(0);
        // As at recovery: a status at least as fresh as the log's own evidence is exact.
        let acked = status
            .filter(|status| status.durable_upto.max(status.acked_upto) >= proof)
            .map(|status| status.acked_upto);
        let holes = self.holes.iter().filter(move |hole| hole.offset < cut);
        holes.map(move |hole| {
            let before = self.frames.iter().rfind(|(f, _)| f.offset < hole.offset);
            let after = self.frames.iter().find(|(f, _)| f.offset > hole.offset);
            let first = match (before, &self.header) {
                (Some((frame, _)), _) => frame.last_seq() + 1,
                (None, Some(header)) => header.first_seq,
                (None, None) => self.base_seq() + 1,
            };
            let last = match (after, next, later.is_empty()) {
                (Some((frame, _)), _, _) => Some(frame.first_seq - 1),
                (None, Some(header), _) => Some(header.base_seq),
                (None, None, true) => acked,
                (None, None, false) => hole.last_seq,
            };
            let is_lost = last.is_none_or(|last| last >= first);
            LogGap {
                file: log_name(self.number),
                offset: hole.offset,
                bytes: hole.end - hole.offset,
                seqs: is_lost.then_some(LostSeqs { first, last }),
                why: hole.why.clone(),
            }
        })
    }
}

/// What lies at an offset.
#[derive(Debug, Clone, Copy)]
enum Found {
    Frame(FrameHeader),
    /// A whole header whose frame is not.
    Torn(FrameHeader, Flaw),
    Nothing(Flaw),
}

fn look(pages: &mut Pages, store_id: &[u8; 16], offset: u64) -> Found {
    let left = pages.len - offset;
    if left < FRAME_HEADER_LEN as u64 {
        return Found::Nothing(Flaw::PartialHeader);
    }
    let place = Place { store_id, offset };
    let mut head = [0; FRAME_HEADER_LEN];
    head.copy_from_slice(pages.get(offset, FRAME_HEADER_LEN));
    let header = match FrameHeader::decode(&head, place) {
        Ok(header) => header,
        Err(flaw) => return Found::Nothing(flaw),
    };
    let len = match usize::try_from(header.frame_len()) {
        Ok(len) if header.frame_len() <= left => len,
        _ => return Found::Torn(header, Flaw::Truncated),
    };
    let (covered, stored) = pages.get(offset, len).split_at(len - DIGEST_LEN);
    match frame_digest(covered, &header, place) == *stored {
        true => Found::Frame(header),
        false => Found::Torn(header, Flaw::Digest),
    }
}

/// A file through a window; pages that cannot be read are zeros, and noted.
struct Pages {
    file: Arc<dyn VfsFile>,
    len: u64,
    start: u64,
    buf: Vec<u8>,
    unreadable: Vec<(u64, String)>,
}

impl Pages {
    fn open(file: Arc<dyn VfsFile>) -> std::io::Result<Self> {
        let len = file.len()?.min(FILE_BYTES_CAP);
        Ok(Self {
            file,
            len,
            start: 0,
            buf: Vec::new(),
            unreadable: Vec::new(),
        })
    }

    /// `n` bytes at `offset`; the caller has compared with `len`.
    fn get(&mut self, offset: u64, n: usize) -> &[u8] {
        let have = offset >= self.start && offset + n as u64 <= self.start + self.buf.len() as u64;
        if !have {
            self.fill(offset, n);
        }
        let from = usize::try_from(offset - self.start).expect("inside a buffer in memory");
        &self.buf[from..from + n]
    }

    fn is_zero(&mut self, from: u64, to: u64) -> bool {
        let mut at = from;
        while at < to {
            let n = usize::try_from(to - at).map_or(WINDOW_BYTES, |n| n.min(WINDOW_BYTES));
            if self.get(at, n).iter().any(|byte| *byte != 0) {
                return false;
            }
            at += n as u64;
        }
        true
    }

    fn fill(&mut self, offset: u64, n: usize) {
        let left = usize::try_from(self.len - offset).unwrap_or(usize::MAX);
        self.buf.clear();
        self.buf.resize(n.max(WINDOW_BYTES.min(left)), 0);
        self.start = offset;
        if self.file.read_exact_at(&mut self.buf, offset).is_ok() {
            return;
        }
        // Page by page, each inside one page of the file, so that no good byte is lost.
        self.buf.fill(0);
        let mut at = 0;
        while at < self.buf.len() {
            let here = offset + at as u64;
            let page = here - here % PAGE_BYTES as u64;
            let in_page = PAGE_BYTES - usize::try_from(here - page).unwrap_or(0);
            let end = (at + in_page).min(self.buf.len());
            if let Err(error) = self.file.read_exact_at(&mut self.buf[at..end], here) {
                self.buf[at..end].fill(0);
                if self.unreadable.iter().all(|(known, _)| *known != page) {
                    self.unreadable
                        .push((page, format!("cannot be read: {error}")));
                }
            }
            at = end;
        }
    }
}
