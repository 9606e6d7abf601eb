//! How do vectors come in and go out? NumPy files: one matrix, row-major, f16 or f32.
//!
//! ```text
//! "\x93NUMPY" major minor | header length (u16 or u32 LE) | a Python dict, "\n" | rows
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith::VectorFormat;
use chronolith_segments::widen;
use chronolith_vfs::{Vfs, VfsFile};

use crate::failure::Failure;
use crate::files::{FileWriter, vfs};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read: NumPy's own are below 256 bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Length of the headers that we write, all in all.
const HEADER_BYTES: usize = 128;

/// A matrix in a file, read row by row.
#[derive(Debug)]
pub(crate) struct Matrix {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    format: VectorFormat,
    data_offset: u64,
    pub(crate) rows: u64,
    pub(crate) dim: usize,
}

impl Matrix {
    /// Opens a file and checks magic, type, order, shape and length.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let file = vfs()
            .open_read(path)
            .map_err(|error| Failure::io("read", path, &error))?;
        let wrong = |what: &str| Failure::Failed(format!("{} {what}", path.display()));
        let len = file
            .len()
            .map_err(|error| Failure::io("read", path, &error))?;
        let (header, data_offset) =
            read_header(&*file).ok_or_else(|| wrong("is no NumPy file (.npy)"))?;
        let format = match quoted(&header, "descr") {
            Some("<f2") => VectorFormat::F16,
            Some("<f4") => VectorFormat::F32,
            Some(other) => {
                return Err(wrong(&format!(
                    "holds {other}; save it as little-endian float16 (<f2) or float32 (<f4)"
                )));
            }
            None => return Err(wrong("has a header without a type")),
        };
        if !value_of(&header, "fortran_order").is_some_and(|rest| rest.starts_with("False")) {
            return Err(wrong("is in Fortran order; save it in C order (row-major)"));
        }
        let (rows, dim) = shape(&header)
            .ok_or_else(|| wrong("is no matrix of two dimensions (one row a record)"))?;
        let row_bytes = (dim as u64).checked_mul(format.bytes() as u64);
        let expected = row_bytes.and_then(|bytes| bytes.checked_mul(rows));
        if expected.and_then(|bytes| bytes.checked_add(data_offset)) != Some(len) {
            return Err(wrong(&format!(
                "is {len} bytes long, which does not fit its shape of {rows} x {dim}"
            )));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            format,
            data_offset,
            rows,
            dim,
        })
    }

    /// Row `row`, widened to f32.
    pub(crate) fn row(&self, row: u64) -> Result<Vec<f32>, Failure> {
        if row >= self.rows {
            return Err(Failure::Failed(format!(
                "{} has {} rows; row {row} (counted from 0) is none of them",
                self.path.display(),
                self.rows
            )));
        }
        let row_bytes = self.dim * self.format.bytes();
        let mut bytes = vec![0; row_bytes];
        self.file
            .read_exact_at(&mut bytes, self.data_offset + row * row_bytes as u64)
            .map_err(|error| Failure::io("read", &self.path, &error))?;
        Ok(widen(&bytes, self.format))
    }

    /// Refuses a matrix of another dimension than the store's.
    pub(crate) fn check_dim(&self, dim: u32) -> Result<(), Failure> {
        if self.dim as u64 == u64::from(dim) {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{} holds vectors of dimension {}; the store's have {dim}",
            self.path.display(),
            self.dim
        )))
    }
}

/// The header's dict and where the rows begin.
fn read_header(file: &dyn VfsFile) -> Option<(String, u64)> {
    let mut start = [0; 12];
    file.read_exact_at(&mut start[..10], 0).ok()?;
    if !start.starts_with(MAGIC) {
        return None;
    }
    let (len, at) = match start[6] {
        1 => (u32::from(u16::from_le_bytes([start[8], start[9]])), 10),
        2 | 3 => {
            file.read_exact_at(&mut start, 0).ok()?;
            (
                u32::from_le_bytes([start[8], start[9], start[10], start[11]]),
                12,
            )
        }
        _ => return None,
    };
    let len = usize::try_from(len)
        .ok()
        .filter(|len| *len <= HEADER_BYTES_MAX)?;
    let mut header = vec![0; len];
    file.read_exact_at(&mut header, at).ok()?;
    Some((String::from_utf8(header).ok()?, at + len as u64))
}

/// What stands behind a key of the header's dict.
fn value_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))? + key.len() + 2;
    Some(header[at..].trim_start().strip_prefix(':')?.trim_start())
}

fn quoted<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    value_of(header, key)?
        .strip_prefix('\'')?
        .split('\'')
        .next()
}

fn shape(header: &str) -> Option<(u64, usize)> {
    let inside = value_of(header, "shape")?
        .strip_prefix('(')?
        .split(')')
        .next()?;
    let (rows, dim) = inside.split_once(',')?;
    Some((
        rows.trim().parse().ok()?,
        dim.trim().trim_end_matches(',').parse().ok()?,
    ))
}

/// Writes a matrix of f32 whose number of rows is known at the end.
#[derive(Debug)]
pub(crate) struct MatrixWriter {
    out: FileWriter,
    dim: usize,
    rows: u64,
}

impl MatrixWriter {
    pub(crate) fn create(path: &Path, dim: usize) -> Result<Self, Failure> {
        let mut out = FileWriter::create(path)?;
        out.write_all(&header(0, dim))?;
        Ok(Self { out, dim, rows: 0 })
    }

    pub(crate) fn push(&mut self, row: &[f32]) -> std::io::Result<()> {
        self.rows += 1;
        row.iter()
            .try_for_each(|value| self.out.write_all(&value.to_le_bytes()))
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.out.finish(Some(&header(self.rows, self.dim)))
    }
}

fn header(rows: u64, dim: usize) -> Vec<u8> {
    let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // 118 = HEADER_BYTES without the ten bytes in front; fits a u16.
    bytes.extend(118u16.to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.resize(HEADER_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("v.npy");
        let mut writer = MatrixWriter::create(&path, 3).expect("created");
        writer.push(&[1.0, -2.5, 3.0]).expect("written");
        writer.push(&[0.0, 0.5, 1e-3]).expect("written");
        writer.finish().expect("finished");
        let matrix = Matrix::open(&path).expect("opens");
        assert_eq!((matrix.rows, matrix.dim), (2, 3));
        assert_eq!(matrix.row(1).expect("a row"), [0.0, 0.5, 1e-3]);
        assert!(matrix.row(2).is_err());
        assert!(matrix.check_dim(4).is_err());
    }
}
