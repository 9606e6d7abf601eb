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
//! * Where that header is lost, whole frames behind damage are in doubt (`doubt`): a recovery may
//!   have dropped them, or the damage came later. They are listed apart.
//! * A frame that a recovery copied is there twice with one seq; either place will do.
//! * Bytes that cannot be read are as good as damaged ones, 4 KiB at a time.
//! * A body that quotes a log is searched only where its own header is lost, and a quoted frame
//!   would need this store's id and its own offset to pass.

mod doubt;
mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile};

use crate::error::{Flaw, WalError};
use crate::files::{
    FILE_HEADER_LEN, FileHeader, FileNumber, MARK_AT, Mark, Successor, list_logs, log_name,
};
use crate::frame::{
    DIGEST_LEN, FRAME_HEADER_LEN, FrameHeader, Place, epoch_of, first_seq_of, frame_digest,
};
use crate::reader::Frame;
use crate::status::{Status, read_status};
use file::FileSalvage;

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
    /// Whole frames of which nothing says whether they were accepted, ascending by file and
    /// offset. None of them is among `frames`.
    pub in_doubt: Vec<SalvagedFrame>,
    /// Damage, by file and offset.
    pub gaps: Vec<LogGap>,
    /// The writer's last status, where it speaks of the newest epoch.
    pub status: Option<Status>,
    /// True where the newest file there is says whether it is the last one, or a status can be
    /// read: then a newest file that is missing is known of. A file of format 0 without a mark may
    /// be of a build that made none: there a missing one is known of only by the status, and only
    /// as far as that was written.
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
    drop_ghosts(&mut files);
    let mut gaps: Vec<LogGap> = missing_files(&numbers, floor)
        .into_iter()
        .map(|number| missing_file(number, &files))
        .collect();
    let (evidence, status) = evidence_of(&files, status);
    let in_doubt = doubt::take_doubtful(&mut files, &evidence);
    let newest = files.last().filter(|file| file.number() >= floor);
    let header = newest.and_then(|file| file.header);
    gaps.extend(header.and_then(|header| successor_gap(&header, &files, status.as_ref())));
    // Without a mark nothing acknowledged was in a later file.
    let is_told = |header: FileHeader| header.successor != Successor::Damaged;
    let end_is_proven = end_is_proven || header.is_some_and(is_told);
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
        in_doubt,
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

    /// Last seq before the oldest file, as far as it is known; 0 where the log begins with the
    /// store, and where there is no file.
    #[must_use]
    pub fn base_seq(&self) -> u64 {
        self.base_seq
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

/// Files that must have been between two others, or above the floor; of a run of them the
/// first: a hostile name must not ask for 2^64.
fn missing_files(numbers: &[FileNumber], floor: FileNumber) -> Vec<FileNumber> {
    let mut missing = Vec::new();
    let mut expected = match floor {
        0 => numbers.first().copied().unwrap_or(0),
        floor => floor,
    };
    for number in numbers.iter().copied().filter(|number| *number >= floor) {
        if number > expected {
            missing.push(expected);
        }
        expected = number.saturating_add(1);
    }
    if floor != 0 && expected == floor {
        missing.push(floor);
    }
    missing
}

/// The gap that a missing file leaves. The header of the next file says how far the log went
/// before it; where that is lost as well, all seqs between the frames on both sides may be.
fn missing_file(number: FileNumber, files: &[FileSalvage]) -> LogGap {
    let next = files.iter().find(|file| file.number() > number);
    let is_bounded = next.is_none_or(|next| next.header.is_some());
    let frames = |is_before: bool| {
        let files = files.iter();
        let side = files.filter(move |file| (file.number() < number) == is_before);
        side.flat_map(|file| file.frames.iter().map(|(frame, _)| *frame))
    };
    let before = frames(true)
        .map(|frame| frame.last_seq())
        .max()
        .unwrap_or(0);
    let after = frames(false)
        .map(|frame| frame.first_seq)
        .filter(|seq| *seq > before)
        .min();
    let lost = LostSeqs {
        first: before.saturating_add(1),
        last: after.map(|seq| seq - 1),
    };
    let is_empty = lost.last.is_some_and(|last| last < lost.first);
    LogGap {
        file: log_name(number),
        offset: 0,
        bytes: 0,
        seqs: Some(lost).filter(|_| !is_bounded && !is_empty),
        why: "the file is missing".into(),
    }
}

/// What the newest file there is says of a later one that is not. How far that went nobody knows:
/// a status is never synced, so it says a seq that there was at least.
fn successor_gap(
    newest: &FileHeader,
    files: &[FileSalvage],
    status: Option<&Status>,
) -> Option<LogGap> {
    let frames = files.iter().flat_map(|file| &file.frames);
    let before = frames.map(|(frame, _)| frame.last_seq()).max();
    let lost = LostSeqs {
        first: before.unwrap_or(newest.base_seq).saturating_add(1),
        last: None,
    };
    let told = status.map_or(0, |status| status.acked_upto.max(status.durable_upto));
    let at_least = match told >= lost.first {
        true => format!("; it held at least the seqs up to {told}"),
        false => String::new(),
    };
    match newest.successor {
        Successor::None => None,
        Successor::Begun => Some(LogGap {
            file: log_name(newest.number.saturating_add(1)),
            offset: 0,
            bytes: 0,
            seqs: Some(lost),
            why: format!(
                "the file is missing, and {} says that it was begun{at_least}",
                newest.name()
            ),
        }),
        Successor::Damaged => Some(LogGap {
            file: newest.name(),
            offset: MARK_AT,
            bytes: size_of::<Mark>() as u64,
            seqs: None,
            why: Flaw::SuccessorMark.to_string(),
        }),
    }
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
        .flat_map(|header| [header.base_seq, header.durable_upto])
        .collect();
    let frames = files.iter().flat_map(|file| &file.frames);
    evidence.extend(frames.map(|(_, durable_upto)| *durable_upto));
    let newest = files.iter().map(|file| file.epoch).max().unwrap_or(0);
    // A status of an epoch before speaks of a tail that the recovery since has judged.
    let status = status.filter(|status| status.epoch >= newest);
    if let Some(status) = &status {
        evidence.extend([status.acked_upto, status.durable_upto]);
    }
    (evidence, status)
}
