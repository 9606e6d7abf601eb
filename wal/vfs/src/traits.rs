//! What may be asked of a file system, a clock, a source of randomness and of threads.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::bytes::FileBytes;

/// One entry of a directory listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// File name without its directory. Names that are not UTF-8 are listed lossily; the
    /// engine matches names against its own patterns, so such a name is never ours.
    pub name: String,
    /// True for a directory.
    pub is_dir: bool,
}

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Length in bytes; 0 for a directory.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
}

/// What a name stands for, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, pipe, socket or device: never made by the engine.
    Other,
}

/// A file system.
///
/// Paths are absolute or relative to the process; the engine only ever passes a store
/// directory joined with names it made itself. A rename or a new name is durable after
/// [`Vfs::sync_dir`] of its directory and not before.
///
/// # Errors
/// Every call returns the operating system's error. Callers never retry a failed sync.
pub trait Vfs: Send + Sync + fmt::Debug {
    /// Opens an existing file for reading. Never waits: a pipe, socket or directory of that
    /// name is an error.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`, `InvalidData` where it is no file; or the system's error.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;
    /// Opens an existing file for reading and writing. Never waits, as [`Vfs::open_read`].
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`, `InvalidData` where it is no file; or the system's error.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;
    /// Creates a file (mode 0600) for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists`, or the system's error.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;
    /// Renames a file, replacing the target if it exists. Durable after `sync_dir`.
    ///
    /// # Errors
    /// The system's error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name on the same file system; the new one must be free. Durable
    /// after `sync_dir` of the new name's directory.
    ///
    /// # Errors
    /// `AlreadyExists`, `CrossesDevices`, or the system's error; `Unsupported` where there are
    /// no such links. A caller may copy instead.
    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file's name. Open handles and maps stay readable.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all below it. Only for whole sub-directories of our own.
    ///
    /// # Errors
    /// The system's error.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates one directory (mode 0700). Its parent must exist.
    ///
    /// # Errors
    /// `AlreadyExists`, or the system's error.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names inside `path` durable.
    ///
    /// # Errors
    /// The system's error; a failure is final, never retried.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Lists a directory, sorted by name.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Length and kind of a path.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// What a path stands for; a symbolic link is itself, not what it points to.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        Ok(match self.stat(path)?.is_dir {
            true => FileKind::Dir,
            false => FileKind::File,
        })
    }
    /// The path with every link in it followed, for what exists.
    ///
    /// # Errors
    /// `NotFound`, or the system's error.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.stat(path).map(|_| path.to_path_buf())
    }
    /// Makes a file read-only (mode 0400): it is sealed and never written again.
    ///
    /// # Errors
    /// The system's error.
    fn seal(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of the file at `path`, creating it if needed. Never waits.
    ///
    /// # Errors
    /// `WouldBlock` where another handle, thread or process holds it.
    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>>;
    /// True where paths are those of the operating system, so that a library which does its
    /// own I/O may be given one.
    fn is_real(&self) -> bool {
        false
    }
}

/// An open file. All I/O is positioned; there is no cursor.
#[expect(
    clippy::len_without_is_empty,
    reason = "the length is a question to the system that can fail; nobody asks for emptiness"
)]
pub trait VfsFile: Send + Sync + fmt::Debug {
    /// Reads up to `buf.len()` bytes at `offset`; 0 means end of file. May be short.
    ///
    /// # Errors
    /// The system's error, `Interrupted` included.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes up to `buf.len()` bytes at `offset`. May be short.
    ///
    /// # Errors
    /// The system's error, `Interrupted` and `StorageFull` included.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes data and the length needed to read it durable (fdatasync).
    ///
    /// # Errors
    /// The system's error; a failure is final, never retried.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes data and all metadata durable (fsync).
    ///
    /// # Errors
    /// The system's error; a failure is final, never retried.
    fn sync_all(&self) -> io::Result<()>;
    /// Cuts or extends (with zeros) the file.
    ///
    /// # Errors
    /// The system's error.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Current length in bytes.
    ///
    /// # Errors
    /// The system's error.
    fn len(&self) -> io::Result<u64>;
    /// The first `len` bytes as a slice: a mapping where the file system has them, else a
    /// copy on the heap. Only for sealed files that nobody writes or cuts any more. A mapping
    /// reads nothing ahead, see [`FileBytes::advise`].
    ///
    /// # Errors
    /// `UnexpectedEof` where the file is shorter than `len`.
    fn map(&self, len: u64) -> io::Result<FileBytes>;
}

impl dyn VfsFile + '_ {
    /// Fills `buf` from `offset`; goes on after `Interrupted` and short reads.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends first.
    pub fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    buf = &mut buf[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`; goes on after `Interrupted` and short writes.
    ///
    /// # Errors
    /// The system's error; an unknown prefix may have been written.
    pub fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    buf = &buf[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// An exclusive lock on a file, released when dropped.
pub trait VfsLock: Send + Sync + fmt::Debug {
    /// True while the locked file is still the one that `path` names and this is still the
    /// process that took the lock (a fork does not inherit it).
    fn is_valid(&self) -> bool;
}

/// Time. The engine reads wall time only where a caller's record or answer depends on it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall time in microseconds since the epoch. May go back.
    fn now_us(&self) -> i64;
    /// Nanoseconds since some fixed instant; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Waits. A simulated clock advances itself and returns at once.
    fn sleep(&self, duration: Duration);
}

/// Randomness: store ids and generated record ids. Never steers an answer.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// Fills `buf` with random bytes.
    fn fill(&self, buf: &mut [u8]);
}

/// Background threads.
pub trait Threads: Send + Sync + fmt::Debug {
    /// Starts a named thread.
    ///
    /// # Errors
    /// The system's error where no thread can be had.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joiner>>;

    /// Runs all of `jobs` and returns when they have ended; a panic of one is passed on then.
    /// At once where threads can be had, the first one on the caller's. As it stands here it
    /// runs them one after the other.
    fn run_all(&self, jobs: Vec<Job<'_>>) {
        jobs.into_iter().for_each(|job| job());
    }
}

/// A piece of work for [`Threads::run_all`].
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Waits for one background thread.
pub trait Joiner: Send + fmt::Debug {
    /// Waits for the thread's end; false if it panicked.
    fn join(self: Box<Self>) -> bool;
}

/// All doors to the outside, as one value that is cheap to clone.
#[derive(Debug, Clone)]
pub struct Env {
    /// Files.
    pub vfs: Arc<dyn Vfs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Threads.
    pub threads: Arc<dyn Threads>,
}
