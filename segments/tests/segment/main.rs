//! Goal: a segment gives back exactly the rows it was made of, and never another answer for
//! damaged bytes.
//!
//! Mechanism: rows in plain vectors (`naive`) are written through `write_segment` to a file
//! system in memory (`memory`) and every answer of `Partition` is compared with a filter over
//! those vectors. `format` reads the file on its own, from the documented layout, to repair
//! checksums and to annotate the golden dump.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    unreachable_pub,
    reason = "small numbers and one crate"
)]

mod clusters;
mod contradictions;
mod corruption;
mod faults;
mod flush;
mod format;
mod golden;
mod memory;
mod naive;
mod oracle;
mod plain;
mod round_trip;
