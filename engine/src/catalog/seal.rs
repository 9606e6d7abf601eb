//! Are the catalog's files the ones of the last clean close, byte for byte?
//!
//! ```text
//! SEAL   magic 8 | store id 16 | length u32 | postcard of Sealed | xxh3-128 of all before
//! ```
//!
//! The seal lists every file below the database's directory with its length and digest. A
//! file more or less, another length or digest: the seal proves nothing and the catalog is
//! rebuilt. What a crash left behind has no seal.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::{Env, atomic};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Fault;
use super::db::{DB_DIR, Known};
use crate::manifest::StoreId;

const SEAL_NAME: &str = "SEAL";
const SEAL_TEMP: &str = "SEAL.tmp";
/// Name that damaged files are kept under until the next damage.
const ASIDE_DIR: &str = "db.damaged";
/// The last byte is the format version.
const MAGIC: [u8; 8] = *b"chrocat\0";
const HEADER_BYTES: usize = 8 + 16 + 4;
const DIGEST_BYTES: usize = 16;
/// A seal lists at most this many bytes of names and digests.
const SEAL_BYTES_MAX: u64 = 16 << 20;
/// Deepest directory inside the database's that is looked into.
const DEPTH_MAX: usize = 4;
/// Bytes read at once for a digest.
const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sealed {
    known: Known,
    files: Vec<SealedFile>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SealedFile {
    /// Path below the database's directory, components joined by `/`.
    path: String,
    bytes: u64,
    digest: u128,
}

/// Writes the seal over the files as they are.
pub(super) fn write(env: &Env, dir: &Path, store_id: &StoreId, known: Known) -> Result<(), Fault> {
    let files = list_files(env, &dir.join(DB_DIR)).map_err(fault)?;
    let body = postcard::to_stdvec(&Sealed { known, files }).map_err(|error| error.to_string())?;
    let length = u32::try_from(body.len()).map_err(|error| error.to_string())?;
    let mut bytes = [&MAGIC[..], store_id, &length.to_le_bytes(), &body].concat();
    bytes.extend(xxh3_128(&bytes).to_le_bytes());
    atomic::replace(&*env.vfs, dir, SEAL_NAME, SEAL_TEMP, &bytes).map_err(fault)
}

/// What the seal proves, or `None` where it proves nothing.
pub(super) fn read(env: &Env, dir: &Path, store_id: &StoreId) -> Option<Known> {
    let bytes = read_seal(env, dir).ok()?;
    let body = verified_body(&bytes, store_id)?;
    let sealed: Sealed = postcard::from_bytes(body).ok()?;
    let files = list_files(env, &dir.join(DB_DIR)).ok()?;
    (files == sealed.files).then_some(sealed.known)
}

fn read_seal(env: &Env, dir: &Path) -> io::Result<Vec<u8>> {
    let file = env.vfs.open_read(&dir.join(SEAL_NAME))?;
    let len = file.len()?;
    if len > SEAL_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::InvalidData)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn verified_body<'a>(bytes: &'a [u8], store_id: &StoreId) -> Option<&'a [u8]> {
    let (sealed, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    if digest != xxh3_128(sealed).to_le_bytes() {
        return None;
    }
    let (header, body) = sealed.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[24..].try_into().ok()?);
    let whole = header[..8] == MAGIC && header[8..24] == *store_id && body.len() == length as usize;
    whole.then_some(body)
}

/// Takes the seal off before the first write. One that a crash brings back no longer fits.
pub(super) fn remove(env: &Env, dir: &Path) -> Result<(), Fault> {
    match env.vfs.remove_file(&dir.join(SEAL_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault(error)),
        _ => Ok(()),
    }
}

/// Makes an empty catalog directory. Files under a seal that does not fit are damaged and are
/// kept aside; files without a seal are what a crash left, and go.
pub(super) fn clear(env: &Env, dir: &Path) -> Result<(), Fault> {
    let vfs = &*env.vfs;
    match vfs.create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fault(error)),
        _ => {}
    }
    let (db, aside) = (dir.join(DB_DIR), dir.join(ASIDE_DIR));
    if vfs.stat(&db).is_err() {
        return remove(env, dir);
    }
    if vfs.stat(&dir.join(SEAL_NAME)).is_ok() {
        if vfs.stat(&aside).is_ok() {
            vfs.remove_dir_all(&aside).map_err(fault)?;
        }
        vfs.rename(&db, &aside).map_err(fault)?;
    } else {
        vfs.remove_dir_all(&db).map_err(fault)?;
    }
    remove(env, dir)
}

/// Bytes of all files below `dir`; what cannot be looked at counts as 0.
pub(super) fn bytes(env: &Env, dir: &Path) -> u64 {
    let Ok(entries) = env.vfs.list(dir) else {
        return 0;
    };
    let size = |entry: &chronolith_vfs::DirEntry| {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            bytes(env, &path)
        } else {
            env.vfs.stat(&path).map_or(0, |stat| stat.len)
        }
    };
    entries.iter().map(size).sum()
}

/// Every file below `dir` with its length and digest, ascending by path.
fn list_files(env: &Env, dir: &Path) -> io::Result<Vec<SealedFile>> {
    let mut files = Vec::new();
    walk(env, dir, String::new(), 0, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(
    env: &Env,
    dir: &Path,
    prefix: String,
    depth: usize,
    files: &mut Vec<SealedFile>,
) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for entry in env.vfs.list(dir)? {
        let (path, shown): (PathBuf, String) =
            (dir.join(&entry.name), format!("{prefix}{}", entry.name));
        if entry.is_dir {
            walk(env, &path, format!("{shown}/"), depth + 1, files)?;
        } else {
            let (bytes, digest) = digest(env, &path)?;
            files.push(SealedFile {
                path: shown,
                bytes,
                digest,
            });
        }
    }
    Ok(())
}

fn digest(env: &Env, path: &Path) -> io::Result<(u64, u128)> {
    let file = env.vfs.open_read(path)?;
    let (mut hasher, mut buffer, mut offset) = (Xxh3::new(), vec![0; CHUNK_BYTES], 0u64);
    loop {
        match file.read_at(&mut buffer, offset) {
            Ok(0) => return Ok((offset, hasher.digest128())),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn fault(error: io::Error) -> Fault {
    error.to_string()
}
