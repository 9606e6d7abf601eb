//! What do the bytes of one log file say, frame by frame, and where do they stop making sense?
//!
//! The scan tells *whole frame*, *clean end* and *bad frame* apart; whether a bad frame is a
//! torn tail or damage is `recover`'s judgement. The rules:
//!
//! * Whole: header checksum, ranges, place in file and seq order, chain, digest all hold.
//! * Clean end: nothing but zeros from here to the end of the file (or no bytes at all).
//! * Bad: anything else. A damaged length is bad, because the header has its own checksum.
//! * A read error is an error, never an end.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::{Env, VfsFile};

use crate::error::{Flaw, WalError};
use crate::files::{self, FILE_BYTES_CAP, FILE_HEADER_LEN, FileHeader, FileNumber};
use crate::frame::{
    DIGEST_LEN, Digest, FRAME_HEADER_LEN, FrameHeader, Kind, Place, epoch_of, first_seq_of,
    frame_digest,
};

/// Bytes read ahead; a longer frame is read whole (it is capped).
const WINDOW_BYTES: usize = 256 << 10;

/// A frame's batch, as recovery and the tail reader hand it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Seq of the first op.
    pub first_seq: u64,
    /// Number of ops; the last seq is `first_seq + ops - 1`.
    pub ops: u32,
    /// The opaque bytes given to `append`.
    pub body: Vec<u8>,
}

impl Frame {
    /// Seq of the last op.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.ops.max(1)) - 1
    }
}

/// A place between two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    /// Digest of the frame (or file header) before.
    pub(crate) chain: Digest,
    /// Last seq before this place.
    pub(crate) last_seq: u64,
    /// Of the frames here: the file's, until an epoch frame begins a later one.
    pub(crate) epoch: u32,
}

/// What whole headers behind a bad frame say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence {
    /// Highest `durable_upto`.
    pub(crate) durable_upto: u64,
    /// Highest epoch.
    pub(crate) epoch: u32,
    /// Behind the last byte that is not zero.
    pub(crate) used_end: u64,
}

/// What lies at a position.
#[derive(Debug)]
pub(crate) enum Step {
    /// A whole frame; the scan now stands behind it and `body` returns its body.
    Frame(FrameHeader),
    /// Only zeros, or nothing, from here on.
    End,
    /// Something else; the scan did not move.
    Bad(Flaw),
}

/// Reads one file from a position on.
#[derive(Debug)]
pub(crate) struct FileScan {
    pub(crate) header: FileHeader,
    pub(crate) at: Position,
    window: Window,
    body: (u64, usize),
}

impl FileScan {
    pub(crate) fn new(
        file: Arc<dyn VfsFile>,
        header: FileHeader,
        dir: &Path,
    ) -> Result<Self, WalError> {
        let at = Position {
            offset: FILE_HEADER_LEN as u64,
            chain: header.digest(),
            last_seq: header.base_seq,
            epoch: header.epoch,
        };
        let mut window = Window {
            file,
            path: dir.join(header.name()),
            len: 0,
            start: 0,
            buf: Vec::new(),
        };
        window.refresh()?;
        Ok(Self {
            header,
            at,
            window,
            body: (0, 0),
        })
    }

    /// Opens file `number` and stands before its first frame.
    pub(crate) fn open(
        env: &Env,
        dir: &Path,
        number: FileNumber,
        store_id: &[u8; 16],
    ) -> Result<Self, WalError> {
        let (file, header) = files::open_log(env, dir, number, store_id)?;
        Self::new(file, header, dir)
    }

    /// Forgets what was read ahead: the file may have grown.
    pub(crate) fn refresh(&mut self) -> Result<(), WalError> {
        self.window.refresh()
    }

    /// The open file.
    pub(crate) fn file(&self) -> Arc<dyn VfsFile> {
        Arc::clone(&self.window.file)
    }

    /// Looks at the current position; moves behind a whole frame.
    pub(crate) fn step(&mut self) -> Result<Step, WalError> {
        let offset = self.at.offset;
        let left = self.window.len.saturating_sub(offset);
        if left < FRAME_HEADER_LEN as u64 {
            return self.no_frame(Flaw::PartialHeader);
        }
        let read = self.header_at(offset);
        if read.is_err() && planted::is_on(Bug::ReadErrorIsEnd) {
            return Ok(Step::End);
        }
        let header = match read? {
            Ok(header) => header,
            Err(flaw) => return self.no_frame(flaw),
        };
        if let Some(flaw) = self.misplaced(&header) {
            return Ok(Step::Bad(flaw));
        }
        if header.frame_len() > left {
            return Ok(Step::Bad(Flaw::Truncated));
        }
        let digest = match self.checked_digest(&header)? {
            Some(digest) => digest,
            None => return Ok(Step::Bad(Flaw::Digest)),
        };
        self.body = (offset + FRAME_HEADER_LEN as u64, header.body_len as usize);
        self.at = Position {
            offset: offset + header.frame_len(),
            chain: digest,
            last_seq: header.last_seq().unwrap_or(self.at.last_seq),
            epoch: header.epoch,
        };
        Ok(Step::Frame(header))
    }

    /// The body of the frame that `step` just returned.
    pub(crate) fn body(&mut self) -> Result<&[u8], WalError> {
        let (offset, len) = self.body;
        self.window.get(offset, len)
    }

    /// The next data frame before `end`; anything but whole frames up to there is an error,
    /// because the caller has read this range before.
    pub(crate) fn next_before(&mut self, end: u64) -> Result<Option<FrameHeader>, WalError> {
        while self.at.offset < end {
            match self.step()? {
                Step::Frame(header) if header.kind == Kind::Data => return Ok(Some(header)),
                Step::Frame(_) => {}
                Step::End => return Err(self.corrupt(Flaw::Zeros, self.at.last_seq + 1)),
                Step::Bad(flaw) => return Err(self.corrupt(flaw, self.at.last_seq + 1)),
            }
        }
        Ok(None)
    }

    /// The error for a bad frame here, with `last_seq` proven durable.
    pub(crate) fn corrupt(&self, flaw: Flaw, last_seq: u64) -> WalError {
        WalError::Corrupt {
            file: self.header.name(),
            offset: self.at.offset,
            first_seq: self.at.last_seq + 1,
            last_seq,
            flaw,
        }
    }

    /// What the headers of this file behind the current position say.
    ///
    /// A header that stands here is proof even if its body is torn: it has its own checksum,
    /// salted with store and offset. Bodies of whole headers are jumped over, so a body that
    /// quotes a log is not searched unless its own header is lost.
    pub(crate) fn evidence_behind(&mut self) -> Result<Evidence, WalError> {
        let (mut proof, mut used_end, mut at) = (0, self.at.offset, self.at.offset);
        let mut epoch = self.at.epoch;
        while at < self.window.len {
            let n = (self.window.len - at).min(FRAME_HEADER_LEN as u64);
            if n == FRAME_HEADER_LEN as u64
                && let Ok(header) = self.header_at(at)?
                && header.epoch >= self.header.epoch
            {
                epoch = epoch.max(header.epoch);
                proof = proof.max(header.durable_upto);
                at = at.saturating_add(header.frame_len()).min(self.window.len);
                used_end = at;
                continue;
            }
            let word = self
                .window
                .get(at, usize::try_from(n.min(8)).unwrap_or(8))?;
            if let Some(last) = word.iter().rposition(|&b| b != 0) {
                used_end = at + last as u64 + 1;
            }
            at += 8;
        }
        Ok(Evidence {
            durable_upto: proof,
            epoch,
            used_end,
        })
    }

    fn header_at(&mut self, offset: u64) -> Result<Result<FrameHeader, Flaw>, WalError> {
        let mut bytes = [0; FRAME_HEADER_LEN];
        bytes.copy_from_slice(self.window.get(offset, FRAME_HEADER_LEN)?);
        Ok(FrameHeader::decode(
            &bytes,
            Place {
                store_id: &self.header.store_id,
                offset,
            },
        ))
    }

    /// A frame may continue the seqs before it, or begin those of a later epoch.
    fn misplaced(&self, header: &FrameHeader) -> Option<Flaw> {
        let seq_epoch = epoch_of(header.first_seq);
        let follows = header.first_seq == self.at.last_seq + 1;
        let begins = header.first_seq == first_seq_of(seq_epoch)
            && seq_epoch > epoch_of(self.at.last_seq)
            && seq_epoch <= header.epoch;
        // A batch that reaches into the next epoch would take that epoch's seqs.
        let overflows = header
            .last_seq()
            .is_some_and(|last| epoch_of(last) > header.epoch);
        let is_own_epoch = match header.kind {
            Kind::Epoch => header.epoch > self.at.epoch,
            Kind::Data | Kind::Seal => header.epoch == self.at.epoch,
        };
        if !is_own_epoch {
            Some(Flaw::Field)
        } else if header.prev != self.at.chain && !planted::is_on(Bug::FrameNotChained) {
            Some(Flaw::Chain)
        } else if overflows || (!follows && !begins) {
            Some(Flaw::Sequence)
        } else {
            None
        }
    }

    fn checked_digest(&mut self, header: &FrameHeader) -> Result<Option<Digest>, WalError> {
        let offset = self.at.offset;
        let len =
            usize::try_from(header.frame_len()).map_err(|_| self.corrupt(Flaw::BodyLength, 0))?;
        let store_id = self.header.store_id;
        let bytes = self.window.get(offset, len)?;
        let (covered, stored) = bytes.split_at(len - DIGEST_LEN);
        let digest = frame_digest(
            covered,
            header,
            Place {
                store_id: &store_id,
                offset,
            },
        );
        let matches = digest == *stored || planted::is_on(Bug::FrameDigestUnchecked);
        Ok(matches.then_some(digest))
    }

    /// No header here: the end if all that is left is zeros.
    fn no_frame(&mut self, flaw: Flaw) -> Result<Step, WalError> {
        let mut at = self.at.offset;
        while at < self.window.len {
            let n =
                usize::try_from(self.window.len - at).map_or(WINDOW_BYTES, |n| n.min(WINDOW_BYTES));
            if self.window.get(at, n)?.iter().any(|&b| b != 0) {
                return Ok(Step::Bad(flaw));
            }
            at += n as u64;
        }
        Ok(Step::End)
    }
}

/// A piece of a file in memory. Bounded by the longest frame.
struct Window {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    len: u64,
    start: u64,
    buf: Vec<u8>,
}

/// Says where, never what: bodies are not for logs.
impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} at {})", self.path.display(), self.start)
    }
}

impl Window {
    fn refresh(&mut self) -> Result<(), WalError> {
        self.buf.clear();
        self.len = self
            .file
            .len()
            .map_err(|e| WalError::io("stat", &self.path, e))?;
        if self.len > FILE_BYTES_CAP {
            return Err(WalError::Corrupt {
                file: crate::error::file_name(&self.path),
                offset: FILE_BYTES_CAP,
                first_seq: 0,
                last_seq: u64::MAX,
                flaw: Flaw::FileLength,
            });
        }
        Ok(())
    }

    /// `n` bytes at `offset`; the caller has compared with `len`.
    fn get(&mut self, offset: u64, n: usize) -> Result<&[u8], WalError> {
        let have = offset >= self.start && offset + n as u64 <= self.start + self.buf.len() as u64;
        if !have {
            let mut filled = self.fill(offset, n);
            if filled
                .as_ref()
                .is_err_and(|e| e.kind() == io::ErrorKind::UnexpectedEof)
            {
                // The writer may have cut zeros off that were read ahead of what is needed.
                self.refresh()?;
                filled = self.fill(offset, n);
            }
            filled.map_err(|e| WalError::io("read", &self.path, e))?;
        }
        let from = usize::try_from(offset - self.start).expect("inside a buffer in memory");
        Ok(&self.buf[from..from + n])
    }

    fn fill(&mut self, offset: u64, n: usize) -> io::Result<()> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        if n > left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.buf.clear();
        self.buf.resize(n.max(WINDOW_BYTES.min(left)), 0);
        self.start = offset;
        let outcome = self.file.read_exact_at(&mut self.buf, offset);
        if outcome.is_err() {
            // Half-read bytes must not pass for the file's.
            self.buf.clear();
        }
        outcome
    }
}
