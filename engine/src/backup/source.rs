//! What is a live store made of at one instant? One generation, and the log from its floor on.
//!
//! By the rules for readers: nothing is locked or written, and where a file went because the
//! writer has published since, everything is taken anew. The log is read after the manifest,
//! so it holds at least what the manifest does not, and is held open; data files are held open
//! as far as descriptors go, and the rest is opened when its turn comes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{Env, VfsFile};
use chronolith_wal::{WalError, WholeLog};

use super::index::{Kind, Name};
use crate::error::Error;
use crate::manifest::names::{CURRENT, CopyName, ManifestName, WAL_DIR};
use crate::manifest::{self, Manifest, ManifestError, Pointer};

/// Data files that are held open at a time.
const HELD_MAX: usize = 128;

/// A data file as the manifest names it.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) name: Name,
    pub(super) bytes: u64,
    pub(super) origin: u128,
    /// Held open, so that it stays readable after its removal.
    pub(super) held: Option<Arc<dyn VfsFile>>,
}

/// A store at one instant.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) pointer: Pointer,
    pub(super) manifest: Manifest,
    /// Content of `CURRENT`.
    pub(super) current: Vec<u8>,
    /// Content of either copy of the generation; they are equal.
    pub(super) copy: Vec<u8>,
    pub(super) data: Vec<DataFile>,
    /// `None` before the first open for writing has begun a log.
    pub(super) log: Option<WholeLog>,
}

impl Source {
    /// Takes what `CURRENT` names now.
    pub(super) fn open(env: &Env, store: &Path) -> Result<Self, Error> {
        let vfs = &*env.vfs;
        let pointer = manifest::read_current(vfs, store)?;
        let loaded = manifest::read_generation(vfs, store, &pointer)?;
        let manifest = loaded.manifest;
        let whole = match &loaded.damaged_copy {
            Some(finding) if finding.file.ends_with(".a") => CopyName::B,
            _ => CopyName::A,
        };
        let copy = ManifestName::new(pointer.generation, whole).path(store);
        let copy = read_all(env, &copy, manifest::MANIFEST_BYTES_MAX)?;
        let log = match manifest.generation {
            1 => None,
            _ => Some(WholeLog::read(
                env,
                &store.join(WAL_DIR),
                manifest.store_id,
                manifest.floor_file,
            )?),
        };
        if let Some(log) = &log {
            check_log_end(&store.join(WAL_DIR), log)?;
        }
        let mut data = data_files(&manifest);
        for file in data.iter_mut().take(HELD_MAX) {
            file.held = Some(open(env, &file.name.path(store))?);
        }
        let path = store.join(CURRENT);
        let current = read_all(env, &path, 1 << 10)?;
        if manifest::read_current(vfs, store)? != pointer {
            // `current` may be the next one: as if a file had gone.
            return Err(Error::io("read", path, io::ErrorKind::NotFound.into()));
        }
        Ok(Self {
            pointer,
            manifest,
            current,
            copy,
            data,
            log,
        })
    }

    /// Last seq of what was taken.
    pub(super) fn last_seq(&self) -> u64 {
        self.log
            .as_ref()
            .map_or(self.manifest.flushed_seq, |log| log.last_seq)
    }

    /// Bytes of all its files.
    pub(super) fn bytes(&self) -> u64 {
        let parts = self.log.iter().flat_map(|log| &log.parts);
        let log: u64 = parts.map(|part| part.bytes).sum();
        let data: u64 = self.data.iter().map(|file| file.bytes).sum();
        data + log + (self.current.len() + 2 * self.copy.len()) as u64
    }
}

/// A log that ends before what was acknowledged, or may do so, is not copied: a copy would make
/// the loss look like the end.
fn check_log_end(dir: &Path, log: &WholeLog) -> Result<(), Error> {
    let found = match log.acked_upto {
        Some(acked) if acked > log.last_seq => {
            format!(
                "the log ends with seq {}, acknowledged was {acked}",
                log.last_seq
            )
        }
        _ if log.is_ambiguous => {
            format!(
                "what follows seq {} may have been acknowledged",
                log.last_seq
            )
        }
        _ => return Ok(()),
    };
    Err(Error::Behind {
        file: dir.to_path_buf(),
        found,
    })
}

/// Every data file that a generation names, ascending.
pub(super) fn data_files(manifest: &Manifest) -> Vec<DataFile> {
    let mut files = Vec::with_capacity(2 * manifest.segments.len() + 1);
    let mut push = |kind, number, bytes, origin| {
        files.push(DataFile {
            name: Name::new(kind, number),
            bytes,
            origin,
            held: None,
        });
    };
    for entry in &manifest.segments {
        push(Kind::Segment, entry.file_number, entry.bytes, entry.digest);
        if let Some(side) = &entry.deletes {
            push(Kind::Deletes, side.file_number, side.bytes, side.digest);
        }
    }
    if let Some(side) = &manifest.tag_graph {
        push(Kind::TagGraph, side.file_number, side.bytes, side.digest);
    }
    files.sort_unstable_by_key(|file| file.name);
    files
}

/// True where a file went because a newer generation no longer names it, if there is one.
pub(super) fn is_gone(error: &Error) -> bool {
    match error {
        Error::Log(WalError::Removed { .. } | WalError::SuccessorMissing { .. })
        | Error::Manifest(ManifestError::GenerationMissing { .. }) => true,
        Error::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

pub(super) fn open(env: &Env, path: &Path) -> Result<Arc<dyn VfsFile>, Error> {
    env.vfs
        .open_read(path)
        .map_err(|error| Error::io("open", path, error))
}

/// Content of a small file.
fn read_all(env: &Env, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let file = open(env, path)?;
    let bytes = file.len().map_err(|error| Error::io("stat", path, error))?;
    let len = usize::try_from(bytes).ok().filter(|_| bytes <= bytes_max);
    let too_long = || Error::io("read", path, io::ErrorKind::FileTooLarge.into());
    let mut content = vec![0; len.ok_or_else(too_long)?];
    file.read_exact_at(&mut content, 0)
        .map_err(|error| Error::io("read", path, error))?;
    Ok(content)
}

/// The names that the two copies of a generation get.
pub(super) fn copy_names(generation: u64) -> [Name; 2] {
    [Kind::ManifestA, Kind::ManifestB].map(|kind| Name::new(kind, generation))
}
