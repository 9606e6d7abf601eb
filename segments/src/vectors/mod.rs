//! Where is a row's vector, and how similar is it to a query?
//!
//! Good for exact scores of listed rows and for scans of row ranges; says nothing about which
//! rows are worth a look.

mod codes;
mod format;
mod reader;
mod runs;
mod writer;

pub use crate::kernels::vectors::{code_distances, dot, dot_many, widen};
pub(crate) use crate::kernels::vectors::{dot_four, widen_slice};
pub use codes::{CodeQuery, Coder, Codes, Estimated, Nearest, code_seed, error_bound};
pub(crate) use codes::{CodeScratch, CodesWriter};
pub use reader::Vectors;
pub use runs::{ProbeShares, SHARE_ALL, ScopeRuns, VectorRuns};
pub(crate) use runs::{RunsWriter, ScopePlan};
pub(crate) use writer::VectorsWriter;

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have few rows")]
mod tests;
