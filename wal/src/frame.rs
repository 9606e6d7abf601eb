//! How is one append laid out, and how does it prove that it is whole and in its place?
//!
//! ```text
//! offset (multiple of 8)
//! +--------------------------- 64 bytes ---------------------------+
//! | magic kind 000 body_len ops | first_seq | durable_upto | epoch |
//! | 0000 | digest of the frame (or file header) before | 0000 | crc |
//! +----------------------------------------------------------------+
//! | body, then zeros up to a multiple of 8                         |
//! +----------------------------------------------------------------+
//! | digest of all the above, salted with its place       16 bytes  |
//! +----------------------------------------------------------------+
//! ```
//!
//! | at | field | width | range | who verifies it |
//! | --- | --- | --- | --- | --- |
//! | 0 | magic | 4 | `CHFR` | [`FrameHeader::decode`] |
//! | 4 | kind | 1 | 1 data, 2 seal, 3 epoch | `decode` (under the header crc) |
//! | 5 | zero | 3 | 0 | `decode` |
//! | 8 | body_len | 4 | 0 ..= body cap | `decode`, before anything is allocated |
//! | 12 | ops | 4 | data 1 .. ; seal, epoch 0 | `decode` |
//! | 16 | first_seq | 8 | epoch << 40 \| counter | the scan: must follow the frame before |
//! | 24 | durable_upto | 8 | < first_seq | `decode`; recovery uses it as proof |
//! | 32 | epoch | 4 | 1 ..< 2^24 | `decode`; the scan: the file's, or that of the last epoch frame before |
//! | 36 | zero | 4 | 0 | `decode` |
//! | 40 | prev digest | 16 | | the scan: the chain |
//! | 56 | zero | 4 | 0 | `decode` |
//! | 60 | crc32 | 4 | | `decode`; over bytes 0..60, store id, offset |
//! | 64 | body | body_len | opaque | digest |
//! | .. | padding | 0..=7 | 0 | digest |
//! | .. | digest | 16 | | the scan; xxh3-128 of all before, seeded by the salt |
//!
//! The salt is (store id, epoch, first seq, offset): a frame copied, swapped or left over
//! from elsewhere is not a frame here. The header has its own checksum so that a damaged
//! length is damage and never "the end".

use chronolith_vfs::planted::{self, Bug};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Flaw;

/// 16 bytes that stand for all bytes before them.
pub(crate) type Digest = [u8; 16];

/// Bytes of a frame header.
pub(crate) const FRAME_HEADER_LEN: usize = 64;
/// Bytes of a frame's digest.
pub(crate) const DIGEST_LEN: usize = 16;
/// Longest body any option may allow: 16 MiB.
pub const BODY_BYTES_CAP: usize = 16 << 20;
/// Bits of a seq below the epoch.
pub const EPOCH_SHIFT: u32 = 40;
/// Highest epoch: 24 bits.
pub const EPOCH_MAX: u32 = (1 << 24) - 1;

const MAGIC: [u8; 4] = *b"CHFR";
const KIND_DATA: u8 = 1;
const KIND_SEAL: u8 = 2;
const KIND_EPOCH: u8 = 3;
/// The header's bytes under its crc.
const CRC_COVERS: usize = 60;

const _: () = assert!(size_of::<RawHeader>() == FRAME_HEADER_LEN);
const _: () = assert!(FRAME_HEADER_LEN.is_multiple_of(8) && DIGEST_LEN.is_multiple_of(8));
const _: () = assert!(CRC_COVERS + 4 == FRAME_HEADER_LEN);
const _: () = assert!(EPOCH_SHIFT + 24 == u64::BITS);

/// The first seq of an epoch; counters begin at 1, so that 0 can mean "none".
#[must_use]
pub fn first_seq_of(epoch: u32) -> u64 {
    (u64::from(epoch) << EPOCH_SHIFT) | 1
}

/// The epoch a seq was given in.
#[must_use]
pub fn epoch_of(seq: u64) -> u32 {
    (seq >> EPOCH_SHIFT) as u32
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 4],
    kind: u8,
    zero_a: [u8; 3],
    body_len: U32,
    ops: U32,
    first_seq: U64,
    durable_upto: U64,
    epoch: U32,
    zero_b: U32,
    prev: Digest,
    zero_c: U32,
    crc: U32,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A batch.
    Data,
    /// No batch: only carries `durable_upto` forward.
    Seal,
    /// No batch: a later writer goes on in this file, because it could have none of its own.
    /// All before it was synced again first. `first_seq` is the first of the epoch it begins.
    Epoch,
}

/// Where a frame lies: half of its salt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) store_id: &'a [u8; 16],
    pub(crate) offset: u64,
}

/// A decoded frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: Kind,
    pub(crate) body_len: u32,
    pub(crate) ops: u32,
    /// Of a seal or epoch frame: the seq the next data frame would get.
    pub(crate) first_seq: u64,
    pub(crate) durable_upto: u64,
    pub(crate) epoch: u32,
    pub(crate) prev: Digest,
}

impl FrameHeader {
    /// Last seq of a data frame; `None` for the others, which have no seq of their own.
    pub(crate) fn last_seq(&self) -> Option<u64> {
        (self.kind == Kind::Data).then(|| self.first_seq + u64::from(self.ops) - 1)
    }

    /// Bytes of the whole frame.
    pub(crate) fn frame_len(&self) -> u64 {
        frame_len(self.body_len as usize)
    }

    /// Reads a header that lies at `place`. `Ok` means: written here by a writer of this
    /// store, every field in range. Whether it follows its predecessor is for the scan.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_LEN], place: Place<'_>) -> Result<Self, Flaw> {
        let raw = RawHeader::ref_from_bytes(bytes).map_err(|_| Flaw::PartialHeader)?;
        if raw.magic != MAGIC {
            return Err(Flaw::Magic);
        }
        if raw.crc.get() != header_crc(bytes, place) && !planted::is_on(Bug::FrameHeaderUnchecked) {
            return Err(Flaw::HeaderChecksum);
        }
        let kind = match (raw.kind, raw.ops.get()) {
            (KIND_DATA, 1..) => Kind::Data,
            (KIND_SEAL, 0) => Kind::Seal,
            (KIND_EPOCH, 0) => Kind::Epoch,
            _ => return Err(Flaw::Field),
        };
        if raw.zero_a != [0; 3] || raw.zero_b.get() != 0 || raw.zero_c.get() != 0 {
            return Err(Flaw::Field);
        }
        let first_seq = raw.first_seq.get();
        if !(1..=EPOCH_MAX).contains(&raw.epoch.get())
            || raw.durable_upto.get() >= first_seq
            || first_seq.checked_add(u64::from(raw.ops.get())).is_none()
        {
            return Err(Flaw::Field);
        }
        if raw.body_len.get() as usize > BODY_BYTES_CAP {
            return Err(Flaw::BodyLength);
        }
        Ok(Self {
            kind,
            body_len: raw.body_len.get(),
            ops: raw.ops.get(),
            first_seq,
            durable_upto: raw.durable_upto.get(),
            epoch: raw.epoch.get(),
            prev: raw.prev,
        })
    }
}

/// Bytes of a frame with a body of `body_len` bytes.
pub(crate) fn frame_len(body_len: usize) -> u64 {
    (FRAME_HEADER_LEN + body_len.next_multiple_of(8) + DIGEST_LEN) as u64
}

/// Lays a frame out in `out` (cleared first) and returns its digest.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    header: &FrameHeader,
    body: &[u8],
    place: Place<'_>,
) -> Digest {
    assert!(
        body.len() == header.body_len as usize,
        "the caller gives the header of this body"
    );
    assert!(place.offset.is_multiple_of(8), "frames are 8-aligned");
    out.clear();
    let mut raw = RawHeader {
        magic: MAGIC,
        kind: match header.kind {
            Kind::Data => KIND_DATA,
            Kind::Seal => KIND_SEAL,
            Kind::Epoch => KIND_EPOCH,
        },
        zero_a: [0; 3],
        body_len: header.body_len.into(),
        ops: header.ops.into(),
        first_seq: header.first_seq.into(),
        durable_upto: header.durable_upto.into(),
        epoch: header.epoch.into(),
        zero_b: 0.into(),
        prev: header.prev,
        zero_c: 0.into(),
        crc: 0.into(),
    };
    raw.crc = header_crc(raw.as_bytes(), place).into();
    out.extend_from_slice(raw.as_bytes());
    out.extend_from_slice(body);
    out.resize(FRAME_HEADER_LEN + body.len().next_multiple_of(8), 0);
    let digest = frame_digest(out, header, place);
    out.extend_from_slice(&digest);
    digest
}

/// The digest of a frame's header, body and padding in its place.
pub(crate) fn frame_digest(bytes: &[u8], header: &FrameHeader, place: Place<'_>) -> Digest {
    let mut salt = [0; 36];
    salt[..16].copy_from_slice(place.store_id);
    salt[16..20].copy_from_slice(&header.epoch.to_le_bytes());
    salt[20..28].copy_from_slice(&header.first_seq.to_le_bytes());
    salt[28..].copy_from_slice(&place.offset.to_le_bytes());
    xxh3_128_with_seed(bytes, xxh3_64(&salt)).to_le_bytes()
}

/// Salted with store and offset: a header inside someone's body, or of another file's
/// other offset, does not pass when recovery looks for headers behind a bad frame.
fn header_crc(bytes: &[u8], place: Place<'_>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_COVERS]);
    hasher.update(place.store_id);
    hasher.update(&place.offset.to_le_bytes());
    hasher.finalize()
}
