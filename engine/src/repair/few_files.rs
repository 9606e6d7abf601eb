//! How are more segments read than the system opens files? A few at a time.
//!
//! A file system that only reads: an open file of it is a path and a length, and its handle is
//! had from a pool that closes the one used longest ago. Nobody writes what a repair reads, and
//! every block of a segment is verified wherever it is read, so a name opened again is the same
//! file or damage.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronolith_vfs::{DirEntry, FileBytes, Stat, Vfs, VfsFile, VfsLock, is_refusal};

/// Files that are open at a time.
const OPEN_MAX: usize = 32;

/// A way to read many files with few descriptors.
#[derive(Debug, Clone)]
pub(super) struct FewFiles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    vfs: Arc<dyn Vfs>,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    /// The one used longest ago stands first.
    open: Vec<(PathBuf, Arc<dyn VfsFile>)>,
    /// Why the system did not open a file again. What was read then is not damaged.
    refused: Option<(PathBuf, io::Error)>,
}

impl FewFiles {
    pub(super) fn new(vfs: &Arc<dyn Vfs>) -> Self {
        Self(Arc::new(Inner {
            vfs: Arc::clone(vfs),
            pool: Mutex::default(),
        }))
    }

    /// The path and the error of a file that the system refused to open once more, if any:
    /// whatever was found since then may be wrong.
    pub(super) fn take_refusal(&self) -> Option<(PathBuf, io::Error)> {
        self.lock().refused.take()
    }

    fn file(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut pool = self.lock();
        let at = pool.open.iter().position(|(open, _)| open == path);
        let found = at.map(|at| pool.open.remove(at).1);
        let file = match found {
            Some(file) => file,
            None => pool.open(&*self.0.vfs, path)?,
        };
        pool.open.push((path.to_path_buf(), Arc::clone(&file)));
        Ok(file)
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        // A list of handles, each valid by itself.
        self.0.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn open(&mut self, vfs: &dyn Vfs, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let excess = (self.open.len() + 1).saturating_sub(OPEN_MAX);
        self.open.drain(..excess);
        match vfs.open_read(path) {
            Err(error) if is_refusal(&error) && !self.open.is_empty() => self.open.clear(),
            opened => return self.note(path, opened),
        }
        let opened = vfs.open_read(path);
        self.note(path, opened)
    }

    fn note<T>(&mut self, path: &Path, opened: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &opened
            && is_refusal(error)
            && let Some(code) = error.raw_os_error()
        {
            let again = io::Error::from_raw_os_error(code);
            self.refused.get_or_insert((path.to_path_buf(), again));
        }
        opened
    }
}

fn no_write<T>() -> io::Result<T> {
    Err(ErrorKind::ReadOnlyFilesystem.into())
}

impl Vfs for FewFiles {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.file(path)?;
        Ok(Arc::new(Lent {
            files: self.clone(),
            path: path.to_path_buf(),
        }))
    }

    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn VfsFile>> {
        no_write()
    }

    fn create_new(&self, _: &Path) -> io::Result<Arc<dyn VfsFile>> {
        no_write()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.vfs.list(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.0.vfs.stat(path)
    }

    fn seal(&self, _: &Path) -> io::Result<()> {
        no_write()
    }

    fn try_lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        no_write()
    }
}

/// A file that is open whenever it is read.
struct Lent {
    files: FewFiles,
    path: PathBuf,
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({})", self.path.display())
    }
}

impl VfsFile for Lent {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.files.file(&self.path)?.read_at(buf, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        no_write()
    }

    fn sync_data(&self) -> io::Result<()> {
        no_write()
    }

    fn sync_all(&self) -> io::Result<()> {
        no_write()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        no_write()
    }

    fn len(&self) -> io::Result<u64> {
        self.files.file(&self.path)?.len()
    }

    /// A mapping would live on without its handle, and none is wanted here.
    fn map(&self, _: u64) -> io::Result<FileBytes> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use chronolith_vfs::{Errno, FaultRule, FaultVfs, OpKind, SimVfs};

    use super::*;

    fn disk(files: usize) -> (SimVfs, Vec<PathBuf>) {
        let disk = SimVfs::new();
        disk.create_dir(Path::new("/d")).expect("created");
        let paths: Vec<PathBuf> = (0..files).map(|n| format!("/d/{n}").into()).collect();
        for (n, path) in paths.iter().enumerate() {
            let file = disk.create_new(path).expect("created");
            file.write_all_at(&n.to_le_bytes(), 0).expect("written");
        }
        (disk, paths)
    }

    fn content(file: &dyn VfsFile) -> io::Result<usize> {
        let mut bytes = [0; size_of::<usize>()];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(usize::from_le_bytes(bytes))
    }

    #[test]
    fn many_files_are_read_and_few_are_open() {
        let (disk, paths) = disk(400);
        let few = FewFiles::new(&(Arc::new(disk) as Arc<dyn Vfs>));
        let open = |path: &PathBuf| few.open_read(path).expect("opens");
        let files: Vec<_> = paths.iter().map(open).collect();
        for stride in [1, 7, 40] {
            for n in (0..files.len()).step_by(stride) {
                assert_eq!(content(&*files[n]).expect("reads"), n);
                assert!(few.lock().open.len() <= OPEN_MAX);
            }
        }
        assert!(few.take_refusal().is_none());
    }

    #[test]
    fn a_refusal_of_the_system_is_kept_and_gives_up_what_is_open_first() {
        let (disk, paths) = disk(2);
        let faults = FaultVfs::new(Arc::new(disk));
        let few = FewFiles::new(&(Arc::new(faults.clone()) as Arc<dyn Vfs>));
        let first = few.open_read(&paths[0]).expect("opens");
        let refuse = || FaultRule::error(Errno::TooManyFiles).on(OpKind::OpenRead);
        faults.add(refuse());
        let second = few
            .open_read(&paths[1])
            .expect("opens once the first is closed");
        assert!(few.take_refusal().is_none());
        faults.add(refuse().forever());
        assert_eq!(content(&*second).expect("it is open"), 1);
        content(&*first).expect_err("it is not");
        assert_eq!(few.take_refusal().expect("kept").0, paths[0]);
    }
}
