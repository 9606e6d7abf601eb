//! What does a reader say who will read a whole segment?

use std::sync::atomic::{AtomicU32, Ordering};

use chronolith_vfs::Access;

use super::Segment;

/// As long as one lives, the system reads its segment's file ahead.
#[derive(Debug)]
pub struct InOrder<'a>(&'a Segment);

/// How many live.
#[derive(Debug, Default)]
pub(super) struct Readers(AtomicU32);

impl Segment {
    /// Announces a read of all rows, or nearly: a merge, a check. Without it a fault in a mapping
    /// reads a page and no more, which is right for queries and slow for all else.
    pub fn read_in_order(&self) -> InOrder<'_> {
        // Relaxed: what is told is a hint, whoever comes first.
        if self.in_order.0.fetch_add(1, Ordering::Relaxed) == 0 {
            self.advise(Access::InOrder);
        }
        InOrder(self)
    }

    fn advise(&self, access: Access) {
        // All of them share the file's mapping.
        if let Some(section) = self.loaded.sections.first() {
            section.advise(access);
        }
    }
}

impl Drop for InOrder<'_> {
    fn drop(&mut self) {
        if self.0.in_order.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.advise(Access::Scattered);
        }
    }
}
