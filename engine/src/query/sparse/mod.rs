//! Which rows answer the words best, exactly, and which need no look?
//!
//! ```text
//! entries of all views -> bound a view -> views by descending bound
//!                              |                 |
//!                              |                 v
//!              stop: bound < k-th score     run: MaxScore by windows -> TopK
//! ```
//!
//! A view whose bound cannot reach the k-th best is not looked at, nor is any after it. The
//! answer is that of scoring every posting, which `exhaustive` does: ids, order, ties, bits.
//!
//! * `bound`: what a score can be at most.
//! * `run`: one run of rows, pruned.
//! * `table`: contributions ready made.
//! * `pace`: the budget of time.
//! * `exhaustive`: every posting; the oracle, and the way for weights that do not fit 31 bits.

mod bound;
mod exhaustive;
mod pace;
mod run;
mod table;

use std::cell::RefCell;
use std::cmp::Ordering;

use chronolith_segments::SegmentError;

pub(crate) use pace::Pace;

use self::run::{List, RunScorer, Scratch};
use self::table::{ScoreTable, narrow};
use super::analyse::QueryTerm;
use super::bm25::shown;
use super::lookup::Found;
use super::order::TopK;
use super::recency::Aging;
use super::view::View;

/// What the pass did; layout-dependent, for plans only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SparseCounters {
    /// Partitions with a term that were looked at.
    pub partitions: u64,
    /// Partitions with a term whose upper bound lay below the k-th score.
    pub partitions_bounded: u64,
    /// Windows of rows.
    pub windows: u64,
    /// Postings decoded and scored.
    pub postings: u64,
    /// Single look-ups of a row in a term that was not read.
    pub rows_asked: u64,
    /// Rows whose whole score was computed.
    pub rows_scored: u64,
    /// Rows whose filters were asked.
    pub rows_filtered: u64,
}

/// How the postings are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scoring {
    /// Those that can matter.
    Pruned,
    /// All of them.
    Exhaustive,
}

/// The query as the pass sees it.
pub(crate) struct Sparse<'q> {
    pub(crate) terms: &'q [QueryTerm],
    pub(crate) aging: Aging,
    pub(crate) scoring: Scoring,
}

/// What the pass has to say beside its list.
#[derive(Debug, Default)]
pub(crate) struct SparseOutcome {
    pub(crate) counters: SparseCounters,
    /// Views that bounds ruled out.
    pub(crate) bounded: Vec<usize>,
    /// Where the pace cut the work: no row that was not looked at has a larger shown score.
    pub(crate) unvisited: Option<f64>,
}

/// A view with what its best row could have at most.
struct Bounded {
    index: usize,
    sum: i64,
    key: f64,
    newest_us: i64,
}

thread_local! {
    /// A query's working memory, kept for the next one of the thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Sparse<'_> {
    /// Scores the views with an index in `chosen` into `top`. `found` is that of each view.
    ///
    /// # Errors
    /// Damage in what is read.
    pub(crate) fn search<'v>(
        &self,
        views: &'v [View],
        chosen: &[usize],
        found: &mut [Found<'v>],
        top: &mut TopK<'v>,
        pace: &mut Pace<'v>,
    ) -> Result<SparseOutcome, SegmentError> {
        let mut outcome = SparseOutcome::default();
        if self.scoring == Scoring::Exhaustive || !self.fits() {
            for index in chosen {
                let counters =
                    exhaustive::score_view(&views[*index], *index, self.terms, self.aging, top)?;
                outcome.counters.partitions += 1;
                outcome.counters.postings += counters.postings;
                outcome.counters.rows_scored += counters.rows_scored;
                outcome.counters.rows_filtered += counters.rows_filtered;
            }
            return Ok(outcome);
        }
        let tables = ScoreTable::all(self.terms);
        let mut scratch = SCRATCH.take();
        let order = self.order(views, chosen, found);
        for (place, bounded) in order.iter().enumerate() {
            if !top.could_enter_at(bounded.key, bounded.newest_us) {
                outcome.counters.partitions_bounded += (order.len() - place) as u64;
                outcome.bounded = order[place..].iter().map(|view| view.index).collect();
                break;
            }
            if !pace.is_over() {
                outcome.counters.partitions += 1;
                let view = &views[bounded.index];
                let found = &mut found[bounded.index];
                let scorer = RunScorer {
                    view,
                    index: bounded.index,
                    aging: self.aging,
                    newest_us: bounded.newest_us,
                    lengths: view.partition().short_lengths()?,
                    top,
                    counters: &mut outcome.counters,
                    pace,
                };
                score_view(scorer, found, &tables, &mut scratch)?;
            }
            if pace.was_cut() {
                outcome.unvisited = Some(self.largest_shown(&order[place..]));
                break;
            }
        }
        SCRATCH.set(scratch);
        Ok(outcome)
    }

    /// True where every sum of contributions fits the windows' 31 bits.
    fn fits(&self) -> bool {
        let ceilings = self.terms.iter().map(|term| term.scorer.ceiling());
        ceilings.sum::<i64>() <= i64::from(i32::MAX)
    }

    /// The views to search by descending bound, newer ones first among equals.
    fn order(&self, views: &[View], chosen: &[usize], found: &[Found<'_>]) -> Vec<Bounded> {
        let bounded = |index: &usize| {
            let index = *index;
            let sum = self.sum_bound(&found[index]);
            let newest_us = views[index].partition().zone().event_time_us.1;
            let key = self.aging.key_bound(shown(sum), newest_us);
            (sum > 0).then_some(Bounded {
                index,
                sum,
                key,
                newest_us,
            })
        };
        let mut order: Vec<Bounded> = chosen.iter().filter_map(bounded).collect();
        order.sort_by(|a, b| match b.key.total_cmp(&a.key) {
            Ordering::Equal => (b.newest_us, a.index).cmp(&(a.newest_us, b.index)),
            unequal => unequal,
        });
        order
    }

    fn sum_bound(&self, found: &Found<'_>) -> i64 {
        let terms = self.terms.iter().enumerate();
        let bound = |(index, term): (usize, &QueryTerm)| {
            let entry = found.entry(index)?;
            Some(bound::term_bound(term.scorer, &entry.bounds))
        };
        terms.filter_map(bound).sum()
    }

    fn largest_shown(&self, views: &[Bounded]) -> f64 {
        let shown = views
            .iter()
            .map(|view| self.aging.shown_bound(shown(view.sum), view.newest_us));
        shown.fold(0.0, f64::max)
    }
}

/// Scores every run of a view.
fn score_view<'v>(
    mut scorer: RunScorer<'_, 'v>,
    found: &mut Found<'v>,
    tables: &[ScoreTable],
    scratch: &mut Scratch,
) -> Result<(), SegmentError> {
    let view = scorer.view;
    for (place, run) in view.runs.iter().enumerate() {
        let mut lists = Vec::with_capacity(tables.len());
        for (term, table) in tables.iter().enumerate() {
            let Some(entry) = found.entry(term) else {
                continue;
            };
            let bound = narrow(bound::term_bound(table.scorer, &entry.bounds));
            if let Some(cursor) = found.cursor(view, term, place)? {
                lists.push(List {
                    cursor,
                    table,
                    bound,
                });
            }
        }
        if !lists.is_empty() {
            scorer.score(run, lists, scratch)?;
        }
    }
    Ok(())
}

/// How often `row` of `view` holds `term`, for an explanation.
pub(crate) fn freq_in(view: &View, row: u32, term: &[u8]) -> Result<u32, SegmentError> {
    for run in &view.runs {
        // A memtable's runs overlap in rows but not in members: the one that has it answers.
        if run.rows.contains(&row)
            && let Some(mut postings) = view.partition().postings(term, run)?
        {
            let freq = postings.freq_at(row)?;
            if freq > 0 {
                return Ok(freq);
            }
        }
    }
    Ok(0)
}
