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
//! postings are dense. A sparse window remembers its rows in a bitmap, where they must be
//! asked in order; a dense one is scanned.

use std::ops::Range;

use chronolith_segments::{LENGTH_LONG, Run, SegmentError};
use chronolith_vfs::planted::{self, Bug};

use super::SparseCounters;
use super::bound::{optional, prefix_sums, worth_asking};
use super::group::Group;
use super::pace::Pace;
use super::table::ScoreTable;
use super::verify::offer_verified;
use crate::query::bm25::{SCALE, shown};
use crate::query::clauses::{Phrases, RunFilter};
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
/// How many postings are read in the time that one row is asked for.
const ASK_COST: u64 = 8;
/// Sums that are compared at once in a scan.
const SCAN: usize = 32;

/// What contributes to a row at once: a term, or the best of several.
pub(super) enum Scored<'a> {
    Term(Cursor<'a>, &'a ScoreTable),
    Group(Group<'a>),
}

/// One term's or one group's postings in the run.
pub(super) struct List<'a> {
    pub(super) scored: Scored<'a>,
    /// No row gets more from it.
    pub(super) bound: u32,
    /// Rows that it does not hold are out.
    pub(super) required: bool,
}

impl List<'_> {
    /// Its postings in the run.
    pub(super) fn count(&self) -> u64 {
        match &self.scored {
            Scored::Term(cursor, _) => u64::from(cursor.count()),
            Scored::Group(group) => group.count(),
        }
    }

    /// How many cursors a row is asked for in.
    pub(super) fn cursors(&self) -> usize {
        match &self.scored {
            Scored::Term(..) => 1,
            Scored::Group(group) => group.cursors(),
        }
    }
}

/// Memory that outlives a query: sums are zero and bits clear between windows.
#[derive(Default)]
pub(super) struct Scratch {
    sums: Vec<i32>,
    touched: Vec<u64>,
    rows: Vec<u32>,
    freqs: Vec<u32>,
    /// Where each list's postings end in `rows`; a group has contributions for frequencies.
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
    pub(super) phrases: &'p Phrases,
    /// Rows of a window whose phrases are not verified yet.
    pub(super) waiting: Vec<Candidate>,
    pub(super) top: &'p mut TopK<'t>,
    pub(super) counters: &'p mut SparseCounters,
    pub(super) pace: &'p mut Pace<'c>,
}

/// What is asked of a row that scores: the clauses' filter, and the lists that are not read,
/// with the sums of their bounds.
struct Asked<'l, 'a, 'f> {
    filter: &'l mut RunFilter<'f>,
    lists: &'l mut [List<'a>],
    sums: &'l [i64],
}

impl Asked<'_, '_, '_> {
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
        mut filter: RunFilter<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        lists.sort_by_key(|list| list.bound);
        let is_driven = drive(&mut lists);
        let sums = prefix_sums(lists.iter().map(|list| list.bound));
        let driver = if is_driven { lists.len() - 1 } else { 0 };
        let counts: Vec<u64> = lists.iter().map(List::count).collect();
        let width = window_rows(run, &lists[driver..]);
        let mut start = run.rows.start;
        while start < run.rows.end {
            let optional = optional(&sums, self.floor());
            if optional == lists.len() || self.pace.is_over() {
                return Ok(());
            }
            let end = run.rows.end.min(start.saturating_add(width));
            let asked = match is_driven {
                true => driver,
                false => worth_asking(&counts, optional),
            };
            let (asked, read) = lists.split_at_mut(asked);
            let mut asked = Asked {
                filter: &mut filter,
                lists: asked,
                sums: &sums,
            };
            self.counters.windows += 1;
            self.window(start..end, read, &mut asked, scratch)?;
            self.offer_waiting()?;
            start = end;
        }
        Ok(())
    }

    /// Scores these rows of the run, ascending, and no others: for filters that leave few.
    pub(super) fn score_rows(
        &mut self,
        rows: &[u32],
        mut lists: Vec<List<'_>>,
        mut filter: RunFilter<'_>,
    ) -> Result<(), SegmentError> {
        lists.sort_by_key(|list| list.bound);
        let sums = prefix_sums(lists.iter().map(|list| list.bound));
        let mut asked = Asked {
            filter: &mut filter,
            lists: &mut lists,
            sums: &sums,
        };
        for row in rows {
            self.take(*row, 0, &mut asked)?;
        }
        self.offer_waiting()
    }

    /// Offers the rows whose phrases were not verified yet, where they hold them.
    fn offer_waiting(&mut self) -> Result<(), SegmentError> {
        let (waiting, phrases) = (&mut self.waiting, self.phrases);
        offer_verified(waiting, phrases, self.view, self.aging, self.top)
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
        asked: &mut Asked<'_, '_, '_>,
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
            let (into, freqs) = (&mut scratch.rows, &mut scratch.freqs);
            match &mut list.scored {
                Scored::Term(cursor, _) => cursor.read_until(rows.end, into, freqs)?,
                Scored::Group(group) => {
                    let score = |table: &_, row, freq| self.contribution(table, row, freq);
                    group.read_until(rows.end, score, into, freqs)?;
                }
            }
            scratch.ends.push(scratch.rows.len());
        }
        let postings = scratch.rows.len();
        if postings == 0 {
            return Ok(());
        }
        self.counters.postings += postings as u64;
        self.add(rows.start, read, scratch)?;
        if postings > width / DENSE_SHARE {
            return self.scan(rows, asked, &mut scratch.sums);
        }
        // Cursors are asked for rows in ascending order; without any the order does not matter.
        if asked.lists.is_empty() && asked.filter.is_empty() && self.phrases.is_empty() {
            return self.walk_postings(rows.start, asked, scratch);
        }
        for row in &scratch.rows {
            let place = row - rows.start;
            scratch.touched[place as usize / 64] |= 1 << (place % 64);
        }
        self.walk(rows, asked, scratch)
    }

    /// Adds up the postings that were read.
    fn add(
        &self,
        start: u32,
        read: &[List<'_>],
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut from = 0;
        for (list, upto) in read.iter().zip(&scratch.ends) {
            let rows = &scratch.rows[from..*upto];
            let freqs = &scratch.freqs[from..*upto];
            from = *upto;
            match &list.scored {
                Scored::Group(_) => {
                    for (row, score) in rows.iter().zip(freqs) {
                        scratch.sums[(row - start) as usize] += score.cast_signed();
                    }
                }
                Scored::Term(_, table) => {
                    self.add_term(start, table, rows, freqs, &mut scratch.sums)?
                }
            }
        }
        Ok(())
    }

    fn add_term(
        &self,
        start: u32,
        table: &ScoreTable,
        rows: &[u32],
        freqs: &[u32],
        sums: &mut [i32],
    ) -> Result<(), SegmentError> {
        match table.once() {
            Some(once) if !self.lengths.is_empty() => {
                let lengths = self.lengths;
                for (row, freq) in rows.iter().zip(freqs) {
                    let length = lengths[*row as usize];
                    let score = if *freq == 1 && length < LENGTH_LONG {
                        once[usize::from(length)]
                    } else {
                        self.contribution(table, *row, *freq)?
                    };
                    sums[(row - start) as usize] += score.cast_signed();
                }
            }
            _ => {
                for (row, freq) in rows.iter().zip(freqs) {
                    let score = self.contribution(table, *row, *freq)?;
                    sums[(row - start) as usize] += score.cast_signed();
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn contribution(&self, table: &ScoreTable, row: u32, freq: u32) -> Result<u32, SegmentError> {
        if let Some(length) = self.lengths.get(row as usize) {
            if let Some(score) = table.get(freq, *length) {
                return Ok(score);
            }
            if *length < LENGTH_LONG {
                return Ok(table.score(freq, u32::from(*length)));
            }
        }
        Ok(table.score(freq, self.view.partition().length(row)?))
    }

    /// What the row gets from a list that was not read.
    fn ask(&self, list: &mut List<'_>, row: u32) -> Result<u32, SegmentError> {
        match &mut list.scored {
            Scored::Term(cursor, table) => match cursor.freq_at(row)? {
                0 => Ok(0),
                freq => self.contribution(table, row, freq),
            },
            Scored::Group(group) => {
                group.best_at(row, |table, row, freq| self.contribution(table, row, freq))
            }
        }
    }

    /// Looks at every row of the window.
    fn scan(
        &mut self,
        rows: Range<u32>,
        asked: &mut Asked<'_, '_, '_>,
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

    /// Looks at the rows of all postings in the order in which they were read.
    fn walk_postings(
        &mut self,
        start: u32,
        asked: &mut Asked<'_, '_, '_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut need = self.need(asked);
        for row in &scratch.rows {
            // The sum is whole, and gone when another term's posting comes to the row.
            let sum = std::mem::take(&mut scratch.sums[(row - start) as usize]);
            if sum >= need && self.take(*row, sum, asked)? {
                need = self.need(asked);
            }
        }
        Ok(())
    }

    /// Looks at the rows that were touched.
    fn walk(
        &mut self,
        rows: Range<u32>,
        asked: &mut Asked<'_, '_, '_>,
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
    fn need(&self, asked: &Asked<'_, '_, '_>) -> i32 {
        let need = self.floor().saturating_sub(asked.sum()).max(1);
        i32::try_from(need).unwrap_or(i32::MAX)
    }

    /// Asks the other terms for a row, and offers it. True if it was offered.
    fn take(
        &mut self,
        row: u32,
        sum: i32,
        asked: &mut Asked<'_, '_, '_>,
    ) -> Result<bool, SegmentError> {
        self.counters.rows_filtered += 1;
        if !self.view.passes(row)? || !asked.filter.passes(row)? {
            return Ok(false);
        }
        let floor = self.floor();
        let mut sum = i64::from(sum);
        for (list, upto) in asked.lists.iter_mut().zip(&asked.sums[1..]).rev() {
            if sum + upto < floor {
                return Ok(false);
            }
            self.counters.rows_asked += 1;
            sum += i64::from(self.ask(list, row)?);
        }
        self.counters.rows_scored += 1;
        if sum < floor {
            return Ok(false);
        }
        let time_us = self.view.partition().event_time_us(row)?;
        let base = shown(sum);
        let key = self.aging.key(base, time_us);
        let candidate = Candidate {
            key,
            base,
            time_us,
            view: self.index,
            row,
        };
        if self.phrases.is_empty() {
            self.top.offer(candidate)?;
            return Ok(true);
        }
        self.waiting.push(candidate);
        Ok(false)
    }
}

/// Puts a required list to the end, where it pays to read that one alone and to ask the others
/// for its rows: every hit is among them. True if there is such a list.
fn drive(lists: &mut Vec<List<'_>>) -> bool {
    let required = lists.iter().enumerate().filter(|(_, list)| list.required);
    let Some((place, rarest)) = required.min_by_key(|(_, list)| list.count()) else {
        return false;
    };
    let all: u64 = lists.iter().map(List::count).sum();
    let pays = rarest.count().saturating_mul(ASK_COST) < all;
    if pays {
        let rarest = lists.remove(place);
        lists.push(rarest);
    }
    pays
}

/// Rows of a window: about [`WINDOW_POSTINGS`] postings.
fn window_rows(run: &Run, lists: &[List<'_>]) -> u32 {
    let postings: u64 = lists.iter().map(List::count).sum();
    let rows = run.rows.len() as u64 * WINDOW_POSTINGS / postings.max(1);
    let rows = rows.clamp(u64::from(WINDOW_MIN), u64::from(WINDOW_MAX));
    u32::try_from(rows).unwrap_or(WINDOW_MAX)
}
