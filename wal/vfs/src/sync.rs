//! Which synchronisation types are in use: std's, or those of a model's scheduler.
//!
//! A protocol written against this facade is modelled with the very code that ships. loom
//! (`RUSTFLAGS="--cfg loom" cargo test`) takes every interleaving of a small model, shuttle
//! (`--cfg shuttle`) many random ones of a large model. The traits of this crate keep std's
//! `Arc`, because loom's cannot hold a trait object.

#[cfg(not(any(loom, shuttle)))]
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};

#[cfg(loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};

#[cfg(shuttle)]
pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
