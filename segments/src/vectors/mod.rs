//! Where is a row's vector, and how similar is it to a query?
//!
//! Good for exact scores of listed rows and for scans of row ranges; says nothing about which
//! rows are worth a look.

mod format;
mod kernels;
mod reader;
mod writer;

pub use kernels::{dot, dot_many, widen};
pub use reader::Vectors;
pub(crate) use writer::VectorsWriter;

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have few rows")]
mod tests;
