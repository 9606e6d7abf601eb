//! What if the nth operation fails? A layer over any file system that makes it so.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bytes::FileBytes;
use crate::op::{Errno, OpKind};
use crate::sim::{FailedSync, SimVfs};
use crate::traits::{DirEntry, FileKind, Stat, Vfs, VfsFile, VfsLock};

/// What happens to an operation that a rule picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultAction {
    /// It is not done and fails.
    Error(Errno),
    /// It is done and reports failure all the same: the outcome is unknown to the caller.
    ErrorAfter(Errno),
    /// A read or write moves at most this many bytes (at least one); others are done as usual.
    Short(usize),
    /// A file sync fails and takes the dirty pages with it. Only over a [`SimVfs`]
    /// ([`FaultVfs::over_sim`]), whose next sync fails: syncs from several threads may swap turns.
    FailedSync(FailedSync),
}

/// Which operations fail, and how. Operations count from when the rule is added.
#[derive(Debug, Clone)]
pub struct FaultRule {
    /// Kind of operation; `None` is any.
    pub kind: Option<OpKind>,
    /// Only paths that contain this. A file is known by the path it was opened by, a rename or
    /// a link by both its paths.
    pub path_part: Option<String>,
    /// Operations that match and are left alone before the first that is hit.
    pub skip: u64,
    /// Operations hit before the rule is spent; `u64::MAX` is for ever.
    pub times: u64,
    /// What happens to them.
    pub action: FaultAction,
}

impl FaultRule {
    /// Hits the next operation of any kind, once.
    pub fn new(action: FaultAction) -> Self {
        Self {
            kind: None,
            path_part: None,
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Fails with an error.
    pub fn error(errno: Errno) -> Self {
        Self::new(FaultAction::Error(errno))
    }

    /// Only operations of this kind.
    #[must_use]
    pub fn on(mut self, kind: OpKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Only paths that contain `part`.
    #[must_use]
    pub fn at_path(mut self, part: &str) -> Self {
        self.path_part = Some(part.to_owned());
        self
    }

    /// Leaves the first `n` matching operations alone: hits operation `n`, counted from 0.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.skip = n;
        self
    }

    /// Hits every matching operation from the first one on.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.times = u64::MAX;
        self
    }

    fn matches(&self, kind: OpKind, paths: &[&Path]) -> bool {
        let at_path = |part: &String| paths.iter().any(|p| p.to_string_lossy().contains(part));
        self.kind.is_none_or(|wanted| wanted == kind) && self.path_part.as_ref().is_none_or(at_path)
    }

    /// Counts one matching operation; true if it is hit.
    fn take(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.times == 0 {
            return false;
        }
        if self.times != u64::MAX {
            self.times -= 1;
        }
        true
    }
}

#[derive(Default)]
struct Plan {
    rules: Vec<FaultRule>,
    counts: [u64; OpKind::ALL.len()],
    hits: u64,
}

struct Shared {
    inner: Arc<dyn Vfs>,
    /// Set where `inner` is a simulated disk, which can lose dirty pages.
    sim: Option<SimVfs>,
    plan: Mutex<Plan>,
}

/// Another file system with faults on top. Clones share rules and counters.
#[derive(Clone)]
pub struct FaultVfs(Arc<Shared>);

impl fmt::Debug for FaultVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultVfs({:?}, {} hits)", self.0.inner, self.hits())
    }
}

impl FaultVfs {
    /// Without rules, all passes through.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self::build(inner, None)
    }

    /// Over a simulated disk, so that [`FaultAction::FailedSync`] can be asked for.
    pub fn over_sim(sim: &SimVfs) -> Self {
        Self::build(Arc::new(sim.clone()), Some(sim.clone()))
    }

    fn build(inner: Arc<dyn Vfs>, sim: Option<SimVfs>) -> Self {
        Self(Arc::new(Shared {
            inner,
            sim,
            plan: Mutex::default(),
        }))
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule. Rules are asked in order; the first that hits decides, and the ones behind
    /// it do not count that operation.
    ///
    /// # Panics
    /// If [`FaultAction::FailedSync`] is asked for without [`FaultVfs::over_sim`], or for
    /// another kind than [`OpKind::Sync`]: such a test would test nothing.
    pub fn add(&self, rule: FaultRule) {
        if matches!(rule.action, FaultAction::FailedSync(_)) {
            let can_lose = self.0.sim.is_some() && rule.kind == Some(OpKind::Sync);
            assert!(can_lose, "FailedSync needs over_sim and OpKind::Sync");
        }
        self.plan().rules.push(rule);
    }

    /// Removes all rules; counters stay. Faults stop here.
    pub fn clear(&self) {
        self.plan().rules.clear();
    }

    /// Operations of a kind so far, failed ones included.
    pub fn count(&self, kind: OpKind) -> u64 {
        self.plan().counts[kind as usize]
    }

    /// Operations of all kinds so far.
    pub fn total(&self) -> u64 {
        self.plan().counts.iter().sum()
    }

    /// Operations that a rule hit. A test that expects a fault checks this.
    pub fn hits(&self) -> u64 {
        self.plan().hits
    }

    fn decide(&self, kind: OpKind, paths: &[&Path]) -> Option<FaultAction> {
        let mut plan = self.plan();
        plan.counts[kind as usize] += 1;
        let mut rules = plan.rules.iter_mut();
        let hit = rules.find_map(|rule| {
            let hit = rule.matches(kind, paths) && rule.take();
            hit.then_some(rule.action)
        });
        plan.hits += u64::from(hit.is_some());
        hit
    }

    /// Does an operation as the rules say; `op` gets the most bytes it may move.
    fn run<T>(
        &self,
        kind: OpKind,
        paths: &[&Path],
        op: impl FnOnce(usize) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.decide(kind, paths) {
            None => op(usize::MAX),
            Some(FaultAction::Short(bytes_max)) => op(bytes_max.max(1)),
            Some(FaultAction::Error(errno)) => Err(errno.into()),
            Some(FaultAction::ErrorAfter(errno)) => {
                op(usize::MAX)?;
                Err(errno.into())
            }
            Some(FaultAction::FailedSync(mode)) => {
                if let Some(sim) = &self.0.sim {
                    sim.fail_sync(0, mode);
                }
                op(usize::MAX)
            }
        }
    }

    fn wrap(&self, inner: Arc<dyn VfsFile>, path: &Path) -> Arc<dyn VfsFile> {
        Arc::new(FaultFile {
            inner,
            faults: self.clone(),
            path: path.to_path_buf(),
        })
    }
}

impl Vfs for FaultVfs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let open = |_| self.0.inner.open_read(path);
        Ok(self.wrap(self.run(OpKind::OpenRead, &[path], open)?, path))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let open = |_| self.0.inner.open_write(path);
        Ok(self.wrap(self.run(OpKind::OpenWrite, &[path], open)?, path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let create = |_| self.0.inner.create_new(path);
        Ok(self.wrap(self.run(OpKind::Create, &[path], create)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let rename = |_| self.0.inner.rename(from, to);
        self.run(OpKind::Rename, &[from, to], rename)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let link = |_| self.0.inner.hard_link(from, to);
        self.run(OpKind::Link, &[from, to], link)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.run(OpKind::Remove, &[path], |_| self.0.inner.remove_file(path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let remove = |_| self.0.inner.remove_dir_all(path);
        self.run(OpKind::RemoveDir, &[path], remove)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let create = |_| self.0.inner.create_dir(path);
        self.run(OpKind::CreateDir, &[path], create)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.run(OpKind::SyncDir, &[path], |_| self.0.inner.sync_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.run(OpKind::List, &[path], |_| self.0.inner.list(path))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.run(OpKind::Stat, &[path], |_| self.0.inner.stat(path))
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        self.run(OpKind::Stat, &[path], |_| self.0.inner.kind(path))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.inner.canonical(path)
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        self.run(OpKind::Seal, &[path], |_| self.0.inner.seal(path))
    }

    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.run(OpKind::Lock, &[path], |_| self.0.inner.try_lock(path))
    }
}

struct FaultFile {
    inner: Arc<dyn VfsFile>,
    faults: FaultVfs,
    path: PathBuf,
}

impl fmt::Debug for FaultFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultFile({:?})", self.inner)
    }
}

impl FaultFile {
    fn run<T>(&self, kind: OpKind, op: impl FnOnce(usize) -> io::Result<T>) -> io::Result<T> {
        self.faults.run(kind, &[&self.path], op)
    }
}

impl VfsFile for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.run(OpKind::Read, |bytes_max| {
            let len = buf.len().min(bytes_max);
            self.inner.read_at(&mut buf[..len], offset)
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.run(OpKind::Write, |bytes_max| {
            let len = buf.len().min(bytes_max);
            self.inner.write_at(&buf[..len], offset)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.run(OpKind::Sync, |_| self.inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.run(OpKind::Sync, |_| self.inner.sync_all())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.run(OpKind::SetLen, |_| self.inner.set_len(len))
    }

    fn len(&self) -> io::Result<u64> {
        self.run(OpKind::Len, |_| self.inner.len())
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        self.run(OpKind::Map, |_| self.inner.map(len))
    }
}
