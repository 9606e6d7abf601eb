//! Which rows lie in a stretch of event time, found without a scan?
//!
//! Inside a scope of one cluster the rows are in order of event time already. A scope of
//! several clusters has a permutation of its rows; a segment of several scopes has one of all
//! its rows, for runs that span many of them.
//!
//! | field | width | verified by |
//! |---|---|---|
//! | per scope: row - first row of the scope, for scopes with a timeline of their own | packed column | [`Timeline::open`], scrub |
//! | whole: row; no values in a segment of one scope | packed column | [`Timeline::open`], scrub |

use std::ops::{ControlFlow, Range};

use crate::columns::{Columns, Packed, partition_point, write_packed};
use crate::error::SegmentError;
use crate::format::bytes::index;
use crate::format::{Section, SectionSink};
use crate::read::TimeOrder;
use crate::scope_dir::{ScopeDir, ScopeFacts};

type Result<T> = std::result::Result<T, SegmentError>;

/// Runs of at most this share of a segment are put in order of time by sorting; for larger
/// ones the walk along all rows passes over few that are not theirs.
const SORT_SHARE: u32 = 4;

/// Writes the section and notes which scopes have a timeline of their own.
///
/// # Errors
/// The sink's.
pub(crate) fn write_timeline(
    sink: &mut dyn SectionSink,
    times_us: &[i64],
    scopes: &mut [ScopeFacts],
) -> Result<()> {
    let mut local = Vec::new();
    for scope in scopes.iter_mut() {
        let times = &times_us[index(scope.rows.start)..index(scope.rows.end)];
        scope.own_timeline = !times.is_sorted();
        if scope.own_timeline {
            local.extend(by_time(times));
        }
    }
    write_packed(sink, &local)?;
    let whole = if scopes.len() > 1 {
        by_time(times_us)
    } else {
        Vec::new()
    };
    write_packed(sink, &whole)
}

/// Positions in order of (time, position).
fn by_time(times: &[i64]) -> Vec<u64> {
    let mut order: Vec<u64> = (0..times.len() as u64).collect();
    // Stable: equal times stay in order of position.
    order.sort_by_key(|at| times[usize::try_from(*at).expect("a position in a slice")]);
    order
}

/// A stretch of event time and how to walk it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeWalk {
    /// First time inside, µs.
    pub(crate) from_us: i64,
    /// First time after it, µs.
    pub(crate) to_us: i64,
    /// Order of the walk.
    pub(crate) order: TimeOrder,
}

type Visit<'a> = &'a mut dyn FnMut(u32, i64) -> ControlFlow<()>;

/// The timeline of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    local: Packed,
    whole: Packed,
}

impl Timeline {
    /// Opens the section.
    ///
    /// # Errors
    /// `Corrupt` where the counts do not agree with the scope directory.
    pub(crate) fn open(section: &Section, scopes: &ScopeDir) -> Result<Self> {
        let (local, at) = Packed::open_counted(section, 0, scopes.timeline_rows())?;
        let whole_rows = if scopes.len() > 1 { scopes.rows() } else { 0 };
        let (whole, end) = Packed::open_counted(section, at, whole_rows)?;
        if end != section.len() {
            return Err(section.corrupt(end, "bytes left over"));
        }
        Ok(Self { local, whole })
    }

    /// Walks the rows of `rows` along event time.
    ///
    /// # Errors
    /// Damage in timeline or columns.
    pub(crate) fn walk(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        rows: &Range<u32>,
        walk: TimeWalk,
        visit: Visit<'_>,
    ) -> Result<()> {
        if rows.is_empty() || walk.from_us >= walk.to_us {
            return Ok(());
        }
        let of_rows = scopes.of_rows(rows);
        if of_rows.len() == 1 {
            return self.walk_scope(scopes, columns, of_rows.start, rows, walk, visit);
        }
        if rows.end - rows.start > scopes.rows() / SORT_SHARE {
            return walk_order(
                columns,
                0..scopes.rows(),
                rows,
                walk,
                |at| self.whole_row(at, scopes.rows()),
                visit,
            );
        }
        self.walk_sorted(scopes, columns, of_rows, rows, walk, visit)
    }

    /// Sorts what each scope has to give.
    fn walk_sorted(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        of_rows: Range<usize>,
        rows: &Range<u32>,
        walk: TimeWalk,
        visit: Visit<'_>,
    ) -> Result<()> {
        let mut found = Vec::new();
        for scope in of_rows {
            self.walk_scope(scopes, columns, scope, rows, walk, &mut |row, time_us| {
                found.push((time_us, row));
                ControlFlow::Continue(())
            })?;
        }
        found.sort_unstable();
        if walk.order == TimeOrder::NewestFirst {
            found.reverse();
        }
        for (time_us, row) in found {
            if visit(row, time_us).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn walk_scope(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        scope: usize,
        rows: &Range<u32>,
        walk: TimeWalk,
        visit: Visit<'_>,
    ) -> Result<()> {
        let own = scopes.rows_of(scope);
        match scopes.timeline_at(scope) {
            Some(at) => {
                let upto = at + (own.end - own.start);
                walk_order(
                    columns,
                    at..upto,
                    rows,
                    walk,
                    |at| self.local_row(at, &own),
                    visit,
                )
            }
            None => {
                let part = own.start.max(rows.start)..own.end.min(rows.end);
                walk_order(columns, part, rows, walk, Ok, visit)
            }
        }
    }

    /// Row at a position of the whole timeline.
    pub(crate) fn whole_row(&self, at: u32, rows: u32) -> Result<u32> {
        let row = self.whole.get_u32(at)?;
        if row >= rows {
            return Err(self.whole.corrupt(format!("row {row} of {rows}")));
        }
        Ok(row)
    }

    /// Row at a position of the timelines of scopes; `own` are the scope's rows.
    pub(crate) fn local_row(&self, at: u32, own: &Range<u32>) -> Result<u32> {
        let offset = self.local.get_u32(at)?;
        if offset >= own.end - own.start {
            return Err(self.local.corrupt(format!(
                "row {offset} of a scope of {}",
                own.end - own.start
            )));
        }
        Ok(own.start + offset)
    }

    /// Positions of the whole timeline: rows, or none in a segment of one scope.
    pub(crate) fn whole_len(&self) -> u32 {
        self.whole.count()
    }

    /// Damage in the timeline.
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> SegmentError {
        self.whole.corrupt(message)
    }
}

/// Walks `positions`, whose rows ascend by event time, and visits those rows inside `rows`.
fn walk_order(
    columns: &Columns,
    positions: Range<u32>,
    rows: &Range<u32>,
    walk: TimeWalk,
    row_at: impl Fn(u32) -> Result<u32>,
    visit: Visit<'_>,
) -> Result<()> {
    let before = |at: u32, time_us: i64| Ok(columns.event_time_us(row_at(at)?)? < time_us);
    let start = partition_point(positions.clone(), |at| before(at, walk.from_us))?;
    let end = partition_point(start..positions.end, |at| before(at, walk.to_us))?;
    for step in 0..end - start {
        let at = match walk.order {
            TimeOrder::OldestFirst => start + step,
            TimeOrder::NewestFirst => end - 1 - step,
        };
        let row = row_at(at)?;
        if rows.contains(&row) && visit(row, columns.event_time_us(row)?).is_break() {
            break;
        }
    }
    Ok(())
}
