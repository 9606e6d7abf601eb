//! How does a backup become a store again, when nothing in it is to be believed?
//!
//! The index is judged first, then every file by kind and length, then by digest while it is
//! copied into a directory beside the new store; that is verified as a store, synced, and only
//! then renamed. So there is a whole store or none, whatever fails.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_segments::ReadMode;
use chronolith_vfs::{Env, FileKind, Vfs, VfsLock};

use super::check::{Image, check_point};
use super::error::BackupError;
use super::index::{Index, Item, point_name};
use super::place::{check_kind, make_dir, read_index, sync_dir};
use super::transfer::{BackupProgress, BackupStage, Ticker, check_digest, check_length, copy};
use crate::error::Error;
use crate::located::in_backup;
use crate::manifest::names::{LOCK, MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR};
use crate::options::Options;
use crate::paths::{is_inside, parent_of};
use crate::verify::verify;

/// Ends the name of the directory in which a store is restored.
const ASIDE_SUFFIX: &str = ".restoring";
/// The store inside it: so nothing that has the name of the directory, and is a store, is taken
/// for a leftover.
const STORE: &str = "store";

/// What a restore came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Number of the backup in its directory.
    pub point: u64,
    /// When the backup was made, µs since the epoch.
    pub made_us: i64,
    /// Generation of the manifest.
    pub generation: u64,
    /// Last commit seq.
    pub last_seq: u64,
    /// Files of the store.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Makes the store `dest` from the backup in `backup`. `dest` must be missing or an empty
/// directory; beside it `<dest>.restoring` is used meanwhile. `progress` is told after each file.
///
/// # Errors
/// [`BackupError`] where `backup` is none, is damaged (by file), or `dest` is taken; damage in
/// the store's own formats; the system's errors. `dest` is then as it was. An error of the very
/// last sync leaves the outcome unknown: `dest` is there and whole, and may not outlive a power
/// cut.
pub fn restore(
    env: &Env,
    backup: &Path,
    dest: &Path,
    progress: &mut dyn FnMut(&BackupProgress),
) -> Result<RestoreReport, Error> {
    let vfs = &*env.vfs;
    let (index, index_bytes) =
        read_index(vfs, backup).map_err(|error| in_backup(error, backup, backup))?;
    if is_inside(vfs, dest, backup) {
        let reason = "a store inside a backup would be lost with it";
        return Err(BackupError::bad_destination(dest, reason).into());
    }
    check_vacant(vfs, dest)?;
    let aside = Aside::make(vfs, dest)?;
    let restored = aside.fill(env, backup, &index, &mut Ticker::new(progress));
    let generation = match restored {
        Ok(generation) => generation,
        Err(error) => {
            let _ = vfs.remove_dir_all(&aside.yard);
            let error = in_backup(error, backup, &backup.join(point_name(index.point)));
            return Err(blame(vfs, backup, &index_bytes, error));
        }
    };
    aside.rename(dest)?;
    Ok(RestoreReport {
        point: index.point,
        made_us: index.made_us,
        generation,
        last_seq: index.last_seq,
        files: index.items.len() as u64,
        bytes: index.bytes(),
    })
}

/// A backup that was renewed meanwhile has lost files that the old index names: no damage.
fn blame(vfs: &dyn Vfs, backup: &Path, index_bytes: &[u8], error: Error) -> Error {
    match read_index(vfs, backup) {
        Ok((_, bytes)) if bytes != index_bytes => BackupError::InUse {
            path: backup.into(),
        }
        .into(),
        _ => error,
    }
}

fn check_vacant(vfs: &dyn Vfs, dest: &Path) -> Result<(), Error> {
    let refuse = |reason: &str| Err(BackupError::bad_destination(dest, reason).into());
    match vfs.kind(dest) {
        Ok(FileKind::Dir) => {
            let entries = vfs
                .list(dest)
                .map_err(|error| Error::io("list", dest, error))?;
            match entries.is_empty() {
                true => Ok(()),
                false => refuse("it is not empty; a store is restored into a new directory"),
            }
        }
        Ok(_) => refuse("it is no directory"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("stat", dest, error)),
    }
}

/// The directory in which the store is put together.
struct Aside<'a> {
    vfs: &'a dyn Vfs,
    /// Holds the lock and the store, and is ours while the lock is held.
    yard: PathBuf,
    /// The store.
    dir: PathBuf,
    /// Another restore stays away.
    lock: Box<dyn VfsLock>,
}

impl<'a> Aside<'a> {
    /// Makes it; one that an earlier restore left is removed first.
    fn make(vfs: &'a dyn Vfs, dest: &Path) -> Result<Self, Error> {
        let no_name = || BackupError::bad_destination(dest, "its path has no last name");
        let mut name = dest.file_name().ok_or_else(no_name)?.to_os_string();
        name.push(ASIDE_SUFFIX);
        let yard = parent_of(dest).join(name);
        match vfs.kind(&yard) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("stat", yard, error)),
            Ok(kind) => {
                check_leftover(vfs, &yard, kind)?;
                let _lock = take_lock(vfs, &yard)?;
                vfs.remove_dir_all(&yard)
                    .map_err(|error| Error::io("remove", &yard, error))?;
            }
        }
        // Not one that is there already: another restore may have come first.
        vfs.create_dir(&yard)
            .map_err(|error| Error::io("create", &yard, error))?;
        let lock = take_lock(vfs, &yard)?;
        let dir = yard.join(STORE);
        make_dir(vfs, &dir)?;
        for name in [MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR] {
            make_dir(vfs, &dir.join(name))?;
        }
        Ok(Self {
            vfs,
            yard,
            dir,
            lock,
        })
    }

    /// Gives the store its name. Its lock is held until then.
    fn rename(self, dest: &Path) -> Result<(), Error> {
        if !self.lock.is_valid() {
            return Err(BackupError::InUse { path: self.yard }.into());
        }
        self.vfs
            .rename(&self.dir, dest)
            .map_err(|error| Error::io("rename", dest, error))?;
        sync_dir(self.vfs, parent_of(dest))?;
        // The store is there: what is left beside it is no reason to fail.
        let _ = self.vfs.remove_dir_all(&self.yard);
        Ok(())
    }

    /// Copies and verifies everything; what is there then is a whole and durable store but for
    /// its name. Returns its generation.
    fn fill(
        &self,
        env: &Env,
        backup: &Path,
        index: &Index,
        ticker: &mut Ticker<'_>,
    ) -> Result<u64, Error> {
        check_files(self.vfs, backup, index)?;
        ticker.begin(BackupStage::Copy, index.bytes());
        for item in &index.items {
            self.bring(backup, index.point, item)?;
            ticker.done(item.bytes);
        }
        for name in [MANIFEST_DIR, SEGMENTS_DIR, WAL_DIR] {
            sync_dir(self.vfs, &self.dir.join(name))?;
        }
        sync_dir(self.vfs, &self.dir)?;
        self.check(env, index, ticker)
    }

    fn bring(&self, backup: &Path, point: u64, item: &Item) -> Result<(), Error> {
        let path = item.name.path_in(backup, point);
        let shown = item.name.shown();
        let file = self
            .vfs
            .open_read(&path)
            .map_err(|error| Error::io("open", &path, error))?;
        check_length(&*file, &path, item.bytes, &shown)?;
        let (target, seal) = (item.name.path(&self.dir), item.name.kind.is_sealed());
        let digest = copy(self.vfs, (&*file, &path), item.bytes, &target, seal)?;
        check_digest(digest, item.digest, &shown)
    }

    /// The copy is what the index says, and a store in which nothing is to be found: each byte
    /// of it was read, and its log replayed.
    fn check(&self, env: &Env, index: &Index, ticker: &mut Ticker<'_>) -> Result<u64, Error> {
        let image = Image {
            data: &self.dir,
            point: &self.dir,
        };
        let manifest = check_point(env, image, index)?;
        let options = Options {
            read_mode: ReadMode::Positioned,
            env: env.clone(),
            ..Options::default()
        };
        ticker.begin(BackupStage::Check, index.bytes());
        let report = verify(&self.dir, &options, &mut |now| {
            ticker.at(now.bytes_done, now.bytes_total);
        })?;
        match report.findings.into_iter().next() {
            None => Ok(manifest.generation),
            Some(found) => {
                let message = format!("{}: {}", found.section, found.message);
                let offset = found.offset.unwrap_or(0);
                Err(BackupError::damaged(found.file, "store", offset, message).into())
            }
        }
    }
}

fn take_lock(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn VfsLock>, Error> {
    let path = dir.join(LOCK);
    vfs.try_lock(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => BackupError::InUse { path: dir.into() }.into(),
        _ => Error::io("lock", path, error),
    })
}

/// Only what a restore makes is removed for it.
fn check_leftover(vfs: &dyn Vfs, dir: &Path, kind: FileKind) -> Result<(), Error> {
    let own = [LOCK, STORE];
    let is_own = kind == FileKind::Dir
        && vfs
            .list(dir)
            .map_err(|error| Error::io("list", dir, error))?
            .iter()
            .all(|entry| own.contains(&entry.name.as_str()));
    match is_own {
        true => Ok(()),
        false => {
            let reason =
                "a restore needs this name, and what has it is of no restore; move it away";
            Err(BackupError::bad_destination(dir, reason).into())
        }
    }
}

/// Every file of the index is there, regular, reached by no link, and as long as it should be.
/// Nothing is copied before all are.
fn check_files(vfs: &dyn Vfs, backup: &Path, index: &Index) -> Result<(), Error> {
    let point = point_name(index.point);
    let inside = |name| format!("{point}/{name}");
    let mut dirs = vec![point.clone(), inside(MANIFEST_DIR), inside(WAL_DIR)];
    dirs.push(SEGMENTS_DIR.to_owned());
    for dir in dirs {
        check_kind(vfs, &backup.join(&dir), FileKind::Dir, &dir)?;
    }
    for item in &index.items {
        let (path, shown) = (item.name.path_in(backup, index.point), item.name.shown());
        check_kind(vfs, &path, FileKind::File, &shown)?;
        let stat = vfs
            .stat(&path)
            .map_err(|error| Error::io("stat", &path, error))?;
        if stat.len != item.bytes {
            let message = format!("{} bytes, the index says {}", stat.len, item.bytes);
            let at = stat.len.min(item.bytes);
            return Err(BackupError::damaged(shown, "file", at, message).into());
        }
    }
    Ok(())
}
