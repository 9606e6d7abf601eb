//! Budgets and walls: descriptors, memory, a full disk, read-only media, jumps of the clock,
//! and a long life.

mod clock;
mod media;
mod process;
mod soak;
mod space;
