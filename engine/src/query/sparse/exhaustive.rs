//! Which rows answer the words best, with every posting scored?
//!
//! The oracle of the pruned way, and the way for queries whose contributions do not fit 31
//! bits. Sums are 64 bits wide and bounds are used nowhere; filters are asked only of rows
//! whose score could enter the list.

use chronolith_segments::{Postings, Run, SegmentError};

use super::SparseCounters;
use crate::query::analyse::QueryTerm;
use crate::query::bm25::{TermScorer, shown};
use crate::query::order::{Candidate, TopK};
use crate::query::recency::Aging;
use crate::query::view::View;

/// Rows of one window: its accumulators stay in the first-level cache.
const WINDOW_ROWS: u32 = 4096;
/// Below this many postings in a run a sorted list beats clearing and scanning windows.
const SPARSE_POSTINGS_MAX: u64 = 1024;

/// Scores `view` (number `index` in the list) into `top`.
pub(super) fn score_view(
    view: &View,
    index: usize,
    terms: &[QueryTerm],
    aging: Aging,
    top: &mut TopK<'_>,
) -> Result<SparseCounters, SegmentError> {
    let mut counters = SparseCounters {
        partitions: 1,
        ..SparseCounters::default()
    };
    for run in &view.runs {
        let mut cursors = open_cursors(view, run, terms)?;
        if cursors.is_empty() {
            continue;
        }
        let mut pass = Pass {
            view,
            index,
            aging,
            top,
            counters: &mut counters,
        };
        let total: u64 = cursors
            .iter()
            .map(|cursor| u64::from(cursor.postings.count()))
            .sum();
        if total <= SPARSE_POSTINGS_MAX {
            pass.by_list(run, &mut cursors)?;
        } else {
            pass.by_windows(run, &mut cursors)?;
        }
    }
    Ok(counters)
}

struct Cursor<'a> {
    postings: Box<dyn Postings + 'a>,
    scorer: TermScorer,
}

fn open_cursors<'a>(
    view: &'a View,
    run: &Run,
    terms: &[QueryTerm],
) -> Result<Vec<Cursor<'a>>, SegmentError> {
    let mut cursors = Vec::with_capacity(terms.len());
    for term in terms {
        if let Some(postings) = view.partition().postings(&term.term, run)? {
            cursors.push(Cursor {
                postings,
                scorer: term.scorer,
            });
        }
    }
    Ok(cursors)
}

struct Pass<'p, 'v> {
    view: &'p View,
    index: usize,
    aging: Aging,
    top: &'p mut TopK<'v>,
    counters: &'p mut SparseCounters,
}

impl Pass<'_, '_> {
    /// Few postings: collect, sort by row, add up.
    fn by_list(&mut self, run: &Run, cursors: &mut [Cursor<'_>]) -> Result<(), SegmentError> {
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let mut scored: Vec<(u32, i64)> = Vec::new();
        for cursor in cursors {
            rows.clear();
            freqs.clear();
            cursor
                .postings
                .read_until(run.rows.end, &mut rows, &mut freqs)?;
            self.counters.postings += rows.len() as u64;
            for (row, freq) in rows.iter().zip(&freqs) {
                let length = self.view.partition().length(*row)?;
                scored.push((*row, cursor.scorer.score(*freq, length)));
            }
        }
        scored.sort_unstable();
        for same_row in scored.chunk_by(|a, b| a.0 == b.0) {
            self.take(same_row[0].0, same_row.iter().map(|(_, score)| score).sum())?;
        }
        Ok(())
    }

    /// Many postings: an accumulator a row, a window of rows at a time.
    fn by_windows(&mut self, run: &Run, cursors: &mut [Cursor<'_>]) -> Result<(), SegmentError> {
        let mut sums = vec![0i64; WINDOW_ROWS as usize];
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let mut start = run.rows.start;
        while start < run.rows.end {
            let end = run.rows.end.min(start.saturating_add(WINDOW_ROWS));
            let mut touched = false;
            for cursor in &mut *cursors {
                rows.clear();
                freqs.clear();
                cursor.postings.read_until(end, &mut rows, &mut freqs)?;
                self.counters.postings += rows.len() as u64;
                touched |= !rows.is_empty();
                for (row, freq) in rows.iter().zip(&freqs) {
                    let length = self.view.partition().length(*row)?;
                    sums[(row - start) as usize] += cursor.scorer.score(*freq, length);
                }
            }
            if touched {
                for row in start..end {
                    let sum = std::mem::take(&mut sums[(row - start) as usize]);
                    if sum > 0 {
                        self.take(row, sum)?;
                    }
                }
            }
            start = end;
        }
        Ok(())
    }

    fn take(&mut self, row: u32, sum: i64) -> Result<(), SegmentError> {
        self.counters.rows_scored += 1;
        let base = shown(sum);
        let time_us = self.view.partition().event_time_us(row)?;
        let key = self.aging.key(base, time_us);
        if !self.top.could_enter_at(key, time_us) {
            return Ok(());
        }
        self.counters.rows_filtered += 1;
        if !self.view.passes(row)? {
            return Ok(());
        }
        self.top.offer(Candidate {
            key,
            base,
            time_us,
            view: self.index,
            row,
        })
    }
}
