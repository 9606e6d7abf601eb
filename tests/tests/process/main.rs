//! What if the process dies, and what does another process see? With real children.

mod child;
mod kill;
mod readers;
