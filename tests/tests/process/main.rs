//! What if the process dies or its syncs fail, and what do other processes see? With real
//! children.

mod kill;
mod openers;
mod readers;
mod stress;
mod sync_faults;
