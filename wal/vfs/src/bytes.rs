//! A sealed file's bytes: mapped or copied, shared and immutable.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::map::{self, Mapped};

/// In which order the bytes of a file will be read: a hint for what a mapping reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Here and there: a fault reads a page and no more. What is read whole is announced
    /// ([`FileBytes::will_need`]).
    #[default]
    Scattered,
    /// From one end to the other, or nearly: a fault reads what follows as well.
    InOrder,
}

/// The bytes of a sealed file, cheap to clone. Unlinking the file does not end them.
#[derive(Clone)]
pub struct FileBytes {
    bytes: Bytes,
    /// The mapping, where they are one.
    mapped: Option<Arc<Mapped>>,
}

impl FileBytes {
    /// Wraps any owner of bytes: a vector, or the mapping module's map.
    pub fn new(owner: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self {
            bytes: Bytes::from_owner(owner),
            mapped: None,
        }
    }

    /// Wraps a mapping.
    pub(crate) fn of_map(mapped: Mapped) -> Self {
        let mapped = Arc::new(mapped);
        Self {
            bytes: Bytes::from_owner(Shared(Arc::clone(&mapped))),
            mapped: Some(mapped),
        }
    }

    /// Tells the system in which order the bytes will be read from now on, by whoever shares
    /// them. Mappings begin as [`Access::Scattered`]; of bytes in memory it is nothing.
    pub fn advise(&self, access: Access) {
        if let Some(mapped) = &self.mapped {
            mapped.advise(access);
        }
    }

    /// Asks the system to read `range` in, without waiting: it will be read soon, and whole.
    /// Nothing happens for bytes in memory, past the end, or where they are read in order anyway.
    pub fn will_need(&self, range: Range<usize>) {
        if let Some(mapped) = &self.mapped {
            mapped.will_need(range);
        }
    }

    /// Asks the processor for the line of its cache that holds the byte at `at`, without
    /// waiting: what is read a little later is there then. Nothing happens past the end.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        map::prefetch(&self.bytes, at);
    }
}

/// A mapping as the owner of its bytes.
struct Shared(Arc<Mapped>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len())
    }
}
