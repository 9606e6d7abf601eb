//! The one place that maps files into memory, and asks the processor for parts of them.

#![expect(
    unsafe_code,
    reason = "mapping a file is unsafe by nature; this module fences it"
)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::{Advice, Mmap, MmapOptions};

use crate::bytes::{Access, FileBytes};

/// A file's mapping. Advice is a hint: a system that refuses it reads as it would have.
pub(crate) struct Mapped {
    map: Mmap,
    /// What is read in order is read ahead by its faults, further than anybody asks for.
    is_in_order: AtomicBool,
}

impl Mapped {
    /// See [`FileBytes::advise`].
    pub(crate) fn advise(&self, access: Access) {
        let is_in_order = access == Access::InOrder;
        self.is_in_order.store(is_in_order, Ordering::Relaxed);
        let _ = self.map.advise(match access {
            Access::Scattered => Advice::Random,
            Access::InOrder => Advice::Normal,
        });
    }

    /// See [`FileBytes::will_need`].
    pub(crate) fn will_need(&self, range: Range<usize>) {
        if self.is_in_order.load(Ordering::Relaxed) {
            return;
        }
        let end = range.end.min(self.map.len());
        if let Some(len) = end.checked_sub(range.start).filter(|len| *len > 0) {
            let _ = self.map.advise_range(Advice::WillNeed, range.start, len);
        }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

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
    let map: Mmap = unsafe { options.map(file) }?;
    let mapped = Mapped {
        map,
        is_in_order: AtomicBool::new(false),
    };
    mapped.advise(Access::Scattered);
    Ok(FileBytes::of_map(mapped))
}

/// Asks for the line of the cache that holds the byte at `at`, and does not wait for it.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that neither faults nor changes what the program sees;
        // the address is that of a byte of the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}
