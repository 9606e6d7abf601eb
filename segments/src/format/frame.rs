//! What frames a segment file: the header that says whose it is, the trailer that says where
//! the footer starts.

use super::bytes::{Put, Take};
use super::section::FileIdentity;
use super::{FILE_BYTES_MAX, FORMAT_VERSION, ONE_SPACE};
use crate::error::SegmentError;

type Result<T> = std::result::Result<T, SegmentError>;

/// First bytes of the file.
const HEADER_MAGIC: [u8; 8] = *b"chronseg";
/// Last bytes of the file.
const TRAILER_MAGIC: [u8; 8] = *b"gesnorhc";
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 64;
/// Bytes of the trailer.
pub(crate) const TRAILER_BYTES: usize = 48;

const HEADER_RESERVED: usize = 24;
// magic, version, store id, file number, reserved, crc
const _: () = assert!(HEADER_BYTES == 8 + 4 + 16 + 8 + HEADER_RESERVED + 4);
// tail offset, table bytes, footer bytes, digest, version, crc, magic
const _: () = assert!(TRAILER_BYTES == 8 + 4 + 4 + 16 + 4 + 4 + 8);

/// Encodes the header.
pub(crate) fn header(version: u32, identity: &FileIdentity) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.put(&HEADER_MAGIC);
    bytes.put_u32(version);
    bytes.put(&identity.store_id);
    bytes.put_u64(identity.file_number);
    bytes.put(&[0; HEADER_RESERVED]);
    let crc = crc32fast::hash(&bytes);
    bytes.put_u32(crc);
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes
}

/// Checks the header and tells whose file it is.
///
/// # Errors
/// `Corrupt` for another kind of file or damage; `Version` for another format.
pub(crate) fn read_header(file: &str, bytes: &[u8]) -> Result<FileIdentity> {
    let mut take = Take::of_file(file, "header", 0, bytes);
    if take.array::<8>()? != HEADER_MAGIC {
        return Err(take.corrupt("not a segment file"));
    }
    let version = take.u32()?;
    let store_id = take.array()?;
    let file_number = take.u64()?;
    take.bytes(HEADER_RESERVED)?;
    check_crc(&mut take, bytes)?;
    check_version(file, version)?;
    Ok(FileIdentity {
        store_id,
        file_number,
    })
}

/// Where the tail lies, and what it must hash to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer {
    /// Offset of the checksum table; the footer follows it.
    pub(crate) tail_offset: u64,
    /// Bytes of the checksum table.
    pub(crate) table_bytes: u32,
    /// Bytes of the footer.
    pub(crate) footer_bytes: u32,
    /// xxh3-128 of header, checksum table and footer.
    pub(crate) digest: u128,
    /// Format version, as in the header.
    pub(crate) version: u32,
}

impl Trailer {
    /// Encodes the trailer.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TRAILER_BYTES);
        bytes.put_u64(self.tail_offset);
        bytes.put_u32(self.table_bytes);
        bytes.put_u32(self.footer_bytes);
        bytes.put(&self.digest.to_le_bytes());
        bytes.put_u32(self.version);
        let crc = crc32fast::hash(&bytes);
        bytes.put_u32(crc);
        bytes.put(&TRAILER_MAGIC);
        debug_assert_eq!(bytes.len(), TRAILER_BYTES);
        bytes
    }

    /// Checks the trailer against itself and the file's length.
    ///
    /// # Errors
    /// `Corrupt` for a cut file or damage; `Version` for another format.
    pub(crate) fn read(file: &str, file_bytes: u64, bytes: &[u8]) -> Result<Self> {
        let base = file_bytes.saturating_sub(TRAILER_BYTES as u64);
        let mut take = Take::of_file(file, "trailer", base, bytes);
        let trailer = Self {
            tail_offset: take.u64()?,
            table_bytes: take.u32()?,
            footer_bytes: take.u32()?,
            digest: u128::from_le_bytes(take.array()?),
            version: take.u32()?,
        };
        check_crc(&mut take, bytes)?;
        if take.array::<8>()? != TRAILER_MAGIC {
            return Err(take.corrupt("the file does not end as a segment does"));
        }
        check_version(file, trailer.version)?;
        let end = trailer
            .tail_offset
            .checked_add(u64::from(trailer.table_bytes) + u64::from(trailer.footer_bytes))
            .and_then(|end| end.checked_add(TRAILER_BYTES as u64));
        if end != Some(file_bytes) || trailer.tail_offset < HEADER_BYTES as u64 {
            let message = format!(
                "tail at {} and the file's {file_bytes} bytes disagree",
                trailer.tail_offset
            );
            return Err(take.corrupt(message));
        }
        Ok(trailer)
    }

    /// The digest that binds header, checksum table and footer together.
    pub(crate) fn digest_of(header: &[u8], table: &[u8], footer: &[u8]) -> u128 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for part in [header, table, footer] {
            hasher.update(part);
        }
        hasher.digest128()
    }
}

/// Checks a file's length before anything is read from it.
///
/// # Errors
/// `Corrupt` where it is too short or too long for a segment.
pub(crate) fn check_file_bytes(file: &str, bytes: u64) -> Result<()> {
    let least = (HEADER_BYTES + TRAILER_BYTES) as u64;
    if (least..=FILE_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let message = format!("{bytes} bytes; a segment has {least} to {FILE_BYTES_MAX}");
    Err(SegmentError::corrupt(file, "trailer", bytes, message))
}

/// Checks the crc32 that stands at the current position over all bytes before it.
fn check_crc(take: &mut Take<'_>, bytes: &[u8]) -> Result<()> {
    let covered = bytes.len() - take.left();
    let found = crc32fast::hash(&bytes[..covered]);
    let expected = take.u32()?;
    if found == expected {
        return Ok(());
    }
    Err(take.corrupt(format!("checksum is {found:08x}, expected {expected:08x}")))
}

fn check_version(file: &str, found: u32) -> Result<()> {
    if (ONE_SPACE..=FORMAT_VERSION).contains(&found) {
        return Ok(());
    }
    Err(SegmentError::Version {
        file: file.into(),
        found,
        supported: FORMAT_VERSION,
    })
}
