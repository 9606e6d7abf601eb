//! How are one term's postings of a row range read?

use std::borrow::Cow;
use std::ops::Range;

use super::format::{BLOCK_LEN, BLOCK_RANKS, ListPlace, TermInfo};
use super::list::{List, PostingLists};
use super::short::ShortReader;
use crate::error::SegmentError;
use crate::read::{Postings, TermBounds};

type Result<T> = std::result::Result<T, SegmentError>;

/// Blocks whose bounds are looked at one by one; for more of them those of the list do.
const BOUNDS_BLOCKS_MAX: u32 = 64;

/// Rows that are all compared before the others are searched.
const NEAR_ROWS: usize = 8;

/// One term's postings inside a row range; see [`Postings`].
#[derive(Debug)]
pub(crate) enum PostingsCursor<'a> {
    /// Of a term in one row.
    One(OneCursor),
    /// Of a list without blocks.
    Short(ShortCursor<'a>),
    /// Of a list of blocks.
    Long(LongCursor<'a>),
}

impl<'a> PostingsCursor<'a> {
    /// The postings with rows in `rows` of a term's list; `None` where there are none. Decodes
    /// no block for an end of the range that is an end of the segment, else one.
    ///
    /// # Errors
    /// Damage in the list or its skip data.
    pub(crate) fn open(
        lists: &'a PostingLists,
        info: &TermInfo,
        rows: Range<u32>,
    ) -> Result<Option<Self>> {
        Ok(match info.place {
            ListPlace::One { row, freq } => {
                OneCursor::open(lists, info, row, freq, &rows)?.map(Self::One)
            }
            ListPlace::Short { offset, bytes } => {
                ShortCursor::open(lists, info, (offset, bytes), &rows)?.map(Self::Short)
            }
            ListPlace::Long { skip_offset } => {
                LongCursor::open(lists, info, skip_offset, &rows)?.map(Self::Long)
            }
        })
    }

    /// The cursor on the heap, no larger than it must be.
    pub(crate) fn boxed(self) -> Box<dyn Postings + 'a> {
        match self {
            Self::One(cursor) => Box::new(cursor),
            Self::Short(cursor) => Box::new(cursor),
            Self::Long(cursor) => Box::new(cursor),
        }
    }

    fn inner(&self) -> &dyn Postings {
        match self {
            Self::One(cursor) => cursor,
            Self::Short(cursor) => cursor,
            Self::Long(cursor) => cursor,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Postings {
        match self {
            Self::One(cursor) => cursor,
            Self::Short(cursor) => cursor,
            Self::Long(cursor) => cursor,
        }
    }
}

impl Postings for PostingsCursor<'_> {
    fn count(&self) -> u32 {
        self.inner().count()
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        self.inner_mut().read_until(end, rows, freqs)
    }

    fn bounds_until(&mut self, end: u32) -> Result<TermBounds> {
        self.inner_mut().bounds_until(end)
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        self.inner_mut().freq_at(row)
    }
}

/// The only posting of a term.
#[derive(Debug)]
pub(crate) struct OneCursor {
    row: u32,
    freq: u32,
    bounds: TermBounds,
    is_read: bool,
}

impl OneCursor {
    fn open(
        lists: &PostingLists,
        info: &TermInfo,
        row: u32,
        freq: u32,
        rows: &Range<u32>,
    ) -> Result<Option<Self>> {
        if row >= lists.rows() || freq == 0 || info.df != 1 {
            let message = format!(
                "the one posting of {} is row {row} of {}, frequency {freq}",
                info.df,
                lists.rows()
            );
            return Err(lists.short_corrupt(0, message));
        }
        Ok(rows.contains(&row).then_some(Self {
            row,
            freq,
            bounds: info.bounds,
            is_read: false,
        }))
    }
}

impl Postings for OneCursor {
    fn count(&self) -> u32 {
        1
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        if !self.is_read && self.row < end {
            self.is_read = true;
            rows.push(self.row);
            freqs.push(self.freq);
        }
        Ok(())
    }

    fn bounds_until(&mut self, end: u32) -> Result<TermBounds> {
        Ok(match !self.is_read && self.row < end {
            true => self.bounds,
            false => TermBounds::NONE,
        })
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        self.is_read |= self.row < row;
        Ok(match !self.is_read && self.row == row {
            true => self.freq,
            false => 0,
        })
    }
}

/// Postings of a run of varints, decoded one by one as they are asked for.
#[derive(Debug)]
pub(crate) struct ShortCursor<'a> {
    lists: &'a PostingLists,
    offset: u64,
    bytes: Cow<'a, [u8]>,
    /// Behind `next`.
    reader: ShortReader,
    /// The next posting, while `left` says that there is one.
    next: (u32, u32),
    /// Postings of the range that were not read, `next` among them.
    left: u32,
    count: u32,
    /// True where the range holds the list's last posting: no byte may follow it.
    to_the_end: bool,
    bounds: TermBounds,
}

impl<'a> ShortCursor<'a> {
    fn open(
        lists: &'a PostingLists,
        info: &TermInfo,
        (offset, bytes): (u64, u32),
        rows: &Range<u32>,
    ) -> Result<Option<Self>> {
        let bytes = lists.open_short(info.df, offset, bytes)?;
        let mut cursor = Self {
            lists,
            offset,
            bytes,
            reader: ShortReader::new(None),
            next: (0, 0),
            left: info.df,
            count: info.df,
            to_the_end: true,
            bounds: info.bounds,
        };
        cursor.decode()?;
        if rows.start > 0 {
            while cursor.next.0 < rows.start {
                cursor.advance()?;
                if cursor.left == 0 {
                    return Ok(None);
                }
            }
            cursor.count = cursor.left;
        }
        if rows.end < lists.rows() {
            cursor.cut(rows.end)?;
        }
        Ok((cursor.count > 0).then_some(cursor))
    }

    /// Leaves out the postings from row `end` on.
    fn cut(&mut self, end: u32) -> Result<()> {
        let (mut reader, mut row, mut inside) = (self.reader, self.next.0, 0);
        while row < end {
            inside += 1;
            if inside == self.left {
                return Ok(());
            }
            let next = reader.next(&self.bytes, self.lists.rows());
            row = next.ok_or_else(|| self.corrupt())?.0;
        }
        (self.left, self.count, self.to_the_end) = (inside, inside, false);
        Ok(())
    }

    /// Moves past `next`.
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.left -= 1;
        if self.left > 0 {
            return self.decode();
        }
        if self.to_the_end && self.reader.at != self.bytes.len() {
            return Err(self.corrupt());
        }
        Ok(())
    }

    #[inline]
    fn decode(&mut self) -> Result<()> {
        match self.reader.next(&self.bytes, self.lists.rows()) {
            Some(next) => {
                self.next = next;
                Ok(())
            }
            None => Err(self.corrupt()),
        }
    }

    fn corrupt(&self) -> SegmentError {
        let message = format!("not the postings below row {}", self.lists.rows());
        self.lists.short_corrupt(self.offset, message)
    }
}

impl Postings for ShortCursor<'_> {
    fn count(&self) -> u32 {
        self.count
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        while self.left > 0 && self.next.0 < end {
            rows.push(self.next.0);
            freqs.push(self.next.1);
            self.advance()?;
        }
        Ok(())
    }

    fn bounds_until(&mut self, end: u32) -> Result<TermBounds> {
        Ok(match self.left > 0 && self.next.0 < end {
            true => self.bounds,
            false => TermBounds::NONE,
        })
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        while self.left > 0 && self.next.0 < row {
            self.advance()?;
        }
        Ok(match self.left > 0 && self.next.0 == row {
            true => self.next.1,
            false => 0,
        })
    }
}

/// Postings of a list of blocks.
#[derive(Debug)]
pub(crate) struct LongCursor<'a> {
    list: List<'a>,
    /// Rank of the range's first posting.
    start: u32,
    /// Rank of the next posting to read: `start` to `end`.
    next: u32,
    /// Rank after the range's last posting, at most the list's `df`.
    end: u32,
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
    fn open(
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
            .map_or(0, |rows| position(&rows[from..self.len], row))
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
}

/// How many of at most 128 ascending rows are below `row`.
#[inline]
fn position(rows: &[u32], row: u32) -> u32 {
    debug_assert!(rows.len() <= BLOCK_LEN);
    // Most are near: a look at eight costs less than a search.
    let (near, far) = rows.split_at(rows.len().min(NEAR_ROWS));
    let before = near.iter().filter(|one| **one < row).count();
    if before < NEAR_ROWS {
        return rank_of(before);
    }
    rank_of(NEAR_ROWS + far.partition_point(|one| *one < row))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 128")]
fn rank_of(place: usize) -> u32 {
    place as u32
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
