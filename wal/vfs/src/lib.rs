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
//! * [`RealVfs`]: the operating system; the only mapping, and the only unsafe, is in `map`.
//! * [`SimVfs`]: a simulated disk. [`SimVfs::set_crash_point`] stops a workload at any
//!   operation, [`SimVfs::crash`] gives the disk as it may look then ([`CrashImage`]).
//! * [`FaultVfs`]: wraps another one; a [`FaultRule`] says which [`OpKind`] fails with which
//!   [`Errno`], once or for ever.
//! * [`atomic::replace`]: write aside, sync, rename, sync the directory.
//! * [`Clock`], [`Entropy`], [`Threads`]: time, randomness and threads; [`Env::real`] and
//!   [`Env::sim`] put everything together.
//! * [`planted`]: deliberate faults, compiled in for one suite of the tests alone.
//! * [`sync`]: the facade that swaps std's synchronisation for loom's or shuttle's in models.
//!
//! A crash test runs its workload once to count [`SimVfs::ops`], then once for each operation
//! with the crash point there, takes every image of the disk, and reopens each.
//!
//! What this crate does not do: it knows no format, no checksum and no record; it never
//! retries a failed sync.

pub mod atomic;
mod bytes;
mod fault;
mod map;
mod op;
pub mod planted;
mod real;
mod sim;
pub mod sync;
mod traits;

pub use bytes::{Access, FileBytes};
pub use fault::{FaultAction, FaultRule, FaultVfs};
pub use op::{Errno, OpKind, is_refusal, is_unreadable};
pub use real::{RealClock, RealEntropy, RealThreads, RealVfs};
pub use sim::{
    CrashImage, FailedSync, SeededEntropy, SimClock, SimVfs, TraceEntry, is_simulated_crash,
};
pub use traits::{
    Clock, DirEntry, Entropy, Env, FileKind, Job, Joiner, Stat, Threads, Vfs, VfsFile, VfsLock,
};
