//! Files and a clock whose every operation is a place where another thread may go on.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronolith_vfs::sync::atomic::{AtomicU64, Ordering};
use chronolith_vfs::{
    Clock, DirEntry, Env, FileBytes, FileKind, SimClock, SimVfs, Stat, Vfs, VfsFile, VfsLock,
};

/// A simulated disk with such places.
#[derive(Debug, Clone)]
struct StepVfs {
    disk: SimVfs,
    steps: Arc<AtomicU64>,
}

impl StepVfs {
    fn new(disk: SimVfs) -> Self {
        Self {
            disk,
            steps: Arc::new(AtomicU64::new(0)),
        }
    }

    fn step(&self) -> &SimVfs {
        self.steps.fetch_add(1, Ordering::SeqCst);
        &self.disk
    }

    fn wrap(&self, file: io::Result<Arc<dyn VfsFile>>) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(StepFile {
            file: file?,
            steps: Arc::clone(&self.steps),
        }))
    }
}

/// The environment of a model over such a disk.
pub(super) fn step_env() -> (Env, SimVfs) {
    let (env, disk, clock) = Env::sim(1);
    let env = Env {
        clock: Arc::new(StepClock(clock)),
        ..env.with_vfs(StepVfs::new(disk.clone()))
    };
    (env, disk)
}

impl Vfs for StepVfs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.wrap(self.step().open_read(path))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.wrap(self.step().open_write(path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.wrap(self.step().create_new(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step().remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.step().remove_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.step().create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step().sync_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.step().list(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.step().stat(path)
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        self.step().kind(path)
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        self.step().seal(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.step().try_lock(path)
    }
}

#[derive(Debug)]
struct StepFile {
    file: Arc<dyn VfsFile>,
    steps: Arc<AtomicU64>,
}

impl StepFile {
    fn step(&self) -> &dyn VfsFile {
        self.steps.fetch_add(1, Ordering::SeqCst);
        &*self.file
    }

    /// A sync changes nothing that another process can see, only what a power cut leaves.
    fn synced(&self) -> &dyn VfsFile {
        if cfg!(loom) { &*self.file } else { self.step() }
    }
}

impl VfsFile for StepFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.step().read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.step().write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.synced().sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.synced().sync_all()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step().set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.step().len()
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        self.step().map(len)
    }
}

/// A clock on which who sleeps lets others go on.
#[derive(Debug)]
struct StepClock(Arc<SimClock>);

impl Clock for StepClock {
    fn now_us(&self) -> i64 {
        self.0.now_us()
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.monotonic_ns()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
        super::thread::yield_now();
    }
}
