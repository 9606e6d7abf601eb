//! In which order are the views looked at, and when is it enough?
//!
//! By descending upper bound, so that the k-th score rises early and the first view that
//! cannot reach it ends the search. (Ranges by descending bound: Mackenzie, Petri and Moffat
//! 2021, "Anytime Ranking on Document-Ordered Indexes", section 3; here with bounds that make
//! the stop exact.) Several threads take views from the same line and share the best k-th
//! score; what each leaves out lies below k rows of one of them, so the answer is the same.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chronolith_segments::SegmentError;
use chronolith_vfs::{Job, Threads};

use super::bound::{ByLength, LengthClasses, most, sum_bound, term_bound};
use super::few;
use super::first;
use super::group::{Group, Member};
use super::pace::Pace;
use super::run::{List, RunScorer, Scored, Scratch};
use super::table::TermTable;
use super::{Sparse, SparseCounters, SparseOutcome, exhaustive};
use crate::query::bm25::shown;
use crate::query::clauses::RunFilter;
use crate::query::lookup::Found;
use crate::query::order::{Candidate, SharedFloor, TopK};
use crate::query::view::View;

/// A view with what its best row could have at most.
struct Bounded {
    index: usize,
    sum: i64,
    /// False where a row's sum might not fit 31 bits, whatever bounds the file states.
    fits: bool,
    key: f64,
    newest_us: i64,
}

/// The line of views that one search works off.
pub(super) struct Visit<'w, 'v> {
    sparse: &'w Sparse<'w>,
    views: &'v [View],
    /// Best prospects first.
    order: Vec<Bounded>,
    /// What each view of `order` knows of the terms; its cursors are handed out once and opened
    /// anew after that.
    found: Vec<Mutex<Found<'v>>>,
    classes: LengthClasses,
    tables: Vec<TermTable>,
    /// Those of each group's members.
    group_tables: Vec<Vec<TermTable>>,
    /// Place in `order` of the next view that nobody took.
    next: AtomicUsize,
}

/// What one thread did.
#[derive(Default)]
struct Part {
    counters: SparseCounters,
    /// Places it looked at to the end.
    visited: Vec<usize>,
    /// True where the pace ended it.
    was_cut: bool,
    /// Hits among the rows that were scored first: only needed where the work was cut.
    first: Vec<Candidate>,
}

thread_local! {
    /// A query's working memory, kept for the next one of the thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl<'w, 'v> Visit<'w, 'v> {
    /// The views with an index in `chosen` that hold a term; `found` of those is taken.
    pub(super) fn new(
        sparse: &'w Sparse<'w>,
        views: &'v [View],
        chosen: &[usize],
        found: &mut [Found<'v>],
    ) -> Self {
        let bounded = |index: &usize| {
            let index = *index;
            let sum = sum_bound(sparse.query, &found[index]);
            let newest_us = views[index].partition().zone().event_time_us.1;
            let key = sparse.aging.key_bound(shown(sum), newest_us);
            let most = most(sparse.query, &found[index]);
            (sum > 0).then_some(Bounded {
                index,
                sum,
                fits: sum.max(most) <= i64::from(i32::MAX),
                key,
                newest_us,
            })
        };
        let mut order: Vec<Bounded> = chosen.iter().filter_map(bounded).collect();
        order.sort_by(|a, b| match b.key.total_cmp(&a.key) {
            Ordering::Equal => (b.newest_us, a.index).cmp(&(a.newest_us, b.index)),
            unequal => unequal,
        });
        let take = |bounded: &Bounded| Mutex::new(std::mem::take(&mut found[bounded.index]));
        Self {
            sparse,
            views,
            found: order.iter().map(take).collect(),
            order,
            classes: LengthClasses::new(sparse.query.any_word()),
            tables: TermTable::all(&sparse.query.terms),
            group_tables: sparse
                .query
                .groups
                .iter()
                .map(|group| TermTable::all(&group.members))
                .collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Works the line off on the caller's thread.
    pub(super) fn alone(
        &self,
        top: &mut TopK<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<SparseOutcome, SegmentError> {
        let floor = SharedFloor::new();
        let mut part_top = top.part(&floor);
        let part = self.work(&mut part_top, &floor, pace)?;
        let found = part_top.finish()?;
        self.gather(vec![(part, found)], top)
    }

    /// Takes what the threads found.
    fn gather(
        &self,
        done: Vec<(Part, Vec<Candidate>)>,
        top: &mut TopK<'_>,
    ) -> Result<SparseOutcome, SegmentError> {
        let mut seen: Vec<(usize, u32)> = Vec::new();
        let mut parts = Vec::with_capacity(done.len());
        for (part, found) in done {
            for candidate in found {
                seen.push((candidate.view, candidate.row));
                top.offer(candidate)?;
            }
            parts.push(part);
        }
        if parts.iter().any(|part| part.was_cut) {
            // The rest of what was to be looked at would have come to these rows again.
            seen.sort_unstable();
            let first = parts.iter().flat_map(|part| &part.first);
            for candidate in first {
                if seen
                    .binary_search(&(candidate.view, candidate.row))
                    .is_err()
                {
                    top.offer(*candidate)?;
                }
            }
        }
        Ok(self.outcome(parts))
    }

    /// Works the line off on up to `count` threads.
    pub(super) fn on_threads(
        &self,
        count: usize,
        threads: &dyn Threads,
        top: &mut TopK<'_>,
        pace: &mut Pace<'_>,
    ) -> Result<SparseOutcome, SegmentError> {
        let count = count.min(self.order.len());
        if count <= 1 {
            return self.alone(top, pace);
        }
        let (floor, done) = (SharedFloor::new(), Mutex::new(Vec::new()));
        let job = |_| {
            let (floor, done, mut pace) = (&floor, &done, *pace);
            let mut part_top = top.part(floor);
            let job = move || {
                let part = self.work(&mut part_top, floor, &mut pace);
                let both = part.and_then(|part| Ok((part, part_top.finish()?)));
                lock(done).push(both);
            };
            Box::new(job) as Job<'_>
        };
        threads.run_all((0..count).map(job).collect());
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done: Result<Vec<_>, SegmentError> = done.into_iter().collect();
        self.gather(done?, top)
    }

    /// Takes views from the line until it ends, a bound says stop or time is over.
    fn work(
        &self,
        top: &mut TopK<'_>,
        floor: &SharedFloor,
        pace: &mut Pace<'_>,
    ) -> Result<Part, SegmentError> {
        let mut part = Part::default();
        let mut scratch = SCRATCH.take();
        loop {
            let place = self.next.fetch_add(1, atomic::Ordering::Relaxed);
            let Some(bounded) = self.order.get(place) else {
                break;
            };
            if !top.could_enter_at(bounded.key, bounded.newest_us) {
                break;
            }
            part.was_cut = pace.is_over();
            if part.was_cut {
                break;
            }
            if place == 0 {
                part.first = self.start(top.part(floor), &mut part.counters, pace, &mut scratch)?;
            }
            self.bring_near(place + 1);
            self.score(place, top, &mut part.counters, pace, &mut scratch)?;
            part.was_cut = pace.was_cut();
            if part.was_cut {
                break;
            }
            part.visited.push(place);
        }
        SCRATCH.set(scratch);
        Ok(part)
    }

    /// The next view's postings come while this one's are scored.
    fn bring_near(&self, place: usize) {
        if let (Some(bounded), Some(found)) = (self.order.get(place), self.found.get(place))
            && let Ok(found) = found.try_lock()
        {
            found.bring_near(&self.views[bounded.index]);
        }
    }

    /// Raises the floor by some rows of the first view; gives the best of them.
    fn start(
        &self,
        mut top: TopK<'_>,
        counters: &mut SparseCounters,
        pace: &mut Pace<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Candidate>, SegmentError> {
        let bounded = &self.order[0];
        let view = &self.views[bounded.index];
        let longest = view.runs.iter().enumerate();
        let longest = longest.max_by_key(|(_, run)| run.rows.len());
        let phrases = &self.sparse.query.filter.phrases;
        // Where few rows pass a filter, or a text decides, some rows say little.
        let (Some((number, run)), false) = (longest, view.has_filters()) else {
            return Ok(Vec::new());
        };
        if !bounded.fits || !phrases.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = lock(&self.found[0]);
        let mut lists = self.lists(view, &mut found, number)?;
        let rows = first::rows(&mut lists, run, top.k())?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        counters.rows_first += rows.len() as u64;
        if let Some(filter) = self.filter(view, &mut found, number)? {
            // The cursors have been read from: rows are asked for from the start.
            let lists = self.lists(view, &mut found, number)?;
            let mut scorer = self.scorer(bounded, &mut top, counters, pace)?;
            scorer.score_rows(rows, lists, filter, scratch)?;
        }
        top.finish()
    }

    /// What scores the runs of a view into `top`.
    fn scorer<'p, 't, 'c>(
        &'p self,
        bounded: &Bounded,
        top: &'p mut TopK<'t>,
        counters: &'p mut SparseCounters,
        pace: &'p mut Pace<'c>,
    ) -> Result<RunScorer<'p, 't, 'c>, SegmentError> {
        let view = &self.views[bounded.index];
        Ok(RunScorer {
            view,
            index: bounded.index,
            aging: self.sparse.aging,
            newest_us: bounded.newest_us,
            lengths: view.partition().short_lengths()?,
            phrases: &self.sparse.query.filter.phrases,
            waiting: Vec::new(),
            top,
            counters,
            pace,
        })
    }

    /// Scores every run of a view.
    fn score(
        &self,
        place: usize,
        top: &mut TopK<'_>,
        counters: &mut SparseCounters,
        pace: &mut Pace<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), SegmentError> {
        let bounded = &self.order[place];
        let view = &self.views[bounded.index];
        let mut found = lock(&self.found[place]);
        if !bounded.fits {
            let (query, aging) = (self.sparse.query, self.sparse.aging);
            let done = exhaustive::score_view(view, bounded.index, query, &mut found, aging, top)?;
            counters.add(&done);
            return Ok(());
        }
        counters.partitions += 1;
        let mut scorer = self.scorer(bounded, top, counters, pace)?;
        for (number, run) in view.runs.iter().enumerate() {
            let Some(filter) = self.filter(view, &mut found, number)? else {
                continue;
            };
            let lists = self.lists(view, &mut found, number)?;
            if lists.is_empty() {
                continue;
            }
            let postings = lists.iter().map(List::count).sum();
            let cursors = lists.iter().map(List::cursors).sum();
            match few::rows(view, run, few::rows_max(postings, cursors))? {
                Some(rows) => scorer.score_picked(rows, lists, filter, scratch)?,
                None => scorer.score(run, lists, filter, scratch)?,
            }
        }
        Ok(())
    }

    /// What clauses ask of the rows of run `number`; `None` where none of them passes.
    fn filter(
        &self,
        view: &'v View,
        found: &mut Found<'v>,
        number: usize,
    ) -> Result<Option<RunFilter<'v>>, SegmentError> {
        if view.clause_rows.get().is_some() {
            return Ok(Some(RunFilter::default()));
        }
        RunFilter::open(&self.sparse.query.filter, view, found, number)
    }

    /// What contributes in run `number`.
    fn lists<'l>(
        &'l self,
        view: &'v View,
        found: &mut Found<'v>,
        number: usize,
    ) -> Result<Vec<List<'l>>, SegmentError>
    where
        'v: 'l,
    {
        let query = self.sparse.query;
        let mut lists = Vec::with_capacity(self.tables.len() + query.groups.len());
        for (term, table) in self.tables.iter().enumerate() {
            let Some(entry) = found.entry(term) else {
                continue;
            };
            let bound = term_bound(table.scorer, &entry.bounds);
            let gain = self.classes.bounds(table.scorer, &entry.bounds);
            if let Some(cursor) = found.cursor(view, term, number)? {
                lists.push(List {
                    scored: Scored::Term(cursor, table),
                    bound,
                    gain,
                    required: query.filter.required.contains(&term),
                });
            }
        }
        for (group, tables) in query.groups.iter().zip(&self.group_tables) {
            let (mut members, mut bound, mut gain) = (Vec::new(), 0, ByLength::NOTHING);
            for (term, table) in group.members.iter().zip(tables) {
                let Some(entry) = found.entry(term.place) else {
                    continue;
                };
                let own = term_bound(table.scorer, &entry.bounds);
                let own_gain = self.classes.bounds(table.scorer, &entry.bounds);
                if let Some(cursor) = found.cursor(view, term.place, number)? {
                    members.push(Member {
                        cursor,
                        table,
                        bound: own,
                    });
                    bound = bound.max(own);
                    gain = gain.or(&own_gain);
                }
            }
            if !members.is_empty() {
                lists.push(List {
                    scored: Scored::Group(Group::new(members)),
                    bound,
                    gain,
                    required: false,
                });
            }
        }
        Ok(lists)
    }

    fn outcome(&self, parts: impl IntoIterator<Item = Part>) -> SparseOutcome {
        let mut outcome = SparseOutcome::default();
        let mut left: Vec<bool> = vec![true; self.order.len()];
        let mut was_cut = false;
        for part in parts {
            outcome.counters.add(&part.counters);
            was_cut |= part.was_cut;
            for place in part.visited {
                left[place] = false;
            }
        }
        let left = || {
            let places = self.order.iter().zip(&left);
            places
                .filter(|(_, left)| **left)
                .map(|(bounded, _)| bounded)
        };
        outcome.left = left().map(|bounded| bounded.index).collect();
        if was_cut {
            let shown = left().map(|bounded| {
                let aging = self.sparse.aging;
                aging.shown_bound(shown(bounded.sum), bounded.newest_us)
            });
            outcome.unvisited = Some(shown.fold(0.0, f64::max));
        } else {
            outcome.counters.partitions_bounded = outcome.left.len() as u64;
        }
        outcome
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
