//! How does a new generation become real? Data before pointer, pointer before delete.
//!
//! ```text
//! 1  sync segments/             every file the manifest names is there under its name
//! 2  write, sync  *.a.tmp  *.b.tmp
//! 3  rename       *.a      *.b
//! 4  sync manifest/             both copies are there under their names
//! 5  write, sync  CURRENT.tmp
//! 6  rename       CURRENT       from here a reader, or a reopen, may see the new generation
//! 7  sync STORE/                from here every reopen sees it
//! ```
//!
//! What a power cut leaves, by the last step that was reached:
//!
//! * 1 to 5: `CURRENT` is the old one, its copies are untouched (they go only after the next
//!   publish), so the old generation opens. New copies and temporaries are orphans: the next
//!   publish of that generation replaces them, or the sweep takes them. An orphan copy cannot
//!   pass for the published one of the same generation: `CURRENT` carries the digest.
//! * 6: the rename is there or not; old or new `CURRENT`, each whole since step 5 synced it,
//!   each with two whole copies since step 4.
//! * 7: the new generation opens.
//!
//! A failed sync or rename at any step ends in `OutcomeUnknown`: the kernel may have dropped
//! dirty pages and report success next time, so nothing is tried again and nothing unlinked.
//! Any other failure comes before step 6 and is definite: what was written is removed.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::Vfs;
use chronolith_vfs::planted::{self, Bug};

use super::error::{ManifestError, PublishError};
use super::format::{Encoded, encode};
use super::io::{WriteFault, write_aside};
use super::load::absence;
use super::model::Manifest;
use super::names::{
    CURRENT, CURRENT_TEMP, CopyName, MANIFEST_DIR, ManifestName, SEGMENTS_DIR, WAL_DIR,
};
use super::pointer::{self, Pointer};

/// Publishes `manifest` as the generation after the one that `CURRENT` names.
///
/// The segments and side files it names were written, synced and renamed by the caller; their
/// directory is synced here, so that no caller can forget it. At most one publish at a time.
///
/// # Errors
/// `OutcomeUnknown`: either generation may count, reopen the store. Everything else: the
/// generation before still counts.
pub fn publish(vfs: &dyn Vfs, store: &Path, manifest: &Manifest) -> Result<(), PublishError> {
    let encoded = encode(manifest)?;
    let current =
        pointer::read(vfs, store).map_err(|error| PublishError::Current(Box::new(error)))?;
    let current = current
        .filter(|current| current.store_id == manifest.store_id)
        .map(|current| current.generation);
    if current.unwrap_or(0).checked_add(1) != Some(manifest.generation) {
        return Err(PublishError::OutOfOrder {
            current,
            generation: manifest.generation,
        });
    }
    write_generation(vfs, store, manifest, &encoded)
}

/// Makes a store: its directories, durable in their parents, and its first generation.
///
/// `store` may be missing, empty (a `LOCK` counts as nothing), or left by a creation that was
/// cut short. The caller begins the log only after this returned: a log beside a missing
/// `CURRENT` is what tells a damaged store from an unfinished creation.
///
/// # Errors
/// `NotEmpty` where there is a store or something else; else as [`publish`].
pub fn create(vfs: &dyn Vfs, store: &Path, manifest: &Manifest) -> Result<(), PublishError> {
    let encoded = encode(manifest)?;
    if manifest.generation != 1 {
        return Err(PublishError::OutOfOrder {
            current: None,
            generation: manifest.generation,
        });
    }
    check_vacant(vfs, store)?;
    make_dir(vfs, store)?;
    let parent = store.parent().map(|parent| {
        if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        }
    });
    if let Some(parent) = parent.filter(|_| !planted::is_on(Bug::ParentDirNotSynced)) {
        step(
            parent,
            vfs.sync_dir(parent).map_err(WriteFault::unknown("sync")),
        )?;
    }
    for name in [MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR] {
        make_dir(vfs, &store.join(name))?;
    }
    // Before CURRENT may be seen, what it stands on must be: step 7 would do it too late.
    step(
        store,
        vfs.sync_dir(store).map_err(WriteFault::unknown("sync")),
    )?;
    write_generation(vfs, store, manifest, &encoded)
}

fn check_vacant(vfs: &dyn Vfs, store: &Path) -> Result<(), PublishError> {
    let refuse = |reason| {
        Err(PublishError::NotEmpty {
            path: store.to_owned(),
            reason,
        })
    };
    match pointer::read(vfs, store) {
        Ok(None) => {}
        Ok(Some(_)) | Err(ManifestError::NewerFormat { .. } | ManifestError::CurrentDamaged(_)) => {
            return refuse("there is a store already");
        }
        Err(error) => return Err(PublishError::Current(Box::new(error))),
    }
    match absence(vfs, store) {
        ManifestError::Missing { .. } | ManifestError::EmptyDirectory { .. } => Ok(()),
        ManifestError::CreationUnfinished { .. } => Ok(()),
        ManifestError::CurrentMissing { .. } => {
            refuse("there is a store already, and it needs repair")
        }
        ManifestError::NotAStore { .. } => refuse("the directory holds other files"),
        error => Err(PublishError::Current(Box::new(error))),
    }
}

fn make_dir(vfs: &dyn Vfs, path: &Path) -> Result<(), PublishError> {
    match vfs.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => step(
            path,
            other.map_err(WriteFault::definite("create directory")),
        ),
    }
}

fn write_generation(
    vfs: &dyn Vfs,
    store: &Path,
    manifest: &Manifest,
    encoded: &Encoded,
) -> Result<(), PublishError> {
    let mut made = Vec::new();
    let result = run_steps(vfs, store, manifest, encoded, &mut made);
    if result
        .as_ref()
        .is_err_and(|error| !error.is_outcome_unknown())
    {
        for path in made {
            // Best effort: what stays is an orphan for the sweep.
            let _ = vfs.remove_file(&path);
        }
    }
    result
}

/// Steps 1 to 7. `made` collects what a definite failure leaves behind.
fn run_steps(
    vfs: &dyn Vfs,
    store: &Path,
    manifest: &Manifest,
    encoded: &Encoded,
    made: &mut Vec<PathBuf>,
) -> Result<(), PublishError> {
    let sync_dir = |path: &Path| {
        step(
            path,
            vfs.sync_dir(path).map_err(WriteFault::unknown("sync")),
        )
    };
    if !planted::is_on(Bug::SegmentsDirNotSynced) {
        sync_dir(&store.join(SEGMENTS_DIR))?;
    }
    let names = CopyName::ALL.map(|copy| ManifestName::new(manifest.generation, copy));
    for name in names {
        let temp = name.with_temp(true).path(store);
        made.push(temp.clone());
        step(&temp, write_aside(vfs, &temp, &encoded.bytes))?;
        step(&temp, vfs.seal(&temp).map_err(WriteFault::definite("seal")))?;
    }
    for name in names {
        let path = name.path(store);
        made.push(path.clone());
        step(
            &path,
            vfs.rename(&name.with_temp(true).path(store), &path)
                .map_err(WriteFault::unknown("rename")),
        )?;
    }
    sync_dir(&store.join(MANIFEST_DIR))?;

    let pointer = Pointer {
        store_id: manifest.store_id,
        generation: manifest.generation,
        digest: encoded.digest,
    };
    let (temp, path) = (store.join(CURRENT_TEMP), store.join(CURRENT));
    made.push(temp.clone());
    step(&temp, write_aside(vfs, &temp, &pointer.encode()))?;
    step(
        &path,
        vfs.rename(&temp, &path)
            .map_err(WriteFault::unknown("rename")),
    )?;
    if planted::is_on(Bug::StoreDirNotSynced) {
        return Ok(());
    }
    sync_dir(store)
}

fn step(path: &Path, result: Result<(), WriteFault>) -> Result<(), PublishError> {
    result.map_err(
        |WriteFault {
             step,
             unknown,
             source,
         }| {
            let path = path.to_owned();
            if unknown {
                PublishError::OutcomeUnknown { step, path, source }
            } else {
                PublishError::NotPublished { step, path, source }
            }
        },
    )
}
