//! Which synchronisation types are in use: std's, or loom's in a model.
//!
//! A protocol written against this facade is modelled with the very code that ships:
//! `RUSTFLAGS="--cfg loom" cargo test`. The traits of this crate keep std's `Arc`, because
//! loom's cannot hold a trait object.

#[cfg(not(loom))]
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};

#[cfg(loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
