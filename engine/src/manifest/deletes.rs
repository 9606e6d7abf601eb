//! Which rows of a segment died? The payload of a delete-set side file.
//!
//! ```text
//! offset  width  field            range
//! 0       8      segment          number of the segment whose rows these are
//! ```
//!
//! then entries of 24 bytes, one after the other, until the payload ends:
//!
//! ```text
//! offset  width  field            range
//! 0       4      row              ascends strictly
//! 4       1      kind             1 deleted, 2 superseded, 3 archived
//! 5       3      zero
//! 8       8      seq
//! 16      8      valid_to, µs     signed
//! ```
//!
//! The segment is named so that a delete set finds its rows again where the manifest that
//! referred to both is lost; everybody else checks that it is the one they expect.

use std::path::Path;

use chronolith_vfs::Vfs;
use zerocopy::byteorder::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::SideFileError;
use super::format::At;
use super::model::{SideFile, StoreId};
use super::side_file::{
    HEADER_BYTES, SideFileKind, read_side_file, read_unreferenced, write_side_file,
};

/// Most entries of one delete set; a segment with more dead rows is compacted first.
pub const DELETE_ENTRIES_MAX: usize = 1 << 24;
/// Lowest and highest kind of death.
const KINDS: std::ops::RangeInclusive<u8> = 1..=3;
const ENTRY_BYTES: usize = 24;
/// The segment's number before the entries.
const PREFIX_BYTES: usize = 8;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    row: U32,
    kind: u8,
    zero: [u8; 3],
    seq: U64,
    valid_to_us: I64,
}
const _: () = assert!(size_of::<Raw>() == ENTRY_BYTES);
const _: () = assert!(
    (DELETE_ENTRIES_MAX * ENTRY_BYTES + PREFIX_BYTES + 128) as u64
        <= super::side_file::SIDE_FILE_BYTES_MAX
);

/// Where entry `index` stands in the file.
pub(crate) const fn entry_offset(index: u64) -> u64 {
    (HEADER_BYTES + PREFIX_BYTES) as u64 + index * ENTRY_BYTES as u64
}

/// One dead row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadRow {
    /// The row.
    pub row: u32,
    /// Commit seq of the operation that killed it.
    pub seq: u64,
    /// Why: 1 deleted, 2 superseded, 3 archived.
    pub kind: u8,
    /// End of the row's validity, µs.
    pub valid_to_us: i64,
}

/// Writes the delete set of segment `segment`. See [`write_side_file`].
///
/// # Errors
/// `Refused` where rows do not ascend, a kind is unknown or there are too many; else as
/// [`write_side_file`].
pub fn write_deletes(
    vfs: &dyn Vfs,
    store: &Path,
    file_number: u64,
    store_id: &StoreId,
    segment: u64,
    dead: &[DeadRow],
) -> Result<SideFile, SideFileError> {
    let payload = encode(segment, dead)?;
    write_side_file(
        vfs,
        store,
        file_number,
        SideFileKind::Deletes,
        store_id,
        dead.len() as u64,
        &payload,
    )
}

/// Reads the delete set of segment `segment`, which has `rows` rows.
///
/// # Errors
/// As [`read_side_file`]; `Damaged` also for another segment's or an entry out of range.
pub fn read_deletes(
    vfs: &dyn Vfs,
    store: &Path,
    store_id: &StoreId,
    reference: &SideFile,
    segment: u64,
    rows: u32,
) -> Result<Vec<DeadRow>, SideFileError> {
    let payload = read_side_file(vfs, store, SideFileKind::Deletes, store_id, reference)?;
    let file = SideFileKind::Deletes.name(reference.file_number).shown();
    let at = At { file: &file };
    let (found, dead) = decode(at, &payload, reference.entries, rows)?;
    if found == segment {
        return Ok(dead);
    }
    let message = format!("of segment {found:016x}, expected {segment:016x}");
    let finding = at.finding("deletes", HEADER_BYTES as u64, message);
    Err(SideFileError::Damaged(finding))
}

/// Reads delete set `file_number`, to which nothing refers, and the number of its segment. For
/// `repair`: whether a row is one of that segment's is for the caller to check.
///
/// # Errors
/// As [`read_deletes`].
pub fn read_unreferenced_deletes(
    vfs: &dyn Vfs,
    store: &Path,
    store_id: &StoreId,
    file_number: u64,
) -> Result<(u64, Vec<DeadRow>), SideFileError> {
    let kind = SideFileKind::Deletes;
    let (entries, payload) = read_unreferenced(vfs, store, kind, store_id, file_number)?;
    let file = kind.name(file_number).shown();
    decode(At { file: &file }, &payload, entries, u32::MAX)
}

pub(super) fn encode(segment: u64, dead: &[DeadRow]) -> Result<Vec<u8>, SideFileError> {
    let refuse = |message: String| Err(SideFileError::Refused { message });
    if dead.len() > DELETE_ENTRIES_MAX {
        return refuse(format!(
            "{} dead rows, at most {DELETE_ENTRIES_MAX}; compact the segment",
            dead.len()
        ));
    }
    if !dead.is_sorted_by(|a, b| a.row < b.row) {
        return refuse("rows of a delete set must ascend".to_owned());
    }
    let mut payload = Vec::with_capacity(PREFIX_BYTES + dead.len() * ENTRY_BYTES);
    payload.extend_from_slice(&segment.to_le_bytes());
    for entry in dead {
        if !KINDS.contains(&entry.kind) {
            return refuse(format!(
                "row {}: unknown kind of death {}",
                entry.row, entry.kind
            ));
        }
        let raw = Raw {
            row: U32::new(entry.row),
            kind: entry.kind,
            zero: [0; 3],
            seq: U64::new(entry.seq),
            valid_to_us: I64::new(entry.valid_to_us),
        };
        payload.extend_from_slice(raw.as_bytes());
    }
    Ok(payload)
}

fn decode(
    at: At<'_>,
    payload: &[u8],
    entries: u64,
    rows: u32,
) -> Result<(u64, Vec<DeadRow>), SideFileError> {
    let damaged = |index: usize, message: &str| {
        let offset = (HEADER_BYTES + PREFIX_BYTES + index * ENTRY_BYTES) as u64;
        SideFileError::Damaged(at.finding("deletes", offset, message))
    };
    let (segment, entries_bytes) = payload
        .split_first_chunk::<PREFIX_BYTES>()
        .ok_or_else(|| damaged(0, "names no segment"))?;
    let raws = <[Raw]>::ref_from_bytes(entries_bytes)
        .map_err(|_| damaged(0, "not a whole number of entries"))?;
    if raws.len() as u64 != entries || raws.len() > DELETE_ENTRIES_MAX {
        return Err(damaged(
            0,
            &format!("{} entries, the manifest says {entries}", raws.len()),
        ));
    }
    let mut dead: Vec<DeadRow> = Vec::with_capacity(raws.len());
    for (index, raw) in raws.iter().enumerate() {
        let row = raw.row.get();
        if row >= rows || dead.last().is_some_and(|last| last.row >= row) {
            return Err(damaged(
                index,
                &format!("row {row} out of order, or not below {rows}"),
            ));
        }
        if !KINDS.contains(&raw.kind) || raw.zero != [0; 3] {
            return Err(damaged(
                index,
                &format!("unknown kind of death {}", raw.kind),
            ));
        }
        let (seq, valid_to_us) = (raw.seq.get(), raw.valid_to_us.get());
        dead.push(DeadRow {
            row,
            seq,
            kind: raw.kind,
            valid_to_us,
        });
    }
    Ok((u64::from_le_bytes(*segment), dead))
}
