//! Goal: whatever the disk keeps of a crash, and wherever an operation fails, what was
//! acknowledged is there, in order and whole, and nothing else ever is.
//!
//! Mechanism: scripts run on the simulated disk, stopped at each mutating operation; every
//! image of the disk is reopened and must equal the model after a prefix of the commits, at
//! least up to what was acknowledged. Texts are unique, so a hole, a ghost or half a batch
//! shows. Recoveries are stopped in the same way, and those recoveries' recoveries. The fast
//! tier strides; `CHRONOLITH_DEEP=1` takes every operation.

mod catalog;
mod faults;
mod recovery_faults;
mod self_test;
mod stops;
mod upgrade;
