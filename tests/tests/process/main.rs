//! Real processes on real files: writers that are killed, readers beside them.

mod kill;
mod readers;
