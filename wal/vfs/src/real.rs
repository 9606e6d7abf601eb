//! The operating system's files, clock, randomness and threads.

#![expect(
    clippy::disallowed_methods,
    reason = "this module is the one door to the operating system"
)]

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::bytes::FileBytes;
use crate::map;
use crate::planted::{self, Bug};
use crate::traits::{
    Clock, DirEntry, Entropy, Env, FileKind, Job, Joiner, Stat, Threads, Vfs, VfsFile, VfsLock,
};

/// Mode of a file that is still written.
const FILE_MODE: u32 = 0o600;
/// Mode of a sealed file.
const SEALED_MODE: u32 = 0o400;
/// Mode of a directory.
const DIR_MODE: u32 = 0o700;

/// On a file it does nothing; on anything else it keeps an open from waiting.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Refuses what is no regular file, by name.
fn check_file(kind: fs::FileType) -> io::Result<()> {
    let (error, what) = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => (io::ErrorKind::IsADirectory, "a directory"),
        () if kind.is_fifo() => (io::ErrorKind::InvalidData, "a named pipe"),
        () if kind.is_socket() => (io::ErrorKind::InvalidData, "a socket"),
        () => (io::ErrorKind::InvalidData, "a device"),
    };
    Err(io::Error::new(error, format!("is {what}, not a file")))
}

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealVfs {
    /// True: `map` reads the file onto the heap, so no fault can come from a mapping.
    positioned: bool,
}

impl RealVfs {
    /// Maps sealed files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Never maps: keeps every promise even where files are cut from outside.
    pub fn positioned() -> Self {
        Self { positioned: true }
    }

    /// Opens a regular file, and nothing else: a pipe without a writer would block for ever.
    fn open_file(self, path: &Path, options: &mut OpenOptions) -> io::Result<Arc<dyn VfsFile>> {
        let opened = options.custom_flags(NONBLOCK).open(path);
        let (file, kind) = match opened {
            Ok(file) => {
                let kind = file.metadata()?.file_type();
                (Ok(file), kind)
            }
            // Some of them cannot even be opened, each with an error of its own.
            Err(error) => match fs::metadata(path) {
                Ok(meta) => (Err(error), meta.file_type()),
                Err(_) => return Err(error),
            },
        };
        check_file(kind)?;
        Ok(self.wrap(file?))
    }

    fn wrap(self, file: File) -> Arc<dyn VfsFile> {
        Arc::new(RealFile {
            file,
            positioned: self.positioned,
        })
    }
}

impl Vfs for RealVfs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.open_file(path, OpenOptions::new().read(true))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.open_file(path, OpenOptions::new().read(true).write(true))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE);
        Ok(self.wrap(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(DIR_MODE).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let dir = options.read(true).custom_flags(NONBLOCK).open(path)?;
        dir.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry {
                name,
                is_dir: entry.file_type()?.is_dir(),
            });
        }
        entries.sort();
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let meta = fs::metadata(path)?;
        let len = if meta.is_dir() { 0 } else { meta.len() };
        Ok(Stat {
            len,
            is_dir: meta.is_dir(),
        })
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let kind = fs::symlink_metadata(path)?.file_type();
        Ok(match (kind.is_file(), kind.is_dir()) {
            (true, _) => FileKind::File,
            (_, true) => FileKind::Dir,
            _ => FileKind::Other,
        })
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(SEALED_MODE))
    }

    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(NONBLOCK)
            .mode(FILE_MODE);
        let file = options.open(path)?;
        check_file(file.metadata()?.file_type())?;
        if !planted::is_on(Bug::LockNotTaken) {
            file.try_lock().map_err(|error| match error {
                fs::TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
                fs::TryLockError::Error(error) => error,
            })?;
        }
        let lock = RealLock {
            file,
            path: path.to_path_buf(),
            pid: std::process::id(),
        };
        // The file may have been replaced between open and lock: then another one is named.
        if lock.is_valid() {
            Ok(Box::new(lock))
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn is_real(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    positioned: bool,
}

impl VfsFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        if !self.positioned {
            return map::map(&self.file, len);
        }
        if self.file.metadata()?.len() < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(FileBytes::new(bytes))
    }
}

#[derive(Debug)]
struct RealLock {
    file: File,
    path: PathBuf,
    pid: u32,
}

impl VfsLock for RealLock {
    fn is_valid(&self) -> bool {
        let same_file = || -> io::Result<bool> {
            let (ours, named) = (self.file.metadata()?, fs::metadata(&self.path)?);
            Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
        };
        self.pid == std::process::id() && same_file().unwrap_or(false)
    }
}

impl Drop for RealLock {
    /// Unlocks by name, not by closing alone: a child that is being started may hold a copy of
    /// the descriptor for a moment, and would keep the lock with it. A forked child itself must
    /// not unlock what is its parent's.
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl Default for RealClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for RealClock {
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let us = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        since.map_or_else(|before| -us(before.duration()), us)
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealEntropy;

impl Entropy for RealEntropy {
    fn fill(&self, buf: &mut [u8]) {
        let read =
            File::open("/dev/urandom").and_then(|mut file| io::Read::read_exact(&mut file, buf));
        // Ids from a known seed would collide between stores: better not to start at all.
        assert!(
            read.is_ok(),
            "the system has no /dev/urandom to draw a store id from"
        );
    }
}

/// The operating system's threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealThreads;

#[derive(Debug)]
struct RealJoiner(std::thread::JoinHandle<()>);

impl Threads for RealThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joiner>> {
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)?;
        Ok(Box::new(RealJoiner(handle)))
    }

    fn run_all(&self, jobs: Vec<Job<'_>>) {
        // Behind locks, so that a thread that cannot be had loses no job: the caller's own
        // thread takes what is left.
        let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
        let run = |job: &Mutex<Option<Job<'_>>>| {
            let taken = job.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(job) = taken {
                job();
            }
        };
        std::thread::scope(|scope| {
            for job in jobs.iter().skip(1) {
                let builder = std::thread::Builder::new().name("chronolith-query".into());
                // Without a thread the job stays where it is.
                let _unstarted = builder.spawn_scoped(scope, move || run(job)).is_err();
            }
            jobs.iter().take(1).for_each(run);
            jobs.iter().skip(1).for_each(run);
        });
    }
}

impl Joiner for RealJoiner {
    fn join(self: Box<Self>) -> bool {
        self.0.join().is_ok()
    }
}

impl Env {
    /// The operating system behind every door.
    pub fn real() -> Self {
        Self {
            vfs: Arc::new(RealVfs::new()),
            clock: Arc::new(RealClock::default()),
            entropy: Arc::new(RealEntropy),
            threads: Arc::new(RealThreads),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let path = std::env::temp_dir().join(format!("chronolith-lock-{}", std::process::id()));
        let file = File::create(&path).expect("created");
        file.try_lock().expect("free");
        // What a child holds between fork and exec.
        let copy = file.try_clone().expect("copied");
        let pid = std::process::id();
        let lock = RealLock {
            file,
            path: path.clone(),
            pid,
        };
        drop(lock);
        assert!(RealVfs::new().try_lock(&path).is_ok());
        drop(copy);
        fs::remove_file(&path).expect("removed");
    }
}
