//! What is left of a store when the power goes? A disk in memory that can be asked.
//!
//! The disk knows, for each file, the durable content and the writes since, and, for all
//! directories, the durable names and the changes since. [`SimVfs::crash`] makes a new disk as
//! this one could look after a crash; the old one stays as it is, so that many images can be
//! taken of one moment. [`SimVfs::set_crash_point`] stops a workload at any operation.
//!
//! Rules, on the pessimistic side of what file systems do:
//!
//! * `sync_data` makes content and length durable, `sync_all` the mode too. A file's *name*
//!   is durable after `sync_dir` of its directory, and that directory's after its parent's.
//! * Unsynced data survives sector by sector (512 bytes), lengths in order, names one by one.
//! * A rename is atomic: after a crash the old state or the new one.
//! * A hard link is one more name, lost and kept like any other; the file is the same.
//! * Unlinked files live on under open handles; a crash ends them, and releases every lock.
//!
//! Stricter than an operating system in one thing: a sealed file cannot be written through
//! handles from before, because nobody may.

mod disk;
mod env;
mod file;
mod image;
mod names;
mod random;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use disk::{TraceEntry, is_simulated_crash};
pub use env::SimClock;
pub use file::FailedSync;
pub use image::CrashImage;
pub use random::SeededEntropy;

use crate::bytes::FileBytes;
use crate::op::{Errno, OpKind};
use crate::traits::{DirEntry, Stat, Vfs, VfsFile, VfsLock};
use disk::{CrashPoint, Disk, Step};
use file::{FileNode, FileState};
use names::{Entry, Names};

/// A simulated disk. Clones are the same disk.
#[derive(Clone)]
pub struct SimVfs(Arc<Mutex<Disk>>);

impl Default for SimVfs {
    fn default() -> Self {
        Self::from_disk(Disk::new(Names::default(), 0))
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimVfs({} operations)", self.ops())
    }
}

impl SimVfs {
    /// An empty disk: the root directory alone.
    pub fn new() -> Self {
        Self::default()
    }

    fn from_disk(disk: Disk) -> Self {
        Self(Arc::new(Mutex::new(disk)))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk();
        disk.alive()?;
        Ok(disk)
    }

    fn open(&self, node: Arc<FileNode>, path: &Path) -> Arc<dyn VfsFile> {
        Arc::new(SimFile {
            disk: self.clone(),
            node,
            path: path.to_path_buf(),
        })
    }

    /// A new disk as this one could look after a crash now, ready for a reopen: no crash
    /// point, no failing sync, no lock, operations counted from 0.
    #[must_use]
    pub fn crash(&self, image: CrashImage) -> Self {
        let disk = self.disk();
        let names = match image.survival() {
            Some(survival) => disk.names.after_power_cut(&survival),
            None => disk.names.after_kill(),
        };
        Self::from_disk(disk.image(names))
    }

    /// Mutating operations so far: write, sync, `set_len`, rename, link, create, remove, `create_dir`,
    /// `sync_dir`, seal. Operations that were refused (`NotFound` and the like) do not count.
    pub fn ops(&self) -> u64 {
        self.disk().ops
    }

    /// Operation number `n` (the one that begins when [`Self::ops`] is `n`) does not take
    /// effect; it and all after it, reads included, fail with an error that
    /// [`is_simulated_crash`] knows.
    pub fn set_crash_point(&self, n: u64) {
        self.disk().crash_point = Some(CrashPoint {
            at: n,
            half_done: false,
        });
    }

    /// Like [`Self::set_crash_point`]; if the operation is a write, its first half is done.
    pub fn set_crash_point_half_done(&self, n: u64) {
        self.disk().crash_point = Some(CrashPoint {
            at: n,
            half_done: true,
        });
    }

    /// True once the crash point was reached.
    pub fn has_crashed(&self) -> bool {
        self.disk().crashed
    }

    /// After `syncs` more file syncs that succeed, one fails with EIO, and nothing of that
    /// file's unsynced data ever becomes durable by a later sync.
    pub fn fail_sync(&self, syncs: u64, mode: FailedSync) {
        self.disk().failing_sync = Some((syncs, mode));
    }

    /// Limits the bytes of all named files together; growing beyond is ENOSPC. `None` lifts it.
    pub fn set_space(&self, bytes_max: Option<usize>) {
        self.disk().space_bytes_max = bytes_max;
    }

    /// The last mutating operations (up to 65,536), oldest first.
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.disk().trace.iter().cloned().collect()
    }

    /// Absolute paths of all files, sorted. Works on a crashed disk too.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.disk().names.files();
        files.into_iter().map(|(path, _)| path.into()).collect()
    }

    /// Content of a file as readers see it. Works on a crashed disk too.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let node = self.disk().names.find_file(path)?;
        let content = node.state().content().to_vec();
        Ok(content)
    }

    /// Changes a file's bytes on the medium, past every rule: flipped, cut, swapped, stale.
    /// Not an operation; the damage is durable.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let node = self.disk().names.find_file(path)?;
        node.state().damage(change);
        Ok(())
    }

    /// True if the file is sealed.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn is_sealed(&self, path: &Path) -> io::Result<bool> {
        let node = self.disk().names.find_file(path)?;
        let sealed = node.state().is_sealed();
        Ok(sealed)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        let (dir, children) = {
            let disk = self.alive()?;
            let dir = disk.names.find_dir(path)?;
            let children: Vec<_> = disk.names.entries(dir).collect();
            let children: Vec<_> = children
                .into_iter()
                .map(|(name, entry)| (name.clone(), entry.clone()))
                .collect();
            (dir, children)
        };
        for (name, entry) in children {
            match entry {
                Entry::Dir(_) => self.remove_tree(&path.join(name))?,
                Entry::File(_) => {
                    let mut disk = self.disk();
                    disk.step(OpKind::Remove, &path.join(&name))?;
                    disk.names.unlink((dir, name), entry);
                }
            }
        }
        let mut disk = self.alive()?;
        let place = disk.names.place(path)?;
        disk.step(OpKind::Remove, path)?;
        disk.names.unlink(place, Entry::Dir(dir));
        Ok(())
    }
}

impl Vfs for SimVfs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let node = self.alive()?.names.find_file(path)?;
        Ok(self.open(node, path))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let node = self.alive()?.names.find_file(path)?;
        if node.state().is_sealed() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(self.open(node, path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut disk = self.alive()?;
        let node = create(&mut disk, path)?;
        drop(disk);
        Ok(self.open(node, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        let (source, target) = (disk.names.place(from)?, disk.names.place(to)?);
        let entry = disk.names.get(&source).ok_or(io::ErrorKind::NotFound)?;
        if source == target {
            return Ok(());
        }
        match (&entry, disk.names.get(&target)) {
            (Entry::Dir(_), _) if to.starts_with(from) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // A directory on the way to the source.
            (_, Some(Entry::Dir(_))) if from.starts_with(to) => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            (Entry::File(_), Some(Entry::Dir(_))) => return Err(io::ErrorKind::IsADirectory.into()),
            (Entry::Dir(_), Some(Entry::File(_))) => {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            (Entry::Dir(_), Some(Entry::Dir(old))) if !disk.names.is_empty(old) => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        disk.step(OpKind::Rename, to)?;
        disk.names.rename(source, target, entry);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        let node = disk.names.find_file(from)?;
        let place = disk.names.place(to)?;
        if disk.names.get(&place).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        disk.step(OpKind::Link, to)?;
        disk.names.link(place, Entry::File(node));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        let node = disk.names.find_file(path)?;
        let place = disk.names.place(path)?;
        disk.step(OpKind::Remove, path)?;
        disk.names.unlink(place, Entry::File(node));
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.remove_tree(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        if disk.names.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let place = disk.names.place(path)?;
        disk.step(OpKind::CreateDir, path)?;
        disk.names.link_new_dir(place);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        let dir = disk.names.find_dir(path)?;
        disk.step(OpKind::SyncDir, path)?;
        disk.names.sync_dir(dir);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let disk = self.alive()?;
        let dir = disk.names.find_dir(path)?;
        let entries = disk.names.entries(dir).map(|(name, entry)| DirEntry {
            name: name.clone(),
            is_dir: matches!(entry, Entry::Dir(_)),
        });
        Ok(entries.collect())
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let (len, is_dir) = match self.alive()?.names.find(path)? {
            Entry::File(node) => (node.state().len() as u64, false),
            Entry::Dir(_) => (0, true),
        };
        Ok(Stat { len, is_dir })
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.alive()?;
        let node = disk.names.find_file(path)?;
        disk.step(OpKind::Seal, path)?;
        node.state().seal();
        Ok(())
    }

    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let mut disk = self.alive()?;
        let node = match disk.names.find_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => create(&mut disk, path)?,
            found => found?,
        };
        if !disk.locked.insert(node.id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock {
            disk: self.clone(),
            id: node.id,
            path: path.to_path_buf(),
        }))
    }
}

fn create(disk: &mut Disk, path: &Path) -> io::Result<Arc<FileNode>> {
    let place = disk.names.place(path)?;
    if disk.names.get(&place).is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    disk.step(OpKind::Create, path)?;
    let node = Arc::new(disk.new_file());
    disk.names.link(place, Entry::File(Arc::clone(&node)));
    Ok(node)
}

struct SimFile {
    disk: SimVfs,
    node: Arc<FileNode>,
    path: PathBuf,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({})", self.path.display())
    }
}

impl SimFile {
    fn read<T>(&self, read: impl FnOnce(&FileState) -> T) -> io::Result<T> {
        let _alive = self.disk.alive()?;
        Ok(read(&self.node.state()))
    }

    /// Refuses writes to a sealed file and growth beyond the disk's space.
    fn check_change(&self, disk: &Disk, len_after: usize) -> io::Result<()> {
        let (sealed, len) = {
            let state = self.node.state();
            (state.is_sealed(), state.len())
        };
        if sealed {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        disk.check_space(len_after.saturating_sub(len))
    }

    fn sync(&self, metadata: bool) -> io::Result<()> {
        let mut disk = self.disk.alive()?;
        disk.step(OpKind::Sync, &self.path)?;
        let mut state = self.node.state();
        match disk.sync_failure() {
            None => {
                state.sync(metadata);
                Ok(())
            }
            Some(mode) => {
                state.fail_sync(mode);
                Err(Errno::Io.into())
            }
        }
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read(|state| state.read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk.alive()?;
        let len_after = self.node.state().len_after_write(buf.len(), offset)?;
        self.check_change(&disk, len_after)?;
        let step = disk.step_at(OpKind::Write, &self.path, offset, buf.len())?;
        let done = match step {
            Step::Whole => buf.len(),
            Step::Half => buf.len() / 2,
        };
        self.node.state().write(&buf[..done], offset)?;
        step.finish()?;
        Ok(done)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(false)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(true)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.alive()?;
        let len_after = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.check_change(&disk, len_after)?;
        disk.step_at(OpKind::SetLen, &self.path, len, 0)?;
        self.node.state().set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.read(|state| state.len() as u64)
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        self.read(|state| state.map(len))?
    }
}

struct SimLock {
    disk: SimVfs,
    id: u64,
    path: PathBuf,
}

impl fmt::Debug for SimLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimLock({})", self.path.display())
    }
}

impl VfsLock for SimLock {
    fn is_valid(&self) -> bool {
        let disk = self.disk.disk();
        let named = disk.names.find_file(&self.path);
        !disk.crashed && named.is_ok_and(|node| node.id == self.id)
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.disk().locked.remove(&self.id);
    }
}
