//! What are the bytes of a store? A directory read into memory without its zeros, so that it can
//! be laid out again many times, with one bit changed or without.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Zeros are left out by sectors of this many bytes.
pub const SECTOR: usize = 512;

/// One file.
#[derive(Debug, Clone)]
pub struct ImageFile {
    /// Relative to the store, with `/`.
    pub path: String,
    /// Length, bytes.
    pub len: u64,
    /// Permission bits.
    pub mode: u32,
    /// (offset, bytes) of every sector that is not all zero, ascending.
    pub sectors: Vec<(u64, Vec<u8>)>,
}

/// A directory tree. Directories come before what is in them.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// Paths relative to the store.
    pub dirs: Vec<String>,
    /// The files, by path.
    pub files: Vec<ImageFile>,
}

/// One bit of one file.
#[derive(Debug, Clone, Copy)]
pub struct Flip {
    /// Index in [`Image::files`].
    pub file: usize,
    /// Offset in the file.
    pub offset: u64,
    /// 0 to 7.
    pub bit: u8,
}

impl Image {
    /// Reads the directory `root`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut image = Self::default();
        image.visit(root, "")?;
        image.dirs.sort();
        image.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(image)
    }

    fn visit(&mut self, root: &Path, below: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if entry.file_type()?.is_dir() {
                self.dirs.push(path.clone());
                self.visit(root, &path)?;
            } else {
                self.files.push(ImageFile::read(root, path)?);
            }
        }
        Ok(())
    }

    /// Writes the tree below `root`, which exists and is empty, with `flip` where given.
    pub fn lay_out(&self, root: &Path, flip: Option<Flip>) -> io::Result<()> {
        for dir in &self.dirs {
            fs::create_dir_all(root.join(dir))?;
        }
        for (index, file) in self.files.iter().enumerate() {
            let mine = flip.filter(|flip| flip.file == index);
            file.lay_out(root, mine)?;
        }
        Ok(())
    }
}

impl ImageFile {
    fn read(root: &Path, path: String) -> io::Result<Self> {
        let bytes = fs::read(root.join(&path))?;
        let mode = fs::metadata(root.join(&path))?.permissions().mode();
        let mut sectors = Vec::new();
        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
            if sector.iter().any(|byte| *byte != 0) {
                sectors.push(((index * SECTOR) as u64, sector.to_vec()));
            }
        }
        Ok(Self {
            path,
            len: bytes.len() as u64,
            mode: mode & 0o777,
            sectors,
        })
    }

    /// Bytes in the sectors that are not all zero.
    pub fn live_bytes(&self) -> usize {
        self.sectors.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// The offset in the file of live byte `index`.
    pub fn live_offset(&self, mut index: usize) -> Option<u64> {
        for (offset, bytes) in &self.sectors {
            if index < bytes.len() {
                return Some(offset + index as u64);
            }
            index -= bytes.len();
        }
        None
    }

    fn lay_out(&self, root: &Path, flip: Option<Flip>) -> io::Result<()> {
        let path = root.join(&self.path);
        let file: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.set_len(self.len)?;
        for (offset, bytes) in &self.sectors {
            let inside = flip.and_then(|flip| {
                let at = usize::try_from(flip.offset.checked_sub(*offset)?).ok()?;
                (at < bytes.len()).then_some((at, flip.bit))
            });
            match inside {
                Some((at, bit)) => {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    file.write_all_at(&changed, *offset)?;
                }
                None => file.write_all_at(bytes, *offset)?,
            }
        }
        fs::set_permissions(&path, Permissions::from_mode(self.mode))
    }
}
