//! Which rows of a view pass the filters, in the form that is cheapest to go over?
//!
//! As ranges where all or most rows pass: a filter is then asked of the few rows that could be
//! among the best. Listed where few pass. The form changes no answer; the count of rows
//! decides the way of the search, so it is known exactly as long as it matters.

use chronolith_segments::{Partition, Run, SegmentError, WindowRows};
use roaring::RoaringBitmap;

use super::policy::Count;
use crate::query::view::{PartitionName, View};

/// One in so many rows may fail, and a list of the others is longer than the ranges are wide:
/// a listed row costs about twice one of a range.
const LISTED_SHARE: u64 = 2;
/// A set of at most one in so many rows is asked for its times, where there is a window too.
const SET_SHARE: u64 = 4;
/// Rows of a run that are looked at before the count is compared with its limit.
const STEP: u32 = 4096;

/// The rows of one view.
#[derive(Debug)]
pub(crate) struct Selected {
    /// Index of the view.
    pub(crate) index: usize,
    pub(crate) rows: Rows,
    /// False where [`View::passes`] must be asked.
    pub(crate) all_pass: bool,
    pub(crate) vectors: Count,
}

/// Ranges or rows.
#[derive(Debug)]
pub(crate) enum Rows {
    Runs(Vec<Run>),
    /// Ascending.
    Listed(Vec<u32>),
}

/// Selects from view number `index`. Rows are counted as far as `rows_max`.
///
/// # Errors
/// Damage in what the filters read.
pub(crate) fn select(view: &View, index: usize, rows_max: u64) -> Result<Selected, SegmentError> {
    let selection = Selection {
        view,
        index,
        rows_max,
        any_dead: view.dead_rows.iter().any(|dead| !dead.is_empty()),
    };
    if let Some(rows) = selection.of_set_in_window()? {
        return selection.listed(rows, false);
    }
    match selection.of_window()? {
        Windowed::Runs(runs) if selection.only_time() => selection.runs(runs),
        Windowed::Runs(runs) => selection.filtered(runs),
        Windowed::Listed(rows) => selection.listed(rows, true),
        Windowed::Many if selection.only_time() => selection.much_time(),
        Windowed::Many => selection.filtered(view.runs.clone()),
    }
}

/// What the window leaves of a view's runs.
enum Windowed {
    Runs(Vec<Run>),
    Listed(Vec<u32>),
    /// So much that a list would not pay.
    Many,
}

struct Selection<'v> {
    view: &'v View,
    index: usize,
    rows_max: u64,
    /// Some row of the runs is dead.
    any_dead: bool,
}

impl Selection<'_> {
    fn partition(&self) -> &dyn Partition {
        self.view.partition()
    }

    /// True where rows of plain ranges inside the window need no other look but for deletes.
    fn only_time(&self) -> bool {
        let view = self.view;
        view.tagged.is_none() && view.class_min == 0 && view.clause_rows.get().is_none()
    }

    fn of_window(&self) -> Result<Windowed, SegmentError> {
        let Some((from_us, to_us)) = self.view.window_us else {
            return Ok(Windowed::Runs(self.view.runs.clone()));
        };
        let (mut runs, mut listed) = (Vec::new(), Vec::new());
        for run in &self.view.runs {
            let rows_max = self.listed_max(std::slice::from_ref(run))?;
            match self.partition().window(run, from_us, to_us, rows_max)? {
                Some(WindowRows::Run(run)) if run.rows.is_empty() => {}
                Some(WindowRows::Run(run)) => runs.push(run),
                Some(WindowRows::Listed(rows)) => listed.extend(rows),
                None => return Ok(Windowed::Many),
            }
        }
        if listed.is_empty() {
            return Ok(Windowed::Runs(runs));
        }
        for run in &runs {
            self.partition()
                .for_each_row(run, &mut |row| listed.push(row));
        }
        // Rows of a memtable's scopes lie between each other.
        listed.sort_unstable();
        Ok(Windowed::Listed(listed))
    }

    /// Rows up to which a list of them pays.
    fn listed_max(&self, runs: &[Run]) -> Result<usize, SegmentError> {
        let most = (self.rows_of(runs)? / LISTED_SHARE).max(self.rows_max);
        Ok(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// Rows of runs, dead ones included.
    fn rows_of(&self, runs: &[Run]) -> Result<u64, SegmentError> {
        if matches!(self.view.source.name, PartitionName::Segment(_)) {
            // The population of a part of a scope would read the length of each row.
            return Ok(runs.iter().map(|run| run.rows.len() as u64).sum());
        }
        let mut rows = 0;
        for run in runs {
            rows += self.partition().population(run)?.rows;
        }
        Ok(rows)
    }

    /// The rows of a small set that lie in the window; `None` where there is no such set, or
    /// something else is asked of rows. Fewer times are looked at than the window has rows.
    fn of_set_in_window(&self) -> Result<Option<Vec<u32>>, SegmentError> {
        let view = self.view;
        let (Some((from_us, to_us)), Some(set)) = (view.window_us, view.tagged.as_ref()) else {
            return Ok(None);
        };
        let held: u64 = view.runs.iter().map(|run| set_len(Some(set), run)).sum();
        let alone = view.class_min == 0 && view.clause_rows.get().is_none();
        if !alone || held > self.rows_of(&view.runs)? / SET_SHARE {
            return Ok(None);
        }
        let mut found = Vec::new();
        for run in &view.runs {
            for row in self.partition().rows_in_run(run, set) {
                let time_us = self.partition().event_time_us(row)?;
                let dead = self.any_dead && view.source.dead.contains(row);
                if from_us <= time_us && time_us < to_us && !dead {
                    found.push(row);
                }
            }
        }
        if view.runs.len() > 1 {
            found.sort_unstable();
        }
        Ok(Some(found))
    }

    /// Ranges of which every live row passes.
    fn runs(&self, runs: Vec<Run>) -> Result<Selected, SegmentError> {
        let view = self.view;
        let mut vectors = 0;
        for run in &runs {
            vectors += self.partition().vectors_in(self.view.space, run)?;
        }
        let mut all_pass = true;
        for (run, dead) in view.runs.iter().zip(&view.dead_rows) {
            all_pass &= dead.is_empty();
            for row in dead {
                // Runs of one key are one scope's rows; parts of them keep it.
                let within = |part: &&Run| part.key == run.key && part.rows.contains(row);
                if runs.iter().any(|part| within(&part)) && self.has_vector(*row)? {
                    vectors -= 1;
                }
            }
        }
        Ok(Selected {
            index: self.index,
            rows: Rows::Runs(runs),
            all_pass,
            vectors: Count::Exactly(vectors),
        })
    }

    /// A window of more rows than a list pays for, and no other filter.
    fn much_time(&self) -> Result<Selected, SegmentError> {
        let runs = self.view.runs.clone();
        let more_than = self.listed_max(&runs)?;
        if self.proves_many(more_than as u64) {
            return Ok(self.many(runs));
        }
        self.filtered(runs)
    }

    /// True where so many rows, dead ones included, must be too many to score.
    fn proves_many(&self, rows: u64) -> bool {
        let dead: usize = self.view.dead_rows.iter().map(Vec::len).sum();
        self.view.all_have_vectors() && rows.saturating_sub(dead as u64) > self.rows_max
    }

    fn many(&self, runs: Vec<Run>) -> Selected {
        Selected {
            index: self.index,
            rows: Rows::Runs(runs),
            all_pass: false,
            vectors: Count::Many,
        }
    }

    /// Ranges of which rows pass that the filters let through.
    fn filtered(&self, runs: Vec<Run>) -> Result<Selected, SegmentError> {
        let most = self.listed_max(&runs)?;
        // What cannot be listed needs no more than the proof that it is much.
        let holders = self.holders();
        let held: u64 = runs.iter().map(|run| set_len(holders, run)).sum();
        let many = held > most as u64;
        let is_segment = matches!(self.view.source.name, PartitionName::Segment(_));
        // Of a memtable the set's rows in a range are those of other scopes too.
        if many && is_segment && self.only_holders() && self.proves_many(held) {
            return Ok(self.many(runs));
        }
        let exact_max = usize::try_from(self.rows_max).unwrap_or(usize::MAX);
        let most = if many { exact_max } else { most };
        if let Some(set) = holders
            && !many
            && self.only_holders()
            && !self.any_dead
        {
            let listed = match &runs[..] {
                [run] => self.partition().rows_in_run(run, set),
                runs => {
                    let inside = runs.iter();
                    let inside = inside.flat_map(|run| self.partition().rows_in_run(run, set));
                    let mut listed: Vec<u32> = inside.collect();
                    // Rows of a memtable's scopes lie between each other.
                    listed.sort_unstable();
                    listed
                }
            };
            return self.listed(listed, false);
        }
        let mut listed = Vec::new();
        for run in &runs {
            for part in parts(run) {
                match holders {
                    Some(set) => {
                        for row in self.partition().rows_in_run(&part, set) {
                            if self.view.passes(row)? {
                                listed.push(row);
                            }
                        }
                    }
                    None => {
                        let mut rows = Vec::new();
                        self.partition()
                            .for_each_row(&part, &mut |row| rows.push(row));
                        for row in rows {
                            if self.view.passes(row)? {
                                listed.push(row);
                            }
                        }
                    }
                }
                if listed.len() > most {
                    return self.unlisted(runs, listed);
                }
            }
        }
        if runs.len() > 1 {
            listed.sort_unstable();
        }
        self.listed(listed, false)
    }

    /// More rows than a list pays for. `seen`: some of them.
    fn unlisted(&self, runs: Vec<Run>, seen: Vec<u32>) -> Result<Selected, SegmentError> {
        let mut vectors = 0;
        for row in &seen {
            vectors += u64::from(self.has_vector(*row)?);
            if vectors > self.rows_max {
                break;
            }
        }
        let vectors = match vectors > self.rows_max {
            true => Count::Many,
            // Few of them have a vector: then it takes a look at all of them.
            false => self.count(&runs)?,
        };
        Ok(Selected {
            index: self.index,
            rows: Rows::Runs(runs),
            all_pass: false,
            vectors,
        })
    }

    /// Counts rows that pass and have a vector, up to the limit.
    fn count(&self, runs: &[Run]) -> Result<Count, SegmentError> {
        let mut vectors = 0;
        for part in runs.iter().flat_map(parts) {
            let mut rows = Vec::new();
            self.partition()
                .for_each_row(&part, &mut |row| rows.push(row));
            for row in rows {
                vectors += u64::from(self.has_vector(row)? && self.view.passes(row)?);
                if vectors > self.rows_max {
                    return Ok(Count::Many);
                }
            }
        }
        Ok(Count::Exactly(vectors))
    }

    /// Rows of which those pass that other filters let through, where `checked` is false, none
    /// is asked any more.
    fn listed(&self, mut rows: Vec<u32>, unchecked: bool) -> Result<Selected, SegmentError> {
        if unchecked && (self.any_dead || !self.only_time()) {
            let mut failed = None;
            rows.retain(|row| {
                self.view.passes_but_time(*row).unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    false
                })
            });
            if let Some(error) = failed {
                return Err(error);
            }
        }
        let vectors = if self.view.all_have_vectors() {
            rows.len() as u64
        } else {
            let mut vectors = 0;
            for row in &rows {
                vectors += u64::from(self.has_vector(*row)?);
            }
            vectors
        };
        Ok(Selected {
            index: self.index,
            rows: Rows::Listed(rows),
            all_pass: true,
            vectors: Count::Exactly(vectors),
        })
    }

    /// True where every live row of [`Selection::holders`] passes.
    fn only_holders(&self) -> bool {
        let view = self.view;
        view.window_us.is_none() && view.class_min == 0 && view.clause_rows.get().is_none()
    }

    /// A set that holds every row that passes, the smallest that there is.
    fn holders(&self) -> Option<&RoaringBitmap> {
        let tagged = self.view.tagged.as_ref();
        let clauses = self.view.clause_rows.get();
        let required = clauses.and_then(|clauses| clauses.required());
        match (tagged, required) {
            (Some(a), Some(b)) => Some(if a.len() <= b.len() { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn has_vector(&self, row: u32) -> Result<bool, SegmentError> {
        let view = self.view;
        Ok(view.all_have_vectors() || view.partition().vector(view.space, row)?.is_some())
    }
}

/// Rows of a set inside a run's range: in a memtable those of other scopes too.
fn set_len(set: Option<&RoaringBitmap>, run: &Run) -> u64 {
    set.map_or(0, |set| set.range_cardinality(run.rows.clone()))
}

/// A run in parts of a few thousand rows.
pub(super) fn parts(run: &Run) -> impl Iterator<Item = Run> + use<> {
    let (key, rows) = (run.key, run.rows.clone());
    let starts = rows.clone().step_by(STEP as usize);
    starts.map(move |start| Run {
        key,
        rows: start..rows.end.min(start.saturating_add(STEP)),
    })
}
