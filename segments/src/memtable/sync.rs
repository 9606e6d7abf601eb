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

/// A `OnceLock` for models; loom has none. It leaks, which a model may.
#[cfg(all(loom, test))]
mod model_cell {
    use loom::sync::Mutex;

    #[derive(Debug)]
    pub(crate) struct OnceLock<T: 'static>(Mutex<Option<&'static T>>);

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub(crate) fn get(&self) -> Option<&T> {
            *self.0.lock().expect("no panic inside")
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            let mut cell = self.0.lock().expect("no panic inside");
            if cell.is_some() {
                return Err(value);
            }
            *cell = Some(Box::leak(Box::new(value)));
            Ok(())
        }

        pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            let mut cell = self.0.lock().expect("no panic inside");
            *cell.get_or_insert_with(|| Box::leak(Box::new(make())))
        }
    }
}
