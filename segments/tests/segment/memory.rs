//! A file system in memory that can refuse its nth call.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chronolith_vfs::{DirEntry, FileBytes, Stat, Vfs, VfsFile, VfsLock};

type Bytes = Arc<Mutex<Vec<u8>>>;

#[derive(Debug, Default)]
pub struct MemoryVfs {
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug, Default)]
pub struct Calls {
    pub made: u64,
    pub fail_at: Option<u64>,
}

impl Calls {
    fn call(calls: &Mutex<Self>) -> io::Result<()> {
        let mut calls = calls.lock().expect("no panics");
        calls.made += 1;
        if calls.fail_at == Some(calls.made) {
            return Err(io::Error::other("refused by the test"));
        }
        Ok(())
    }
}

impl MemoryVfs {
    pub fn failing_at(call: u64) -> Self {
        let vfs = Self::default();
        vfs.calls.lock().expect("no panics").fail_at = Some(call);
        vfs
    }

    pub fn calls(&self) -> u64 {
        self.calls.lock().expect("no panics").made
    }

    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        self.files
            .lock()
            .expect("no panics")
            .insert(path.to_owned(), Arc::new(Mutex::new(bytes)));
    }

    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        self.files.lock().expect("no panics")[path]
            .lock()
            .expect("no panics")
            .clone()
    }

    pub fn names(&self) -> Vec<PathBuf> {
        self.files
            .lock()
            .expect("no panics")
            .keys()
            .cloned()
            .collect()
    }

    fn file(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let files = self.files.lock().expect("no panics");
        let bytes = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryFile {
            bytes: Arc::clone(bytes),
            calls: Arc::clone(&self.calls),
        }))
    }
}

#[derive(Debug)]
struct MemoryFile {
    bytes: Bytes,
    calls: Arc<Mutex<Calls>>,
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("small files")
}

impl VfsFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock().expect("no panics");
        let rest = bytes.get(at(offset)..).unwrap_or(&[]);
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        Calls::call(&self.calls)?;
        let mut bytes = self.bytes.lock().expect("no panics");
        let end = at(offset) + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at(offset)..end].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Calls::call(&self.calls)
    }

    fn sync_all(&self) -> io::Result<()> {
        Calls::call(&self.calls)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().expect("no panics").resize(at(len), 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().expect("no panics").len() as u64)
    }

    fn map(&self, len: u64) -> io::Result<FileBytes> {
        let bytes = self.bytes.lock().expect("no panics");
        Ok(FileBytes::new(
            bytes
                .get(..at(len))
                .ok_or(io::ErrorKind::UnexpectedEof)?
                .to_vec(),
        ))
    }
}

impl Vfs for MemoryVfs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.file(path)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.file(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        Calls::call(&self.calls)?;
        if self.names().iter().any(|name| name == path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.put(path, Vec::new());
        self.file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Calls::call(&self.calls)?;
        let mut files = self.files.lock().expect("no panics");
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files
            .lock()
            .expect("no panics")
            .remove(path)
            .map(|_| ())
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn stat(&self, _: &Path) -> io::Result<Stat> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn seal(&self, path: &Path) -> io::Result<()> {
        Calls::call(&self.calls)?;
        self.file(path).map(|_| ())
    }

    fn try_lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
