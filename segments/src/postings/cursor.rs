//! How are one term's postings of a row range read?

use std::ops::Range;

use super::format::{ListPlace, TermInfo};
use super::list::PostingLists;
use super::long_cursor::LongCursor;
use super::short_cursor::ShortCursor;
use crate::error::SegmentError;
use crate::read::{Postings, TermBounds};
use crate::scores::{Scores, Sums};

type Result<T> = std::result::Result<T, SegmentError>;

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

    fn add_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        self.inner_mut().add_until(rows, scores, sums)
    }

    fn add_at(&mut self, rows: &[u32], scores: &Scores<'_>, sums: &mut [i32]) -> Result<()> {
        self.inner_mut().add_at(rows, scores, sums)
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

    fn add_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        if !self.is_read && self.row < rows.end {
            self.is_read = true;
            if self.row >= rows.start {
                sums.add_one(self.row, scores.of(self.row, self.freq)?);
            }
        }
        Ok(())
    }

    fn add_at(&mut self, rows: &[u32], scores: &Scores<'_>, sums: &mut [i32]) -> Result<()> {
        if let Ok(place) = rows.binary_search(&self.row)
            && !self.is_read
        {
            sums[place] += scores.of(self.row, self.freq)?;
        }
        Ok(())
    }
}
