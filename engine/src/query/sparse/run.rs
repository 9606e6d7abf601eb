//! Which rows of one run could be among the best? MaxScore, a window of rows at a time.
//!
//! ```text
//! essential lists --add up--> sums --enough with the rest's bounds?--> candidates
//!                                                                          |
//!        offered <--passes filters-- enough? <--asked, the best bound first-+
//! ```
//!
//! Lists are ordered by what a posting of theirs can contribute at most. The last ones, which
//! together cannot lift a row into the list, need not be read: they are asked for the rows
//! that the others leave, list by list, and after each the rows that can no longer get there
//! are left out. (MaxScore: Turtle and Flood 1995, "Query Evaluation: Strategies and
//! Optimizations", 4.2; by windows as in Strohman and Croft 2007 and in today's vectorised
//! engines, where short records leave block bounds little to prune.)
//!
//! A window is as wide as its sums stay in the second-level cache, and narrower where
//! postings are dense. A sparse window remembers its rows; a dense one is scanned.

use std::cmp::Reverse;
use std::ops::Range;

use chronolith_segments::{Needs, Run, SegmentError, Sums};
use chronolith_vfs::planted::{self, Bug};

use super::SparseCounters;
use super::bound::{ByLength, essential, needs, suffix_gains, suffix_sums, worth_reading};
use super::candidates::Candidates;
use super::group::Group;
use super::pace::Pace;
use super::table::TermTable;
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
/// A window with more than one posting in so many rows is scanned, its rows not remembered.
const DENSE_SHARE: u64 = 8;
/// How many postings are read in the time that one row is asked for.
const ASK_COST: u64 = 8;

/// What contributes to a row at once: a term, or the best of several.
pub(super) enum Scored<'a> {
    Term(Cursor<'a>, &'a TermTable),
    Group(Group<'a>),
}

/// One term's or one group's postings in the run.
pub(super) struct List<'a> {
    pub(super) scored: Scored<'a>,
    /// No row gets more from it.
    pub(super) bound: i64,
    /// No row of a length gets more from it.
    pub(super) gain: ByLength,
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

    /// Adds what rows get from its postings inside `rows`.
    fn add_until(
        &mut self,
        rows: Range<u32>,
        view: &View,
        lengths: &[u8],
        sums: &mut Sums<'_>,
    ) -> Result<(), SegmentError> {
        match &mut self.scored {
            Scored::Term(cursor, table) => {
                let worth = table.of(view, lengths, self.bound);
                worth.with_scores(|scores| cursor.add_until(rows, scores, sums))
            }
            Scored::Group(group) => group.add_until(rows, view, lengths, sums),
        }
    }

    /// Adds what the candidates, which ascend, get from it.
    fn add_at(
        &mut self,
        candidates: &mut Candidates,
        view: &View,
        lengths: &[u8],
    ) -> Result<(), SegmentError> {
        let (rows, sums) = (&candidates.rows, &mut candidates.sums);
        match &mut self.scored {
            Scored::Term(cursor, table) => {
                let worth = table.of(view, lengths, self.bound);
                worth.with_scores(|scores| cursor.add_at(rows, scores, sums))
            }
            Scored::Group(group) => group.add_at(rows, view, lengths, sums),
        }
    }
}

/// Memory that outlives a query: sums are zero between windows.
#[derive(Default)]
pub(super) struct Scratch {
    sums: Vec<i32>,
    touched: Vec<u32>,
    candidates: Candidates,
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

/// The lists of a run, the largest bounds first, and what rows gain from the last of them.
struct Lists<'a> {
    all: Vec<List<'a>>,
    counts: Vec<u64>,
    /// See [`suffix_sums`].
    rest: Vec<i64>,
    /// See [`suffix_gains`].
    gains: Vec<ByLength>,
    /// True where every hit is in the first list, and only that one is read.
    is_driven: bool,
}

impl<'a> Lists<'a> {
    fn new(mut all: Vec<List<'a>>, may_drive: bool) -> Self {
        all.sort_by_key(|list| Reverse(list.bound));
        let is_driven = may_drive && drive(&mut all);
        Self {
            counts: all.iter().map(List::count).collect(),
            rest: suffix_sums(all.iter().map(|list| list.bound)),
            gains: suffix_gains(all.iter().map(|list| list.gain)),
            all,
            is_driven,
        }
    }

    /// How many lists to read, of which none holds a row that needs `floor` where it is 0.
    fn to_read(&self, floor: i64) -> usize {
        match essential(&self.rest, floor) {
            0 => 0,
            _ if self.is_driven => 1,
            essential => worth_reading(&self.counts, essential),
        }
    }
}

impl RunScorer<'_, '_, '_> {
    /// Scores the run. Stops early where the pace says so. After an error `scratch` is not
    /// clean.
    pub(super) fn score(
        &mut self,
        run: &Run,
        lists: Vec<List<'_>>,
        mut filter: RunFilter<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut lists = Lists::new(lists, true);
        let mut start = run.rows.start;
        while start < run.rows.end {
            let read = lists.to_read(self.floor());
            if read == 0 || self.pace.is_over() {
                return Ok(());
            }
            let postings: u64 = lists.counts[..read].iter().sum();
            let width = window_rows(run, postings);
            let end = run.rows.end.min(start.saturating_add(width));
            // The rows of a list that drives are taken whatever they get from it.
            let is_sparse = lists.is_driven || postings * DENSE_SHARE <= run.rows.len() as u64;
            self.counters.windows += 1;
            self.read(start..end, &mut lists, read, is_sparse, scratch)?;
            if !scratch.candidates.is_empty() {
                let has_filters = self.view.has_filters() || !filter.is_empty();
                let left = (&mut lists.all[read..], &lists.gains[read..]);
                self.settle(left, has_filters, &mut filter, &mut scratch.candidates)?;
            }
            start = end;
        }
        Ok(())
    }

    /// Scores the rows of the run that a filter picked, ascending.
    pub(super) fn score_picked(
        &mut self,
        rows: Vec<u32>,
        lists: Vec<List<'_>>,
        filter: RunFilter<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        self.counters.rows_picked += rows.len() as u64;
        self.score_rows(rows, lists, filter, scratch)
    }

    /// Scores these rows of the run, ascending, and no others.
    pub(super) fn score_rows(
        &mut self,
        rows: Vec<u32>,
        lists: Vec<List<'_>>,
        mut filter: RunFilter<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let mut lists = Lists::new(lists, false);
        scratch.candidates.start_with(rows);
        scratch.candidates.keep(&self.needs(&lists.gains[0]));
        let all = (&mut *lists.all, &*lists.gains);
        self.settle(all, false, &mut filter, &mut scratch.candidates)
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

    /// What rows must have already, where they can still gain `gain`.
    fn needs(&self, gain: &ByLength) -> Needs<'_> {
        needs(self.floor(), gain, self.lengths)
    }

    /// Adds up the first `read` lists in a window, and takes the rows that can still get in.
    fn read(
        &mut self,
        rows: Range<u32>,
        lists: &mut Lists<'_>,
        read: usize,
        is_sparse: bool,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let Scratch {
            sums: room,
            touched,
            candidates,
        } = scratch;
        if room.len() < rows.len() {
            room.resize(rows.len(), 0);
        }
        touched.clear();
        candidates.clear();
        let mut sums = Sums {
            start: rows.start,
            sums: &mut room[..rows.len()],
            touched: is_sparse.then_some(&mut *touched),
            postings: 0,
        };
        for list in &mut lists.all[..read] {
            list.add_until(rows.clone(), self.view, self.lengths, &mut sums)?;
        }
        let postings = sums.postings;
        let sums = &mut room[..rows.len()];
        self.counters.postings += postings;
        if postings > 0 {
            let needs = self.needs(&lists.gains[read]);
            match is_sparse {
                true => candidates.gather(rows.start, touched, sums, (&needs, lists.is_driven)),
                false => candidates.scan(rows.start, sums, &needs),
            }
        }
        Ok(())
    }

    /// Asks the lists that were not read for the candidates, which have enough with all that
    /// those can add, and offers those that have enough in the end.
    /// `filters_first` says to look at the filters before the lists are asked.
    fn settle(
        &mut self,
        (lists, gains): (&mut [List<'_>], &[ByLength]),
        filters_first: bool,
        filter: &mut RunFilter<'_>,
        candidates: &mut Candidates,
    ) -> Result<(), SegmentError> {
        // Cursors are asked for rows in ascending order; without any the order does not matter.
        if !lists.is_empty() || !filter.is_empty() {
            candidates.sort_by_row();
        }
        let is_filtered = filters_first && !lists.is_empty();
        if is_filtered {
            self.counters.rows_filtered += candidates.len() as u64;
            candidates.retain(|row| Ok(self.view.passes(row)? && filter.passes(row)?))?;
        }
        for (at, list) in lists.iter_mut().enumerate() {
            if at > 0 {
                candidates.keep(&self.needs(&gains[at]));
            }
            if candidates.is_empty() {
                return Ok(());
            }
            self.counters.rows_asked += candidates.len() as u64;
            list.add_at(candidates, self.view, self.lengths)?;
        }
        if is_filtered || filter.is_empty() {
            self.offer_best_first(candidates, is_filtered)?;
        } else {
            self.offer_ascending(candidates, filter)?;
        }
        self.offer_waiting()
    }

    /// Offers the candidates that have enough and pass, by descending sum, so that the first
    /// ones spare the others.
    fn offer_best_first(
        &mut self,
        candidates: &mut Candidates,
        is_filtered: bool,
    ) -> Result<(), SegmentError> {
        candidates.by_sum(self.floor(), |row, sum| {
            if is_filtered || self.passes(row)? {
                self.offer(row, sum)?;
            }
            Ok(self.floor())
        })
    }

    /// Offers the candidates that have enough and pass, by ascending row.
    fn offer_ascending(
        &mut self,
        candidates: &Candidates,
        filter: &mut RunFilter<'_>,
    ) -> Result<(), SegmentError> {
        for (row, sum) in candidates.rows.iter().zip(&candidates.sums) {
            if i64::from(*sum) >= self.floor() && self.passes(*row)? && filter.passes(*row)? {
                self.offer(*row, *sum)?;
            }
        }
        Ok(())
    }

    fn passes(&mut self, row: u32) -> Result<bool, SegmentError> {
        self.counters.rows_filtered += 1;
        self.view.passes(row)
    }

    fn offer(&mut self, row: u32, sum: i32) -> Result<(), SegmentError> {
        self.counters.rows_scored += 1;
        let time_us = self.view.partition().event_time_us(row)?;
        let base = shown(i64::from(sum));
        let candidate = Candidate {
            key: self.aging.key(base, time_us),
            base,
            time_us,
            view: self.index,
            row,
        };
        if self.phrases.is_empty() {
            return self.top.offer(candidate);
        }
        self.waiting.push(candidate);
        Ok(())
    }

    /// Offers the rows whose phrases were not verified yet, where they hold them.
    fn offer_waiting(&mut self) -> Result<(), SegmentError> {
        let (waiting, phrases) = (&mut self.waiting, self.phrases);
        offer_verified(waiting, phrases, self.view, self.aging, self.top)
    }
}

/// Puts a required list first, where it pays to read that one alone and to ask the others for
/// its rows: every hit is among them. True if there is such a list.
fn drive(lists: &mut Vec<List<'_>>) -> bool {
    let required = lists.iter().enumerate().filter(|(_, list)| list.required);
    let Some((place, rarest)) = required.min_by_key(|(_, list)| list.count()) else {
        return false;
    };
    let all: u64 = lists.iter().map(List::count).sum();
    let pays = rarest.count().saturating_mul(ASK_COST) < all;
    if pays {
        let rarest = lists.remove(place);
        lists.insert(0, rarest);
    }
    pays
}

/// Rows of a window of a run with so many postings: about [`WINDOW_POSTINGS`] of them.
fn window_rows(run: &Run, postings: u64) -> u32 {
    let rows = run.rows.len() as u64 * WINDOW_POSTINGS / postings.max(1);
    let rows = rows.clamp(u64::from(WINDOW_MIN), u64::from(WINDOW_MAX));
    u32::try_from(rows).unwrap_or(WINDOW_MAX)
}
