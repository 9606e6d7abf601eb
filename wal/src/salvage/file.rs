//! Which whole frames stand in one log file, and what lies between them?

use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile, is_refusal};

use super::{LogGap, LostSeqs, SalvagedFrame};
use crate::error::{Flaw, WalError};
use crate::files::{FILE_BYTES_CAP, FILE_HEADER_LEN, FileHeader, FileNumber, log_name, open_log};
use crate::frame::{
    DIGEST_LEN, FRAME_HEADER_LEN, FrameHeader, Kind, Place, epoch_of, first_seq_of, frame_digest,
};
use crate::status::Status;

/// Unit of what counts as unreadable, bytes.
const PAGE_BYTES: usize = 4 << 10;
/// Bytes read ahead.
const WINDOW_BYTES: usize = 256 << 10;

/// One file, walked to its end.
#[derive(Debug)]
pub(super) struct FileSalvage {
    number: FileNumber,
    pub(super) opened: bool,
    pub(super) header: Option<FileHeader>,
    /// Highest epoch of header and frames; 0 where none is whole.
    pub(super) epoch: u32,
    /// Whole data frames with their `durable_upto`, ascending by offset.
    pub(super) frames: Vec<(SalvagedFrame, u64)>,
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
    pub(super) fn number(&self) -> FileNumber {
        self.number
    }

    pub(super) fn read(
        env: &Env,
        dir: &Path,
        number: FileNumber,
        store_id: &[u8; 16],
    ) -> Result<Self, WalError> {
        let mut salvage = Self {
            number,
            opened: false,
            header: None,
            epoch: 0,
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
                salvage.epoch = header.epoch;
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

    /// True where a whole frame may stand here: of this file's epoch or of one that began in it,
    /// behind all before it.
    fn follows(&self, header: &FrameHeader) -> bool {
        let own_epoch = self
            .header
            .is_none_or(|file| header.epoch >= self.epoch && header.first_seq > file.base_seq);
        let last = self.frames.last().map_or(0, |(frame, _)| frame.last_seq());
        own_epoch && header.first_seq > last && epoch_of(header.first_seq) <= header.epoch
    }

    fn take(&mut self, offset: u64, header: &FrameHeader) {
        self.epoch = self.epoch.max(header.epoch);
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
    pub(super) fn base_seq(&self) -> u64 {
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

    /// Where the first bytes lie, behind the header, that are no whole frame.
    pub(super) fn first_hole(&self) -> Option<u64> {
        let holes = self.holes.iter();
        let inside = holes.filter(|hole| hole.end > FILE_HEADER_LEN as u64);
        inside.map(|hole| hole.offset).min()
    }

    /// The holes as gaps with their seqs; those behind a cut belong to no log.
    pub(super) fn gaps(
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
            .map(|status| status.acked_upto.max(status.durable_upto));
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
