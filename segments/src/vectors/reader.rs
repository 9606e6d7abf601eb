//! How are the vectors of a segment read?

use std::borrow::Cow;
use std::ops::Range;

use super::format::{
    PRESENCE_BYTES, PRESENCE_ROWS, RANK_BYTES, TRAILER_BYTES, Trailer, component_bytes,
};

use crate::error::SegmentError;
use crate::format::Section;
use crate::kernels::vectors::{dot, dot_four, dot_many};
use crate::prepared::{VectorFormat, VectorSpace};

type Result<T> = std::result::Result<T, SegmentError>;

/// Bytes of vectors that a scan asks of the section at a time.
const SCAN_BYTES: usize = 1 << 20;

/// Listed rows ahead of the four at work whose vectors are asked of memory.
const AHEAD: usize = 16;

/// The vectors of one segment.
#[derive(Debug)]
pub struct Vectors {
    vectors: Section,
    presence: Section,
    rows: u32,
    /// Rows with a vector.
    count: u32,
    format: VectorFormat,
    vector_bytes: usize,
}

impl Vectors {
    /// Opens sections `vectors` and `vector_rows` of a segment with `rows` rows.
    ///
    /// # Errors
    /// `Corrupt` where lengths and trailer do not fit each other, the space or the segment.
    pub fn open(
        vectors: Section,
        presence: Section,
        space: &VectorSpace,
        rows: u32,
    ) -> Result<Self> {
        let at = presence.len().saturating_sub(TRAILER_BYTES as u64);
        let found = presence.get(at, TRAILER_BYTES)?;
        let count = u32_at(&found, 4);
        let component_bytes = component_bytes(space.format);
        let expected = Trailer {
            rows,
            vectors: count,
            dim: space.dim,
            component_bytes,
        };
        if *found != expected.encode() || count > rows {
            let message =
                format!("trailer is {found:?}, expected {expected:?} with at most {rows} vectors");
            return Err(presence.corrupt(at, message));
        }
        drop(found);
        if at != expected.presence_bytes() {
            let message = format!(
                "{at} bytes of presence, expected {}",
                expected.presence_bytes()
            );
            return Err(presence.corrupt(0, message));
        }
        let vector_bytes = space.vector_bytes();
        let bytes = u64::from(count) * vector_bytes as u64;
        if vectors.len() != bytes {
            let message = format!(
                "{} bytes, expected {bytes} for {count} vectors",
                vectors.len()
            );
            return Err(vectors.corrupt(0, message));
        }
        Ok(Self {
            vectors,
            presence,
            rows,
            count,
            format: space.format,
            vector_bytes,
        })
    }

    /// Rows with a vector.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The row's vector as stored; `None` where it has none.
    ///
    /// # Errors
    /// Damage, or a row outside the segment.
    pub fn get(&self, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        if row >= self.rows {
            return Err(self
                .presence
                .corrupt(0, format!("row {row} asked for, {} stored", self.rows)));
        }
        match self.ordinal(row)? {
            (true, ordinal) => self.by_ordinals(ordinal..ordinal + 1).map(Some),
            (false, _) => Ok(None),
        }
    }

    /// The vectors of a row range, one after the other, in row order. Which rows they belong
    /// to: [`Vectors::rows_with_vector`].
    ///
    /// # Errors
    /// Damage, or rows outside the segment.
    pub fn range(&self, rows: Range<u32>) -> Result<Cow<'_, [u8]>> {
        self.by_ordinals(self.ordinals(rows)?)
    }

    /// Appends the rows of a range that have a vector, ascending.
    ///
    /// # Errors
    /// Damage, or rows outside the segment.
    pub fn rows_with_vector(&self, rows: Range<u32>, found: &mut Vec<u32>) -> Result<()> {
        self.check_range(&rows)?;
        if self.count == self.rows {
            found.extend(rows);
            return Ok(());
        }
        let mut start = rows.start;
        while start < rows.end {
            let (_, bits) = self.presence_block(start)?;
            let first = start / PRESENCE_ROWS * PRESENCE_ROWS;
            // No overflow: rows are at most 2^30.
            let end = rows.end.min(first + PRESENCE_ROWS);
            found.extend((start..end).filter(|row| has(&bits, *row)));
            start = end;
        }
        Ok(())
    }

    /// Scores listed rows: appends each row that has a vector to `found` and its dot product
    /// with `query` to `scores`. Listed in ascending order they are read fastest.
    ///
    /// # Errors
    /// Damage, or a row outside the segment.
    ///
    /// # Panics
    /// If the query is not of the space's dimension.
    pub fn score_rows(
        &self,
        query: &[f32],
        rows: &[u32],
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        for (at, four) in rows.chunks(4).enumerate() {
            self.bring_near(rows, 4 * at + AHEAD..4 * at + AHEAD + 4);
            let mut stored: [Cow<'_, [u8]>; 4] = Default::default();
            let mut filled = 0;
            for row in four {
                if let Some(vector) = self.get(*row)? {
                    stored[filled] = vector;
                    filled += 1;
                    found.push(*row);
                }
            }
            if filled == 4 {
                let stored: [&[u8]; 4] = std::array::from_fn(|i| &*stored[i]);
                scores.extend_from_slice(&dot_four(query, stored, self.format));
            } else {
                scores.extend(
                    stored[..filled]
                        .iter()
                        .map(|one| dot(query, one, self.format)),
                );
            }
        }
        Ok(())
    }

    /// Asks memory for the vectors of rows `at` of the list, where it is known without a look
    /// where they lie.
    fn bring_near(&self, rows: &[u32], at: Range<usize>) {
        if !self.is_full() {
            return;
        }
        for row in rows.get(at.start..at.end.min(rows.len())).unwrap_or(&[]) {
            let offset = u64::from(*row) * self.vector_bytes as u64;
            self.vectors.prefetch(offset, self.vector_bytes);
        }
    }

    /// Scores a row range: as [`Vectors::score_rows`] of all its rows, in one pass over
    /// memory.
    ///
    /// # Errors
    /// Damage, or rows outside the segment.
    ///
    /// # Panics
    /// If the query is not of the space's dimension.
    pub fn score_range(
        &self,
        query: &[f32],
        rows: Range<u32>,
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        let ordinals = self.ordinals(rows.clone())?;
        let step = u32::try_from(SCAN_BYTES / self.vector_bytes)
            .unwrap_or(u32::MAX)
            .max(1);
        let mut start = ordinals.start;
        while start < ordinals.end {
            let end = ordinals.end.min(start.saturating_add(step));
            dot_many(query, &self.by_ordinals(start..end)?, self.format, scores);
            start = end;
        }
        let found_before = found.len();
        self.rows_with_vector(rows, found)?;
        if found.len() - found_before != ordinals.len() {
            return Err(self
                .presence
                .corrupt(0, "counts of vectors and presence bits differ"));
        }
        Ok(())
    }

    /// True where every row has a vector: rows are places in section `vectors`.
    pub(crate) fn is_full(&self) -> bool {
        self.count == self.rows
    }

    /// Place of a row's vector in section `vectors`; `None` where it has none.
    ///
    /// # Errors
    /// Damage, or a row outside the segment.
    pub(crate) fn ordinal_of(&self, row: u32) -> Result<Option<u32>> {
        if row >= self.rows {
            let message = format!("row {row} asked for, {} stored", self.rows);
            return Err(self.presence.corrupt(0, message));
        }
        let (has, ordinal) = self.ordinal(row)?;
        Ok(has.then_some(ordinal))
    }

    /// The row whose vector is at `ordinal`. `block` is 0 at first, then what the last call
    /// left: places are asked for in ascending order.
    ///
    /// # Errors
    /// Damage, or a place behind the last.
    pub(crate) fn row_of(&self, ordinal: u32, block: &mut u32) -> Result<u32> {
        if self.is_full() {
            return Ok(ordinal);
        }
        let contradiction = || {
            let message = format!("no row has vector {ordinal} of {}", self.count);
            self.presence.corrupt(0, message)
        };
        if ordinal >= self.count {
            return Err(contradiction());
        }
        // No overflow: rows are at most 2^30.
        while *block + PRESENCE_ROWS < self.rows
            && self.presence_block(*block + PRESENCE_ROWS)?.0 <= ordinal
        {
            *block += PRESENCE_ROWS;
        }
        let (rank, bits) = self.presence_block(*block)?;
        let within = ordinal.checked_sub(rank).ok_or_else(contradiction)?;
        let rows = (*block..self.rows.min(*block + PRESENCE_ROWS)).filter(|row| has(&bits, *row));
        rows.clone().nth(within as usize).ok_or_else(contradiction)
    }

    /// Places of a row range's vectors in section `vectors`.
    pub(crate) fn ordinals(&self, rows: Range<u32>) -> Result<Range<u32>> {
        self.check_range(&rows)?;
        let (start, end) = (self.ordinal(rows.start)?.1, self.ordinal(rows.end)?.1);
        if start > end {
            let message = format!(
                "vectors before rows {} and {}: {start} and {end}",
                rows.start, rows.end
            );
            return Err(self.presence.corrupt(0, message));
        }
        Ok(start..end)
    }

    fn check_range(&self, rows: &Range<u32>) -> Result<()> {
        if rows.start > rows.end || rows.end > self.rows {
            let message = format!("rows {rows:?} asked for, {} stored", self.rows);
            return Err(self.presence.corrupt(0, message));
        }
        Ok(())
    }

    /// Whether the row has a vector, and how many rows before it have; `row` is at most the
    /// row count.
    fn ordinal(&self, row: u32) -> Result<(bool, u32)> {
        if row >= self.rows {
            return Ok((false, self.count));
        }
        if self.count == self.rows {
            return Ok((true, row));
        }
        let (rank, bits) = self.presence_block(row)?;
        let (byte, bit) = place(row);
        let whole: u32 = bits[..byte].iter().map(|byte| byte.count_ones()).sum();
        let below = (bits[byte] & ((1 << bit) - 1)).count_ones();
        let has = has(&bits, row);
        let ordinal = rank.saturating_add(whole + below);
        if ordinal > self.count || (has && ordinal == self.count) {
            let at = u64::from(row / PRESENCE_ROWS) * PRESENCE_BYTES as u64;
            return Err(self
                .presence
                .corrupt(at, format!("vector {ordinal} of {}", self.count)));
        }
        Ok((has, ordinal))
    }

    /// Rank and bits of the row's presence block. Only where some row has no vector.
    fn presence_block(&self, row: u32) -> Result<(u32, [u8; PRESENCE_BYTES - RANK_BYTES])> {
        let at = u64::from(row / PRESENCE_ROWS) * PRESENCE_BYTES as u64;
        let bytes = self.presence.get(at, PRESENCE_BYTES)?;
        let mut bits = [0; PRESENCE_BYTES - RANK_BYTES];
        bits.copy_from_slice(&bytes[RANK_BYTES..]);
        Ok((u32_at(&bytes, 0), bits))
    }

    fn by_ordinals(&self, ordinals: Range<u32>) -> Result<Cow<'_, [u8]>> {
        let at = u64::from(ordinals.start) * self.vector_bytes as u64;
        self.vectors.get(at, ordinals.len() * self.vector_bytes)
    }
}

fn place(row: u32) -> (usize, u32) {
    ((row % PRESENCE_ROWS / 8) as usize, row % 8)
}

fn has(bits: &[u8; PRESENCE_BYTES - RANK_BYTES], row: u32) -> bool {
    let (byte, bit) = place(row);
    bits[byte] >> bit & 1 == 1
}

/// `bytes` is longer than `at + 4`: it was asked for with a fixed length.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
