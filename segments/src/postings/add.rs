//! How are the postings of a list of blocks added up, many at once?
//!
//! Block by block in room of the stack: a block is decoded, valued and added while it is in
//! the nearest cache, and no vector grows. The plain twins are the defaults of [`Postings`].
//!
//! [`Postings`]: crate::read::Postings

use std::ops::Range;

use super::decoded::Decoded;
use super::format::{BLOCK_RANKS, rank_of};
use super::long_cursor::LongCursor;
use crate::error::SegmentError;
use crate::scores::{Scores, Sums};

type Result<T> = std::result::Result<T, SegmentError>;

impl LongCursor<'_> {
    /// See [`Postings::add_until`].
    ///
    /// [`Postings::add_until`]: crate::read::Postings::add_until
    pub(super) fn add_blocks_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        let mut block = Decoded::new();
        while self.next < self.end {
            let index = self.list.seek(self.next / BLOCK_RANKS, rows.start);
            let first = index * BLOCK_RANKS;
            if first >= self.end {
                self.next = self.end;
                break;
            }
            if index > self.next / BLOCK_RANKS {
                self.next = first;
            }
            self.decode(index, &mut block)?;
            let upto = block.len.min((self.end - first) as usize);
            let from = (self.next - first) as usize;
            let from = from + block.position(from, rows.start).min(upto - from);
            let to = match block.rows[upto - 1] < rows.end {
                true => upto,
                false => from + block.position(from, rows.end).min(upto - from),
            };
            if from < to {
                block.add(from..to, scores, sums)?;
            }
            self.next = first + rank_of(to);
            if to < upto {
                break;
            }
        }
        Ok(())
    }

    /// See [`Postings::add_at`].
    ///
    /// [`Postings::add_at`]: crate::read::Postings::add_at
    pub(super) fn add_blocks_at(
        &mut self,
        rows: &[u32],
        scores: &Scores<'_>,
        sums: &mut [i32],
    ) -> Result<()> {
        let mut block = Decoded::new();
        let mut asked = rows.iter().zip(sums).peekable();
        while let Some((row, _)) = asked.peek()
            && self.next < self.end
        {
            let current = self.next / BLOCK_RANKS;
            let index = self.list.seek(current, **row);
            let first = index * BLOCK_RANKS;
            if first >= self.end {
                self.next = self.end;
                break;
            }
            let mut place = match index == current {
                true => (self.next - first) as usize,
                false => 0,
            };
            self.decode_rows(index, &mut block)?;
            let mut is_valued = index == self.list.blocks;
            // The tail, which is the last, has all rows that are left.
            let last = match is_valued {
                true => u32::MAX,
                false => self.list.last_row(index),
            };
            while let Some((row, sum)) = asked.next_if(|(row, _)| **row <= last) {
                place += block.position(place, *row);
                let is_inside = place < block.len && first + rank_of(place) < self.end;
                if !is_inside || block.rows[place] != *row {
                    continue;
                }
                if !is_valued {
                    block.once = self.list.read_freqs(index, &mut block.freqs)?;
                    is_valued = true;
                }
                let freq = match block.once {
                    true => 1,
                    false => block.freqs[place],
                };
                *sum += scores.of(*row, freq)?;
            }
            self.next = self.end.min(first + rank_of(place));
        }
        Ok(())
    }

    /// Decodes block `index`, the tail included, which is not empty.
    fn decode(&self, index: u32, block: &mut Decoded) -> Result<()> {
        self.decode_rows(index, block)?;
        if index < self.list.blocks {
            block.once = self.list.read_freqs(index, &mut block.freqs)?;
        }
        Ok(())
    }

    /// Decodes the rows of block `index`; of the tail the frequencies too.
    fn decode_rows(&self, index: u32, block: &mut Decoded) -> Result<()> {
        block.len = self.list.block_len(index);
        block.once = false;
        if index == self.list.blocks {
            return self.list.tail(&mut block.rows, &mut block.freqs);
        }
        match self.decoded(index) {
            Some(rows) => block.rows = *rows,
            None => self.list.block_rows(index, &mut block.rows)?,
        }
        Ok(())
    }
}
