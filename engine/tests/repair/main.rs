//! Goal: a repaired store holds what the damaged one can prove, nothing else, and the report
//! accounts for the rest.
//!
//! Mechanism: a store with a history on a simulated disk and a model of every version; damage
//! to its files; repair; every record of the new store must be a version of the model, the
//! newest that is not lost, and every missing one must be named by seq, id or file.

mod bed;
mod damage;
mod losses;
mod place;
mod random;
