//! The log against crashes, damage, faults and the field's trials.
#![cfg(not(loom))]
#![expect(
    clippy::cast_possible_truncation,
    reason = "test files are a few kilobytes"
)]

mod bed;
mod corruption;
mod crash;
mod disk;
mod faults;
mod follow;
mod format;
mod group;
mod late;
mod recovery;
mod salvage;
mod take_over;
mod whole;
