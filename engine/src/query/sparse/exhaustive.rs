//! Which rows answer the words best, with every posting scored?
//!
//! The oracle of the pruned way, and the way for queries whose contributions do not fit 31
//! bits. Sums are 64 bits wide and bounds are used nowhere; filters are asked only of rows
//! whose score could enter the list.

use chronolith_segments::{Postings, Run, SegmentError};

use super::SparseCounters;
use super::verify::offer_verified;
use crate::query::analyse::{QueryTerm, QueryTerms};
use crate::query::bm25::{TermScorer, shown};
use crate::query::clauses::{Phrases, RunFilter};
use crate::query::lookup::Found;
use crate::query::order::{Candidate, TopK};
use crate::query::recency::Aging;
use crate::query::view::View;

/// Rows of one window: its accumulators stay in the first-level cache.
const WINDOW_ROWS: u32 = 4096;
/// Below this many postings in a run a sorted list beats clearing and scanning windows.
const SPARSE_POSTINGS_MAX: u64 = 1024;

/// Scores `view` (number `index` in the list) into `top`.
pub(super) fn score_view<'v>(
    view: &'v View,
    index: usize,
    query: &QueryTerms,
    found: &mut Found<'v>,
    aging: Aging,
    top: &mut TopK<'_>,
) -> Result<SparseCounters, SegmentError> {
    let mut counters = SparseCounters {
        partitions: 1,
        ..SparseCounters::default()
    };
    for (number, run) in view.runs.iter().enumerate() {
        let mut lists = open_lists(view, run, query)?;
        let filter = match view.clause_rows.get() {
            Some(_) => Some(RunFilter::default()),
            None => RunFilter::open(&query.filter, view, found, number)?,
        };
        let Some(filter) = filter.filter(|_| !lists.is_empty()) else {
            continue;
        };
        let mut pass = Pass {
            view,
            index,
            aging,
            filter,
            phrases: &query.filter.phrases,
            waiting: Vec::new(),
            top,
            counters: &mut counters,
        };
        let cursors = lists.iter().flatten();
        let total: u64 = cursors
            .map(|cursor| u64::from(cursor.postings.count()))
            .sum();
        if total <= SPARSE_POSTINGS_MAX {
            pass.by_list(run, &mut lists)?;
        } else {
            pass.by_windows(run, &mut lists)?;
        }
    }
    Ok(counters)
}

struct Cursor<'a> {
    postings: Box<dyn Postings + 'a>,
    scorer: TermScorer,
}

/// Cursors of which a row gets the largest contribution: one of a term, several of a group.
type List<'a> = Vec<Cursor<'a>>;

/// The lists of a run that hold a row.
fn open_lists<'a>(
    view: &'a View,
    run: &Run,
    query: &QueryTerms,
) -> Result<Vec<List<'a>>, SegmentError> {
    let mut lists = Vec::new();
    let one_by_one = query.terms.iter().map(std::slice::from_ref);
    let groups = query.groups.iter().map(|group| &*group.members);
    for terms in one_by_one.chain(groups) {
        let list = open_list(view, run, terms)?;
        if !list.is_empty() {
            lists.push(list);
        }
    }
    Ok(lists)
}

fn open_list<'a>(view: &'a View, run: &Run, terms: &[QueryTerm]) -> Result<List<'a>, SegmentError> {
    let mut list = Vec::new();
    for term in terms {
        if let Some(postings) = view.partition().postings(&term.term, run)? {
            list.push(Cursor {
                postings,
                scorer: term.scorer,
            });
        }
    }
    Ok(list)
}

struct Pass<'p, 'v> {
    view: &'p View,
    index: usize,
    aging: Aging,
    filter: RunFilter<'p>,
    phrases: &'p Phrases,
    /// Rows whose phrases are not verified yet.
    waiting: Vec<Candidate>,
    top: &'p mut TopK<'v>,
    counters: &'p mut SparseCounters,
}

impl Pass<'_, '_> {
    /// Few postings: collect, sort by row, add up.
    fn by_list(&mut self, run: &Run, lists: &mut [List<'_>]) -> Result<(), SegmentError> {
        let mut scored: Vec<(u32, i64)> = Vec::new();
        let mut of_list: Vec<(u32, i64)> = Vec::new();
        for list in lists {
            of_list.clear();
            self.read_until(run.rows.end, list, &mut of_list)?;
            scored.append(&mut of_list);
        }
        scored.sort_unstable();
        for same_row in scored.chunk_by(|a, b| a.0 == b.0) {
            self.take(same_row[0].0, same_row.iter().map(|(_, score)| score).sum())?;
        }
        self.offer_waiting()
    }

    /// Many postings: an accumulator a row, a window of rows at a time.
    fn by_windows(&mut self, run: &Run, lists: &mut [List<'_>]) -> Result<(), SegmentError> {
        let mut sums = vec![0i64; WINDOW_ROWS as usize];
        let mut scored: Vec<(u32, i64)> = Vec::new();
        let mut start = run.rows.start;
        while start < run.rows.end {
            let end = run.rows.end.min(start.saturating_add(WINDOW_ROWS));
            let mut touched = false;
            for list in &mut *lists {
                scored.clear();
                self.read_until(end, list, &mut scored)?;
                touched |= !scored.is_empty();
                for (row, score) in &scored {
                    sums[(row - start) as usize] += score;
                }
            }
            if touched {
                for row in start..end {
                    let sum = std::mem::take(&mut sums[(row - start) as usize]);
                    self.take(row, sum)?;
                }
                self.offer_waiting()?;
            }
            start = end;
        }
        Ok(())
    }

    /// Appends what each row below `end` gets from the list.
    fn read_until(
        &mut self,
        end: u32,
        list: &mut List<'_>,
        scored: &mut Vec<(u32, i64)>,
    ) -> Result<(), SegmentError> {
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let count = list.len();
        for cursor in list {
            rows.clear();
            freqs.clear();
            cursor.postings.read_until(end, &mut rows, &mut freqs)?;
            self.counters.postings += rows.len() as u64;
            for (row, freq) in rows.iter().zip(&freqs) {
                let length = self.view.partition().length(*row)?;
                scored.push((*row, cursor.scorer.score(*freq, length)));
            }
        }
        if count > 1 {
            // The largest of a row first, and the others go.
            scored.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
            scored.dedup_by_key(|(row, _)| *row);
        }
        Ok(())
    }

    /// Offers a row, unless it gets nothing.
    fn take(&mut self, row: u32, sum: i64) -> Result<(), SegmentError> {
        if sum == 0 {
            return Ok(());
        }
        self.counters.rows_scored += 1;
        let base = shown(sum);
        let time_us = self.view.partition().event_time_us(row)?;
        let key = self.aging.key(base, time_us);
        if !self.top.could_enter_at(key, time_us) {
            return Ok(());
        }
        self.counters.rows_filtered += 1;
        if !self.view.passes(row)? || !self.filter.passes(row)? {
            return Ok(());
        }
        let candidate = Candidate {
            key,
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

    fn offer_waiting(&mut self) -> Result<(), SegmentError> {
        let (waiting, phrases) = (&mut self.waiting, self.phrases);
        offer_verified(waiting, phrases, self.view, self.aging, self.top)
    }
}
