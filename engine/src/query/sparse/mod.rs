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
//! * `visit`: the views in order, on one thread or several, and the stop.
//! * `first`: the rows that are scored before any list is read, for an early k-th score.
//! * `few`: the rows that a time range or tags leave, where they are fewer than postings.
//! * `run`: one run of rows, pruned.
//! * `group`: terms of which the best counts.
//! * `verify`: the order in which texts are read for phrases.
//! * `candidates`: the rows of a window that can still get in.
//! * `table`: contributions ready made.
//! * `pace`: the budget of time.
//! * `exhaustive`: every posting; the oracle, and the way for weights that do not fit 31 bits.

mod bound;
mod candidates;
mod exhaustive;
mod few;
mod first;
mod group;
mod pace;
mod run;
mod table;
mod verify;
mod visit;

use chronolith_segments::SegmentError;
use chronolith_vfs::Threads;

pub(crate) use pace::Pace;

use self::visit::Visit;
use super::analyse::{QueryTerm, QueryTerms};
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
    /// Postings read and added up; of a group its rows.
    pub postings: u64,
    /// Rows that a time range or tags left, so few that they were asked for in all terms instead
    /// of terms being read.
    pub rows_picked: u64,
    /// Rows that were scored before any list was read, for an early k-th score.
    pub rows_first: u64,
    /// Rows asked for in terms, or groups of them, that were not read.
    pub rows_asked: u64,
    /// Rows whose whole score was computed.
    pub rows_scored: u64,
    /// Rows whose filters were asked.
    pub rows_filtered: u64,
}

impl SparseCounters {
    fn add(&mut self, other: &Self) {
        self.partitions += other.partitions;
        self.partitions_bounded += other.partitions_bounded;
        self.windows += other.windows;
        self.postings += other.postings;
        self.rows_picked += other.rows_picked;
        self.rows_first += other.rows_first;
        self.rows_asked += other.rows_asked;
        self.rows_scored += other.rows_scored;
        self.rows_filtered += other.rows_filtered;
    }
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
    pub(crate) query: &'q QueryTerms,
    pub(crate) aging: Aging,
    pub(crate) scoring: Scoring,
    /// How many threads may work on it, and where they come from.
    pub(crate) threads: (usize, &'q dyn Threads),
}

/// What the pass has to say beside its list.
#[derive(Debug, Default)]
pub(crate) struct SparseOutcome {
    pub(crate) counters: SparseCounters,
    /// Indexes of views with a term that were not looked at to their end: their bounds ruled
    /// them out, or time was over.
    pub(crate) left: Vec<usize>,
    /// Where the pace cut the work: no row of `left` has a larger shown score.
    pub(crate) unvisited: Option<f64>,
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
        top: &mut TopK<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<SparseOutcome, SegmentError> {
        if self.scoring == Scoring::Exhaustive || !self.fits() {
            let mut outcome = SparseOutcome::default();
            for index in chosen {
                let view = &views[*index];
                let found = &mut found[*index];
                let counters =
                    exhaustive::score_view(view, *index, self.query, found, self.aging, top)?;
                outcome.counters.add(&counters);
            }
            return Ok(outcome);
        }
        let visit = Visit::new(self, views, chosen, found);
        let (count, threads) = self.threads;
        visit.on_threads(count, threads, top, pace)
    }

    /// True where every sum of words' contributions fits the windows' 31 bits. Those of impacts
    /// are far below what they could be: views say what they are.
    fn fits(&self) -> bool {
        let ceiling = |term: &QueryTerm| match term.scorer.is_linear() {
            true => 0,
            false => term.scorer.ceiling(),
        };
        let terms = self.query.terms.iter().map(ceiling);
        let groups = self.query.groups.iter();
        let best = groups.filter_map(|group| group.members.iter().map(ceiling).max());
        terms.sum::<i64>() + best.sum::<i64>() <= i64::from(i32::MAX)
    }
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
