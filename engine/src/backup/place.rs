//! What is in a backup's directory already, and may a backup be written there?

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::{FileKind, Vfs, VfsLock};

use super::error::BackupError;
use super::index::{INDEX, INDEX_BYTES_MAX, INDEX_TEMP, Index, parse_point, point_name};
use crate::error::Error;
use crate::manifest::names::{DataName, LOCK, MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR};
use crate::paths::parent_of;

/// A backup's directory that is ours to write.
pub(super) struct Place<'a> {
    pub(super) vfs: &'a dyn Vfs,
    pub(super) root: PathBuf,
    /// The finished backup in it.
    pub(super) before: Option<Index>,
    /// Number of the backup that is being made.
    pub(super) point: u64,
    _lock: Box<dyn VfsLock>,
}

impl<'a> Place<'a> {
    /// Takes the directory `root`, making it where it is missing.
    pub(super) fn take(vfs: &'a dyn Vfs, root: &Path) -> Result<Self, Error> {
        make_dir(vfs, root)?;
        sync_dir(vfs, parent_of(root))?;
        // Before the lock is made: a foreign directory stays as it is.
        check_own(vfs, root)?;
        let lock = root.join(LOCK);
        let lock = vfs.try_lock(&lock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => BackupError::InUse { path: root.into() }.into(),
            _ => Error::io("lock", &lock, error),
        })?;
        let before = match read_index(vfs, root) {
            Ok((index, _)) => Some(index),
            Err(Error::Backup(BackupError::NotABackup { .. })) => None,
            Err(Error::Backup(BackupError::Damaged {
                file,
                section,
                offset,
                message,
                path: _,
            })) => {
                let message = format!(
                    "{message}; the backup in {} is of no use any more: move it away, or back up \
                     into another directory",
                    root.display()
                );
                return Err(BackupError::damaged(file, section, offset, message).into());
            }
            Err(error) => return Err(error),
        };
        let point = before
            .as_ref()
            .map_or(Some(1), |index| index.point.checked_add(1));
        let point = point.ok_or_else(|| {
            BackupError::bad_destination(root, "its backups are numbered up to the last number")
        })?;
        Ok(Self {
            vfs,
            root: root.to_path_buf(),
            before,
            point,
            _lock: lock,
        })
    }

    /// The directory of the point that is being made.
    pub(super) fn point_dir(&self) -> PathBuf {
        self.root.join(point_name(self.point))
    }

    /// The directories to write into; what a crash left of this point goes.
    pub(super) fn prepare(&self) -> Result<(), Error> {
        make_dir(self.vfs, &self.root.join(SEGMENTS_DIR))?;
        let point = self.point_dir();
        match self.vfs.remove_dir_all(&point) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", point, error));
            }
            _ => {}
        }
        for dir in [point.clone(), point.join(MANIFEST_DIR), point.join(WAL_DIR)] {
            make_dir(self.vfs, &dir)?;
        }
        Ok(())
    }

    /// Takes away the point that is not finished.
    pub(super) fn abandon(&self) {
        let _ = self.vfs.remove_dir_all(&self.point_dir());
        let _ = self.vfs.remove_file(&self.root.join(INDEX_TEMP));
    }

    /// True where the index in place is still the one of the backup before.
    pub(super) fn is_as_before(&self) -> bool {
        match (read_index(self.vfs, &self.root), &self.before) {
            (Ok((index, _)), Some(before)) => index == *before,
            (Err(Error::Backup(BackupError::NotABackup { .. })), None) => true,
            _ => false,
        }
    }

    /// Makes every name of the backup durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let point = self.point_dir();
        let dirs = [
            self.root.join(SEGMENTS_DIR),
            point.join(MANIFEST_DIR),
            point.join(WAL_DIR),
            point,
            self.root.clone(),
        ];
        dirs.iter().try_for_each(|dir| sync_dir(self.vfs, dir))
    }

    /// Removes what `index`, which is durable, does not name; returns how many data files.
    /// What cannot be removed now is tried again by the next backup.
    pub(super) fn tidy(&self, index: &Index) -> u64 {
        for entry in self.vfs.list(&self.root).unwrap_or_default() {
            if parse_point(&entry.name).is_some_and(|point| point != index.point) {
                let _ = self.vfs.remove_dir_all(&self.root.join(&entry.name));
            }
        }
        let dir = self.root.join(SEGMENTS_DIR);
        let data = index.items.iter().filter(|item| item.name.kind.is_data());
        let named: BTreeSet<PathBuf> = data.map(|item| item.name.path(&self.root)).collect();
        let mut removed = 0;
        for entry in self.vfs.list(&dir).unwrap_or_default() {
            let path = dir.join(&entry.name);
            if DataName::parse(&entry.name).is_some() && !named.contains(&path) {
                removed += u64::from(self.vfs.remove_file(&path).is_ok());
            }
        }
        removed
    }
}

/// Reads the index of the backup in `root`, and gives its bytes along.
pub(super) fn read_index(vfs: &dyn Vfs, root: &Path) -> Result<(Index, Vec<u8>), Error> {
    let none = |reason| {
        let path = root.to_path_buf();
        Error::from(BackupError::NotABackup { path, reason })
    };
    let path = root.join(INDEX);
    match vfs.kind(&path) {
        Ok(FileKind::File) => {}
        Ok(_) => return Err(none("its index is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(none("it has no index, so no backup into it was finished"));
        }
        Err(error) => return Err(Error::io("stat", path, error)),
    }
    let file = vfs
        .open_read(&path)
        .map_err(|error| Error::io("open", &path, error))?;
    let bytes = file
        .len()
        .map_err(|error| Error::io("stat", &path, error))?;
    let len = usize::try_from(bytes)
        .ok()
        .filter(|_| bytes <= INDEX_BYTES_MAX);
    let Some(len) = len else {
        let message = format!("{bytes} bytes, at most {INDEX_BYTES_MAX}");
        return Err(BackupError::damaged(INDEX, "index", INDEX_BYTES_MAX, message).into());
    };
    let mut content = vec![0; len];
    file.read_exact_at(&mut content, 0)
        .map_err(|error| Error::io("read", &path, error))?;
    let index = Index::decode(&content)?;
    Ok((index, content))
}

/// Refuses a directory that holds anything a backup would not have made.
fn check_own(vfs: &dyn Vfs, root: &Path) -> Result<(), Error> {
    let entries = vfs
        .list(root)
        .map_err(|error| Error::io("list", root, error))?;
    for entry in entries {
        let name = entry.name.as_str();
        let wanted = match name {
            LOCK | INDEX | INDEX_TEMP => FileKind::File,
            SEGMENTS_DIR => FileKind::Dir,
            _ if parse_point(name).is_some() => FileKind::Dir,
            _ => {
                let reason = format!("it holds {name:?}, which no backup made");
                return Err(BackupError::bad_destination(root, reason).into());
            }
        };
        check_kind(vfs, &root.join(name), wanted, name)?;
    }
    Ok(())
}

/// Refuses a link, and a file where a directory should be.
pub(super) fn check_kind(
    vfs: &dyn Vfs,
    path: &Path,
    wanted: FileKind,
    shown: &str,
) -> Result<(), Error> {
    let message = match vfs.kind(path) {
        Ok(kind) if kind == wanted => return Ok(()),
        Ok(_) if wanted == FileKind::Dir => "is no directory (links are refused)",
        Ok(_) => "is no regular file (links are refused)",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing",
        Err(error) => return Err(Error::io("stat", path, error)),
    };
    Err(BackupError::damaged(shown, "file", 0, message).into())
}

/// Makes a directory unless it is there.
pub(super) fn make_dir(vfs: &dyn Vfs, path: &Path) -> Result<(), Error> {
    match vfs.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|error| Error::io("create", path, error)),
    }
}

pub(super) fn sync_dir(vfs: &dyn Vfs, path: &Path) -> Result<(), Error> {
    vfs.sync_dir(path)
        .map_err(|error| Error::io("sync", path, error))
}
