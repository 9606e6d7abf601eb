//! Are the catalog's files the ones of the last clean close, byte for byte?
//!
//! ```text
//! SEAL   magic 7 | version 1 | store id 16 | length u32 | postcard of Sealed | xxh3-128 of all before
//! ```
//!
//! The seal lists every file below the database's directory with its length and digest. A
//! file more or less, another length or digest: the seal proves nothing and the catalog is
//! rebuilt. What a crash left behind has no seal. Files of another version are rebuilt all the
//! same and are no damage: earlier ones are compared, of later ones nothing is known.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::{Env, atomic};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Fault;
use super::db::{DB_DIR, Known};
use crate::manifest::StoreId;

/// Name of the seal.
pub(crate) const SEAL_NAME: &str = "SEAL";
/// Its name while it is written.
pub(crate) const SEAL_TEMP: &str = "SEAL.tmp";
/// Name that damaged files are kept under until the next damage.
pub(crate) const ASIDE_DIR: &str = "db.damaged";
/// The last byte of the magic is the version of what the files hold.
const MAGIC: [u8; 7] = *b"chrocat";
/// 0: locators of fixed width with their seqs, hashes of 128 bits, nothing moved.
const VERSION: u8 = 1;
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

/// What version 0 seals.
#[derive(Deserialize)]
struct SealedV0 {
    _generation: u64,
    watermark: u64,
    _locators: u64,
    _segments: BTreeSet<u64>,
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
    let mut bytes = [
        &MAGIC[..],
        &[VERSION],
        store_id,
        &length.to_le_bytes(),
        &body,
    ]
    .concat();
    bytes.extend(xxh3_128(&bytes).to_le_bytes());
    atomic::replace(&*env.vfs, dir, SEAL_NAME, SEAL_TEMP, &bytes).map_err(fault)
}

/// What the seal proves, or `None` where it proves nothing.
pub(super) fn read(env: &Env, dir: &Path, store_id: &StoreId) -> Option<Known> {
    let bytes = read_seal(env, dir).ok()?;
    let (version, body) = verified_body(&bytes, store_id)?;
    if version != VERSION {
        return None;
    }
    let sealed: Sealed = postcard::from_bytes(body).ok()?;
    let files = list_files(env, &dir.join(DB_DIR)).ok()?;
    (files == sealed.files).then_some(sealed.known)
}

/// A seal and the files that it lists, for a scrub.
#[derive(Debug)]
pub(crate) struct Compared {
    /// Files that were looked at, below the catalog's directory, with their lengths.
    pub(crate) files: Vec<(String, u64)>,
    /// How far the catalog had followed; 0 where the seal cannot be read.
    pub(crate) watermark: u64,
    /// The seal's version where a later release wrote it: nothing is known of the files.
    pub(crate) later: Option<u8>,
    /// Files that are not as the seal says, and how.
    pub(crate) differences: Vec<(String, String)>,
}

/// Compares every file with the seal; `None` where there is no seal, or a writer took it off
/// meanwhile: then nothing is known of the files.
pub(crate) fn compare(env: &Env, dir: &Path, store_id: &StoreId) -> io::Result<Option<Compared>> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let before = match read_seal(env, dir) {
        Ok(bytes) => bytes,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut compared = Compared {
        files: vec![(SEAL_NAME.to_owned(), before.len() as u64)],
        watermark: 0,
        later: None,
        differences: Vec::new(),
    };
    match what_is_sealed(&before, store_id) {
        Ok((watermark, sealed)) => {
            compared.watermark = watermark;
            match list_files(env, &dir.join(DB_DIR)) {
                Ok(files) => compared.note(&files, &sealed),
                Err(error) if is_missing(&error) => {
                    let message = "is missing though the seal lists it".to_owned();
                    compared.differences.push((DB_DIR.to_owned(), message));
                }
                Err(error) => return Err(error),
            }
        }
        Err(Some(later)) => compared.later = Some(later),
        Err(None) => {
            let message = "magic, store, length or digest mismatch".to_owned();
            compared.differences.push((SEAL_NAME.to_owned(), message));
        }
    }
    let is_same = before.is_empty() || read_seal(env, dir).is_ok_and(|after| after == before);
    Ok(is_same.then_some(compared))
}

impl Compared {
    fn note(&mut self, files: &[SealedFile], sealed: &[SealedFile]) {
        let shown = |file: &SealedFile| format!("{DB_DIR}/{}", file.path);
        let named = |list: &[SealedFile], path: &str| {
            let at = list.binary_search_by(|file| file.path.as_str().cmp(path));
            at.ok()
        };
        for file in files {
            self.files.push((shown(file), file.bytes));
            let message = match named(sealed, &file.path).map(|at| &sealed[at]) {
                None => "is not among the files of the seal".to_owned(),
                Some(other) if other.bytes != file.bytes => {
                    format!("has {} bytes, sealed with {}", file.bytes, other.bytes)
                }
                Some(other) if other.digest != file.digest => "digest mismatch".to_owned(),
                Some(_) => continue,
            };
            self.differences.push((shown(file), message));
        }
        for file in sealed {
            if named(files, &file.path).is_none() {
                let message = "is missing though the seal lists it".to_owned();
                self.differences.push((shown(file), message));
            }
        }
    }
}

/// The watermark and the files of a seal up to this version; a whole seal of a later version
/// gives that one, damage none.
fn what_is_sealed(bytes: &[u8], store_id: &StoreId) -> Result<(u64, Vec<SealedFile>), Option<u8>> {
    let sealed = match verified_body(bytes, store_id).ok_or(None)? {
        (0, body) => postcard::from_bytes(body).map(|v0: SealedV0| (v0.watermark, v0.files)),
        (VERSION, body) => {
            let sealed = postcard::from_bytes(body);
            sealed.map(|sealed: Sealed| (sealed.known.watermark, sealed.files))
        }
        (later, _) => return Err(Some(later)),
    };
    sealed.map_err(|_| None)
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

/// The version, whichever it is, and the body of a seal of this store that is whole.
fn verified_body<'a>(bytes: &'a [u8], store_id: &StoreId) -> Option<(u8, &'a [u8])> {
    let (sealed, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    if digest != xxh3_128(sealed).to_le_bytes() {
        return None;
    }
    let (header, body) = sealed.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[24..].try_into().ok()?);
    let is_ours = header[..7] == MAGIC && header[8..24] == *store_id;
    (is_ours && body.len() == length as usize).then_some((header[7], body))
}

/// Takes the seal off before the first write. One that a crash brings back no longer fits.
pub(super) fn remove(env: &Env, dir: &Path) -> Result<(), Fault> {
    match env.vfs.remove_file(&dir.join(SEAL_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault(error)),
        _ => Ok(()),
    }
}

/// Makes an empty catalog directory. Files under a seal that does not fit are damaged and are
/// kept aside; files of another version, or without a seal as a crash leaves them, go.
pub(super) fn clear(env: &Env, dir: &Path, store_id: &StoreId) -> Result<(), Fault> {
    let vfs = &*env.vfs;
    match vfs.create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fault(error)),
        _ => {}
    }
    let (db, aside) = (dir.join(DB_DIR), dir.join(ASIDE_DIR));
    if vfs.stat(&db).is_err() {
        return remove(env, dir);
    }
    let is_other_version = || {
        let bytes = read_seal(env, dir).ok()?;
        Some(verified_body(&bytes, store_id)?.0 != VERSION)
    };
    if vfs.stat(&dir.join(SEAL_NAME)).is_ok() && is_other_version() != Some(true) {
        if vfs.stat(&aside).is_ok() {
            vfs.remove_dir_all(&aside).map_err(fault)?;
        }
        vfs.rename(&db, &aside).map_err(fault)?;
    } else {
        vfs.remove_dir_all(&db).map_err(fault)?;
    }
    remove(env, dir)
}

/// Bytes of all files below `dir`; what cannot be looked at, or lies deeper than fjall goes,
/// counts as 0.
pub(super) fn bytes(env: &Env, dir: &Path) -> u64 {
    bytes_below(env, dir, 0)
}

fn bytes_below(env: &Env, dir: &Path, depth: usize) -> u64 {
    if depth > DEPTH_MAX {
        return 0;
    }
    let Ok(entries) = env.vfs.list(dir) else {
        return 0;
    };
    let size = |entry: &chronolith_vfs::DirEntry| {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            bytes_below(env, &path, depth + 1)
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
