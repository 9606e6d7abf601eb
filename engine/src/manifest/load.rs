//! Which generation does this store stand on? What `CURRENT` names, or a named error.
//!
//! One damaged or missing copy of that generation opens from the other and is reported; the
//! next publish writes two whole ones. There is no way from here to any other generation: an
//! older one may lack acknowledged deletes, and falling back to it would be a silent lie.

use std::path::Path;

use chronolith_vfs::Vfs;
use chronolith_vfs::planted::{self, Bug};

use super::error::{Finding, ManifestError};
use super::format::{At, Expected, FORMAT_VERSION, Fault, MANIFEST_BYTES_MAX, decode};
use super::io::{ReadFault, read_whole};
use super::model::Manifest;
use super::names::{
    BACKUP, CATALOG_DIR, CURRENT, CURRENT_TEMP, CopyName, DataName, LOCK, MANIFEST_DIR,
    ManifestName, RESERVE, SEGMENTS_DIR, WAL_DIR,
};
use super::pointer::{self, Pointer};

/// A generation that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The manifest.
    pub manifest: Manifest,
    /// What `CURRENT` said.
    pub pointer: Pointer,
    /// What is wrong with one of its copies; the other one was used.
    pub damaged_copy: Option<Finding>,
}

/// Loads the generation that counts, for the writer (who holds the lock), and proves it.
///
/// # Errors
/// See [`ManifestError`]; a failed sync is an `Io` error, and the store stays closed.
pub fn load(vfs: &dyn Vfs, store: &Path) -> Result<Loaded, ManifestError> {
    let loaded = load_read_only(vfs, store)?;
    prove(vfs, store)?;
    Ok(loaded)
}

/// Makes the generation that [`load_read_only`] gave durable. The caller holds the writer's lock,
/// and has published nothing since.
///
/// A process that died between renaming `CURRENT` and syncing its directory leaves a pointer
/// that is visible but not durable. It is made durable here, before the caller builds on it:
/// otherwise a sweep could remove files that a power cut brings back into use.
///
/// # Errors
/// `Io`: a sync failed, and the store must be opened again.
pub fn prove(vfs: &dyn Vfs, store: &Path) -> Result<(), ManifestError> {
    if planted::is_on(Bug::PointerNotProven) {
        return Ok(());
    }
    for path in [
        store.join(SEGMENTS_DIR),
        store.join(MANIFEST_DIR),
        store.to_owned(),
    ] {
        vfs.sync_dir(&path).map_err(|source| ManifestError::Io {
            step: "sync",
            path,
            source,
        })?;
    }
    Ok(())
}

/// Loads the generation that counts without a write or sync.
///
/// # Errors
/// See [`ManifestError`]. A reader beside a running writer retries `GenerationMissing` from
/// `CURRENT`, since two publishes may have passed between its two reads.
pub fn load_read_only(vfs: &dyn Vfs, store: &Path) -> Result<Loaded, ManifestError> {
    let pointer = read_current(vfs, store)?;
    let loaded = read_generation(vfs, store, &pointer);
    if loaded.is_err() && planted::is_on(Bug::FallsBack) {
        let (manifest, _) = read_copy(vfs, store, pointer.generation - 1, CopyName::A)?;
        return Ok(Loaded {
            manifest,
            pointer,
            damaged_copy: None,
        });
    }
    loaded
}

/// Reads `CURRENT` alone. A reader in another process calls it again after opening what the
/// manifest names, and starts over where the answer changed.
///
/// # Errors
/// See [`ManifestError`].
pub fn read_current(vfs: &dyn Vfs, store: &Path) -> Result<Pointer, ManifestError> {
    pointer::read(vfs, store)?.ok_or_else(|| absence(vfs, store))
}

/// Reads the generation that `pointer` names, from either copy.
///
/// # Errors
/// See [`ManifestError`].
pub fn read_generation(
    vfs: &dyn Vfs,
    store: &Path,
    pointer: &Pointer,
) -> Result<Loaded, ManifestError> {
    let expected = Expected {
        generation: pointer.generation,
        store_id: Some(pointer.store_id),
        digest: Some(pointer.digest),
    };
    // Both are read though one would do: a damaged copy must be seen while the other is whole.
    let [a, b] = CopyName::ALL.map(|copy| read_one(vfs, store, copy, expected));
    let (manifest, damaged_copy) = match (a, b) {
        (Ok((manifest, _)), Ok(_)) => (manifest, None),
        (Ok((manifest, _)), Err(fault)) => {
            (manifest, Some(fault.into_finding(pointer, CopyName::B)))
        }
        (Err(fault), Ok((manifest, _))) => {
            (manifest, Some(fault.into_finding(pointer, CopyName::A)))
        }
        (Err(a), Err(b)) => return Err(both_failed(store, pointer, a, b)),
    };
    Ok(Loaded {
        manifest,
        pointer: *pointer,
        damaged_copy,
    })
}

/// Reads one copy by its name alone and believes its own identity. For `inspect`, `verify`
/// and `repair`, which look at generations that `CURRENT` does not name.
///
/// # Errors
/// See [`ManifestError`].
pub fn read_copy(
    vfs: &dyn Vfs,
    store: &Path,
    generation: u64,
    copy: CopyName,
) -> Result<(Manifest, u128), ManifestError> {
    let name = ManifestName::new(generation, copy);
    let expected = Expected {
        generation,
        store_id: None,
        digest: None,
    };
    read_one(vfs, store, copy, expected).map_err(|fault| match fault {
        CopyFault::Missing => ManifestError::GenerationMissing { generation },
        CopyFault::Damaged(finding) => ManifestError::CopyDamaged(finding),
        CopyFault::Newer { found } => newer(name, found),
        CopyFault::Io(source) => ManifestError::Io {
            step: "read",
            path: name.path(store),
            source,
        },
    })
}

/// Why one copy is of no use.
enum CopyFault {
    Missing,
    Damaged(Finding),
    Newer { found: u32 },
    Io(std::io::Error),
}

impl CopyFault {
    fn into_finding(self, pointer: &Pointer, copy: CopyName) -> Finding {
        let file = ManifestName::new(pointer.generation, copy).shown();
        let at = At { file: &file };
        match self {
            Self::Damaged(finding) => finding,
            Self::Missing => at.finding("file", 0, "is missing"),
            Self::Newer { found } => at.finding(
                "header",
                8,
                format!("format version {found}, CURRENT has {FORMAT_VERSION}"),
            ),
            Self::Io(error) => at.finding("file", 0, format!("cannot be read: {error}")),
        }
    }
}

fn read_one(
    vfs: &dyn Vfs,
    store: &Path,
    copy: CopyName,
    expected: Expected,
) -> Result<(Manifest, u128), CopyFault> {
    let name = ManifestName::new(expected.generation, copy);
    let file = name.shown();
    let at = At { file: &file };
    let bytes =
        read_whole(vfs, &name.path(store), MANIFEST_BYTES_MAX).map_err(|fault| match fault {
            ReadFault::Missing => CopyFault::Missing,
            ReadFault::TooLong { bytes } => CopyFault::Damaged(at.finding(
                "file",
                0,
                format!("{bytes} bytes, at most {MANIFEST_BYTES_MAX}"),
            )),
            ReadFault::Io(error) => CopyFault::Io(error),
        })?;
    decode(at, &bytes, expected).map_err(|fault| match fault {
        Fault::Damaged(finding) => CopyFault::Damaged(finding),
        Fault::Newer { found } => CopyFault::Newer { found },
    })
}

fn both_failed(store: &Path, pointer: &Pointer, a: CopyFault, b: CopyFault) -> ManifestError {
    let generation = pointer.generation;
    let path = |copy| ManifestName::new(generation, copy).path(store);
    match (a, b) {
        (CopyFault::Missing, CopyFault::Missing) => ManifestError::GenerationMissing { generation },
        (CopyFault::Newer { found }, CopyFault::Newer { .. }) => {
            newer(ManifestName::new(generation, CopyName::A), found)
        }
        // Where the system failed, the bytes may be whole: no case for repair yet.
        (CopyFault::Io(source), _) => ManifestError::Io {
            step: "read",
            path: path(CopyName::A),
            source,
        },
        (_, CopyFault::Io(source)) => ManifestError::Io {
            step: "read",
            path: path(CopyName::B),
            source,
        },
        (a, b) => ManifestError::BothCopiesDamaged {
            generation,
            a: Box::new(a.into_finding(pointer, CopyName::A)),
            b: Box::new(b.into_finding(pointer, CopyName::B)),
        },
    }
}

fn newer(name: ManifestName, found: u32) -> ManifestError {
    ManifestError::NewerFormat {
        file: name.shown(),
        found,
        supported: FORMAT_VERSION,
    }
}

/// Says what a directory without `CURRENT` is.
///
/// Only a directory that holds no more than what [`super::create`] makes before its pointer
/// is an unfinished creation. A later manifest, a segment or a log says that data was there.
pub(super) fn absence(vfs: &dyn Vfs, store: &Path) -> ManifestError {
    survey(vfs, store).unwrap_or_else(|error| error)
}

fn survey(vfs: &dyn Vfs, store: &Path) -> Result<ManifestError, ManifestError> {
    let path = store.to_owned();
    let Some(entries) = list(vfs, store)? else {
        return Ok(ManifestError::Missing { path });
    };
    let layout = [MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR, CATALOG_DIR];
    let foreign = entries.iter().any(|name| {
        ![LOCK, CURRENT, CURRENT_TEMP, RESERVE].contains(&name.as_str())
            && !layout.contains(&name.as_str())
    });
    let has = |dir: &str| entries.iter().any(|name| name == dir);
    let inside = |dir: &str| -> Result<Vec<String>, ManifestError> {
        if has(dir) {
            Ok(list(vfs, &store.join(dir))?.unwrap_or_default())
        } else {
            Ok(Vec::new())
        }
    };
    let later = inside(MANIFEST_DIR)?
        .iter()
        .filter_map(|name| ManifestName::parse(name))
        .any(|name| name.generation > 1);
    let data = inside(SEGMENTS_DIR)?
        .iter()
        .filter_map(|name| DataName::parse(name))
        .any(|name| !name.temp);
    // A foreign directory may well have a `wal` of its own.
    let log = !inside(WAL_DIR)?.is_empty() && (has(MANIFEST_DIR) || !foreign);
    Ok(if (later || data || log) && has(BACKUP) {
        ManifestError::IsBackup { path }
    } else if later || data || log {
        ManifestError::CurrentMissing { path }
    } else if foreign {
        ManifestError::NotAStore { path }
    } else if layout.into_iter().any(has) {
        ManifestError::CreationUnfinished { path }
    } else {
        ManifestError::EmptyDirectory { path }
    })
}

/// Names in a directory; `None` where it is missing.
fn list(vfs: &dyn Vfs, path: &Path) -> Result<Option<Vec<String>>, ManifestError> {
    match vfs.list(path) {
        Ok(entries) => Ok(Some(entries.into_iter().map(|entry| entry.name).collect())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ManifestError::Io {
            step: "list",
            path: path.to_owned(),
            source,
        }),
    }
}
