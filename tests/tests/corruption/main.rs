//! Damage anywhere gives an answer equal to the undamaged one or an error that names a file:
//! never a panic, never another answer.
//!
//! A small store with every kind of file is damaged in memory, one place at a time: bytes
//! flipped and overwritten, files cut, sectors zeroed, blocks swapped, files swapped, stale
//! and missing. After each, a writer opens a copy and a reader another one, in both read
//! modes, and everything is asked of both.

mod answers;
mod bounds;
mod catalog;
mod damage;
mod fixture;
mod matrix;
