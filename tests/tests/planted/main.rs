//! Goal: for every bug that could break a promise, some check of the fast tier fails.
//!
//! Mechanism: the bugs of `chronolith_vfs::planted` are switched on one by one, each in a
//! process of its own, and the cheapest check that ought to see it runs until it does. The
//! same trials must pass with the bug off. A bug that no check sees is a check that is
//! missing. The table of bugs, checks and trials is printed.

mod checks;
mod damage;
mod doors;
mod log;
mod plan;
mod runner;
mod shipped;
