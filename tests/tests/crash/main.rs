//! Goal: whatever the disk keeps of a crash, and wherever an operation fails, what was
//! acknowledged is there, in order and whole, and nothing else ever is.
//!
//! Mechanism: scripts run on the simulated disk, stopped at each mutating operation; every
//! image of the disk is reopened and must equal the model after a prefix of the commits, at
//! least up to what was acknowledged. Texts are unique, so a hole, a ghost or half a batch
//! shows. The fast tier strides; `CHRONOLITH_DEEP=1` takes every operation.

mod faults;
mod life;
mod oracle;
mod scripts;
mod self_test;
mod stops;
mod vfs;
