//! Suites that need more than one room of the workspace, and what they share.

pub mod crash;
pub mod data;
pub mod fuzz;
pub mod generate;
pub mod kills;
pub mod model;
pub mod mounts;
pub mod walk;
