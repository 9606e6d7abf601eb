//! What did the writer last acknowledge? The file `STATUS`, written in place, never synced.
//!
//! ```text
//! | magic "CHSTAT00" | epoch u32 | zero u32 | acked_upto u64 | durable_upto u64 | zero u32 | crc u32 |
//! ```
//!
//! | at | field | width | who verifies it |
//! | --- | --- | --- | --- |
//! | 0 | magic | 8 | [`read_status`] |
//! | 8 | epoch | 4 | recovery: one below the newest in the log is ignored, one above is a loss |
//! | 12 | zero | 4 | crc |
//! | 16 | acked_upto | 8 | crc; readers in other processes show no later seq |
//! | 24 | durable_upto | 8 | crc; recovery's evidence about the last group |
//! | 32 | zero | 4 | crc |
//! | 36 | crc32 | 4 | `read_status`; over bytes 0..36 and the store id |
//!
//! It is written after the sync it speaks of, so what it claims was true. It is never synced: it
//! may be older than the truth, by many groups after a power cut, torn, or missing, and proves
//! nothing about what it does not claim.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile};
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::WalError;

/// The file's name inside the log directory.
pub const STATUS_NAME: &str = "STATUS";

const MAGIC: [u8; 8] = *b"CHSTAT00";
/// Bytes of the file.
pub const STATUS_LEN: usize = 40;
const CRC_COVERS: usize = 36;
/// A reader may meet a half-written status; it looks again this often.
const READ_TRIES: usize = 4;
const _: () = assert!(size_of::<RawStatus>() == STATUS_LEN && CRC_COVERS + 4 == STATUS_LEN);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawStatus {
    magic: [u8; 8],
    epoch: U32,
    zero_a: U32,
    acked_upto: U64,
    durable_upto: U64,
    zero_b: U32,
    crc: U32,
}

/// What the writer last said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Epoch of the writer.
    pub epoch: u32,
    /// Last seq whose acknowledgement was decided; other processes show no later one.
    pub acked_upto: u64,
    /// Last seq known to be synced.
    pub durable_upto: u64,
}

/// The writer's handle.
#[derive(Debug)]
pub(crate) struct StatusFile {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    store_id: [u8; 16],
    last: Status,
}

impl StatusFile {
    pub(crate) fn open(env: &Env, dir: &Path, store_id: [u8; 16]) -> Result<Self, WalError> {
        let path = dir.join(STATUS_NAME);
        let file = match env.vfs.open_write(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => env.vfs.create_new(&path),
            other => other,
        }
        .map_err(|e| WalError::io("open", &path, e))?;
        Ok(Self {
            file,
            path,
            store_id,
            last: Status::default(),
        })
    }

    /// Writes, never backwards: concurrent acknowledgements may arrive out of order.
    pub(crate) fn write(&mut self, mut status: Status) -> Result<(), WalError> {
        if status.epoch == self.last.epoch {
            status.acked_upto = status.acked_upto.max(self.last.acked_upto);
            status.durable_upto = status.durable_upto.max(self.last.durable_upto);
            if status == self.last {
                return Ok(());
            }
        }
        let bytes = encode(status, &self.store_id);
        self.file
            .write_all_at(&bytes, 0)
            .map_err(|e| WalError::io("write", &self.path, e))?;
        self.last = status;
        Ok(())
    }
}

pub(crate) fn encode(status: Status, store_id: &[u8; 16]) -> [u8; STATUS_LEN] {
    let mut raw = RawStatus {
        magic: MAGIC,
        epoch: status.epoch.into(),
        zero_a: 0.into(),
        acked_upto: status.acked_upto.into(),
        durable_upto: status.durable_upto.into(),
        zero_b: 0.into(),
        crc: 0.into(),
    };
    raw.crc = crc(raw.as_bytes(), store_id).into();
    let mut out = [0; STATUS_LEN];
    out.copy_from_slice(raw.as_bytes());
    out
}

fn decode(bytes: &[u8; STATUS_LEN], store_id: &[u8; 16]) -> Option<Status> {
    let raw = RawStatus::ref_from_bytes(bytes).ok()?;
    (raw.magic == MAGIC && raw.crc.get() == crc(bytes, store_id)).then(|| Status {
        epoch: raw.epoch.get(),
        acked_upto: raw.acked_upto.get(),
        durable_upto: raw.durable_upto.get(),
    })
}

fn crc(bytes: &[u8], store_id: &[u8; 16]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_COVERS]);
    hasher.update(store_id);
    hasher.finalize()
}

/// Reads `STATUS` in `dir`. `None` where it is missing, short or damaged: it proves nothing
/// then, and that is not an error, because it is never synced.
///
/// # Errors
/// `Io` where the file exists and cannot be read.
pub fn read_status(env: &Env, dir: &Path, store_id: &[u8; 16]) -> Result<Option<Status>, WalError> {
    let path = dir.join(STATUS_NAME);
    let file = match env.vfs.open_read(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(WalError::io("open", &path, e)),
    };
    for _ in 0..READ_TRIES {
        let mut bytes = [0; STATUS_LEN];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(WalError::io("read", &path, e)),
        }
        if let Some(status) = decode(&bytes, store_id) {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_comes_back_and_no_flipped_bit_passes() {
        let status = Status {
            epoch: 3,
            acked_upto: 17,
            durable_upto: 12,
        };
        let id = [7; 16];
        let bytes = encode(status, &id);
        assert_eq!(decode(&bytes, &id), Some(status));
        assert_eq!(decode(&bytes, &[8; 16]), None);
        for at in 0..STATUS_LEN * 8 {
            let mut bad = bytes;
            bad[at / 8] ^= 1 << (at % 8);
            assert_eq!(decode(&bad, &id), None, "bit {at}");
        }
    }
}
