//! Which rows of one run could be among the best? MaxScore, a window of rows at a time.
//!
//! Terms are ordered by what a posting of theirs can contribute at most. The first ones,
//! which together cannot lift a row into the list, are *optional*: only rows that another
//! term holds are asked for them. The others are read and added up in an array of one sum a
//! row. (Turtle and Flood 1995, "Query Evaluation: Strategies and Optimizations", 4.2; by
//! windows as in Strohman and Croft 2007 and in today's vectorised engines, where short
//! records leave block bounds little to prune.)
//!
//! A window is as wide as its sums stay in the second-level cache, and narrower where
//! postings are dense. A sparse window remembers its rows in a bitmap; a dense one is scanned.

use std::ops::Range;

use chronolith_segments::{LENGTH_LONG, Run, SegmentError};
use chronolith_vfs::planted::{self, Bug};

use super::SparseCounters;
use super::bound::{optional, prefix_sums};
use super::pace::Pace;
use super::table::ScoreTable;
use crate::query::bm25::{SCALE, shown};
use crate::query::lookup::Cursor;
use crate::query::order::{Candidate, TopK};
use crate::query::recency::Aging;
use crate::query::view::View;

/// Narrowest and widest window, rows: 16 and 256 KiB of sums.
const WINDOW_MIN: u32 = 1 << 12;
const WINDOW_MAX: u32 = 1 << 16;
/// Postings that a window is made to hold.
const WINDOW_POSTINGS: u64 = 1 << 13;
/// A window with more than one posting in so many rows is scanned, not remembered.
const DENSE_SHARE: usize = 8;
/// Sums that are compared at once in a scan.
const SCAN: usize = 32;

/// One term's postings in the run.
pub(super) struct List<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) table: &'a ScoreTable,
    /// No posting of it contributes more.
    pub(super) bound: u32,
}

/// Memory that outlives a query: sums are zero and bits clear between windows.
#[derive(Default)]
pub(super) struct Scratch {
    sums: Vec<i32>,
    touched: Vec<u64>,
    rows: Vec<u32>,
    freqs: Vec<u32>,
    /// Where each list's postings end in `rows`.
    ends: Vec<usize>,
}

/// What one run of one view is scored with.
pub(super) struct RunScorer<'p, 't, 'c> {
    pub(super) view: &'p View,
    pub(super) index: usize,
    pub(super) aging: Aging,
    /// Newest event time of the partition.
    pub(super) newest_us: i64,
    /// One byte a row, or empty: see `Partition::short_lengths`.
    pub(super) lengths: &'p [u8],
    pub(super) top: &'p mut TopK<'t>,
    pub(super) counters: &'p mut SparseCounters,
    pub(super) pace: &'p mut Pace<'c>,
}

/// The lists that are only asked, with the sums of their bounds.
struct Asked<'l, 'a> {
    lists: &'l mut [List<'a>],
    sums: &'l [i64],
}

impl Asked<'_, '_> {
    /// What a row gains from all of them at most.
    fn sum(&self) -> i64 {
        self.sums[self.lists.len()]
    }
}

impl RunScorer<'_, '_, '_> {
    /// Scores the run. Stops early where the pace says so. After an error `scratch` is not
    /// clean.
    pub(super) fn score(
        &mut self,
        run: &Run,
        mut lists: Vec<List<'_>>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        lists.sort_by_key(|list| list.bound);
        let sums = prefix_sums(lists.iter().map(|list| list.bound));
        let width = window_rows(run, &lists);
        let mut start = run.rows.start;
        while start < run.rows.end {
            let optional = optional(&sums, self.floor());
            if optional == lists.len() || self.pace.is_over() {
                return Ok(());
            }
            let end = run.rows.end.min(start.saturating_add(width));
            let (asked, read) = lists.split_at_mut(optional);
            let mut asked = Asked {
                lists: asked,
                sums: &sums,
            };
            self.counters.windows += 1;
            self.window(start..end, read, &mut asked, scratch)?;
            start = end;
        }
        Ok(())
    }

    /// Scores these rows of the run, ascending, and no others: for filters that leave few.
    pub(super) fn score_rows(
        &mut self,
        rows: &[u32],
        mut lists: Vec<List<'_>>,
    ) -> Result<(), SegmentError> {
        lists.sort_by_key(|list| list.bound);
        let sums = prefix_sums(lists.iter().map(|list| list.bound));
        let mut asked = Asked {
            lists: &mut lists,
            sums: &sums,
        };
        for row in rows {
            self.take(*row, 0, &mut asked)?;
        }
        Ok(())
    }

    /// The least sum with which a row can get in, at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates: nothing gets in over a floor that large"
    )]
    fn floor(&self) -> i64 {
        let Some(key) = self.top.threshold() else {
            return 1;
        };
        let base = self.aging.base_floor(key, self.newest_us);
        let misses_ties = i64::from(planted::is_on(Bug::EqualBoundDropped));
        ((base * SCALE) as i64 + misses_ties).max(1)
    }

    fn window(
        &mut self,
        rows: Range<u32>,
        read: &mut [List<'_>],
        asked: &mut Asked<'_, '_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let width = rows.len();
        if scratch.sums.len() < width {
            scratch.sums.resize(width, 0);
            scratch.touched.resize(width.div_ceil(64), 0);
        }
        scratch.rows.clear();
        scratch.freqs.clear();
        scratch.ends.clear();
        for list in &mut *read {
            list.cursor
                .read_until(rows.end, &mut scratch.rows, &mut scratch.freqs)?;
            scratch.ends.push(scratch.rows.len());
        }
        let postings = scratch.rows.len();
        if postings == 0 {
            return Ok(());
        }
        self.counters.postings += postings as u64;
        let dense = postings > width / DENSE_SHARE;
        self.add(rows.start, read, dense, scratch)?;
        if dense {
            self.scan(rows, asked, &mut scratch.sums)
        } else {
            self.walk(rows, asked, scratch)
        }
    }

    /// Adds up the postings that were read.
    fn add(
        &self,
        start: u32,
        read: &[List<'_>],
        dense: bool,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut from = 0;
        for (list, upto) in read.iter().zip(&scratch.ends) {
            let rows = &scratch.rows[from..*upto];
            let freqs = &scratch.freqs[from..*upto];
            from = *upto;
            match list.table.once() {
                Some(once) if !self.lengths.is_empty() => {
                    let sums = &mut scratch.sums;
                    for (row, freq) in rows.iter().zip(freqs) {
                        let length = self.lengths[*row as usize];
                        let score = if *freq == 1 && length < LENGTH_LONG {
                            once[usize::from(length)]
                        } else {
                            self.contribution(list, *row, *freq)?
                        };
                        sums[(row - start) as usize] += score.cast_signed();
                    }
                }
                _ => {
                    for (row, freq) in rows.iter().zip(freqs) {
                        let score = self.contribution(list, *row, *freq)?;
                        scratch.sums[(row - start) as usize] += score.cast_signed();
                    }
                }
            }
            if !dense {
                for row in rows {
                    let place = row - start;
                    scratch.touched[place as usize / 64] |= 1 << (place % 64);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn contribution(&self, list: &List<'_>, row: u32, freq: u32) -> Result<u32, SegmentError> {
        if let Some(length) = self.lengths.get(row as usize) {
            if let Some(score) = list.table.get(freq, *length) {
                return Ok(score);
            }
            if *length < LENGTH_LONG {
                return Ok(list.table.score(freq, u32::from(*length)));
            }
        }
        Ok(list.table.score(freq, self.view.partition().length(row)?))
    }

    /// Looks at every row of the window.
    fn scan(
        &mut self,
        rows: Range<u32>,
        asked: &mut Asked<'_, '_>,
        sums: &mut [i32],
    ) -> Result<(), SegmentError> {
        let mut need = self.need(asked);
        let sums = &mut sums[..rows.len()];
        for (chunk, first) in sums.chunks_mut(SCAN).zip(rows.step_by(SCAN)) {
            // Without a branch a row, so that many are compared at once.
            if chunk.iter().fold(false, |any, sum| any | (*sum >= need)) {
                for (row, sum) in (first..).zip(&*chunk) {
                    if *sum >= need && self.take(row, *sum, asked)? {
                        need = self.need(asked);
                    }
                }
            }
            chunk.fill(0);
        }
        Ok(())
    }

    /// Looks at the rows that were touched.
    fn walk(
        &mut self,
        rows: Range<u32>,
        asked: &mut Asked<'_, '_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut need = self.need(asked);
        let words = &mut scratch.touched[..rows.len().div_ceil(64)];
        for (word, first) in words.iter_mut().zip((0..).step_by(64)) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let place = first + bits.trailing_zeros();
                bits &= bits - 1;
                let sum = std::mem::take(&mut scratch.sums[place as usize]);
                if sum >= need && self.take(rows.start + place, sum, asked)? {
                    need = self.need(asked);
                }
            }
        }
        Ok(())
    }

    /// What the terms that were read must give a row, at least 1.
    fn need(&self, asked: &Asked<'_, '_>) -> i32 {
        let need = self.floor().saturating_sub(asked.sum()).max(1);
        i32::try_from(need).unwrap_or(i32::MAX)
    }

    /// Asks the other terms for a row, and offers it. True if it was offered.
    fn take(
        &mut self,
        row: u32,
        sum: i32,
        asked: &mut Asked<'_, '_>,
    ) -> Result<bool, SegmentError> {
        self.counters.rows_filtered += 1;
        if !self.view.passes(row)? {
            return Ok(false);
        }
        let floor = self.floor();
        let mut sum = i64::from(sum);
        for (list, upto) in asked.lists.iter_mut().zip(&asked.sums[1..]).rev() {
            if sum + upto < floor {
                return Ok(false);
            }
            self.counters.rows_asked += 1;
            let freq = list.cursor.freq_at(row)?;
            if freq > 0 {
                sum += i64::from(self.contribution(list, row, freq)?);
            }
        }
        self.counters.rows_scored += 1;
        if sum < floor {
            return Ok(false);
        }
        let time_us = self.view.partition().event_time_us(row)?;
        let base = shown(sum);
        self.top.offer(Candidate {
            key: self.aging.key(base, time_us),
            base,
            time_us,
            view: self.index,
            row,
        })?;
        Ok(true)
    }
}

/// Rows of a window: about [`WINDOW_POSTINGS`] postings.
fn window_rows(run: &Run, lists: &[List<'_>]) -> u32 {
    let postings: u64 = lists
        .iter()
        .map(|list| u64::from(list.cursor.count()))
        .sum();
    let rows = run.rows.len() as u64 * WINDOW_POSTINGS / postings.max(1);
    let rows = rows.clamp(u64::from(WINDOW_MIN), u64::from(WINDOW_MAX));
    u32::try_from(rows).unwrap_or(WINDOW_MAX)
}
