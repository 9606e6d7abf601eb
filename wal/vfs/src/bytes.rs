//! A sealed file's bytes: mapped or copied, shared and immutable.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::map;

/// The bytes of a sealed file, cheap to clone. Unlinking the file does not end them.
#[derive(Clone)]
pub struct FileBytes(Bytes);

impl FileBytes {
    /// Wraps any owner of bytes: a vector, or the mapping module's map.
    pub fn new(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(Bytes::from_owner(owner))
    }

    /// Asks the processor for the line of its cache that holds the byte at `at`, without
    /// waiting: what is read a little later is there then. Nothing happens past the end.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        map::prefetch(&self.0, at);
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len())
    }
}
