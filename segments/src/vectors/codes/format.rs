//! Bytes of stored codes: section `vector_codes`, of segments that have vectors.
//!
//! ```text
//! +---------------------+-------------+------------+
//! | codes, in row order | factors     | trailer 32 |
//! +---------------------+-------------+------------+
//!   d / 8 bytes each      4 bytes each
//! ```
//!
//! One code and one factor a vector, at the place of the vector in section `vectors`; d is the
//! dimension rounded up to a multiple of 64.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | code: bit `i % 8` of byte `i / 8` is the sign of rotated component i, 1 = not below 0 | d / 8 | any | `verify_content`, which makes it anew |
//! | factor: f32, see `code` | 4 | not below 0 | `verify_content`; a scan passes over NaN |
//! | trailer: vector count | 4 | that of `vector_rows`; lengths add up to the section's | `Codes::open` |
//! | trailer: d | 4 | of the vector space | `Codes::open` |
//! | trailer: seed of the rotation | 8 | of the store's id | `Codes::open` |
//! | trailer: method of rotation, code and factor | 2 | 1 | `Codes::open` |
//! | trailer: turns of the rotation | 1 | 4 | `Codes::open` |
//! | trailer: bits a component | 1 | 1 | `Codes::open` |
//! | trailer: zeros | 12 | 0 | `Codes::open` |

use super::rotation::ROUNDS;

/// Bytes of a factor.
pub(super) const FACTOR_BYTES: usize = 4;
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 32;
/// How code and factor are computed; another way is another number.
const METHOD: u16 = 1;

const _: () = assert!(4 + 4 + 8 + 2 + 1 + 1 + 12 == TRAILER_BYTES);
const _: () = assert!(ROUNDS == 4, "another rotation is another METHOD");

/// What the trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) vectors: u32,
    pub(super) padded_dim: u32,
    pub(super) seed: u64,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[0..4].copy_from_slice(&self.vectors.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.padded_dim.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..18].copy_from_slice(&METHOD.to_le_bytes());
        bytes[18] = 4;
        bytes[19] = 1;
        bytes
    }

    /// Bytes of codes and factors before the trailer.
    pub(super) fn body_bytes(&self) -> u64 {
        let of_a_vector = u64::from(self.padded_dim / 8) + FACTOR_BYTES as u64;
        u64::from(self.vectors) * of_a_vector
    }
}
