//! Where is the new store built, and how does it get its name?
//!
//! ```text
//! NEW.chronolith-repair/     beside the destination, on its file system
//!   LOCK                     held by the repair that builds here
//!   REPAIR                   8 bytes CHRNREPR, 16 bytes id of the damaged store: written first,
//!                            durable before anything else is there
//!   store/                   renamed to NEW when it is whole and durable
//! ```
//!
//! A crash leaves the destination absent or complete, and at worst this directory, which the
//! next repair to the same place takes over. Only what has the marker is ever removed.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::{FileKind, Vfs, VfsLock};

use super::RepairOptions;
use super::error::RepairError;
use crate::error::Error;
use crate::manifest::StoreId;
use crate::manifest::names::{MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR};
use crate::paths::{is_inside, parent_of};
use crate::settings::LOCK_NAME;

/// What the directory is called while it is built: the destination's name and this.
const BUILDING: &str = ".chronolith-repair";
/// The store inside it.
const STORE: &str = "store";
/// What says that the directory is a repair's.
const MARKER: &str = "REPAIR";
const MAGIC: [u8; 8] = *b"CHRNREPR";
const MARKER_BYTES: usize = MAGIC.len() + size_of::<StoreId>();

/// Where the new store is built and where it goes.
#[derive(Debug)]
pub(super) struct Site {
    dest: PathBuf,
    parent: PathBuf,
    /// The directory that is ours while the lock is held.
    yard: PathBuf,
    store: PathBuf,
    _lock: Box<dyn VfsLock>,
}

/// What stands under the temporary name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Yard {
    /// Nothing that would be missed: empty, or a repair that had not begun.
    Vacant,
    /// A repair's, with its marker.
    Marked,
    /// Anything else.
    Foreign,
}

impl Site {
    /// Checks that nothing is in the way, takes the place for this repair alone, and takes away
    /// what a crashed one left.
    pub(super) fn prepare(
        source: &Path,
        dest: &Path,
        store_id: &StoreId,
        options: &RepairOptions,
    ) -> Result<Self, Error> {
        let vfs = &*options.env.vfs;
        if is_inside(vfs, dest, source) || is_inside(vfs, source, dest) {
            let path = dest.to_path_buf();
            return Err(RepairError::DestinationInside { path }.into());
        }
        let occupied = || RepairError::DestinationOccupied {
            path: dest.to_path_buf(),
        };
        match vfs.list(dest) {
            Ok(entries) if entries.is_empty() => {}
            Ok(_) => return Err(occupied().into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(occupied().into());
            }
            Err(error) => return Err(Error::io("list", dest, error)),
        }
        let mut name = dest.file_name().ok_or_else(occupied)?.to_os_string();
        name.push(BUILDING);
        let parent = parent_of(dest).to_path_buf();
        let yard = parent.join(name);
        let store = yard.join(STORE);
        let lock = claim(vfs, &yard, store_id)?;
        if vfs.stat(&store).is_ok() {
            vfs.remove_dir_all(&store)
                .map_err(|error| Error::io("remove", &store, error))?;
        }
        Ok(Self {
            dest: dest.to_path_buf(),
            parent,
            yard,
            store,
            _lock: lock,
        })
    }

    /// Where to build.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// Removes a store that did not get its name.
    pub(super) fn abandon(&self, options: &RepairOptions) {
        let vfs = &*options.env.vfs;
        // The marker goes last: without it nobody may remove the rest.
        let is_gone = match vfs.remove_dir_all(&self.store) {
            Err(error) => error.kind() == io::ErrorKind::NotFound,
            Ok(()) => vfs.sync_dir(&self.yard).is_ok(),
        };
        if is_gone {
            let _ = vfs.remove_dir_all(&self.yard);
        }
    }

    /// Gives the finished store its name.
    pub(super) fn publish(&self, options: &RepairOptions) -> Result<(), Error> {
        let vfs = &*options.env.vfs;
        let inner = [WAL_DIR, SEGMENTS_DIR, MANIFEST_DIR].map(|name| self.store.join(name));
        for dir in inner.iter().chain([&self.store]) {
            vfs.sync_dir(dir)
                .map_err(|error| Error::io("sync", dir, error))?;
        }
        vfs.rename(&self.store, &self.dest)
            .map_err(|error| match error.kind() {
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                    let path = self.dest.clone();
                    RepairError::DestinationOccupied { path }.into()
                }
                _ => Error::io("rename", &self.store, error),
            })?;
        for dir in [&self.parent, &self.yard] {
            vfs.sync_dir(dir)
                .map_err(|error| Error::io("sync", dir, error))?;
        }
        // The new store is there: what is left beside it is no reason to fail.
        let _ = vfs.remove_dir_all(&self.yard);
        Ok(())
    }
}

/// Makes the directory, or takes over a leftover, and marks it.
fn claim(vfs: &dyn Vfs, yard: &Path, store_id: &StoreId) -> Result<Box<dyn VfsLock>, Error> {
    match vfs.create_dir(yard) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(|error| Error::io("create", yard, error))?,
    }
    let path = || yard.to_path_buf();
    // Looked at before the lock is asked for: asking would put a file into it.
    if look(vfs, yard)? == Yard::Foreign {
        return Err(RepairError::NotALeftover { path: path() }.into());
    }
    let lock_path = yard.join(LOCK_NAME);
    let lock = match vfs.try_lock(&lock_path) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(RepairError::InProgress { path: path() }.into());
        }
        lock => lock.map_err(|error| Error::io("lock", &lock_path, error))?,
    };
    // The one that held it may just have ended and removed the file.
    if !lock.is_valid() {
        return Err(RepairError::InProgress { path: path() }.into());
    }
    match look(vfs, yard)? {
        Yard::Marked => {}
        Yard::Vacant => mark(vfs, yard, store_id)?,
        Yard::Foreign => return Err(RepairError::NotALeftover { path: path() }.into()),
    }
    Ok(lock)
}

fn look(vfs: &dyn Vfs, yard: &Path) -> Result<Yard, Error> {
    let kind = vfs.kind(yard);
    if kind.map_err(|error| Error::io("look at", yard, error))? != FileKind::Dir {
        return Ok(Yard::Foreign);
    }
    let entries = vfs.list(yard);
    let entries = entries.map_err(|error| Error::io("list", yard, error))?;
    let own = [LOCK_NAME, MARKER, STORE];
    if entries.iter().any(|e| !own.contains(&e.name.as_str())) {
        return Ok(Yard::Foreign);
    }
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let lock = yard.join(LOCK_NAME);
    if has(LOCK_NAME)
        && vfs
            .stat(&lock)
            .is_ok_and(|stat| stat.is_dir || stat.len > 0)
    {
        return Ok(Yard::Foreign);
    }
    let marker = match has(MARKER) {
        true => read_marker(vfs, &yard.join(MARKER))?,
        false => Some(Vec::new()),
    };
    let Some(marker) = marker else {
        return Ok(Yard::Foreign);
    };
    if marker.len() == MARKER_BYTES && marker.starts_with(&MAGIC) {
        return Ok(Yard::Marked);
    }
    // A crash may cut the marker before it is durable; then nothing else is there.
    let is_torn = marker.iter().zip(MAGIC).all(|(a, b)| *a == b || *a == 0);
    Ok(match is_torn && !has(STORE) {
        true => Yard::Vacant,
        false => Yard::Foreign,
    })
}

/// The marker's bytes; `None` where it is something else for certain.
fn read_marker(vfs: &dyn Vfs, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let io = |error| Error::io("read", path, error);
    if vfs.kind(path).map_err(io)? != FileKind::File {
        return Ok(None);
    }
    let file = vfs.open_read(path).map_err(io)?;
    let len = usize::try_from(file.len().map_err(io)?).unwrap_or(usize::MAX);
    if len > MARKER_BYTES {
        return Ok(None);
    }
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    Ok(Some(bytes))
}

fn mark(vfs: &dyn Vfs, yard: &Path, store_id: &StoreId) -> Result<(), Error> {
    let path = yard.join(MARKER);
    let io = |error| Error::io("write", &path, error);
    if vfs.stat(&path).is_ok() {
        vfs.remove_file(&path).map_err(io)?;
    }
    let file = vfs.create_new(&path).map_err(io)?;
    file.write_all_at(&[&MAGIC[..], store_id].concat(), 0)
        .and_then(|()| file.sync_all())
        .map_err(io)?;
    vfs.sync_dir(yard)
        .map_err(|error| Error::io("sync", yard, error))
}
