//! Which atomics and cells does the memtable stand on: std's, or loom's in a model.

#[cfg(not(all(loom, test)))]
pub(super) use std::sync::OnceLock;
#[cfg(not(all(loom, test)))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(loom, test))]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(all(loom, test))]
pub(super) use model_cell::OnceLock;

/// `n` zeroed words. The pages of a large chunk are untouched until they are written, so a
/// chunk that doubles costs address space and not memory.
#[cfg(not(all(loom, test)))]
pub(super) fn zeroed_words(n: usize) -> Box<[AtomicU32]> {
    match <[AtomicU32] as zerocopy::FromZeros>::new_box_zeroed_with_elems(n) {
        Ok(words) => words,
        Err(_) => (0..n).map(|_| AtomicU32::new(0)).collect(),
    }
}

#[cfg(all(loom, test))]
pub(super) fn zeroed_words(n: usize) -> Box<[AtomicU32]> {
    (0..n).map(|_| AtomicU32::new(0)).collect()
}

/// A `OnceLock` for models; loom has none. It orders as std's does, a set before the gets
/// that see it, and not more: a mutex here would hide a missing `Release` elsewhere. One
/// writer only, like the memtable.
#[cfg(all(loom, test))]
mod model_cell {
    use loom::sync::atomic::{AtomicBool, Ordering};

    #[derive(Debug)]
    pub(crate) struct OnceLock<T> {
        ready: AtomicBool,
        /// Unknown to loom.
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self {
                ready: AtomicBool::new(false),
                value: std::sync::OnceLock::new(),
            }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.ready.load(Ordering::Acquire) {
                self.value.get()
            } else {
                None
            }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            self.value.set(value)?;
            self.ready.store(true, Ordering::Release);
            Ok(())
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            if self.get().is_none() {
                assert!(self.set(make()).is_ok(), "one writer");
            }
            self.get().expect("just set")
        }
    }
}
