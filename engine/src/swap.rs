//! A value that is replaced whole while others read it: arc-swap's, or a model's own.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use arc_swap::ArcSwap;
#[cfg(any(loom, shuttle))]
pub(crate) use modelled::ArcSwap;

/// A model's scheduler cannot look into arc-swap. This orders as much as it and not more: what was written
/// before a store is seen by who loads its value.
#[cfg(any(loom, shuttle))]
mod modelled {
    use std::sync::{Arc, Mutex, PoisonError};

    use chronolith_vfs::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug)]
    pub(crate) struct ArcSwap<T> {
        /// Which of `all` counts.
        at: AtomicUsize,
        /// Unknown to the scheduler: every value there ever was, so that none has another's address.
        all: Mutex<Vec<Arc<T>>>,
    }

    impl<T> ArcSwap<T> {
        pub(crate) fn from_pointee(value: T) -> Self {
            Self {
                at: AtomicUsize::new(0),
                all: Mutex::new(vec![Arc::new(value)]),
            }
        }

        pub(crate) fn load_full(&self) -> Arc<T> {
            let at = self.at.load(Ordering::Acquire);
            let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&all[at])
        }

        pub(crate) fn load(&self) -> Arc<T> {
            self.load_full()
        }

        pub(crate) fn store(&self, value: Arc<T>) {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(value);
            let at = all.len() - 1;
            drop(all);
            self.at.store(at, Ordering::Release);
        }
    }
}
