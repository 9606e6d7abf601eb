//! A disk that forgets what was not synced: sectors one by one, names one by one.
//!
//! Small on purpose, and independent of `chronolith_vfs`'s simulation: the log's own suites
//! see two readings of the fault model instead of one.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chronolith_vfs::{
    Clock, DirEntry, Entropy, Env, FileBytes, Joiner, Stat, Threads, Vfs, VfsFile, VfsLock,
};

const SECTOR: u64 = 512;

/// What a power cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    /// Everything: only the process died.
    All,
    /// Nothing that was not synced.
    Synced,
    /// All bytes, no unsynced names.
    BytesOnly,
    /// All names and lengths, no unsynced bytes (zeros).
    NamesOnly,
    /// Each sector, length and name by a coin; four coins.
    Coin(u64),
}

impl Image {
    pub(crate) fn all() -> [Self; 8] {
        [
            Self::All,
            Self::Synced,
            Self::BytesOnly,
            Self::NamesOnly,
            Self::Coin(1),
            Self::Coin(2),
            Self::Coin(3),
            Self::Coin(4),
        ]
    }
}

/// Kinds of operations that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    Cut,
    Sync,
    SyncDir,
    Rename,
    Create,
}

#[derive(Default)]
struct Inode {
    now: Vec<u8>,
    synced: Vec<u8>,
    pending: Vec<Change>,
}

enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

type Names = BTreeMap<String, usize>;

enum NameChange {
    Put(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: Names,
    names_synced: Names,
    names_pending: Vec<NameChange>,
    operations: u64,
    crash_at: Option<u64>,
    dead: bool,
    fault: Option<(Op, u64, ErrorKind)>,
    space_left: Option<u64>,
    syncs: u64,
    sync_pause: Duration,
    half: Option<Half>,
}

/// A write that readers see in part for a while.
#[derive(Clone)]
struct Half {
    /// Bytes of the write, and which of them are seen at once.
    len: usize,
    seen: Range<usize>,
    /// Reads that see no more.
    reads: u64,
    /// Once it was written: where, and what was there before.
    old: Option<(usize, u64, Vec<u8>)>,
}

/// The disk; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl Disk {
    pub(crate) fn env(&self) -> Env {
        Env {
            vfs: Arc::new(self.clone()),
            clock: Arc::new(NoClock),
            entropy: Arc::new(NoClock),
            threads: Arc::new(NoClock),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic inside")
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// The process dies in the `n`th changing operation from now (0 is the next).
    pub(crate) fn crash_at(&self, n: u64) {
        let mut s = self.state();
        s.crash_at = Some(s.operations + n);
    }

    /// The `nth` operation of this kind from now (0 is the next) fails once.
    pub(crate) fn fail(&self, op: Op, nth: u64, kind: ErrorKind) {
        self.state().fault = Some((op, nth, kind));
    }

    /// Only so many more bytes fit; `None` for no limit.
    pub(crate) fn limit_space(&self, bytes: Option<u64>) {
        self.state().space_left = bytes;
    }

    /// Of the next write of `len` bytes the next `reads` reads see those of `seen` alone.
    pub(crate) fn show_half(&self, len: usize, seen: Range<usize>, reads: u64) {
        self.state().half = Some(Half {
            len,
            seen,
            reads,
            old: None,
        });
    }

    /// True once that write was done.
    pub(crate) fn has_half(&self) -> bool {
        self.state()
            .half
            .as_ref()
            .is_some_and(|half| half.old.is_some())
    }

    pub(crate) fn pause_syncs(&self, pause: Duration) {
        self.state().sync_pause = pause;
    }

    /// What the next process finds.
    pub(crate) fn crash(&self, image: Image, salt: u64) {
        let mut s = self.state();
        let mut coin = Coin(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678);
        if let Image::Coin(n) = image {
            coin.0 ^= n << 17;
        }
        s.crash_at = None;
        s.dead = false;
        if image == Image::All {
            // The cache outlives the process, and is still not on the disk.
            return;
        }
        s.crash_names(image, &mut coin);
        for inode in &mut s.inodes {
            inode.crash(image, &mut coin);
        }
    }
}

impl Half {
    /// The write, before it is done.
    fn begin(&mut self, inode: usize, offset: u64, now: &[u8]) {
        let at = offset as usize;
        self.old = now
            .get(at..at + self.len)
            .map(|old| (inode, offset, old.to_vec()));
    }

    /// Puts what was there before over what a read of `buf` at `offset` must not see.
    fn hide(&mut self, inode: usize, offset: u64, buf: &mut [u8]) {
        let Some((of, begin, old)) = &self.old else {
            return;
        };
        let is_read = *of == inode && offset <= *begin && *begin < offset + buf.len() as u64;
        if !is_read || self.reads == 0 {
            return;
        }
        self.reads -= 1;
        let at = (begin - offset) as usize;
        for (place, byte) in old.iter().enumerate() {
            if !self.seen.contains(&place)
                && let Some(shown) = buf.get_mut(at + place)
            {
                *shown = *byte;
            }
        }
    }
}

impl State {
    /// Counts a changing operation; true for the one in which the process dies.
    fn step(&mut self, op: Op) -> io::Result<bool> {
        self.check(op)?;
        let dies = self.crash_at == Some(self.operations);
        self.operations += 1;
        self.dead |= dies;
        Ok(dies)
    }

    fn check(&mut self, op: Op) -> io::Result<()> {
        if self.dead {
            return Err(dead());
        }
        if let Some((kind, left, error)) = &mut self.fault
            && *kind == op
        {
            if *left == 0 {
                let error = *error;
                self.fault = None;
                return Err(error.into());
            }
            *left -= 1;
        }
        Ok(())
    }

    fn name_change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.names_pending.push(change);
    }

    fn crash_names(&mut self, image: Image, coin: &mut Coin) {
        let mut names = self.names_synced.clone();
        for change in self.names_pending.drain(..) {
            let kept = match image {
                Image::All | Image::NamesOnly => true,
                Image::Synced | Image::BytesOnly => false,
                Image::Coin(_) => coin.flip(),
            };
            if kept {
                change.apply(&mut names);
            }
        }
        self.names = names.clone();
        self.names_synced = names;
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Put(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

impl Inode {
    fn crash(&mut self, image: Image, coin: &mut Coin) {
        let mut bytes = std::mem::take(&mut self.synced);
        if matches!(image, Image::All | Image::BytesOnly) {
            bytes = self.now.clone();
        } else if image != Image::Synced {
            for change in &self.pending {
                change.survive(&mut bytes, image, coin);
            }
        }
        self.pending.clear();
        self.now = bytes.clone();
        self.synced = bytes;
    }

    fn write(&mut self, offset: u64, buf: &[u8]) {
        put(&mut self.now, offset, buf);
        self.pending.push(Change::Write(offset, buf.to_vec()));
    }
}

impl Change {
    fn survive(&self, bytes: &mut Vec<u8>, image: Image, coin: &mut Coin) {
        match self {
            Self::Len(len) if coin.flip() => bytes.resize(*len as usize, 0),
            Self::Len(_) => {}
            Self::Write(offset, data) => {
                let end = *offset + data.len() as u64;
                // The length may lead the data.
                if (image == Image::NamesOnly || coin.flip()) && bytes.len() < end as usize {
                    bytes.resize(end as usize, 0);
                }
                let mut at = *offset;
                while image != Image::NamesOnly && at < end {
                    let sector_end = ((at / SECTOR + 1) * SECTOR).min(end);
                    if coin.flip() {
                        let from = (at - offset) as usize;
                        put(bytes, at, &data[from..from + (sector_end - at) as usize]);
                    }
                    at = sector_end;
                }
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let end = offset as usize + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset as usize..end].copy_from_slice(data);
}

struct Coin(u64);

impl Coin {
    fn flip(&mut self) -> bool {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 63 == 1
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    inode: usize,
}

impl Vfs for Disk {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut s = self.state();
        s.check(Op::Read)?;
        let inode = *s.names.get(&name_of(path)).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(Handle {
            disk: self.clone(),
            inode,
        }))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.open_read(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut s = self.state();
        let dies = s.step(Op::Create)?;
        if s.names.contains_key(&name_of(path)) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let inode = s.inodes.len();
        s.inodes.push(Inode::default());
        s.name_change(NameChange::Put(name_of(path), inode));
        if dies {
            Err(dead())
        } else {
            Ok(Arc::new(Handle {
                disk: self.clone(),
                inode,
            }))
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut s = self.state();
        let dies = s.step(Op::Rename)?;
        let inode = *s.names.get(&name_of(from)).ok_or(ErrorKind::NotFound)?;
        s.name_change(NameChange::Rename(name_of(from), name_of(to), inode));
        if dies { Err(dead()) } else { Ok(()) }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut s = self.state();
        if !s.names.contains_key(&name_of(path)) {
            return Err(ErrorKind::NotFound.into());
        }
        let dies = s.step(Op::Rename)?;
        s.name_change(NameChange::Remove(name_of(path)));
        if dies { Err(dead()) } else { Ok(()) }
    }

    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut s = self.state();
        if s.step(Op::SyncDir)? {
            return Err(dead());
        }
        s.names_synced = s.names.clone();
        s.names_pending.clear();
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        let mut s = self.state();
        s.check(Op::Read)?;
        Ok(s.names
            .keys()
            .map(|name| DirEntry {
                name: name.clone(),
                is_dir: false,
            })
            .collect())
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let s = self.state();
        let inode = *s.names.get(&name_of(path)).ok_or(ErrorKind::NotFound)?;
        Ok(Stat {
            len: s.inodes[inode].now.len() as u64,
            is_dir: false,
        })
    }

    fn seal(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(ErrorKind::Unsupported.into())
    }
}

impl VfsFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut s = self.disk.state();
        s.check(Op::Read)?;
        let bytes = s.inodes[self.inode]
            .now
            .get(offset as usize..)
            .unwrap_or(&[]);
        let n = buf.len().min(bytes.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        if let Some(half) = &mut s.half {
            half.hide(self.inode, offset, &mut buf[..n]);
        }
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut s = self.disk.state();
        let dies = match s.step(Op::Write) {
            Ok(dies) => dies,
            Err(e) => {
                // An error is no promise that nothing was written: the worst case.
                if !s.dead {
                    s.inodes[self.inode].write(offset, buf);
                }
                return Err(e);
            }
        };
        if let Some(mut half) = s
            .half
            .take_if(|half| half.len == buf.len() && half.old.is_none())
        {
            half.begin(self.inode, offset, &s.inodes[self.inode].now);
            s.half = Some(half);
        }
        let len = s.inodes[self.inode].now.len() as u64;
        let mut n = buf.len();
        if let Some(left) = s.space_left {
            let grows = (offset + n as u64).saturating_sub(len).min(n as u64);
            n -= grows.saturating_sub(left) as usize;
            s.space_left = Some(left.saturating_sub(grows));
            if n == 0 && !buf.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        s.inodes[self.inode].write(offset, &buf[..n]);
        if dies { Err(dead()) } else { Ok(n) }
    }

    fn sync_data(&self) -> io::Result<()> {
        let pause = self.disk.state().sync_pause;
        if !pause.is_zero() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a slow disk is what is simulated"
            )]
            std::thread::sleep(pause);
        }
        let mut s = self.disk.state();
        if s.step(Op::Sync)? {
            return Err(dead());
        }
        s.syncs += 1;
        let inode = &mut s.inodes[self.inode];
        inode.synced = inode.now.clone();
        inode.pending.clear();
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut s = self.disk.state();
        let dies = s.step(Op::Cut)?;
        let inode = &mut s.inodes[self.inode];
        inode.now.resize(len as usize, 0);
        inode.pending.push(Change::Len(len));
        if dies { Err(dead()) } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        let mut s = self.disk.state();
        s.check(Op::Read)?;
        Ok(s.inodes[self.inode].now.len() as u64)
    }

    fn map(&self, _: u64) -> io::Result<FileBytes> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now_us(&self) -> i64 {
        0
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) {}
}

impl Entropy for NoClock {
    fn fill(&self, buf: &mut [u8]) {
        buf.fill(7);
    }
}

impl Threads for NoClock {
    fn spawn(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Joiner>> {
        Err(ErrorKind::Unsupported.into())
    }
}
