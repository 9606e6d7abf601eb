//! How are fewer than 128 postings read in a row range?
//!
//! All at once, when the first of them is asked for.

use std::borrow::Cow;
use std::ops::Range;

use super::decoded::Decoded;
use super::format::{TermInfo, rank_of};
use super::list::PostingLists;
use super::short;
use crate::error::SegmentError;
use crate::read::{Postings, TermBounds};
use crate::scores::{Scores, Sums};

type Result<T> = std::result::Result<T, SegmentError>;

/// Postings of a list without blocks.
#[derive(Debug)]
pub(crate) struct ShortCursor<'a> {
    lists: &'a PostingLists,
    offset: u64,
    bytes: Cow<'a, [u8]>,
    /// Postings of the list.
    df: u32,
    /// Ranks of the range's first posting, of the next to read, and after its last.
    start: u32,
    next: u32,
    end: u32,
    bounds: TermBounds,
    /// The whole list, once it is needed.
    decoded: Option<Box<Decoded>>,
}

impl<'a> ShortCursor<'a> {
    /// `None` where the range holds no posting. Decodes nothing where the range is the segment.
    pub(super) fn open(
        lists: &'a PostingLists,
        info: &TermInfo,
        (offset, bytes): (u64, u32),
        rows: &Range<u32>,
    ) -> Result<Option<Self>> {
        let mut cursor = Self {
            lists,
            offset,
            bytes: lists.open_short(info.df, offset, bytes)?,
            df: info.df,
            start: 0,
            next: 0,
            end: info.df,
            bounds: info.bounds,
            decoded: None,
        };
        if rows.start > 0 || rows.end < lists.rows() {
            let decoded = cursor.decoded()?;
            let start = decoded.position(0, rows.start);
            let end = start + decoded.position(start, rows.end);
            (cursor.start, cursor.next) = (rank_of(start), rank_of(start));
            cursor.end = rank_of(end);
        }
        Ok((cursor.start < cursor.end).then_some(cursor))
    }

    fn decoded(&mut self) -> Result<&Decoded> {
        if self.decoded.is_none() {
            let mut decoded = Box::new(Decoded::new());
            let len = self.df as usize;
            let (rows, freqs) = (&mut decoded.rows[..len], &mut decoded.freqs[..len]);
            let end = self.lists.rows();
            let Some(once) = short::decode(None, &self.bytes, end, rows, freqs) else {
                let message = format!("not {len} postings below row {end}");
                return Err(self.lists.short_corrupt(self.offset, message));
            };
            (decoded.len, decoded.once) = (len, once);
            self.decoded = Some(decoded);
        }
        Ok(self.decoded.as_ref().expect("it was just decoded"))
    }

    /// Places in the list of the postings inside `rows` that were not read, which count as read
    /// from now on.
    fn take(&mut self, rows: &Range<u32>) -> Result<Range<usize>> {
        let (next, end) = (self.next as usize, self.end as usize);
        let decoded = self.decoded()?;
        let from = next + decoded.position(next, rows.start);
        let to = from + decoded.position(from, rows.end);
        let (from, to) = (from.min(end), to.min(end));
        self.next = rank_of(to);
        Ok(from..to)
    }
}

impl Postings for ShortCursor<'_> {
    fn count(&self) -> u32 {
        self.end - self.start
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        if self.next < self.end {
            let places = self.take(&(0..end))?;
            let decoded = self.decoded()?;
            rows.extend_from_slice(&decoded.rows[places.clone()]);
            freqs.extend_from_slice(&decoded.freqs[places]);
        }
        Ok(())
    }

    fn bounds_until(&mut self, _end: u32) -> Result<TermBounds> {
        Ok(match self.next < self.end {
            true => self.bounds,
            false => TermBounds::NONE,
        })
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        if self.next >= self.end {
            return Ok(0);
        }
        let place = self.take(&(row..row))?.start;
        let is_inside = place < self.end as usize;
        let decoded = self.decoded()?;
        Ok(match is_inside && decoded.rows[place] == row {
            true => decoded.freqs[place],
            false => 0,
        })
    }

    fn add_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        if self.next < self.end {
            let places = self.take(&rows)?;
            self.decoded()?.add(places, scores, sums)?;
        }
        Ok(())
    }

    fn add_at(&mut self, rows: &[u32], scores: &Scores<'_>, sums: &mut [i32]) -> Result<()> {
        let (mut place, end) = (self.next as usize, self.end as usize);
        if place >= end {
            return Ok(());
        }
        let decoded = self.decoded()?;
        for (row, sum) in rows.iter().zip(sums) {
            place += decoded.position(place, *row);
            if place >= end {
                break;
            }
            if decoded.rows[place] == *row {
                *sum += scores.of(*row, decoded.freqs[place])?;
            }
        }
        self.next = rank_of(place.min(end));
        Ok(())
    }
}
