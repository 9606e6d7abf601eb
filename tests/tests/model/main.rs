//! Goal: an answer is what the reference model says, whatever happened to the store before, and
//! whatever else is in it.
//!
//! Mechanism: random operations on a simulated disk under tiny limits, each answer compared
//! with brute force over maps, floats by their bits. `CHRONOLITH_SEEDS` sets how many seeds run,
//! `CHRONOLITH_SEED` runs one alone.

mod isolation;
mod layout;
mod random;
mod self_test;
