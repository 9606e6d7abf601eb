//! Which bytes of a log that is being written are whole, so that a copy of them recovers?
//!
//! For a backup beside the writer. Every frame that is whole and chained is taken, as a
//! recovery of a process killed at this instant would take it: at least all that `STATUS`
//! acknowledged before the walk began, and nothing half-written. The copy ends behind a frame,
//! so its recovery drops nothing and is ambiguous about nothing. Its `STATUS` says so.
//!
//! As for every reader: nothing is locked, cut or written. The files are handed out open, so
//! their bytes stay readable when the writer removes their names.

use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile};

use crate::error::{Flaw, WalError};
use crate::files::{FILE_HEADER_LEN, FileNumber, Successor, list_logs, log_name};
use crate::reader::{FileScan, Step};
use crate::status::{STATUS_LEN, Status, encode, read_status};
use crate::tail::{open_or_removed, successor_missing};

/// The whole part of a log at one instant.
#[derive(Debug)]
pub struct WholeLog {
    /// The files, without gaps, rising.
    pub parts: Vec<WholePart>,
    /// Last seq in them.
    pub last_seq: u64,
    /// What the writer had acknowledged before the walk; above `last_seq` where a power cut
    /// took `Buffered` writes and no writer has opened the log since.
    pub acked_upto: Option<u64>,
    /// True where what lies behind `last_seq` may have been acknowledged as `Synced`, as in a
    /// recovery's report. Beside a living writer true for a moment only: look again.
    pub is_ambiguous: bool,
    /// Content of `STATUS` for a copy that was synced.
    pub status: [u8; STATUS_LEN],
}

/// One log file, and how far it counts.
#[derive(Debug)]
pub struct WholePart {
    /// The file's number.
    pub number: FileNumber,
    /// Bytes from its beginning that count. Behind the header they do not change any more.
    pub bytes: u64,
    /// The header of a copy. The file's own changes once it gets a successor, and a copy says
    /// that it has one only where that is copied too.
    pub header: [u8; FILE_HEADER_LEN],
    /// The open file.
    pub file: Arc<dyn VfsFile>,
}

impl WholeLog {
    /// Walks the log in `dir` from file `floor` on.
    ///
    /// # Errors
    /// `Removed` where the floor has moved: read the manifest again. `Corrupt` where something
    /// that was durable cannot be read. Else as recovery.
    pub fn read(
        env: &Env,
        dir: &Path,
        store_id: [u8; 16],
        floor: FileNumber,
    ) -> Result<Self, WalError> {
        // First: all that it acknowledges was whole before the walk begins.
        let status = read_status(env, dir, &store_id)?;
        let mut scan = open_or_removed(env, dir, floor, &store_id)?;
        let mut parts = Vec::new();
        let mut proof = 0;
        let mut flaw = walk(&mut scan, &mut proof)?;
        while let Some(next) = successor(env, dir, &scan)? {
            // The file may have grown between the look at it and its successor's birth.
            scan.refresh()?;
            flaw = walk(&mut scan, &mut proof)?;
            let next = open_or_removed(env, dir, next, &store_id)?;
            let end = next.header.cut.map_or(scan.at.offset, |cut| cut.offset);
            if end > scan.at.offset {
                return Err(scan.corrupt(flaw.unwrap_or(Flaw::Zeros), next.header.base_seq));
            }
            parts.push(part(&scan, end, true));
            scan = next;
            flaw = walk(&mut scan, &mut proof)?;
        }
        let newest = status.filter(|status| status.epoch == scan.at.epoch);
        proof = proof.max(scan.header.durable_upto);
        proof = proof.max(newest.map_or(0, |status| status.durable_upto));
        let (flaw, proof) = reach(&mut scan, flaw, proof)?;
        let last_seq = scan.at.last_seq;
        if scan.header.successor != Successor::None {
            // Read before the names were listed.
            return Err(successor_missing(&scan, None));
        }
        parts.push(part(&scan, scan.at.offset, false));
        let synced = Status {
            epoch: scan.at.epoch,
            acked_upto: last_seq,
            durable_upto: last_seq,
        };
        Ok(Self {
            parts,
            last_seq,
            acked_upto: status.map(|status| status.acked_upto),
            is_ambiguous: flaw.is_some() && newest.is_none_or(|s| s.durable_upto < proof),
            status: encode(synced, &store_id),
        })
    }
}

/// Goes behind the last whole frame; says what is wrong with the one after it, if anything.
/// `proof` rises to what the frames call durable.
fn walk(scan: &mut FileScan, proof: &mut u64) -> Result<Option<Flaw>, WalError> {
    loop {
        match scan.step()? {
            Step::Frame(header) => *proof = (*proof).max(header.durable_upto),
            Step::End => return Ok(None),
            Step::Bad(flaw) => return Ok(Some(flaw)),
        }
    }
}

/// Makes sure that the walk got as far as anything says that frames are durable. What was read
/// ahead may be older than that; only a look that finds no more proves damage.
/// Returns what is wrong behind the last whole frame, and the proof.
fn reach(
    scan: &mut FileScan,
    mut flaw: Option<Flaw>,
    mut proof: u64,
) -> Result<(Option<Flaw>, u64), WalError> {
    loop {
        if flaw.is_some() {
            proof = proof.max(scan.evidence_behind()?.durable_upto);
        }
        if proof <= scan.at.last_seq {
            return Ok((flaw, proof));
        }
        let stood_at = scan.at.offset;
        scan.refresh()?;
        flaw = walk(scan, &mut proof)?;
        if scan.at.offset == stood_at {
            return Err(scan.corrupt(flaw.unwrap_or(Flaw::Zeros), proof));
        }
    }
}

fn successor(env: &Env, dir: &Path, scan: &FileScan) -> Result<Option<FileNumber>, WalError> {
    let current = scan.header.number;
    let later = list_logs(env, dir)?.into_iter().find(|&n| n > current);
    match later {
        Some(number) if number != current + 1 => Err(WalError::Removed {
            file: log_name(current + 1),
        }),
        later => Ok(later),
    }
}

fn part(scan: &FileScan, bytes: u64, has_next: bool) -> WholePart {
    WholePart {
        number: scan.header.number,
        bytes,
        header: match has_next {
            true => scan.header.encode_marked(),
            false => scan.header.encode(),
        },
        file: scan.file(),
    }
}
