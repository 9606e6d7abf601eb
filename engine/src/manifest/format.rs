//! What bytes are a manifest copy? A framed, digested, versioned value.
//!
//! ```text
//! offset  width  field          who verifies it
//! 0       8      magic          `open_frame`
//! 8       4      version        `open_frame`: a higher one is refused by name; `decode`, against the body
//! 12      4      zero           `open_frame`
//! 16      16     store id       `check_identity`, against CURRENT
//! 32      8      generation     `check_identity`, against CURRENT and the file's name
//! 40      4      body length    `open_frame`, against the file's length, before use
//! 44      4      crc32 of 0..44 `open_frame`, before any field but the magic is believed
//! 48      n      body: postcard of `Body`   `Manifest::validate` after decoding
//! 48+n    16     xxh3-128 of salt, header, body   `open_frame`, and against CURRENT
//! ```
//!
//! The salt holds store id and generation once more, so that no bytes of another store or
//! generation can pass, whatever they say about themselves. All numbers are little-endian;
//! numbers in the body are postcard's varints.

use chronolith_vfs::planted::{self, Bug};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::{Finding, PublishError};
use super::model::{Manifest, SpaceTable, StoreId};

/// The newest version of the manifest: of stores that have, or had, more vector spaces than the
/// one they were made with. All others are of version 0, as they always were; both are read.
pub const FORMAT_VERSION: u32 = 1;
/// Version of a manifest without a table of spaces.
const PLAIN: u32 = 0;
/// Longest manifest copy.
pub const MANIFEST_BYTES_MAX: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"CHRNMANI";
const SALT: &[u8; 16] = b"chronolith/manif";
pub(super) const HEADER_BYTES: usize = 48;
const CRC_AT: usize = 44;
const VERSION_AT: u64 = 8;
const STORE_ID_AT: u64 = 16;
const GENERATION_AT: u64 = 32;
const BODY_BYTES_AT: u64 = 40;
pub(super) const DIGEST_BYTES: usize = 16;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: U32,
    zero: U32,
    store_id: StoreId,
    generation: U64,
    body_bytes: U32,
    crc: U32,
}
const _: () = assert!(size_of::<Header>() == HEADER_BYTES && CRC_AT + 4 == HEADER_BYTES);

/// The body by version. Only additions: a version once released is never edited.
#[derive(Serialize, Deserialize)]
enum Body {
    V0(Manifest),
    V1(Manifest, SpaceTable),
}

/// Borrowed twin of [`Body`], so that encoding copies nothing.
#[derive(Serialize)]
enum BodyRef<'a> {
    V0(&'a Manifest),
    V1(&'a Manifest, &'a SpaceTable),
}

/// Why bytes are not the wanted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Damaged, or another file.
    Damaged(Finding),
    /// A newer format with a whole header.
    Newer { found: u32 },
}

/// Builds findings about one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) file: &'a str,
}

impl At<'_> {
    pub(super) fn finding(
        self,
        section: &'static str,
        offset: u64,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            file: self.file.to_owned(),
            section,
            offset,
            message: message.into(),
        }
    }

    pub(super) fn damaged(
        self,
        section: &'static str,
        offset: u64,
        message: impl Into<String>,
    ) -> Fault {
        Fault::Damaged(self.finding(section, offset, message))
    }
}

/// One encoded copy and its digest.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) digest: u128,
}

/// Encodes a valid manifest.
///
/// # Errors
/// A rule it breaks, or its size.
pub(super) fn encode(manifest: &Manifest) -> Result<Encoded, PublishError> {
    manifest.validate()?;
    let (version, body) = match &manifest.settings.spaces {
        None => (PLAIN, BodyRef::V0(manifest)),
        Some(spaces) => (FORMAT_VERSION, BodyRef::V1(manifest, spaces)),
    };
    let body = postcard::to_stdvec(&body).expect("writing plain values to memory does not fail");
    let bytes_all = body.len() as u64 + (HEADER_BYTES + DIGEST_BYTES) as u64;
    let too_large = || PublishError::TooLarge {
        bytes: bytes_all,
        bytes_max: MANIFEST_BYTES_MAX,
    };
    let body_bytes = u32::try_from(body.len())
        .ok()
        .filter(|_| bytes_all <= MANIFEST_BYTES_MAX);
    let mut header = Header {
        magic: MAGIC,
        version: U32::new(version),
        zero: U32::ZERO,
        store_id: manifest.store_id,
        generation: U64::new(manifest.generation),
        body_bytes: U32::new(body_bytes.ok_or_else(too_large)?),
        crc: U32::ZERO,
    };
    header.crc = U32::new(crc32fast::hash(&header.as_bytes()[..CRC_AT]));
    let mut bytes = Vec::with_capacity(body.len() + HEADER_BYTES + DIGEST_BYTES);
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&body);
    let digest = digest(&manifest.store_id, manifest.generation, &bytes);
    bytes.extend_from_slice(&digest.to_le_bytes());
    Ok(Encoded { bytes, digest })
}

/// What a copy is expected to be; `None` believes what the copy says of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) generation: u64,
    pub(super) store_id: Option<StoreId>,
    pub(super) digest: Option<u128>,
}

/// Decodes and verifies one copy.
pub(super) fn decode(
    at: At<'_>,
    bytes: &[u8],
    expected: Expected,
) -> Result<(Manifest, u128), Fault> {
    let (header, body, found_digest) = open_frame(at, bytes)?;
    check_identity(at, header, expected)?;
    let digest_at = bytes.len() as u64 - DIGEST_BYTES as u64;
    let is_other =
        |wanted: &u128| *wanted != found_digest && !planted::is_on(Bug::PointerDigestUnchecked);
    if let Some(wanted) = expected.digest.filter(is_other) {
        let message =
            format!("{found_digest:032x}, CURRENT says {wanted:032x}: a copy of another publish");
        return Err(at.damaged("digest", digest_at, message));
    }
    let body_at = HEADER_BYTES as u64;
    let (body, rest) = postcard::take_from_bytes::<Body>(body)
        .map_err(|error| at.damaged("body", body_at, format!("cannot be decoded: {error}")))?;
    let (version, manifest) = match body {
        Body::V0(manifest) => (PLAIN, manifest),
        Body::V1(mut manifest, spaces) => {
            manifest.settings.spaces = Some(spaces);
            (FORMAT_VERSION, manifest)
        }
    };
    if version != header.version.get() {
        let message = format!("of version {version}, the header says {}", header.version);
        return Err(at.damaged("body", body_at, message));
    }
    if !rest.is_empty() {
        let rest_at = digest_at - rest.len() as u64;
        return Err(at.damaged("body", rest_at, format!("{} bytes too many", rest.len())));
    }
    if manifest.store_id != header.store_id || manifest.generation != header.generation.get() {
        return Err(at.damaged("body", body_at, "identity differs from the header's"));
    }
    manifest
        .validate()
        .map_err(|invalid| at.damaged("body", body_at, invalid.to_string()))?;
    Ok((manifest, found_digest))
}

/// Header, body and digest of bytes that are whole by their own account.
fn open_frame<'a>(at: At<'_>, bytes: &'a [u8]) -> Result<(&'a Header, &'a [u8], u128), Fault> {
    let short = || {
        at.damaged(
            "header",
            0,
            format!("{} bytes are too few for a manifest", bytes.len()),
        )
    };
    let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| short())?;
    if header.magic != MAGIC {
        return Err(at.damaged("header", 0, "magic is not a manifest's"));
    }
    let crc = crc32fast::hash(&bytes[..CRC_AT]);
    if header.crc.get() != crc {
        let message = format!("crc32 {crc:08x}, stored {:08x}", header.crc.get());
        return Err(at.damaged("header", CRC_AT as u64, message));
    }
    if header.version.get() > FORMAT_VERSION {
        return Err(Fault::Newer {
            found: header.version.get(),
        });
    }
    if header.zero != U32::ZERO {
        return Err(at.damaged("header", VERSION_AT + 4, "reserved bytes are not zero"));
    }
    let body_bytes = header.body_bytes.get() as usize;
    if rest.len().checked_sub(DIGEST_BYTES) != Some(body_bytes) {
        let message = format!("body of {body_bytes} bytes in a file of {}", bytes.len());
        return Err(at.damaged("header", BODY_BYTES_AT, message));
    }
    let (body, stored) = rest.split_at(body_bytes);
    let stored = u128::from_le_bytes(
        stored
            .try_into()
            .expect("16 bytes: the lengths were just compared"),
    );
    let framed = &bytes[..HEADER_BYTES + body_bytes];
    let found = digest(&header.store_id, header.generation.get(), framed);
    if found != stored {
        let digest_at = framed.len() as u64;
        return Err(at.damaged(
            "digest",
            digest_at,
            format!("xxh3 {found:032x}, stored {stored:032x}"),
        ));
    }
    Ok((header, body, found))
}

fn check_identity(at: At<'_>, header: &Header, expected: Expected) -> Result<(), Fault> {
    if expected.store_id.is_some_and(|id| id != header.store_id) {
        return Err(at.damaged("header", STORE_ID_AT, "belongs to another store"));
    }
    if header.generation.get() != expected.generation {
        let message = format!(
            "is generation {}, expected {}",
            header.generation, expected.generation
        );
        return Err(at.damaged("header", GENERATION_AT, message));
    }
    Ok(())
}

fn digest(store_id: &StoreId, generation: u64, framed: &[u8]) -> u128 {
    salted_digest(SALT, store_id, generation, framed)
}

/// xxh3-128 over what the bytes are for, whose they are, which they are, and themselves.
pub(super) fn salted_digest(
    salt: &[u8; 16],
    store_id: &StoreId,
    number: u64,
    framed: &[u8],
) -> u128 {
    let mut hasher = Xxh3Default::new();
    hasher.update(salt);
    hasher.update(store_id);
    hasher.update(&number.to_le_bytes());
    hasher.update(framed);
    hasher.digest128()
}
