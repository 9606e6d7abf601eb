//! When is a part of a segment read? When something first needs it.
//!
//! A dictionary is validated node by node, and a text dictionary is decompressed: work that an
//! open would do for every segment, also for those that no question ever reaches. And damage
//! in a part then fails what needs the part, not the open.

use std::sync::OnceLock;

use crate::error::SegmentError;

/// A part that is opened at its first use, and kept.
#[derive(Debug)]
pub(super) struct Lazy<T>(OnceLock<T>);

impl<T> Lazy<T> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The part; `open` runs until it succeeds once. Two threads may both run it, and one
    /// result is kept.
    pub(super) fn get(
        &self,
        open: impl FnOnce() -> Result<T, SegmentError>,
    ) -> Result<&T, SegmentError> {
        if let Some(part) = self.0.get() {
            return Ok(part);
        }
        let part = open()?;
        Ok(self.0.get_or_init(|| part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_open_is_tried_again_and_a_good_one_is_kept() {
        let lazy = Lazy::new();
        let damaged = || Err(SegmentError::Limit("not now".into()));
        assert!(lazy.get(damaged).is_err());
        assert_eq!(*lazy.get(|| Ok(1)).expect("opens"), 1);
        assert_eq!(*lazy.get(damaged).expect("is kept"), 1);
    }
}
