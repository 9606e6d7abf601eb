//! How are small whole files read and written aside? Shared by copies, pointer and side files.

use std::io;
use std::path::Path;

use chronolith_vfs::Vfs;
use chronolith_vfs::planted::{self, Bug};

/// Why a whole file could not be read.
#[derive(Debug)]
pub(super) enum ReadFault {
    /// No such file.
    Missing,
    /// Longer than the reader's cap.
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// The system failed a call; the file may be whole.
    Io(io::Error),
}

impl From<io::Error> for ReadFault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            Self::Missing
        } else {
            Self::Io(error)
        }
    }
}

/// Reads a file of at most `bytes_max`; the cap is checked before anything is allocated.
pub(super) fn read_whole(vfs: &dyn Vfs, path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadFault> {
    let file = vfs.open_read(path)?;
    let bytes = file.len()?;
    let len = usize::try_from(bytes)
        .ok()
        .filter(|_| bytes <= bytes_max)
        .ok_or(ReadFault::TooLong { bytes })?;
    let mut content = Vec::new();
    content
        .try_reserve_exact(len)
        .map_err(|_| ReadFault::Io(io::ErrorKind::OutOfMemory.into()))?;
    content.resize(len, 0);
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// A call that failed while a file was written aside or put in place.
#[derive(Debug)]
pub(super) struct WriteFault {
    /// What was tried.
    pub(super) step: &'static str,
    /// True for a sync or rename: what is on disk is unknown.
    pub(super) unknown: bool,
    /// The system's error.
    pub(super) source: io::Error,
}

impl WriteFault {
    /// A call whose failure leaves nothing behind that counts.
    pub(super) fn definite(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            step,
            unknown: false,
            source,
        }
    }

    /// A sync or rename.
    pub(super) fn unknown(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            step,
            unknown: true,
            source,
        }
    }
}

/// Creates `temp`, writes `content` and syncs it. A leftover of the same name, from a crash
/// or a failed attempt, is our own and named by nobody: it is removed first.
pub(super) fn write_aside(vfs: &dyn Vfs, temp: &Path, content: &[u8]) -> Result<(), WriteFault> {
    let file = match vfs.create_new(temp) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            vfs.remove_file(temp)
                .map_err(WriteFault::definite("remove leftover"))?;
            vfs.create_new(temp)
        }
        other => other,
    }
    .map_err(WriteFault::definite("create"))?;
    file.write_all_at(content, 0)
        .map_err(WriteFault::definite("write"))?;
    if planted::is_on(Bug::ManifestNotSynced) {
        return Ok(());
    }
    file.sync_all().map_err(WriteFault::unknown("sync"))
}
