//! Goal: what was published opens, whatever happens to the disk; damage is named, never believed.
//!
//! Mechanism: `disk` is a small disk in memory that can lose unsynced state and fail chosen
//! calls; `store` writes the same few generations everywhere; the rest is one file per kind.

mod corruption;
mod crash;
mod disk;
mod fault;
mod golden;
mod rules;
mod store;
