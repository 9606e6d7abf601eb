//! Running the command, and finding the shared data.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("the command was not killed"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Asserts that stderr says something.
    #[track_caller]
    pub(crate) fn says(self, what: &str) -> Self {
        assert!(self.stderr.contains(what), "expected {what:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_chronolith"))
}

/// Runs the command with these arguments.
pub(crate) fn chronolith<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Run::of(command().args(args).output().expect("the command runs"))
}

/// A directory with room for stores and files.
pub(crate) struct Room(TempDir);

impl Room {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// The path of a name inside.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }

    /// Creates a store.
    pub(crate) fn store(&self, name: &str, flags: &[&str]) -> String {
        let path = self.path(name);
        let args = ["init", path.as_str()]
            .into_iter()
            .chain(flags.iter().copied());
        chronolith(args).ends(0);
        path
    }
}

/// The shared data, or a line that says what is skipped.
pub(crate) fn data(what: &str) -> Option<PathBuf> {
    let dir = match std::env::var_os("CHRONOLITH_DATA") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
    };
    if dir.is_dir() {
        return Some(dir);
    }
    // To the terminal itself: captured output of a passing test is never seen.
    use std::io::Write;
    let mut stderr = std::io::stderr();
    let _ = writeln!(
        stderr,
        "skipped: {what} (no shared data in {})",
        dir.display()
    );
    None
}

/// A NumPy file.
pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(dict.len()).expect("short").to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// The ids of an answer.
pub(crate) fn ids(answer: &Value) -> Vec<String> {
    let hits = answer["hits"].as_array().expect("hits");
    hits.iter()
        .map(|hit| hit["id"].as_str().expect("an id").to_owned())
        .collect()
}
