//! Which loops are worth a form of their own for the processor that runs them?
//!
//! Each has a plain twin that defines it, chosen where the processor lacks what the fast form
//! needs, and compared with it by property tests. A fast form proves once, before its loop,
//! what keeps every access inside. This folder is the crate's one home of unsafe code.
//!
//! * [`bytes`]: packed values as a byte each.
//! * [`sums`]: what postings add, and which rows have enough.
//! * [`vectors`]: products of vectors, distances of their codes, the rotation between the two.

pub(crate) mod bytes;
pub(crate) mod sums;
pub(crate) mod vectors;
