//! Files, clock, seed and threads behind traits: the only door to the outside.
//!
//! Every other crate does its I/O through an [`Env`], so that every failure can be
//! simulated and every run repeated from its seed.
//!
//! ```text
//!            Env { vfs, clock, entropy, threads }
//!                  |
//!     +------------+---------------+-----------------+
//!     |            |               |                 |
//!   RealVfs      SimVfs          FaultVfs          (callers' own)
//!   the OS       a disk whose    any Vfs, the nth
//!                unsynced state  operation fails
//!                can be lost
//! ```
//!
//! * [`Vfs`] and [`VfsFile`]: positioned reads and writes, sync, names, lock, maps.
//! * [`RealVfs`]: the operating system. [`SimVfs`]: a simulated disk that can crash.
//!   [`FaultVfs`]: wraps another one and fails chosen operations.
//! * [`atomic::replace`]: write aside, sync, rename, sync the directory.
//! * [`Clock`], [`Entropy`], [`Threads`]: time, randomness and threads.
//! * [`sync`]: the facade that swaps std's synchronisation for loom's in models.
//!
//! What this crate does not do: it knows no format, no checksum and no record.

mod bytes;
mod map;
mod real;
mod traits;

pub use bytes::FileBytes;
pub use real::{RealClock, RealEntropy, RealThreads, RealVfs};
pub use traits::{Clock, DirEntry, Entropy, Env, Joiner, Stat, Threads, Vfs, VfsFile, VfsLock};
