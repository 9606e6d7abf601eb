//! How are one term's postings of a row range read?

use std::ops::Range;

use super::format::{BLOCK_LEN, BLOCK_RANKS, ListPlace};
use super::list::{List, PostingLists};
use crate::error::SegmentError;
use crate::read::Postings;

type Result<T> = std::result::Result<T, SegmentError>;

/// One term's postings inside a row range; see [`Postings`].
#[derive(Debug)]
pub(crate) struct PostingsCursor<'a> {
    list: List<'a>,
    /// Rank of the range's first posting.
    start: u32,
    /// Rank of the next posting to read: `start` to `end`.
    next: u32,
    /// Rank after the range's last posting, at most the list's `df`.
    end: u32,
    block: Block,
}

/// The block that was decoded last.
#[derive(Debug)]
struct Block {
    /// `u32::MAX`: none yet.
    index: u32,
    /// Valid places of `rows`, and of `freqs` once they are read.
    len: usize,
    freqs_read: bool,
    rows: [u32; BLOCK_LEN],
    freqs: [u32; BLOCK_LEN],
}

impl<'a> PostingsCursor<'a> {
    /// The postings with rows in `rows` of the list at `place`; `None` where there are none.
    /// Decodes the two blocks at the range's ends.
    ///
    /// # Errors
    /// Damage in the list or its skip data.
    pub(crate) fn open(
        lists: &'a PostingLists,
        df: u32,
        place: ListPlace,
        rows: Range<u32>,
    ) -> Result<Option<Self>> {
        let list = lists.open(df, place)?;
        let block = Block {
            index: u32::MAX,
            len: 0,
            freqs_read: false,
            rows: [0; BLOCK_LEN],
            freqs: [0; BLOCK_LEN],
        };
        let mut cursor = Self {
            list,
            start: 0,
            next: 0,
            end: df,
            block,
        };
        // The end first: the block at the start stays decoded for the reading.
        cursor.end = cursor.rank(rows.end)?;
        cursor.start = cursor.rank(rows.start)?;
        cursor.next = cursor.start;
        Ok((cursor.start < cursor.end).then_some(cursor))
    }

    /// Postings with a row below `row`.
    fn rank(&mut self, row: u32) -> Result<u32> {
        if row == 0 {
            return Ok(0);
        }
        let index = self.list.seek(0, row);
        self.load(index)?;
        Ok(index * BLOCK_RANKS + position(&self.block.rows[..self.block.len], row))
    }

    /// Decodes the rows of a block, the tail included, unless that was done last.
    fn load(&mut self, index: u32) -> Result<()> {
        if self.block.index == index {
            return Ok(());
        }
        // A block that turns out to be damaged is not taken for a decoded one later.
        self.block.index = u32::MAX;
        self.block.len = self.list.block_len(index);
        if index < self.list.blocks {
            self.list.block_rows(index, &mut self.block.rows)?;
            self.block.freqs_read = false;
        } else {
            if self.block.len > 0 {
                self.list
                    .tail(&mut self.block.rows, &mut self.block.freqs)?;
            }
            self.block.freqs_read = true;
        }
        self.block.index = index;
        Ok(())
    }

    fn load_freqs(&mut self) -> Result<()> {
        if !self.block.freqs_read {
            self.list
                .block_freqs(self.block.index, &mut self.block.freqs)?;
            self.block.freqs_read = true;
        }
        Ok(())
    }

    /// Reads a whole block straight into the caller's vectors.
    fn read_block(&self, index: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        self.list.block_rows(index, grow(rows))?;
        self.list.block_freqs(index, grow(freqs))
    }

    /// Skips to the first posting at or after `row` and decodes its block; false at the end.
    fn skip_to(&mut self, row: u32) -> Result<bool> {
        if self.next >= self.end {
            return Ok(false);
        }
        let current = self.next / BLOCK_RANKS;
        let index = self.list.seek(current, row);
        if index * BLOCK_RANKS >= self.end {
            self.next = self.end;
            return Ok(false);
        }
        self.load(index)?;
        let from = if index == current {
            self.next % BLOCK_RANKS
        } else {
            0
        };
        let rows = &self.block.rows[from as usize..self.block.len];
        self.next = self
            .end
            .min(index * BLOCK_RANKS + from + position(rows, row));
        Ok(self.next < self.end)
    }
}

impl Postings for PostingsCursor<'_> {
    fn count(&self) -> u32 {
        self.end - self.start
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        while self.next < self.end {
            let (index, from) = (self.next / BLOCK_RANKS, (self.next % BLOCK_RANKS) as usize);
            let left = (self.end - index * BLOCK_RANKS) as usize;
            if from == 0 && left >= BLOCK_LEN && self.list.last_row(index) < end {
                self.read_block(index, rows, freqs)?;
                self.next += BLOCK_RANKS;
                continue;
            }
            self.load(index)?;
            let upto = self.block.len.min(left);
            let taken = position(&self.block.rows[from..upto], end);
            if taken == 0 {
                return Ok(());
            }
            self.load_freqs()?;
            let places = from..from + taken as usize;
            rows.extend_from_slice(&self.block.rows[places.clone()]);
            freqs.extend_from_slice(&self.block.freqs[places.clone()]);
            self.next += taken;
            if places.end < upto {
                return Ok(());
            }
        }
        Ok(())
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        if !self.skip_to(row)? {
            return Ok(0);
        }
        let place = (self.next % BLOCK_RANKS) as usize;
        if self.block.rows[place] != row {
            return Ok(0);
        }
        self.load_freqs()?;
        Ok(self.block.freqs[place])
    }
}

/// How many of at most 128 ascending rows are below `row`.
#[expect(clippy::cast_possible_truncation, reason = "at most 128")]
fn position(rows: &[u32], row: u32) -> u32 {
    debug_assert!(rows.len() <= BLOCK_LEN);
    rows.partition_point(|one| *one < row) as u32
}

/// Room for one block at the end of `out`.
fn grow(out: &mut Vec<u32>) -> &mut [u32; BLOCK_LEN] {
    out.extend_from_slice(&[0; BLOCK_LEN]);
    out.last_chunk_mut().expect("a block was just appended")
}
