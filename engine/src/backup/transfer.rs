//! How do the bytes of one file get elsewhere, and how is it known that they are the same?

use std::path::Path;

use chronolith_vfs::{Vfs, VfsFile};
use xxhash_rust::xxh3::Xxh3Default;

use super::error::BackupError;
use crate::error::Error;

/// Bytes read and written at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackupStage {
    /// Files are linked or copied, and read back.
    Copy,
    /// The result is verified as a store is.
    Check,
}

/// How far a backup or restore has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// What is being done.
    pub stage: BackupStage,
    /// Bytes of files that this stage is done with.
    pub bytes_done: u64,
    /// Bytes of all files of this stage.
    pub bytes_total: u64,
}

/// Tells a caller how far it is.
pub(super) struct Ticker<'a> {
    now: BackupProgress,
    tell: &'a mut dyn FnMut(&BackupProgress),
}

impl<'a> Ticker<'a> {
    pub(super) fn new(tell: &'a mut dyn FnMut(&BackupProgress)) -> Self {
        let now = BackupProgress {
            stage: BackupStage::Copy,
            bytes_done: 0,
            bytes_total: 0,
        };
        Self { now, tell }
    }

    pub(super) fn begin(&mut self, stage: BackupStage, bytes_total: u64) {
        self.now = BackupProgress {
            stage,
            bytes_done: 0,
            bytes_total,
        };
        (self.tell)(&self.now);
    }

    pub(super) fn at(&mut self, bytes_done: u64, bytes_total: u64) {
        self.now.bytes_done = bytes_done;
        self.now.bytes_total = bytes_total;
        (self.tell)(&self.now);
    }

    pub(super) fn done(&mut self, bytes: u64) {
        self.now.bytes_done = self.now.bytes_done.saturating_add(bytes);
        (self.tell)(&self.now);
    }
}

/// Gets each piece of a file with its offset.
type Taker<'a> = dyn FnMut(&[u8], u64) -> Result<(), Error> + 'a;

/// Reads the first `bytes` of a file piece by piece, gives each to `take`, and returns their
/// xxh3-128. They begin with `head`, whatever the file begins with.
fn pump(
    file: &dyn VfsFile,
    path: &Path,
    bytes: u64,
    head: &[u8],
    take: &mut Taker<'_>,
) -> Result<u128, Error> {
    assert!(head.len() <= BUFFER_BYTES, "a head lies in the first piece");
    let mut hasher = Xxh3Default::new();
    let buffer_bytes = usize::try_from(bytes).map_or(BUFFER_BYTES, |n| n.min(BUFFER_BYTES));
    let mut buffer = vec![0; buffer_bytes];
    let mut at = 0;
    while at < bytes {
        let left = usize::try_from(bytes - at).unwrap_or(usize::MAX);
        let piece = &mut buffer[..left.min(BUFFER_BYTES)];
        file.read_exact_at(piece, at)
            .map_err(|error| Error::io("read", path, error))?;
        if at == 0 {
            let n = head.len().min(piece.len());
            piece[..n].copy_from_slice(&head[..n]);
        }
        hasher.update(piece);
        take(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(hasher.digest128())
}

/// Writes the first `bytes` of `file` into the new file `target`, durable but for its name,
/// and returns their digest. `path` is what errors of reading name.
pub(super) fn copy(
    vfs: &dyn Vfs,
    source: (&dyn VfsFile, &Path),
    bytes: u64,
    target: &Path,
    seal: bool,
) -> Result<u128, Error> {
    copy_under_head(vfs, source, (bytes, &[]), target, seal)
}

/// As [`copy`]; the copy begins with `head`, and is as long as the file's `bytes`.
pub(super) fn copy_under_head(
    vfs: &dyn Vfs,
    (file, path): (&dyn VfsFile, &Path),
    (bytes, head): (u64, &[u8]),
    target: &Path,
    seal: bool,
) -> Result<u128, Error> {
    let io = |operation| move |error| Error::io(operation, target, error);
    let copied = vfs.create_new(target).map_err(io("create"))?;
    let digest = pump(file, path, bytes, head, &mut |piece, at| {
        copied.write_all_at(piece, at).map_err(io("write"))
    })?;
    finish(vfs, &*copied, target, seal)?;
    Ok(digest)
}

/// Writes `content` into the new file `target`, durable but for its name; returns its digest.
pub(super) fn write(
    vfs: &dyn Vfs,
    content: &[u8],
    target: &Path,
    seal: bool,
) -> Result<u128, Error> {
    let io = |operation| move |error| Error::io(operation, target, error);
    let file = vfs.create_new(target).map_err(io("create"))?;
    file.write_all_at(content, 0).map_err(io("write"))?;
    finish(vfs, &*file, target, seal)?;
    Ok(xxhash_rust::xxh3::xxh3_128(content))
}

/// The mode goes before the sync, so that it is durable with the content.
fn finish(vfs: &dyn Vfs, file: &dyn VfsFile, target: &Path, seal: bool) -> Result<(), Error> {
    if seal {
        vfs.seal(target)
            .map_err(|error| Error::io("seal", target, error))?;
    }
    file.sync_all()
        .map_err(|error| Error::io("sync", target, error))
}

/// Digest of the file at `path` if it is `bytes` long; damage if it is not. The length is
/// compared before anything is read.
pub(super) fn digest_of(
    vfs: &dyn Vfs,
    path: &Path,
    bytes: u64,
    shown: &str,
) -> Result<u128, Error> {
    let file = vfs
        .open_read(path)
        .map_err(|error| Error::io("open", path, error))?;
    check_length(&*file, path, bytes, shown)?;
    pump(&*file, path, bytes, &[], &mut |_, _| Ok(()))
}

/// Refuses a file of another length.
pub(super) fn check_length(
    file: &dyn VfsFile,
    path: &Path,
    bytes: u64,
    shown: &str,
) -> Result<(), Error> {
    let found = file.len().map_err(|error| Error::io("stat", path, error))?;
    if found == bytes {
        return Ok(());
    }
    let message = format!("{found} bytes, expected {bytes}");
    Err(BackupError::damaged(shown, "file", found.min(bytes), message).into())
}

/// Refuses a digest that is not the expected one.
pub(super) fn check_digest(found: u128, expected: u128, shown: &str) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let message = format!("xxh3 {found:032x}, expected {expected:032x}");
    Err(BackupError::damaged(shown, "file", 0, message).into())
}
