//! Bytes of stored vectors.
//!
//! Section `vectors`: the vectors of the rows that have one, in row order, nothing between.
//!
//! Section `vector_rows`:
//!
//! ```text
//! +-------------------------------+------------+
//! | presence, 68 bytes a 512 rows | trailer 16 |
//! +-------------------------------+------------+
//!   absent where every row has one
//! ```
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | presence: vectors of all rows before | 4 | up to vector count | `Vectors`, with each look-up |
//! | presence: bit `row % 8` of byte `row % 512 / 8` | 64 | 0 past the last row | `Vectors`, with each look-up |
//! | trailer: rows | 4 | rows of the segment | `Vectors::open` |
//! | trailer: vector count | 4 | up to rows; times vector bytes = length of `vectors` | `Vectors::open` |
//! | trailer: dimension | 4 | of the vector space | `Vectors::open` |
//! | trailer: bytes of a component | 1 | 2 = f16, 4 = f32 | `Vectors::open` |
//! | trailer: zeros | 3 | 0 | `Vectors::open` |

use crate::prepared::VectorFormat;

/// Rows of one presence block.
pub(super) const PRESENCE_ROWS: u32 = 512;
/// Bytes of a presence block's rank.
pub(super) const RANK_BYTES: usize = 4;
/// Bytes of one presence block.
pub(super) const PRESENCE_BYTES: usize = RANK_BYTES + PRESENCE_ROWS as usize / 8;
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 16;

const _: () = assert!(PRESENCE_BYTES == 68);
const _: () = assert!(4 + 4 + 4 + 1 + 3 == TRAILER_BYTES);

/// What the trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) rows: u32,
    pub(super) vectors: u32,
    pub(super) dim: u32,
    pub(super) component_bytes: u8,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[0..4].copy_from_slice(&self.rows.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.vectors.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.dim.to_le_bytes());
        bytes[12] = self.component_bytes;
        bytes
    }

    /// Bytes of the presence blocks before the trailer.
    pub(super) fn presence_bytes(&self) -> u64 {
        if self.vectors == self.rows {
            return 0;
        }
        u64::from(self.rows.div_ceil(PRESENCE_ROWS)) * PRESENCE_BYTES as u64
    }
}

/// The trailer's byte for a format.
pub(super) const fn component_bytes(format: VectorFormat) -> u8 {
    match format {
        VectorFormat::F16 => 2,
        VectorFormat::F32 => 4,
    }
}
