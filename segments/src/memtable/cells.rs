//! Where do a memtable's boxed values live? In chunks of write-once cells that never move.

use super::sync::OnceLock;
use super::words::place;

/// log2 of the cells in the first chunk.
const BASE_BITS: u32 = 3;
/// Together 2^32 cells less the base.
const CHUNKS: usize = 29;

/// A growing array of write-once values. Holes read as `None`.
#[derive(Debug)]
pub(super) struct Cells<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

impl<T> Cells<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, offset) = place(u64::from(index), BASE_BITS);
        self.chunks[chunk].get()?[offset].get()
    }

    /// Fills a cell. Writer only, once a cell.
    pub(super) fn fill(&self, index: u32, value: T) {
        let (chunk, offset) = place(u64::from(index), BASE_BITS);
        let cells = self.chunks[chunk].get_or_init(|| {
            (0..1usize << (BASE_BITS as usize + chunk))
                .map(|_| OnceLock::new())
                .collect()
        });
        let fresh = cells[offset].set(value).is_ok();
        assert!(fresh, "a cell is filled once");
    }
}
