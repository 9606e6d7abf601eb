//! The command's parsers: NumPy matrices and JSON lines from anywhere.
//!
//! A program has no library, so `tools/src` is compiled in by path; what these modules need of
//! the command's root stands in for it here, over a disk in memory.

use std::path::Path;

use chronolith::Scope;
use chronolith_tests::fuzz::Target;

use crate::interchange::{parse_line, to_json};
use crate::lines::{Line, Lines};
use crate::npy::Matrix;

/// Rows that one run looks at.
const ROWS_READ: u64 = 48;

/// Beside those of the library.
pub(crate) const TARGETS: [Target; 2] = [
    Target {
        name: "npy",
        corpus: "npy",
        run: read_matrix,
        forge: None,
        weight: 1,
    },
    Target {
        name: "lines",
        corpus: "lines",
        run: read_lines,
        forge: None,
        weight: 2,
    },
];

/// Opens the bytes as a matrix and reads its rows.
pub(crate) fn read_matrix(bytes: &[u8]) -> bool {
    let path = Path::new("/v.npy");
    files::put(path, bytes);
    let Ok(matrix) = Matrix::open(path) else {
        return false;
    };
    for row in 0..matrix.rows.min(ROWS_READ) {
        let values = matrix.row(row).expect("the length fits the shape");
        assert_eq!(values.len(), matrix.dim);
    }
    assert!(matrix.row(matrix.rows).is_err(), "a row outside");
    let _ = matrix.check_dim(3);
    true
}

/// Reads every line; each record goes out and comes back the same.
pub(crate) fn read_lines(bytes: &[u8]) -> bool {
    let scope = Scope::parse("user/ana").expect("a scope");
    let (mut lines, mut taken) = (Lines::new(bytes), false);
    while let Some(line) = lines.next().expect("memory") {
        let Line::Whole(line) = line else { continue };
        if let Ok(record) = parse_line(line, Some(&scope)) {
            let again = serde_json::Value::Object(to_json(&record, true)).to_string();
            assert_eq!(parse_line(again.as_bytes(), None), Ok(record), "{again}");
            taken = true;
        }
    }
    assert_eq!(lines.bytes_read, bytes.len() as u64);
    taken
}

/// What stands in for the command's `failure`.
pub(crate) mod failure {
    use std::io;
    use std::path::Path;

    /// Why a file cannot be used.
    #[derive(Debug)]
    pub(crate) enum Failure {
        /// With a message.
        Failed(#[expect(dead_code, reason = "shown by Debug")] String),
    }

    impl Failure {
        pub(crate) fn io(verb: &str, path: &Path, error: &io::Error) -> Self {
            Self::Failed(format!("cannot {verb} {}: {error}", path.display()))
        }
    }

    impl From<io::Error> for Failure {
        fn from(error: io::Error) -> Self {
            Self::Failed(error.to_string())
        }
    }
}

/// What stands in for the command's `files`.
pub(crate) mod files {
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    use chronolith_vfs::{SimVfs, Vfs};

    use super::failure::Failure;

    thread_local! {
        static DISK: SimVfs = SimVfs::new();
    }

    /// This thread's disk.
    pub(crate) fn vfs() -> SimVfs {
        DISK.with(SimVfs::clone)
    }

    /// Puts a file on it; its directories are made.
    pub(crate) fn put(path: &Path, bytes: &[u8]) {
        let disk = vfs();
        let mut dirs: Vec<&Path> = path.ancestors().skip(1).collect();
        dirs.reverse();
        // Those that exist already are fine.
        dirs.iter().for_each(|dir| drop(disk.create_dir(dir)));
        if disk.content(path).is_err() {
            disk.create_new(path).expect("the name is free");
        }
        disk.damage(path, |content| *content = bytes.to_vec())
            .expect("the file is there");
    }

    /// A file that is there once it is finished.
    #[derive(Debug)]
    pub(crate) struct FileWriter {
        path: PathBuf,
        bytes: Vec<u8>,
    }

    impl FileWriter {
        pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
            Ok(Self {
                path: path.to_owned(),
                bytes: Vec::new(),
            })
        }

        /// * `start`: stands in place of the first bytes.
        pub(crate) fn finish(mut self, start: Option<&[u8]>) -> Result<(), Failure> {
            let start = start.unwrap_or_default();
            self.bytes[..start.len()].copy_from_slice(start);
            put(&self.path, &self.bytes);
            Ok(())
        }
    }

    impl Write for FileWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
