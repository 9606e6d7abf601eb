//! Suites of the file systems: what they share, what a crash takes, and what a fault breaks.

mod atomic;
mod conformance;
mod crash;
mod fault;
mod names;
mod outside;
mod twin;
