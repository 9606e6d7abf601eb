//! The one place that maps files into memory.

#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; this module fences it"
)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

use crate::bytes::FileBytes;

/// Maps the first `len` bytes of a sealed file.
///
/// Only for files that the engine wrote, synced, made read-only and renamed into place, and
/// that nobody writes or cuts any more. A file cut by someone else raises SIGBUS on access:
/// promise I1 excludes faults under a live mapping, and positioned reads are the option
/// without this limit.
///
/// # Errors
/// `UnexpectedEof` where the file is shorter than `len`; the system's error.
pub(crate) fn map(file: &File, len: u64) -> io::Result<FileBytes> {
    if file.metadata()?.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if len == 0 {
        return Ok(FileBytes::new(Vec::new()));
    }
    let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut options = MmapOptions::new();
    options.len(len);
    // SAFETY: the file is sealed (mode 0400, engine-owned, only ever unlinked), so its bytes do
    // not change under the mapping; its length was checked above. The caller is `VfsFile::map`,
    // whose contract says the same.
    let mapped: Mmap = unsafe { options.map(file) }?;
    Ok(FileBytes::new(mapped))
}
