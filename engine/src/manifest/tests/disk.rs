//! A disk in memory whose unsynced bytes and names can be lost, one by one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronolith_vfs::{DirEntry, FileBytes, Stat, Vfs, VfsFile, VfsLock};

const SECTOR: usize = 512;

/// Which of several unsynced things survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    None,
    All,
    Odd,
    Even,
}

impl Kept {
    fn keeps(self, index: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Odd => !index.is_multiple_of(2),
            Self::Even => index.is_multiple_of(2),
        }
    }
}

/// One way a power cut can leave the disk: unsynced names and unsynced sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CrashImage {
    names: Kept,
    sectors: Kept,
}

impl CrashImage {
    pub(super) fn all() -> [Self; 8] {
        use Kept::{All, Even, None, Odd};
        let pairs = [
            (None, None),
            (None, All),
            (All, None),
            (All, All),
            (Odd, Even),
            (Even, Odd),
            (All, Even),
            (Odd, None),
        ];
        pairs.map(|(names, sectors)| Self { names, sectors })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    File(usize),
    Dir,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

type Names = BTreeMap<PathBuf, Node>;

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    cached: Names,
    durable: Names,
    log: Vec<String>,
    /// This operation and all later calls fail: the power is gone.
    crash_at: Option<usize>,
    /// This operation fails once.
    fault_at: Option<usize>,
    dead: bool,
}

/// The disk. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the changing operation number `n`, from 0, and everything after it fail.
    pub(super) fn set_crash_point(&self, n: usize) {
        self.lock().crash_at = Some(n);
    }

    /// Lets the changing operation number `n`, from 0, fail once.
    pub(super) fn set_fault(&self, n: usize) {
        self.lock().fault_at = Some(n);
    }

    /// The changing operations so far.
    pub(super) fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// The process died, the machine did not: all names and bytes are as last seen.
    pub(super) fn restart(&self) {
        let mut state = self.lock();
        (state.crash_at, state.fault_at, state.dead) = (None, None, false);
    }

    /// The disk after a power cut.
    pub(super) fn crash(&self, image: CrashImage) -> Self {
        let state = self.lock();
        let mut names = state.durable.clone();
        let touched: Vec<&PathBuf> = state.cached.keys().chain(state.durable.keys()).collect();
        let mut changed: Vec<&PathBuf> = touched
            .into_iter()
            .filter(|path| state.cached.get(*path) != state.durable.get(*path))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for (index, path) in changed.into_iter().enumerate() {
            if image.names.keeps(index) {
                match state.cached.get(path) {
                    Some(node) => names.insert(path.clone(), *node),
                    None => names.remove(path),
                };
            }
        }
        // What lies in a directory that was lost is lost with it.
        let dirs: Vec<PathBuf> = names
            .iter()
            .filter(|(_, node)| **node == Node::Dir)
            .map(|(path, _)| path.clone())
            .collect();
        names.retain(|path, _| {
            path.ancestors()
                .skip(1)
                .all(|dir| dir == Path::new("/") || dirs.iter().any(|d| d == dir))
        });
        let inodes = state
            .inodes
            .iter()
            .map(|inode| settle(inode, image.sectors))
            .collect();
        let after = State {
            inodes,
            cached: names.clone(),
            durable: names,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(after)))
    }

    /// A copy on its own, all of it durable.
    pub(super) fn fork(&self) -> Self {
        self.crash(CrashImage {
            names: Kept::All,
            sectors: Kept::All,
        })
    }

    pub(super) fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.lock();
        match state.cached.get(path)? {
            Node::File(index) => Some(state.inodes[*index].cached.clone()),
            Node::Dir => None,
        }
    }

    /// Puts bytes under a name, behind the engine's back.
    pub(super) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock();
        let index = state.inodes.len();
        state.inodes.push(Inode {
            cached: bytes.to_vec(),
            durable: bytes.to_vec(),
        });
        state.cached.insert(path.to_owned(), Node::File(index));
        state.durable.insert(path.to_owned(), Node::File(index));
    }

    pub(super) fn delete(&self, path: &Path) {
        let mut state = self.lock();
        state.cached.remove(path);
        state.durable.remove(path);
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        let state = self.lock();
        state
            .cached
            .iter()
            .filter(|(_, node)| matches!(node, Node::File(_)))
            .map(|(path, _)| path.clone())
            .collect()
    }

    fn looking(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.dead {
            Err(io::Error::other("the power is gone"))
        } else {
            Ok(state)
        }
    }

    fn changing(&self, what: &str, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.looking()?;
        let op = state.log.len();
        state.log.push(format!("{what} {}", path.display()));
        if state.crash_at.is_some_and(|n| op >= n) {
            state.dead = true;
            return Err(io::Error::other("the power is gone"));
        }
        if state.fault_at == Some(op) {
            return Err(io::Error::other("injected"));
        }
        Ok(state)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        match self.looking()?.cached.get(path) {
            Some(Node::File(index)) => Ok(Arc::new(OpenFile {
                disk: self.clone(),
                index: *index,
                path: path.to_owned(),
            })),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn settle(inode: &Inode, sectors: Kept) -> Inode {
    if sectors == Kept::None {
        return Inode {
            cached: inode.durable.clone(),
            durable: inode.durable.clone(),
        };
    }
    // The size leads the data: a sector that was lost shows what was there before, or zeros.
    let mut bytes = inode.cached.clone();
    for (index, sector) in bytes.chunks_mut(SECTOR).enumerate() {
        if !sectors.keeps(index) {
            let start = (index * SECTOR).min(inode.durable.len());
            let old = &inode.durable[start..inode.durable.len().min(start + sector.len())];
            sector.fill(0);
            sector[..old.len()].copy_from_slice(old);
        }
    }
    Inode {
        cached: bytes.clone(),
        durable: bytes,
    }
}

impl Vfs for Disk {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.open(path)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.open(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let mut state = self.changing("create", path)?;
        if state.cached.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let index = state.inodes.len();
        state.inodes.push(Inode::default());
        state.cached.insert(path.to_owned(), Node::File(index));
        drop(state);
        self.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.changing("rename", to)?;
        let node = state.cached.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.cached.insert(to.to_owned(), node);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.changing("remove", path)?;
        state
            .cached
            .remove(path)
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.changing("create_dir", path)?;
        if state.cached.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.cached.insert(path.to_owned(), Node::Dir);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.changing("sync_dir", path)?;
        let State {
            cached, durable, ..
        } = &mut *state;
        let inside = |name: &Path| name.parent() == Some(path);
        durable.retain(|name, _| !inside(name));
        durable.extend(
            cached
                .iter()
                .filter(|(name, _)| inside(name))
                .map(|(name, node)| (name.clone(), *node)),
        );
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.looking()?;
        if path != Path::new("/") && state.cached.get(path) != Some(&Node::Dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state
            .cached
            .iter()
            .filter(|(name, _)| name.parent() == Some(path));
        Ok(inside
            .map(|(name, node)| DirEntry {
                name: name
                    .file_name()
                    .expect("not the root")
                    .to_string_lossy()
                    .into_owned(),
                is_dir: *node == Node::Dir,
            })
            .collect())
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let state = self.looking()?;
        match state.cached.get(path) {
            Some(Node::File(index)) => Ok(Stat {
                len: state.inodes[*index].cached.len() as u64,
                is_dir: false,
            }),
            Some(Node::Dir) => Ok(Stat {
                len: 0,
                is_dir: true,
            }),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        self.changing("seal", path).map(|_| ())
    }

    fn try_lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug)]
struct OpenFile {
    disk: Disk,
    index: usize,
    path: PathBuf,
}

impl VfsFile for OpenFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.looking()?;
        let bytes = &state.inodes[self.index].cached;
        let start = usize::try_from(offset)
            .expect("small files")
            .min(bytes.len());
        let n = buf.len().min(bytes.len() - start);
        buf[..n].copy_from_slice(&bytes[start..start + n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.changing("write", &self.path)?;
        let bytes = &mut state.inodes[self.index].cached;
        let start = usize::try_from(offset).expect("small files");
        bytes.resize(bytes.len().max(start + buf.len()), 0);
        bytes[start..start + buf.len()].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn sync_all(&self) -> io::Result<()> {
        let mut state = self.disk.changing("sync", &self.path)?;
        let inode = &mut state.inodes[self.index];
        inode.durable = inode.cached.clone();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.changing("set_len", &self.path)?;
        state.inodes[self.index]
            .cached
            .resize(usize::try_from(len).expect("small files"), 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.looking()?.inodes[self.index].cached.len() as u64)
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        let mut bytes = self.disk.looking()?.inodes[self.index].cached.clone();
        bytes.truncate(usize::try_from(len).expect("small files"));
        Ok(FileBytes::new(bytes))
    }
}
