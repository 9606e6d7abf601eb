//! Which vectors may be near a query? Asked of a few bits a vector instead of all of it.
//!
//! ```text
//!   vector --rotate--> 1 bit a component + one factor      (code; at flush or insert, then copied)
//!   query  --rotate--> 4 bits a component                  ([`CodeQuery`]; once a query)
//!   code x query ----> an integer, exact on every machine --> times factor = estimate
//!   estimates -------> [`Nearest`]: the best R of them over all partitions, ties all in
//! ```
//!
//! Good for: choosing a few hundred rows of very many, whose exact scores are then computed.
//! Not for: scores that anyone sees, and small sets, where the vectors themselves cost less.
//!
//! Source: RaBitQ, arXiv 2405.12497. We differ in the rotation (sign flips and Hadamard
//! transforms, [`rotation`], instead of a dense matrix) and in rounding the query to the
//! nearest step instead of by chance: an answer is a function of its request.

mod code;
mod format;
mod nearest;
mod query;
mod reader;
mod rotation;
mod writer;

use xxhash_rust::xxh3::xxh3_64;

pub(crate) use code::CodeScratch;
pub use code::{Coder, error_bound};
pub use nearest::{Estimated, Nearest};
pub use query::CodeQuery;
pub use reader::Codes;
use rotation::padded_dim;
pub(crate) use writer::CodesWriter;

/// What the seed of a store's codes is hashed with: no other hash of the id equals it.
const SEED_LABEL: &[u8; 16] = b"vector codes v1\0";

/// Seed of the rotation behind all codes of the store with this id. Codes depend on it and on
/// the vector alone, so a merge copies them.
pub fn code_seed(store_id: &[u8; 16]) -> u64 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(SEED_LABEL);
    bytes[16..].copy_from_slice(store_id);
    xxh3_64(&bytes)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have few rows")]
mod tests;
