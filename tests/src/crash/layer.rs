//! Two layers over a disk: one that runs something in the middle of a flush or a compaction,
//! one that lies about syncs.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chronolith_vfs::{DirEntry, FileBytes, FileKind, Stat, Vfs, VfsFile, VfsLock};

type Hook = Box<dyn FnOnce() + Send>;

/// What a layer does.
#[derive(Clone)]
pub struct Layer {
    inner: Arc<dyn Vfs>,
    hook: Arc<Mutex<Option<Hook>>>,
    lies: bool,
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({:?})", self.inner)
    }
}

impl Layer {
    /// Passes everything through until told otherwise.
    pub fn new(inner: impl Vfs + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            hook: Arc::default(),
            lies: false,
        }
    }

    /// A layer whose file syncs do nothing.
    pub fn lying(inner: impl Vfs + 'static) -> Self {
        Self {
            lies: true,
            ..Self::new(inner)
        }
    }

    /// Runs `hook` once, when the next segment file is begun.
    pub fn at_next_segment(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// True if the hook has not run yet; it is taken away.
    pub fn take_hook(&self) -> bool {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook.take().is_some()
    }

    fn file(&self, inner: io::Result<Arc<dyn VfsFile>>) -> io::Result<Arc<dyn VfsFile>> {
        let inner = inner?;
        if !self.lies {
            return Ok(inner);
        }
        Ok(Arc::new(LyingFile(inner)))
    }
}

impl Vfs for Layer {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.file(self.inner.open_read(path))
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.file(self.inner.open_write(path))
    }
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        if path.to_string_lossy().contains("/segments/") {
            let mut held = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
            let hook = held.take();
            drop(held);
            if let Some(hook) = hook {
                hook();
            }
        }
        self.file(self.inner.create_new(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir_all(path)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.inner.list(path)
    }
    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.inner.stat(path)
    }
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        self.inner.kind(path)
    }
    fn seal(&self, path: &Path) -> io::Result<()> {
        self.inner.seal(path)
    }
    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.inner.try_lock(path)
    }
}

#[derive(Debug)]
struct LyingFile(Arc<dyn VfsFile>);

impl VfsFile for LyingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn map(&self, len: u64) -> io::Result<FileBytes> {
        self.0.map(len)
    }
}
