//! Up to 128 postings in memory: what is asked of them.

use std::ops::Range;

use super::format::BLOCK_LEN;
use crate::error::SegmentError;
use crate::scores::{Scores, Sums};

/// Rows that are all compared before the others are searched.
const NEAR_ROWS: usize = 8;

/// A block, a tail or a short list, decoded.
#[derive(Debug)]
pub(super) struct Decoded {
    /// Ascending; the first `len` are set.
    pub(super) rows: [u32; BLOCK_LEN],
    /// Of a block not set where every one is 1.
    pub(super) freqs: [u32; BLOCK_LEN],
    /// Postings.
    pub(super) len: usize,
    /// True where every frequency is known to be 1.
    pub(super) once: bool,
}

impl Decoded {
    /// Room for a block.
    pub(super) fn new() -> Self {
        Self {
            rows: [0; BLOCK_LEN],
            freqs: [0; BLOCK_LEN],
            len: 0,
            once: false,
        }
    }

    /// How many rows from place `from` on are below `row`.
    #[inline]
    pub(super) fn position(&self, from: usize, row: u32) -> usize {
        position(&self.rows[from..self.len], row)
    }

    /// Adds what the postings at some places are worth.
    #[inline]
    pub(super) fn add(
        &self,
        places: Range<usize>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<(), SegmentError> {
        let rows = &self.rows[places.clone()];
        match self.once {
            true => scores.add_once(rows, sums),
            false => scores.add(rows, &self.freqs[places], sums),
        }
    }
}

/// How many of at most 128 ascending rows are below `row`.
#[inline]
pub(super) fn position(rows: &[u32], row: u32) -> usize {
    debug_assert!(rows.len() <= BLOCK_LEN);
    // Most are near: a look at eight at once costs less than a search.
    if let Some((near, far)) = rows.split_first_chunk::<NEAR_ROWS>() {
        let before: u32 = near.iter().map(|one| u32::from(*one < row)).sum();
        return match before as usize {
            NEAR_ROWS => NEAR_ROWS + far.partition_point(|one| *one < row),
            before => before,
        };
    }
    rows.partition_point(|one| *one < row)
}
