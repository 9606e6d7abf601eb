//! How are delete sets and the tag graph kept? In immutable files that the manifest names.
//!
//! ```text
//! offset  width  field           who verifies it
//! 0       8      magic           `open_frame`
//! 8       4      version         `open_frame`: a higher one is refused by name
//! 12      4      kind            `check_identity`
//! 16      16     store id        `check_identity`
//! 32      8      file number     `check_identity`, against the manifest's reference
//! 40      8      entries         `check_identity`, and the payload's decoder
//! 48      8      payload length  `open_frame`, against the file's length
//! 56      4      zero            `open_frame`
//! 60      4      crc32 of 0..60  `open_frame`, before any field but the magic is believed
//! 64      n      payload         see `deletes` and `tag_graph`
//! 64+n    16     xxh3-128 of salt, header, payload   `open_frame`, and against the manifest
//! ```

use std::path::Path;

use chronolith_vfs::Vfs;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::{Finding, SideFileError};
use super::format::{At, DIGEST_BYTES, Fault, salted_digest};
use super::io::{ReadFault, WriteFault, read_whole, write_aside};
use super::model::{SideFile, StoreId};
use super::names::{DataKind, DataName};

/// Version of the side files. 0: may still change.
pub const SIDE_FILE_FORMAT_VERSION: u32 = 0;
/// Longest side file.
pub const SIDE_FILE_BYTES_MAX: u64 = 512 << 20;

const MAGIC: [u8; 8] = *b"CHRNSIDE";
const SALT: &[u8; 16] = b"chronolith/sidef";
pub(super) const HEADER_BYTES: usize = 64;
const CRC_AT: usize = 60;
const ENTRIES_AT: u64 = 40;
const FRAME_BYTES: u64 = (HEADER_BYTES + DIGEST_BYTES) as u64;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: U32,
    kind: U32,
    store_id: StoreId,
    file_number: U64,
    entries: U64,
    payload_bytes: U64,
    zero: U32,
    crc: U32,
}
const _: () = assert!(size_of::<Header>() == HEADER_BYTES && CRC_AT + 4 == HEADER_BYTES);

/// What a side file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideFileKind {
    /// Dead rows of one segment.
    Deletes,
    /// Parent and child names of tags.
    TagGraph,
}

impl SideFileKind {
    fn code(self) -> u32 {
        match self {
            Self::Deletes => 1,
            Self::TagGraph => 2,
        }
    }

    /// The file's name.
    pub fn name(self, file_number: u64) -> DataName {
        let kind = match self {
            Self::Deletes => DataKind::Deletes,
            Self::TagGraph => DataKind::TagGraph,
        };
        DataName::new(file_number, kind)
    }
}

/// Writes, syncs, seals and renames a side file, and returns what the manifest is to say.
///
/// The new name is durable after the next [`super::publish`], which syncs the directory first.
/// A failed attempt is removed as far as possible and named by nobody; the number is spent.
///
/// # Errors
/// `Refused` over the cap; `NotDurable` after a failed sync or rename; else `Io`.
pub fn write_side_file(
    vfs: &dyn Vfs,
    store: &Path,
    file_number: u64,
    kind: SideFileKind,
    store_id: &StoreId,
    entries: u64,
    payload: &[u8],
) -> Result<SideFile, SideFileError> {
    let (bytes, digest) = encode(file_number, kind, store_id, entries, payload);
    if bytes.len() as u64 > SIDE_FILE_BYTES_MAX {
        return Err(SideFileError::Refused {
            message: format!(
                "{} bytes, at most {SIDE_FILE_BYTES_MAX}; compact the segment",
                bytes.len()
            ),
        });
    }
    let name = kind.name(file_number);
    let (temp, path) = (name.with_temp(true).path(store), name.path(store));
    let written = write_aside(vfs, &temp, &bytes)
        .and_then(|()| vfs.seal(&temp).map_err(WriteFault::definite("seal")))
        .and_then(|()| {
            vfs.rename(&temp, &path)
                .map_err(WriteFault::unknown("rename"))
        });
    match written {
        Ok(()) => Ok(SideFile {
            file_number,
            bytes: bytes.len() as u64,
            digest,
            entries,
        }),
        Err(WriteFault {
            step,
            unknown,
            source,
        }) => {
            // No manifest names it, so removing it is safe whatever became of it.
            let _ = vfs.remove_file(&temp);
            Err(if unknown {
                SideFileError::NotDurable { step, path, source }
            } else {
                SideFileError::Io { step, path, source }
            })
        }
    }
}

/// Reads a side file and returns its payload, verified against the manifest's reference.
///
/// # Errors
/// `Damaged`, `Missing`, `NewerFormat` or `Io`; each names the file.
pub fn read_side_file(
    vfs: &dyn Vfs,
    store: &Path,
    kind: SideFileKind,
    store_id: &StoreId,
    reference: &SideFile,
) -> Result<Vec<u8>, SideFileError> {
    let name = kind.name(reference.file_number);
    let file = name.shown();
    let at = At { file: &file };
    let damaged = |finding: Finding| Err(SideFileError::Damaged(finding));
    if !(FRAME_BYTES..=SIDE_FILE_BYTES_MAX).contains(&reference.bytes) {
        let message = format!("the manifest says {} bytes, out of range", reference.bytes);
        return damaged(at.finding("file", 0, message));
    }
    let length = |bytes| {
        at.finding(
            "file",
            0,
            format!("{bytes} bytes, the manifest says {}", reference.bytes),
        )
    };
    let path = name.path(store);
    let mut bytes = match read_whole(vfs, &path, reference.bytes) {
        Ok(bytes) => bytes,
        Err(ReadFault::Missing) => return Err(SideFileError::Missing { file }),
        Err(ReadFault::TooLong { bytes }) => return damaged(length(bytes)),
        Err(ReadFault::Io(source)) => {
            return Err(SideFileError::Io {
                step: "read",
                path,
                source,
            });
        }
    };
    if bytes.len() as u64 != reference.bytes {
        return damaged(length(bytes.len() as u64));
    }
    match verify(at, &bytes, kind, store_id, reference) {
        Ok(()) => {}
        Err(Fault::Damaged(finding)) => return damaged(finding),
        Err(Fault::Newer { found }) => {
            return Err(SideFileError::NewerFormat {
                file,
                found,
                supported: SIDE_FILE_FORMAT_VERSION,
            });
        }
    }
    bytes.truncate(bytes.len() - DIGEST_BYTES);
    bytes.drain(..HEADER_BYTES);
    Ok(bytes)
}

/// Reads a side file to which nothing refers: its own digest vouches for it. Returns entries
/// and payload. For `repair`.
///
/// # Errors
/// As [`read_side_file`].
pub(super) fn read_unreferenced(
    vfs: &dyn Vfs,
    store: &Path,
    kind: SideFileKind,
    store_id: &StoreId,
    file_number: u64,
) -> Result<(u64, Vec<u8>), SideFileError> {
    let name = kind.name(file_number);
    let (file, path) = (name.shown(), name.path(store));
    let fault = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => SideFileError::Missing { file: file.clone() },
        _ => SideFileError::Io {
            step: "read",
            path: path.clone(),
            source,
        },
    };
    let open = vfs.open_read(&path).map_err(fault)?;
    let bytes = open.len().map_err(fault)?;
    if !(FRAME_BYTES..=SIDE_FILE_BYTES_MAX).contains(&bytes) {
        let message = format!("{bytes} bytes, out of range");
        return Err(SideFileError::Damaged(
            At { file: &file }.finding("file", 0, message),
        ));
    }
    let (mut entries, mut digest) = ([0; 8], [0; DIGEST_BYTES]);
    open.read_exact_at(&mut entries, ENTRIES_AT)
        .map_err(fault)?;
    open.read_exact_at(&mut digest, bytes - DIGEST_BYTES as u64)
        .map_err(fault)?;
    let reference = SideFile {
        file_number,
        bytes,
        digest: u128::from_le_bytes(digest),
        entries: u64::from_le_bytes(entries),
    };
    let payload = read_side_file(vfs, store, kind, store_id, &reference)?;
    Ok((reference.entries, payload))
}

pub(super) fn encode(
    file_number: u64,
    kind: SideFileKind,
    store_id: &StoreId,
    entries: u64,
    payload: &[u8],
) -> (Vec<u8>, u128) {
    let mut header = Header {
        magic: MAGIC,
        version: U32::new(SIDE_FILE_FORMAT_VERSION),
        kind: U32::new(kind.code()),
        store_id: *store_id,
        file_number: U64::new(file_number),
        entries: U64::new(entries),
        payload_bytes: U64::new(payload.len() as u64),
        zero: U32::ZERO,
        crc: U32::ZERO,
    };
    header.crc = U32::new(crc32fast::hash(&header.as_bytes()[..CRC_AT]));
    let mut bytes = Vec::with_capacity(payload.len() + HEADER_BYTES + DIGEST_BYTES);
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(payload);
    let digest = salted_digest(SALT, store_id, file_number, &bytes);
    bytes.extend_from_slice(&digest.to_le_bytes());
    (bytes, digest)
}

/// Checks a whole file of the length that the manifest says.
fn verify(
    at: At<'_>,
    bytes: &[u8],
    kind: SideFileKind,
    store_id: &StoreId,
    reference: &SideFile,
) -> Result<(), Fault> {
    let (header, digest) = open_frame(at, bytes)?;
    check_identity(at, header, kind, store_id, reference)?;
    if digest != reference.digest {
        let message = format!("{digest:032x}, the manifest says {:032x}", reference.digest);
        return Err(at.damaged("digest", bytes.len() as u64 - DIGEST_BYTES as u64, message));
    }
    Ok(())
}

fn open_frame<'a>(at: At<'_>, bytes: &'a [u8]) -> Result<(&'a Header, u128), Fault> {
    let short = || {
        at.damaged(
            "header",
            0,
            format!("{} bytes are too few for a side file", bytes.len()),
        )
    };
    let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| short())?;
    if header.magic != MAGIC {
        return Err(at.damaged("header", 0, "magic is not a side file's"));
    }
    let crc = crc32fast::hash(&bytes[..CRC_AT]);
    if header.crc.get() != crc {
        let message = format!("crc32 {crc:08x}, stored {:08x}", header.crc.get());
        return Err(at.damaged("header", CRC_AT as u64, message));
    }
    if header.version.get() != SIDE_FILE_FORMAT_VERSION {
        return Err(Fault::Newer {
            found: header.version.get(),
        });
    }
    if header.zero != U32::ZERO {
        return Err(at.damaged("header", 56, "reserved bytes are not zero"));
    }
    let payload_bytes = rest.len().checked_sub(DIGEST_BYTES).ok_or_else(short)?;
    if payload_bytes as u64 != header.payload_bytes.get() {
        let message = format!(
            "payload of {} bytes in a file of {}",
            header.payload_bytes,
            bytes.len()
        );
        return Err(at.damaged("header", 48, message));
    }
    let stored = rest[payload_bytes..]
        .try_into()
        .expect("16 bytes: just subtracted from the length");
    let stored = u128::from_le_bytes(stored);
    let framed = &bytes[..HEADER_BYTES + payload_bytes];
    let found = salted_digest(SALT, &header.store_id, header.file_number.get(), framed);
    if found != stored {
        return Err(at.damaged(
            "digest",
            framed.len() as u64,
            format!("xxh3 {found:032x}, stored {stored:032x}"),
        ));
    }
    Ok((header, found))
}

fn check_identity(
    at: At<'_>,
    header: &Header,
    kind: SideFileKind,
    store_id: &StoreId,
    reference: &SideFile,
) -> Result<(), Fault> {
    if header.kind.get() != kind.code() {
        return Err(at.damaged(
            "header",
            12,
            format!("kind {}, expected {}", header.kind, kind.code()),
        ));
    }
    if header.store_id != *store_id {
        return Err(at.damaged("header", 16, "belongs to another store"));
    }
    if header.file_number.get() != reference.file_number {
        let message = format!(
            "is file {:016x}, expected {:016x}",
            header.file_number.get(),
            reference.file_number
        );
        return Err(at.damaged("header", 32, message));
    }
    if header.entries.get() != reference.entries {
        let message = format!(
            "{} entries, the manifest says {}",
            header.entries, reference.entries
        );
        return Err(at.damaged("header", 40, message));
    }
    Ok(())
}
