//! How are the postings of a list of blocks read in a row range?

use std::ops::Range;

use super::decoded::position;
use super::format::{BLOCK_LEN, BLOCK_RANKS, TermInfo, rank_of};
use super::list::{List, PostingLists};
use crate::error::SegmentError;
use crate::read::{Postings, TermBounds};
use crate::scores::{Scores, Sums};

type Result<T> = std::result::Result<T, SegmentError>;

/// Blocks whose bounds are looked at one by one; for more of them those of the list do.
const BOUNDS_BLOCKS_MAX: u32 = 64;

/// Postings of a list of blocks.
#[derive(Debug)]
pub(crate) struct LongCursor<'a> {
    pub(super) list: List<'a>,
    /// Rank of the range's first posting.
    start: u32,
    /// Rank of the next posting to read: `start` to `end`.
    pub(super) next: u32,
    /// Rank after the range's last posting, at most the list's `df`.
    pub(super) end: u32,
    bounds: TermBounds,
    /// The block that was decoded last; `u32::MAX` = none.
    index: u32,
    /// Its postings.
    len: usize,
    is_freqs_read: bool,
    /// True once one of its frequencies was read alone: the next one reads them all.
    is_freq_asked: bool,
    /// Room for a block's rows and its frequencies, made when it is first needed: a list that
    /// is read whole or only counted needs none.
    rows: Option<Box<[u32; BLOCK_LEN]>>,
    freqs: Option<Box<[u32; BLOCK_LEN]>>,
}

impl<'a> LongCursor<'a> {
    pub(super) fn open(
        lists: &'a PostingLists,
        info: &TermInfo,
        skip_offset: u64,
        rows: &Range<u32>,
    ) -> Result<Option<Self>> {
        let mut cursor = Self {
            list: lists.open_long(info.df, skip_offset)?,
            start: 0,
            next: 0,
            end: info.df,
            bounds: info.bounds,
            index: u32::MAX,
            len: 0,
            is_freqs_read: false,
            is_freq_asked: false,
            rows: None,
            freqs: None,
        };
        let first = match rows.start {
            0 => 0,
            start => cursor.list.seek(0, start),
        };
        // The end first: the block at the start stays decoded for the reading.
        if rows.end < lists.rows() {
            let last = cursor.list.seek(first, rows.end);
            cursor.end = cursor.rank(last, rows.end)?;
        }
        if rows.start > 0 {
            cursor.start = cursor.rank(first, rows.start)?;
            cursor.next = cursor.start;
        }
        Ok((cursor.start < cursor.end).then_some(cursor))
    }

    /// Postings with a row below `row`, which block `index` may hold.
    fn rank(&mut self, index: u32, row: u32) -> Result<u32> {
        self.load(index)?;
        Ok(index * BLOCK_RANKS + self.position(0, row))
    }

    /// How many rows of the decoded block, from place `from` on, are below `row`.
    #[inline]
    fn position(&self, from: usize, row: u32) -> u32 {
        self.rows
            .as_ref()
            .map_or(0, |rows| rank_of(position(&rows[from..self.len], row)))
    }

    /// Rows of a whole block, if that is the one that was decoded last.
    #[inline]
    pub(super) fn decoded(&self, index: u32) -> Option<&[u32; BLOCK_LEN]> {
        self.rows.as_deref().filter(|_| index == self.index)
    }

    /// Last row of a block, if that is the one that was decoded last.
    #[inline]
    fn last_of(&self, index: u32) -> Option<u32> {
        let rows = self.rows.as_ref().filter(|_| index == self.index)?;
        rows[..self.len].last().copied()
    }

    /// Decodes the rows of a block, the tail included, unless that was done last.
    fn load(&mut self, index: u32) -> Result<()> {
        if self.index == index {
            return Ok(());
        }
        // A block that turns out to be damaged is not taken for a decoded one later.
        self.index = u32::MAX;
        self.len = self.list.block_len(index);
        let rows = self.rows.get_or_insert_with(room);
        self.is_freqs_read = index == self.list.blocks;
        self.is_freq_asked = false;
        if index < self.list.blocks {
            self.list.block_rows(index, rows)?;
        } else if self.len > 0 {
            self.list.tail(rows, self.freqs.get_or_insert_with(room))?;
        }
        self.index = index;
        Ok(())
    }

    /// Appends the postings at some places of the decoded block.
    fn copy(
        &mut self,
        places: Range<usize>,
        rows: &mut Vec<u32>,
        freqs: &mut Vec<u32>,
    ) -> Result<()> {
        let freqs_of = self.block_freqs()?;
        freqs.extend_from_slice(&freqs_of[places.clone()]);
        let rows_of = self.rows.get_or_insert_with(room);
        rows.extend_from_slice(&rows_of[places]);
        Ok(())
    }

    /// Frequencies of the block that was decoded last.
    fn block_freqs(&mut self) -> Result<&[u32; BLOCK_LEN]> {
        let freqs = self.freqs.get_or_insert_with(room);
        if !self.is_freqs_read {
            self.list.block_freqs(self.index, freqs)?;
            self.is_freqs_read = true;
        }
        Ok(freqs)
    }

    /// Skips to the first posting at or after `row` and decodes its block; gives the place
    /// there, `None` at the end.
    fn skip_to(&mut self, row: u32) -> Result<Option<usize>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let current = self.next / BLOCK_RANKS;
        let index = match self.last_of(current) {
            Some(last) if row <= last => current,
            _ => self.list.seek(current, row),
        };
        if index * BLOCK_RANKS >= self.end {
            self.next = self.end;
            return Ok(None);
        }
        self.load(index)?;
        let from = match index == current {
            true => (self.next % BLOCK_RANKS) as usize,
            false => 0,
        };
        let place = from + self.position(from, row) as usize;
        self.next = self.end.min(index * BLOCK_RANKS + rank_of(place));
        Ok((self.next < self.end).then_some(place))
    }
}

impl Postings for LongCursor<'_> {
    fn count(&self) -> u32 {
        self.end - self.start
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        while self.next < self.end {
            let (index, from) = (self.next / BLOCK_RANKS, (self.next % BLOCK_RANKS) as usize);
            let left = (self.end - index * BLOCK_RANKS) as usize;
            if from == 0 && left >= BLOCK_LEN && self.list.last_row(index) < end {
                // Straight into the caller's vectors.
                self.list.read_block(index, grow(rows), grow(freqs))?;
                self.next += BLOCK_RANKS;
                continue;
            }
            self.load(index)?;
            let upto = self.len.min(left);
            let taken = self.position(from, end) as usize;
            let taken = taken.min(upto - from);
            if taken == 0 {
                return Ok(());
            }
            self.copy(from..from + taken, rows, freqs)?;
            self.next += rank_of(taken);
            if from + taken < upto {
                return Ok(());
            }
        }
        Ok(())
    }

    fn bounds_until(&mut self, end: u32) -> Result<TermBounds> {
        if self.next >= self.end {
            return Ok(TermBounds::NONE);
        }
        let first = self.next / BLOCK_RANKS;
        let last = match end >= self.list.rows_end() {
            true => (self.end - 1) / BLOCK_RANKS,
            false => self.list.seek(first, end).min((self.end - 1) / BLOCK_RANKS),
        };
        if last - first >= BOUNDS_BLOCKS_MAX {
            return Ok(self.bounds);
        }
        let mut bounds = TermBounds::NONE;
        for index in first..=last {
            let (freq, length) = self.list.bounds(index);
            bounds.add(freq, length);
        }
        Ok(bounds)
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        let Some(place) = self.skip_to(row)? else {
            return Ok(0);
        };
        let found = self.rows.as_ref().map(|rows| rows[place]);
        if found != Some(row) {
            return Ok(0);
        }
        if self.is_freqs_read || self.is_freq_asked {
            return Ok(self.block_freqs()?[place]);
        }
        self.is_freq_asked = true;
        self.list.block_freq(self.index, place)
    }

    fn add_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        self.add_blocks_until(rows, scores, sums)
    }

    fn add_at(&mut self, rows: &[u32], scores: &Scores<'_>, sums: &mut [i32]) -> Result<()> {
        self.add_blocks_at(rows, scores, sums)
    }
}

fn room() -> Box<[u32; BLOCK_LEN]> {
    Box::new([0; BLOCK_LEN])
}

/// Room for one block at the end of `out`.
#[inline]
fn grow(out: &mut Vec<u32>) -> &mut [u32; BLOCK_LEN] {
    out.extend_from_slice(&[0; BLOCK_LEN]);
    out.last_chunk_mut().expect("a block was just appended")
}
