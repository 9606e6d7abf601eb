//! How are the postings of a list of blocks added up, many at once?
//!
//! Block by block in room of the stack: a block is decoded, valued and added while it is in
//! the nearest cache, and no vector grows. The plain twins are the defaults of [`Postings`].
//!
//! [`Postings`]: crate::read::Postings

use std::ops::Range;

use super::decoded::{Decoded, position};
use super::format::{BLOCK_RANKS, rank_of};
use super::list::{Block, List};
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
        let mut at = 0;
        while at < rows.len() && self.next < self.end {
            let current = self.next / BLOCK_RANKS;
            let index = self.list.seek(current, rows[at]);
            let first = index * BLOCK_RANKS;
            if first >= self.end {
                self.next = self.end;
                break;
            }
            let mut place = match index == current {
                true => (self.next - first) as usize,
                false => 0,
            };
            // The tail, which is the last, has all rows that are left, and their frequencies.
            let whole = self.decode_rows(index, &mut block)?;
            let known = &block.rows[..block.len.min((self.end - first) as usize)];
            let last = match whole {
                Some(_) => self.list.last_row(index),
                None => u32::MAX,
            };
            let mut unread = whole;
            while let Some(row) = rows.get(at).filter(|row| **row <= last) {
                place += position(&known[place..], *row);
                if known.get(place) == Some(row) {
                    if let Some(whole) = unread.take() {
                        block.once = List::read_freqs(&whole, &mut block.freqs);
                    }
                    let freq = match block.once {
                        true => 1,
                        false => block.freqs[place],
                    };
                    sums[at] += scores.of(*row, freq)?;
                }
                at += 1;
            }
            self.next = self.end.min(first + rank_of(place));
        }
        Ok(())
    }

    /// Decodes block `index`, the tail included, which is not empty.
    fn decode(&self, index: u32, block: &mut Decoded) -> Result<()> {
        if let Some(whole) = self.decode_rows(index, block)? {
            block.once = List::read_freqs(&whole, &mut block.freqs);
        }
        Ok(())
    }

    /// Decodes the rows of block `index`, and gives it for its frequencies; `None` for the
    /// tail, of which both are decoded.
    fn decode_rows(&self, index: u32, block: &mut Decoded) -> Result<Option<Block<'_>>> {
        block.len = self.list.block_len(index);
        block.once = false;
        if index == self.list.blocks {
            self.list.tail(&mut block.rows, &mut block.freqs)?;
            return Ok(None);
        }
        let whole = self.list.open_block(index)?;
        match self.decoded(index) {
            Some(rows) => block.rows = *rows,
            None => self.list.read_rows(&whole, &mut block.rows)?,
        }
        Ok(Some(whole))
    }
}
