//! `CURRENT`, manifest copies, delete sets and the tag graph.

use std::path::Path;

use chronolith::manifest::deletes::read_deletes;
use chronolith::manifest::names::{CURRENT, CopyName, ManifestName};
use chronolith::manifest::tag_graph::read_tag_graph;
use chronolith::manifest::{SideFile, SideFileKind, read_copy, read_current};
use xxhash_rust::xxh3::Xxh3;

use super::Forge;
use super::disk::{env, fixed, number, put};

const DIR: &str = "/store";
const DIGEST: usize = 16;
const COPY_HEADER: usize = 48;
const SIDE_HEADER: usize = 64;
/// Rows of the segment that a delete set of the corpus belongs to.
const ROWS: u32 = 1000;

/// `CURRENT`.
pub(super) const POINTER_FORGE: Forge = Forge {
    patch: |bytes| {
        if bytes.len() >= 64 {
            let crc = crc32fast::hash(&bytes[..60]);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        }
    },
    take_apart: |bytes| Some(vec![bytes.get(..60)?.to_vec()]),
    put_together: |parts| {
        let mut bytes = fixed::<64>(&parts.concat()).to_vec();
        (POINTER_FORGE.patch)(&mut bytes);
        bytes
    },
};
/// A manifest copy.
pub(super) const COPY_FORGE: Forge = Forge {
    patch: |bytes| patch_framed(bytes, COPY_HEADER, b"chronolith/manif"),
    take_apart: |bytes| take_apart(bytes, COPY_HEADER),
    put_together: |parts| {
        let mut bytes = put_together(parts, COPY_HEADER);
        let body = u32::try_from(bytes.len() - COPY_HEADER - DIGEST).expect("small");
        bytes[40..44].copy_from_slice(&body.to_le_bytes());
        (COPY_FORGE.patch)(&mut bytes);
        bytes
    },
};
/// A side file.
pub(super) const SIDE_FORGE: Forge = Forge {
    patch: |bytes| patch_framed(bytes, SIDE_HEADER, b"chronolith/sidef"),
    take_apart: |bytes| take_apart(bytes, SIDE_HEADER),
    put_together: |parts| {
        let mut bytes = put_together(parts, SIDE_HEADER);
        let payload = (bytes.len() - SIDE_HEADER - DIGEST) as u64;
        bytes[48..56].copy_from_slice(&payload.to_le_bytes());
        (SIDE_FORGE.patch)(&mut bytes);
        bytes
    },
};

/// Both headers end in a crc32 over all before it; both digests are salted with the store id
/// and the number behind it. The manifest's copy has its number at 32, like a side file.
fn patch_framed(bytes: &mut [u8], header: usize, salt: &[u8; 16]) {
    let Some(digest_at) = bytes.len().checked_sub(DIGEST) else {
        return;
    };
    if digest_at < header {
        return;
    }
    let crc = crc32fast::hash(&bytes[..header - 4]);
    bytes[header - 4..header].copy_from_slice(&crc.to_le_bytes());
    let mut hasher = Xxh3::new();
    hasher.update(salt);
    hasher.update(&bytes[16..40]);
    hasher.update(&bytes[..digest_at]);
    bytes[digest_at..].copy_from_slice(&hasher.digest128().to_le_bytes());
}

fn take_apart(bytes: &[u8], header: usize) -> Option<Vec<Vec<u8>>> {
    let digest_at = bytes.len().checked_sub(DIGEST)?;
    Some(vec![
        bytes.get(..header - 4)?.to_vec(),
        bytes.get(header..digest_at)?.to_vec(),
    ])
}

fn put_together(parts: &[Vec<u8>], header: usize) -> Vec<u8> {
    let part = |at: usize| parts.get(at).map_or(&[][..], Vec::as_slice);
    let mut bytes = part(0).to_vec();
    bytes.resize(header, 0);
    for part in parts.iter().skip(1) {
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&[0; DIGEST]);
    bytes
}

/// Reads `CURRENT`.
pub(super) fn run_pointer(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    put(&disk, &Path::new(DIR).join(CURRENT), bytes);
    read_current(&*env.vfs, DIR.as_ref()).is_ok()
}

/// Reads a copy, and does with it what a publisher does next.
pub(super) fn run_copy(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let generation = number(bytes, 32, 8).unwrap_or(1);
    let name = ManifestName::new(generation, CopyName::A);
    put(&disk, &name.path(Path::new(DIR)), bytes);
    let Ok((manifest, _)) = read_copy(&*env.vfs, DIR.as_ref(), generation, CopyName::A) else {
        return false;
    };
    let mut next = manifest.successor();
    next.take_file_number();
    next.validate()
        .expect("a successor of a valid manifest is one");
    manifest.retired_by(&next);
    assert!(!format!("{manifest:?}").is_empty());
    true
}

/// What a manifest would say of a side file that is believed.
fn reference(bytes: &[u8]) -> ([u8; 16], SideFile) {
    let digest_at = bytes.len().saturating_sub(DIGEST);
    let side = SideFile {
        file_number: number(bytes, 32, 8).unwrap_or(1),
        bytes: bytes.len() as u64,
        digest: u128::from_le_bytes(fixed(&bytes[digest_at..])),
        entries: number(bytes, 40, 8).unwrap_or(0),
    };
    (fixed(bytes.get(16..32).unwrap_or_default()), side)
}

/// Reads a delete set.
pub(super) fn run_deletes(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let (store_id, side) = reference(bytes);
    let name = SideFileKind::Deletes.name(side.file_number);
    put(&disk, &name.path(Path::new(DIR)), bytes);
    // The payload begins with the segment that it belongs to.
    let segment = number(bytes, SIDE_HEADER, 8).unwrap_or(0);
    read_deletes(&*env.vfs, DIR.as_ref(), &store_id, &side, segment, ROWS).is_ok()
}

/// Reads a tag graph.
pub(super) fn run_tag_graph(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let (store_id, side) = reference(bytes);
    let name = SideFileKind::TagGraph.name(side.file_number);
    put(&disk, &name.path(Path::new(DIR)), bytes);
    read_tag_graph(&*env.vfs, DIR.as_ref(), &store_id, &side).is_ok()
}
