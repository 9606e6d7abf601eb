//! How does the command touch files? Through the same file-system layer as the engine.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith::manifest::{self, ManifestError, Settings};
use chronolith_vfs::{Env, FileKind, RealVfs, Vfs, VfsFile};

use crate::failure::Failure;

/// Buffer of sequential reads and writes.
const BUFFER_BYTES: usize = 256 << 10;
/// Largest small file that is read whole (queries, judgements).
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// The system's files.
pub(crate) fn vfs() -> RealVfs {
    RealVfs::new()
}

/// Seconds since some fixed instant.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    env: Env,
    start_ns: u64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let env = Env::real();
        let start_ns = env.clock.monotonic_ns();
        Self { env, start_ns }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let passed = self.env.clock.monotonic_ns().saturating_sub(self.start_ns);
        std::time::Duration::from_nanos(passed).as_secs_f64()
    }
}

/// A file read from its start to its end.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: Arc<dyn VfsFile>,
    offset: u64,
}

impl FileReader {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let opened = vfs().open_read(path).and_then(|file| {
            // A directory opens on some systems and fails on the first read only.
            match vfs().stat(path)?.is_dir {
                true => Err(io::ErrorKind::IsADirectory.into()),
                false => Ok(file),
            }
        });
        let file = opened.map_err(|error| Failure::io("read", path, &error))?;
        Ok(Self { file, offset: 0 })
    }

    pub(crate) fn buffered(path: &Path) -> Result<BufReader<Self>, Failure> {
        Ok(BufReader::with_capacity(BUFFER_BYTES, Self::open(path)?))
    }
}

impl Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

/// A file written beside its name and renamed into place once it is whole and synced.
#[derive(Debug)]
pub(crate) struct FileWriter {
    file: Arc<dyn VfsFile>,
    offset: u64,
    aside: PathBuf,
    path: PathBuf,
    buffer: Vec<u8>,
    finished: bool,
}

impl FileWriter {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let mut name = path.as_os_str().to_owned();
        name.push(".tmp");
        let aside = PathBuf::from(name);
        check_target(path)?;
        let file = vfs()
            .create_new(&aside)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Failure::Failed(format!(
                    "{} is there: another run is writing it, or one was interrupted; remove it, or choose another name",
                    aside.display()
                )),
                _ => Failure::io("create", &aside, &error),
            })?;
        Ok(Self {
            file,
            offset: 0,
            aside,
            path: path.to_owned(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            finished: false,
        })
    }

    /// Bytes at the start are replaced: for a header whose content is known at the end only.
    pub(crate) fn finish(mut self, head: Option<&[u8]>) -> Result<(), Failure> {
        let done = self
            .flush()
            .and_then(|()| head.map_or(Ok(()), |head| self.file.write_all_at(head, 0)))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| vfs().rename(&self.aside, &self.path));
        done.map_err(|error| Failure::io("write", &self.path, &error))?;
        self.finished = true;
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        vfs()
            .sync_dir(parent)
            .map_err(|error| Failure::io("sync", parent, &error))
    }
}

impl Write for FileWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(buf);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.finished {
            let _ = vfs().remove_file(&self.aside);
        }
    }
}

/// Refuses a name whose file must not be replaced by a new one: part of a store or backup, or no
/// regular file.
fn check_target(path: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::Failed(format!("{} {why}", path.display())));
    match vfs().kind(path) {
        Ok(FileKind::File) => {}
        Ok(FileKind::Dir) => return refuse("is a directory; name a file"),
        Ok(FileKind::Other) => {
            return refuse("is no regular file; leave -o out and redirect stdout into it");
        }
        Err(_) => {}
    }
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for dir in whole.ancestors().skip(1) {
        let holds = |name: &str| vfs().stat(&dir.join(name)).is_ok_and(|stat| !stat.is_dir);
        if holds("BACKUP") || holds("CURRENT") && holds("LOCK") {
            return refuse("lies inside a store or backup; choose a place outside of it");
        }
    }
    Ok(())
}

/// The whole text of a small file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let mut reader = FileReader::open(path)?;
    let len = reader
        .file
        .len()
        .map_err(|error| Failure::io("read", path, &error))?;
    if len > WHOLE_BYTES_MAX {
        return Err(Failure::Failed(format!(
            "{} is larger than 1 GiB",
            path.display()
        )));
    }
    let mut text = String::new();
    reader
        .read_to_string(&mut text)
        .map_err(|error| Failure::io("read", path, &error))?;
    Ok(text)
}

/// Length of a file; 0 where nobody can say.
pub(crate) fn bytes_of(path: &Path) -> u64 {
    vfs().stat(path).map_or(0, |stat| stat.len)
}

/// Bytes of all files below a directory.
pub(crate) fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = vfs().list(dir) else {
        return 0;
    };
    entries
        .iter()
        .map(|entry| {
            let path = dir.join(&entry.name);
            match entry.is_dir {
                true => bytes_below(&path),
                false => bytes_of(&path),
            }
        })
        .sum()
}

/// What was chosen when the store was created.
pub(crate) fn settings(store: &Path) -> Result<Settings, Failure> {
    let mut tries = 0;
    loop {
        match manifest::load_read_only(&vfs(), store) {
            Ok(loaded) => return Ok(loaded.manifest.settings),
            // A writer published twice between our two reads.
            Err(ManifestError::GenerationMissing { .. }) if tries < 10 => tries += 1,
            Err(error) => return Err(chronolith::Error::from(error).into()),
        }
    }
}

/// True where the store's vectors come from the embedder in this binary.
pub(crate) fn has_builtin(settings: &Settings) -> bool {
    settings.default_space().is_some_and(is_builtin)
}

/// True of a space of the embedder in this binary.
pub(crate) fn is_builtin(space: &manifest::VectorSpace) -> bool {
    space.model == chronolith_embed::ID
}

/// The built-in embedder's vector; `None` for a text without a word it knows.
pub(crate) fn embed(text: &str) -> Option<Vec<f32>> {
    let mut vector = vec![0.0; chronolith_embed::DIM];
    chronolith_embed::Embedder::builtin()
        .embed(text, &mut vector)
        .then_some(vector)
}
