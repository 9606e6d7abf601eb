//! Which generation counts? `CURRENT`, one small file, replaced whole.
//!
//! ```text
//! offset  width  field                     who verifies it (all in `Pointer::decode`)
//! 0       8      magic
//! 8       4      version                   a higher one is refused by name
//! 12      4      zero
//! 16      16     store id                  and against the manifest's, in `format`
//! 32      8      generation                at least 1
//! 40      16     digest of the manifest    against both copies, in `format`
//! 56      4      zero
//! 60      4      crc32 of 0..60
//! ```

use std::path::Path;

use chronolith_vfs::Vfs;
use zerocopy::byteorder::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::ManifestError;
use super::format::{At, Fault};
use super::io::{ReadFault, read_whole};
use super::model::StoreId;
use super::names::CURRENT;

/// Version of the pointer; the manifest has its own.
const FORMAT_VERSION: u32 = 0;
const MAGIC: [u8; 8] = *b"CHRNCURR";
pub(super) const POINTER_BYTES: usize = 64;
const CRC_AT: usize = 60;

/// What `CURRENT` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// The store.
    pub store_id: StoreId,
    /// The generation that counts.
    pub generation: u64,
    /// Digest of its manifest.
    pub digest: u128,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: U32,
    zero: U32,
    store_id: StoreId,
    generation: U64,
    digest: U128,
    zero_too: U32,
    crc: U32,
}
const _: () = assert!(size_of::<Raw>() == POINTER_BYTES && CRC_AT + 4 == POINTER_BYTES);

impl Pointer {
    pub(super) fn encode(&self) -> [u8; POINTER_BYTES] {
        let mut raw = Raw {
            magic: MAGIC,
            version: U32::new(FORMAT_VERSION),
            zero: U32::ZERO,
            store_id: self.store_id,
            generation: U64::new(self.generation),
            digest: U128::new(self.digest),
            zero_too: U32::ZERO,
            crc: U32::ZERO,
        };
        raw.crc = U32::new(crc32fast::hash(&raw.as_bytes()[..CRC_AT]));
        zerocopy::transmute!(raw)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let at = At { file: CURRENT };
        let raw = Raw::ref_from_bytes(bytes).map_err(|_| {
            at.damaged(
                "pointer",
                0,
                format!("{} bytes, expected {POINTER_BYTES}", bytes.len()),
            )
        })?;
        if raw.magic != MAGIC {
            return Err(at.damaged("pointer", 0, "magic is not a pointer's"));
        }
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        if raw.crc.get() != crc {
            let message = format!("crc32 {crc:08x}, stored {:08x}", raw.crc.get());
            return Err(at.damaged("pointer", CRC_AT as u64, message));
        }
        if raw.version.get() != FORMAT_VERSION {
            return Err(Fault::Newer {
                found: raw.version.get(),
            });
        }
        if raw.zero != U32::ZERO || raw.zero_too != U32::ZERO || raw.generation == U64::ZERO {
            return Err(at.damaged(
                "pointer",
                12,
                "reserved bytes are not zero, or the generation is",
            ));
        }
        Ok(Self {
            store_id: raw.store_id,
            generation: raw.generation.get(),
            digest: raw.digest.get(),
        })
    }
}

/// Reads `CURRENT`; `None` where there is no such file.
pub(super) fn read(vfs: &dyn Vfs, store: &Path) -> Result<Option<Pointer>, ManifestError> {
    let path = store.join(CURRENT);
    let bytes = match read_whole(vfs, &path, POINTER_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(ReadFault::Missing) => return Ok(None),
        Err(ReadFault::TooLong { bytes }) => {
            let at = At { file: CURRENT };
            let message = format!("{bytes} bytes, expected {POINTER_BYTES}");
            return Err(ManifestError::CurrentDamaged(at.finding(
                "pointer",
                POINTER_BYTES as u64,
                message,
            )));
        }
        Err(ReadFault::Io(source)) => {
            return Err(ManifestError::Io {
                step: "read",
                path,
                source,
            });
        }
    };
    match Pointer::decode(&bytes) {
        Ok(pointer) => Ok(Some(pointer)),
        Err(Fault::Damaged(finding)) => Err(ManifestError::CurrentDamaged(finding)),
        Err(Fault::Newer { found }) => Err(ManifestError::NewerFormat {
            file: CURRENT.to_owned(),
            found,
            supported: FORMAT_VERSION,
        }),
    }
}
