//! Goal: whatever the disk keeps of a crash, and wherever an operation fails, what was
//! acknowledged is there, in order and whole, and nothing else ever is.
//!
//! Mechanism: scripts run on the simulated disk, stopped at each mutating operation; every
//! image of the disk is reopened and must equal the model after a prefix of the commits, at
//! least up to what was acknowledged. Texts are unique, so a hole, a ghost or half a batch
//! shows. Recoveries are stopped in the same way, and those recoveries' recoveries.
//!
//! The fast tier strides, and another `CHRONOLITH_SEED` comes to other places;
//! `CHRONOLITH_DEEP=1` takes every operation of every script, and every place of every fault,
//! and many more of the crashes inside recoveries.

mod catalog;
mod faults;
mod recovery_faults;
mod self_test;
mod spaces;
mod stops;
mod upgrade;

/// Minutes since the clock was made.
fn minutes(clock: &chronolith_vfs::RealClock) -> f64 {
    use chronolith_vfs::Clock as _;
    let since = std::time::Duration::from_nanos(clock.monotonic_ns());
    since.as_secs_f64() / 60.0
}
