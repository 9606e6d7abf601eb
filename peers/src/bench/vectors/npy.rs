//! What does a `.npy` file hold? A matrix, row after row.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::engine::Failure;

/// Longest header that is read, bytes: those of numpy take 128.
const HEADER_MAX: usize = 65_536;
/// Most columns of a matrix that is read.
const COLUMNS_MAX: usize = 65_536;

/// A matrix of which rows are read in their order.
pub struct Matrix {
    path: PathBuf,
    file: BufReader<File>,
    /// Rows in the file.
    pub rows: usize,
    /// Numbers of a row.
    pub columns: usize,
    read: usize,
}

impl Matrix {
    /// Opens a file of `descr`, `<f4` or `<i8`, and reads its header.
    pub fn open(path: &Path, descr: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| -> Failure {
            format!("{}: {what}: make it with bench/gen.py", path.display()).into()
        };
        let file = File::open(path).map_err(|error| wrong(&error.to_string()))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut begin = [0; 10];
        file.read_exact(&mut begin)
            .map_err(|_| wrong("shorter than a header"))?;
        if begin[..8] != *b"\x93NUMPY\x01\x00" {
            return Err(wrong("not an npy file of version 1.0"));
        }
        let length = usize::from(u16::from_le_bytes([begin[8], begin[9]]));
        let mut header = vec![0; length.min(HEADER_MAX)];
        file.read_exact(&mut header)
            .map_err(|_| wrong("ends inside the header"))?;
        let header = String::from_utf8_lossy(&header);
        if !header.contains(&format!("'descr': '{descr}'")) {
            return Err(wrong(&format!("its numbers are not {descr}")));
        }
        if !header.contains("'fortran_order': False") {
            return Err(wrong("stored by column"));
        }
        let (rows, columns) = shape(&header).ok_or_else(|| wrong("not a matrix"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            rows,
            columns,
            read: 0,
        })
    }

    /// The next row as bytes, `width` a number.
    fn next(&mut self, width: usize) -> Result<Vec<u8>, Failure> {
        let mut row = vec![0; self.columns * width];
        self.file.read_exact(&mut row).map_err(|error| {
            let path = self.path.display();
            format!("{path}: row {} of {}: {error}", self.read, self.rows)
        })?;
        self.read += 1;
        Ok(row)
    }

    /// The next row of a `<f4` file; one that is not finite is refused.
    pub fn next_f32(&mut self) -> Result<Vec<f32>, Failure> {
        let row = self.next(4)?;
        let numbers = row.as_chunks::<4>().0.iter();
        let numbers: Vec<f32> = numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(numbers);
        }
        let path = self.path.display();
        Err(format!("{path}: row {} is not finite", self.read - 1).into())
    }

    /// The next row of a `<i8` file.
    pub fn next_i64(&mut self) -> Result<Vec<i64>, Failure> {
        let row = self.next(8)?;
        let numbers = row.as_chunks::<8>().0.iter();
        Ok(numbers.map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }
}

/// Rows and columns of a header with two of them.
fn shape(header: &str) -> Option<(usize, usize)> {
    let (_, shape) = header.split_once("'shape': (")?;
    let (shape, _) = shape.split_once(')')?;
    let (rows, columns) = shape.split_once(',')?;
    let columns = columns.trim().parse().ok()?;
    (1..=COLUMNS_MAX)
        .contains(&columns)
        .then_some((rows.trim().parse().ok()?, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_two_numbers_within_bounds() {
        let of = |shape: &str| super::shape(&format!("{{'shape': ({shape}), }}"));
        assert_eq!(of("3, 384"), Some((3, 384)));
        for wrong in ["3,", "", "3, 0", "-1, 4", "3, 4, 5", "3, 99999999"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hostile_files_are_refused_by_name() {
        let path = std::env::temp_dir().join(format!("peers-npy-{}", std::process::id()));
        let mut whole = b"\x93NUMPY\x01\x00".to_vec();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
        whole.extend(u16::try_from(header.len()).expect("short").to_le_bytes());
        whole.extend(header.as_bytes());
        whole.extend(1f32.to_le_bytes());
        whole.extend(f32::NAN.to_le_bytes());
        let open = |bytes: &[u8], descr: &str| {
            std::fs::write(&path, bytes).expect("written");
            Matrix::open(&path, descr)
        };
        let error = |bytes: &[u8], descr: &str| match open(bytes, descr) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(error(&whole, "<i8").contains("not <i8"));
        assert!(error(&whole[..9], "<f4").contains("shorter than a header"));
        assert!(error(&whole[..20], "<f4").contains("ends inside"));
        assert!(error(b"PK\x03\x04and more", "<f4").contains("not an npy"));
        let mut matrix = open(&whole, "<f4").expect("whole");
        assert_eq!(matrix.next_f32().expect("the first"), [1.0]);
        let refused = matrix.next_f32().expect_err("no number").to_string();
        assert!(refused.contains("row 1 is not finite"), "{refused}");
        let refused = matrix.next_f32().expect_err("the end").to_string();
        assert!(refused.contains("row 2 of 2"), "{refused}");
        std::fs::remove_file(&path).expect("removed");
    }
}
