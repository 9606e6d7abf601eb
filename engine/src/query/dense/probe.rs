//! Which runs of rows that look alike are left out, where very many rows pass?
//!
//! The runs of all partitions compete by the product of the query and their centroids. The
//! best are looked at until they have as many rows as was measured to be enough when the runs
//! were made (see [`share`]); rows in no run, as in a memtable, are looked at in any case. So
//! the answer is no longer a function of the rows alone, and says so: `Approximate`.
//!
//! The radius of a run bounds what its rows can score, but in hundreds of dimensions it bounds
//! nearly nothing: ordered by the bound, runs would be ordered by their size. It is the
//! centroid that tells where the best rows are.

use std::ops::Range;

use chronolith_segments::{Run, SegmentError};

use super::policy::Count;
use super::select::{Rows, Selected};
use super::share::{self, Facts, InRuns, Share, Target};
use super::{Dense, DenseCounters};
use crate::query::view::View;

/// What is looked at.
pub(super) enum Probe {
    /// Everything, for this reason.
    All(&'static str),
    /// These rows of the selected ones, which is enough for so many of the best.
    Part(Vec<Selected>, Target),
}

/// The selected rows of one run.
struct Part {
    /// Product of query and centroid.
    score: f32,
    /// Which of the selections.
    at: usize,
    /// All rows of the run.
    rows: Range<u32>,
    /// Those that are selected.
    selected: u64,
}

/// Chooses for a list of `list` rows out of so many candidates.
///
/// # Errors
/// Damage in the runs.
pub(super) fn probe(
    dense: &Dense<'_>,
    views: &[View],
    selected: &[Selected],
    (list, candidates): (usize, usize),
    counters: &mut DenseCounters,
) -> Result<Probe, SegmentError> {
    let population = dense.population;
    let mut facts = Facts {
        rows: selected.iter().map(|one| one.weight(population)).sum(),
        rows_min: dense.asked.probe_rows_min,
        in_runs: 0,
        runs: 0,
        needed: 0,
        candidates: candidates as u64,
    };
    let (mut parts, mut scopes) = (Vec::new(), Vec::new());
    let all = selected.iter().map(|one| one.rows_max(population)).sum();
    let target = Target::of(all);
    if !share::are_few(facts.rows, facts.rows_min) {
        for (at, one) in selected.iter().enumerate() {
            let before = parts.len();
            scopes.extend(parts_of(
                dense,
                &views[one.index],
                (at, one, target),
                &mut parts,
            )?);
            facts.runs += (parts.len() - before) as u64;
        }
    }
    facts.in_runs = scopes.iter().map(|scope| scope.selected).sum();
    facts.needed = scopes.iter().map(|scope| scope.needed(list, all)).sum();
    let needed = match share::choose(&facts) {
        Share::All(reason) => return Ok(Probe::All(reason)),
        Share::Rows(needed) => needed,
    };
    let left_out = leave_out(&mut parts, needed, selected.len());
    counters.runs += facts.runs;
    let left: usize = left_out.iter().map(Vec::len).sum();
    counters.runs_left_out += left as u64;
    let kept = selected.iter().zip(&left_out);
    Ok(Probe::Part(
        kept.map(|(one, left_out)| one.without(left_out)).collect(),
        target,
    ))
}

/// Appends the runs with selected rows of one view; gives what its scopes have in runs.
fn parts_of(
    dense: &Dense<'_>,
    view: &View,
    (at, one, target): (usize, &Selected, Target),
    parts: &mut Vec<Part>,
) -> Result<Vec<InRuns>, SegmentError> {
    let (mut scopes, mut scores) = (Vec::new(), Vec::new());
    let (Some(runs), Some(span)) = (view.partition().vector_runs(view.space)?, one.span()) else {
        return Ok(scopes);
    };
    for scope in runs.scopes_in(&span) {
        scores.clear();
        runs.score(dense.vector, scope.runs.clone(), &mut scores)?;
        let mut selected = 0;
        for (run, score) in scope.runs.clone().zip(&scores) {
            let rows = runs.rows_of(scope, run);
            let of_run = one.rows_in(&rows);
            if of_run > 0 {
                selected += of_run;
                parts.push(Part {
                    score: *score,
                    at,
                    rows,
                    selected: of_run,
                });
            }
        }
        scopes.push(InRuns {
            rows: scope.rows.len() as u64,
            selected,
            share: target.share_of(&scope.shares),
        });
    }
    Ok(scopes)
}

/// Keeps the best parts until they have `needed` rows; gives the rows of the others by
/// selection, ascending.
fn leave_out(parts: &mut [Part], needed: u64, selections: usize) -> Vec<Vec<Range<u32>>> {
    parts.sort_unstable_by(|a, b| {
        let places = (a.at, a.rows.start).cmp(&(b.at, b.rows.start));
        b.score.total_cmp(&a.score).then(places)
    });
    let mut left_out = vec![Vec::new(); selections];
    let mut looked_at = 0;
    for part in parts {
        match looked_at < needed {
            true => looked_at += part.selected,
            false => left_out[part.at].push(part.rows.clone()),
        }
    }
    for rows in &mut left_out {
        rows.sort_unstable_by_key(|rows| rows.start);
    }
    left_out
}

impl Selected {
    /// Rows that may pass, of `population` in all views: those that do where they were counted,
    /// else others too. In a memtable the rows of a run lie between those of other scopes.
    fn rows_max(&self, population: u64) -> u64 {
        match (&self.rows, self.vectors) {
            (_, Count::Exactly(rows)) => rows,
            (Rows::Runs(runs), Count::Many) => {
                let rows: u64 = runs.iter().map(|run| run.rows.len() as u64).sum();
                rows.min(population)
            }
            (Rows::Listed(rows), Count::Many) => rows.len() as u64,
        }
    }

    /// What it costs to look at all rows, in rows of ranges: a listed one counts twice.
    fn weight(&self, population: u64) -> u64 {
        match &self.rows {
            Rows::Runs(_) => self.rows_max(population),
            Rows::Listed(_) => 2 * self.rows_max(population),
        }
    }

    /// From the first row to the last; `None` where there is none.
    fn span(&self) -> Option<Range<u32>> {
        match &self.rows {
            Rows::Runs(runs) => Some(runs.first()?.rows.start..runs.last()?.rows.end),
            Rows::Listed(rows) => Some(*rows.first()?..rows.last()? + 1),
        }
    }

    /// How many of the rows lie in a range. In a segment runs ascend.
    fn rows_in(&self, range: &Range<u32>) -> u64 {
        match &self.rows {
            Rows::Runs(runs) => meeting(runs, range)
                .iter()
                .map(|run| u64::from(run.rows.end.min(range.end) - run.rows.start.max(range.start)))
                .sum(),
            Rows::Listed(rows) => {
                let below = |end: u32| rows.partition_point(|row| *row < end) as u64;
                below(range.end) - below(range.start)
            }
        }
    }

    /// The same without the rows of these ranges, which ascend.
    fn without(&self, left_out: &[Range<u32>]) -> Self {
        let rows = match &self.rows {
            Rows::Runs(runs) => Rows::Runs(cut(runs, left_out)),
            Rows::Listed(rows) => {
                let (mut kept, mut from) = (Vec::new(), 0);
                for range in left_out {
                    let start = from + rows[from..].partition_point(|row| *row < range.start);
                    kept.extend_from_slice(&rows[from..start]);
                    from = start + rows[start..].partition_point(|row| *row < range.end);
                }
                kept.extend_from_slice(&rows[from..]);
                Rows::Listed(kept)
            }
        };
        Self {
            rows,
            index: self.index,
            all_pass: self.all_pass,
            vectors: self.vectors,
        }
    }
}

/// Those of ascending runs that have rows of a range.
fn meeting<'r>(runs: &'r [Run], range: &Range<u32>) -> &'r [Run] {
    let from = runs.partition_point(|run| run.rows.end <= range.start);
    let len = runs[from..].partition_point(|run| run.rows.start < range.end);
    &runs[from..from + len]
}

/// Ascending runs without the rows of ranges, which ascend too.
fn cut(runs: &[Run], left_out: &[Range<u32>]) -> Vec<Run> {
    let mut kept = Vec::new();
    let mut keep = |run: &Run, rows: Range<u32>| {
        if !rows.is_empty() {
            kept.push(Run { key: run.key, rows });
        }
    };
    for run in runs {
        let mut start = run.rows.start;
        let first = left_out.partition_point(|range| range.end <= run.rows.start);
        for range in &left_out[first..] {
            if range.start >= run.rows.end {
                break;
            }
            keep(run, start..range.start.max(start));
            start = range.end.min(run.rows.end);
        }
        keep(run, start..run.rows.end);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: Rows) -> Selected {
        Selected {
            index: 0,
            rows,
            all_pass: true,
            vectors: Count::Many,
        }
    }

    fn rows_of(selected: &Selected) -> Vec<u32> {
        match &selected.rows {
            Rows::Runs(runs) => runs.iter().flat_map(|run| run.rows.clone()).collect(),
            Rows::Listed(rows) => rows.clone(),
        }
    }

    /// Ascending ranges that do not meet, with gaps below `gap`, from a stream of numbers.
    fn ranges(numbers: &mut impl FnMut(u32) -> u32, gap: u32) -> Vec<Range<u32>> {
        let mut at = 0;
        let count = numbers(12);
        let mut next = |_| {
            let start = at + numbers(gap);
            at = start + 1 + numbers(30);
            start..at
        };
        (0..count).map(&mut next).collect()
    }

    #[test]
    fn what_is_left_out_is_all_that_is_missing() {
        let mut state = 7_u32;
        let mut numbers = |end: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % end
        };
        for _ in 0..500 {
            let (own, out) = (ranges(&mut numbers, 9), ranges(&mut numbers, 20));
            let all: Vec<u32> = own.iter().cloned().flatten().collect();
            let runs = own.into_iter().map(|rows| Run { key: 3, rows }).collect();
            let is_out = |row: &u32| out.iter().any(|range| range.contains(row));
            let expected: Vec<u32> = all.iter().copied().filter(|row| !is_out(row)).collect();
            for selected in [of(Rows::Runs(runs)), of(Rows::Listed(all.clone()))] {
                assert_eq!(rows_of(&selected.without(&out)), expected);
                assert_eq!(rows_of(&selected.without(&[])), all);
                for range in &out {
                    let within = all.iter().filter(|row| range.contains(row)).count();
                    assert_eq!(selected.rows_in(range), within as u64);
                }
            }
        }
    }

    #[test]
    fn rows_of_other_scopes_between_those_of_a_run_do_not_count() {
        let whole = || {
            Rows::Runs(vec![Run {
                key: 3,
                rows: 0..60_000,
            }])
        };
        let counted = Selected {
            vectors: Count::Exactly(900),
            ..of(whole())
        };
        assert_eq!(counted.weight(30_000), 900);
        assert_eq!(of(whole()).weight(30_000), 30_000);
        assert_eq!(of(whole()).weight(90_000), 60_000);
        assert_eq!(of(Rows::Listed(vec![4, 7])).weight(90_000), 4);
    }

    #[test]
    fn the_best_runs_are_kept_until_they_are_enough() {
        let part = |score: f32, at: usize, start: u32| Part {
            score,
            at,
            rows: start..start + 10,
            selected: 10,
        };
        let mut parts = [
            part(0.5, 0, 0),
            part(0.9, 0, 10),
            part(0.7, 1, 0),
            part(0.7, 0, 20),
            part(0.1, 1, 10),
        ];
        let starts = |left_out: Vec<Vec<Range<u32>>>| -> Vec<Vec<u32>> {
            let of_one = |rows: &Vec<Range<u32>>| rows.iter().map(|rows| rows.start).collect();
            left_out.iter().map(of_one).collect()
        };
        // Of the equal ones that of the first selection.
        let two = starts(leave_out(&mut parts, 11, 2));
        assert_eq!(two, [vec![0], vec![0, 10]]);
        let three = starts(leave_out(&mut parts, 21, 2));
        assert_eq!(three, [vec![0], vec![10]]);
        let all = starts(leave_out(&mut parts, 99, 2));
        assert_eq!(all, [vec![], vec![]]);
    }
}
