//! Where does a file lie that an error names? For whoever has nothing but the message.
//!
//! Below the engine a file is named as it is called inside its store. A writer knows which store
//! that is; a process that only reads may have several open, and a backup has its files in
//! places of their own. There errors get paths, and say what to do.

use std::path::{Path, PathBuf};

use chronolith_segments::SegmentError;

use crate::backup::BackupError;
use crate::error::Error;
use crate::manifest::names::{SEGMENTS_DIR, WAL_DIR};
use crate::manifest::{Finding, ManifestError, SideFileError};

/// The error with paths into the store `dir`.
pub(crate) fn in_store(error: Error, dir: &Path) -> Error {
    let whole = |finding: Finding| Finding {
        file: shown(&dir.join(&finding.file)),
        ..finding
    };
    match error {
        Error::Log(error) => Error::Log(error.in_dir(&dir.join(WAL_DIR))),
        Error::Segment(error) => Error::Segment(segment_in(error, dir)),
        Error::Internal(what) => Error::Internal(format!("{}: {what}", dir.display())),
        Error::Manifest(ManifestError::CurrentDamaged(finding)) => {
            ManifestError::CurrentDamaged(whole(finding)).into()
        }
        Error::Manifest(ManifestError::BothCopiesDamaged { generation, a, b }) => {
            let [a, b] = [a, b].map(|finding| Box::new(whole(*finding)));
            ManifestError::BothCopiesDamaged { generation, a, b }.into()
        }
        Error::SideFile(SideFileError::Damaged(finding)) => {
            SideFileError::Damaged(whole(finding)).into()
        }
        Error::SideFile(SideFileError::Missing { file }) => {
            let file = shown(&dir.join(file));
            SideFileError::Missing { file }.into()
        }
        error => error,
    }
}

/// Damage in the backup at `root`, whose manifest and log lie in `point`, by the path of its
/// file; any other error as it is.
pub(crate) fn in_backup(error: Error, root: &Path, point: &Path) -> Error {
    let (file, section, offset, message) = match error {
        Error::Backup(BackupError::Damaged {
            file,
            section,
            offset,
            message,
            path: None,
        }) => (file, section, offset, message),
        Error::Segment(SegmentError::Corrupt {
            file,
            section,
            offset,
            message,
        }) => (format!("{SEGMENTS_DIR}/{file}"), section, offset, message),
        Error::Manifest(ManifestError::CurrentDamaged(found))
        | Error::SideFile(SideFileError::Damaged(found)) => {
            (found.file, found.section, found.offset, found.message)
        }
        Error::Log(error) if error.is_damage() => {
            let (file, offset) = error.place();
            let file = file.map_or_else(|| WAL_DIR.to_owned(), |file| format!("{WAL_DIR}/{file}"));
            (file, "log", offset, error.to_string())
        }
        error => return error,
    };
    let first = Path::new(&file).components().next();
    let is_beside = first.is_some_and(|part| point.ends_with(part));
    let is_data = file.starts_with(SEGMENTS_DIR);
    let path = if is_data || is_beside { root } else { point }.join(&file);
    BackupError::Damaged {
        file,
        section,
        offset,
        message,
        path: Some(path),
    }
    .into()
}

fn segment_in(error: SegmentError, dir: &Path) -> SegmentError {
    let place = |file: String| match file.starts_with(SEGMENTS_DIR) {
        true => shown(&dir.join(file)),
        false => shown(&dir.join(SEGMENTS_DIR).join(file)),
    };
    match error {
        SegmentError::Corrupt {
            file,
            section,
            offset,
            message,
        } => SegmentError::Corrupt {
            file: place(file),
            section,
            offset,
            message,
        },
        SegmentError::Version {
            file,
            found,
            supported,
        } => SegmentError::Version {
            file: place(file),
            found,
            supported,
        },
        SegmentError::Io {
            operation,
            file,
            source,
        } => SegmentError::Io {
            operation,
            file: place(file),
            source,
        },
        error => error,
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The path of a damaged file, where it is known; else its name inside the store.
pub(crate) fn path_or_name(path: &Option<PathBuf>, file: &str) -> String {
    path.as_deref().map_or_else(|| file.to_owned(), shown)
}
