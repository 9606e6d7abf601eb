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

mod window;

use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};

use crate::columns::{Columns, Packed, gallop_point, partition_point, write_packed};
use crate::error::SegmentError;
use crate::format::bytes::index;
use crate::format::{Section, SectionSink};
use crate::read::TimeOrder;
use crate::scope_dir::{ScopeDir, ScopeFacts};

type Result<T> = std::result::Result<T, SegmentError>;

/// Positions of a timeline that are read at a time.
const CHUNK: u32 = 128;

/// About how long things take, ns: a look at one position on the way along a timeline, a step
/// of a search, a row that comes out of a merge.
const POSITION_NS: u64 = 2;
const SEARCH_STEP_NS: u64 = 10;
const MERGED_ROW_NS: u64 = 25;

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
            let stretch = self.stretch(scopes, columns, of_rows.start, rows, walk)?;
            return self.walk_stretch(columns, &stretch, rows, walk.order, visit);
        }
        let whole = Stretch {
            own: 0..scopes.rows(),
            listed: Some(Listed::Whole),
            positions: window(columns, 0..scopes.rows(), walk, |at| {
                self.whole_row(at, scopes.rows())
            })?,
        };
        if merges_faster(&whole, rows, of_rows.len()) {
            return self.walk_merged(scopes, columns, of_rows, rows, walk, visit);
        }
        self.walk_stretch(columns, &whole, rows, walk.order, visit)
    }

    /// The rows of a scope that lie in the window.
    fn stretch(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        scope: usize,
        rows: &Range<u32>,
        walk: TimeWalk,
    ) -> Result<Stretch> {
        let own = scopes.rows_of(scope);
        let (listed, positions) = match scopes.timeline_at(scope) {
            Some(at) => {
                let all = at..at + (own.end - own.start);
                let found = window(columns, all, walk, |at| self.local_row(at, &own))?;
                (Some(Listed::Local), found)
            }
            None => {
                let part = own.start.max(rows.start)..own.end.min(rows.end);
                (None, window(columns, part, walk, Ok)?)
            }
        };
        Ok(Stretch {
            own,
            listed,
            positions,
        })
    }

    /// Visits the rows of a stretch that lie in `rows`.
    fn walk_stretch(
        &self,
        columns: &Columns,
        stretch: &Stretch,
        rows: &Range<u32>,
        order: TimeOrder,
        visit: Visit<'_>,
    ) -> Result<()> {
        let mut left = stretch.positions.clone();
        let mut chunk = [0; CHUNK as usize];
        while !left.is_empty() {
            let part = match order {
                TimeOrder::OldestFirst => left.start..left.end.min(left.start + CHUNK),
                TimeOrder::NewestFirst => left.end.saturating_sub(CHUNK).max(left.start)..left.end,
            };
            match order {
                TimeOrder::OldestFirst => left.start = part.end,
                TimeOrder::NewestFirst => left.end = part.start,
            }
            let found = self.rows_at(stretch, part, rows, &mut chunk)?;
            for at in 0..found.len() {
                let row = match order {
                    TimeOrder::OldestFirst => found[at],
                    TimeOrder::NewestFirst => found[found.len() - 1 - at],
                };
                if visit(row, columns.event_time_us(row)?).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The rows at a chunk of a stretch's positions that lie in `rows`.
    fn rows_at<'a>(
        &self,
        stretch: &Stretch,
        part: Range<u32>,
        rows: &Range<u32>,
        chunk: &'a mut [u32; CHUNK as usize],
    ) -> Result<&'a [u32]> {
        let (column, base, end) = match stretch.listed {
            None => {
                let mut inside = 0;
                for row in part.start.max(rows.start)..part.end.min(rows.end) {
                    chunk[inside] = row;
                    inside += 1;
                }
                return Ok(&chunk[..inside]);
            }
            Some(Listed::Local) => (&self.local, stretch.own.start, stretch.own.end),
            Some(Listed::Whole) => (&self.whole, 0, stretch.own.end),
        };
        let (mut inside, mut last) = (0, 0);
        column.for_each(part, |offset| {
            let row = u64::from(base).saturating_add(offset);
            last = last.max(row);
            // Without a branch: whether a row is inside is as good as chance.
            chunk[inside] = u32::try_from(row).unwrap_or(u32::MAX);
            inside += usize::from(rows.contains(&chunk[inside]));
        })?;
        if last >= u64::from(end) {
            return Err(column.corrupt(format!("row {last} of {:?}", stretch.own)));
        }
        Ok(&chunk[..inside])
    }

    /// Merges what each scope has to give, as far as it is asked for.
    fn walk_merged(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        of_rows: Range<usize>,
        rows: &Range<u32>,
        walk: TimeWalk,
        visit: Visit<'_>,
    ) -> Result<()> {
        let mut stretches = Vec::new();
        let mut heads = BinaryHeap::new();
        for scope in of_rows {
            let mut stretch = self.stretch(scopes, columns, scope, rows, walk)?;
            if let Some(next) = self.next_of(columns, &mut stretch, rows, walk.order)? {
                heads.push((next, stretches.len()));
                stretches.push(stretch);
            }
        }
        while let Some((next, from)) = heads.pop() {
            let (time_us, row) = place(next, walk.order);
            if visit(row, time_us).is_break() {
                break;
            }
            if let Some(next) = self.next_of(columns, &mut stretches[from], rows, walk.order)? {
                heads.push((next, from));
            }
        }
        Ok(())
    }

    /// Takes the next row of a stretch that lies in `rows`, and gives its place in the order,
    /// the first one greatest.
    fn next_of(
        &self,
        columns: &Columns,
        stretch: &mut Stretch,
        rows: &Range<u32>,
        order: TimeOrder,
    ) -> Result<Option<(i64, u32)>> {
        loop {
            let at = match order {
                TimeOrder::OldestFirst => stretch.positions.next(),
                TimeOrder::NewestFirst => stretch.positions.next_back(),
            };
            let Some(at) = at else {
                return Ok(None);
            };
            let row = match stretch.listed {
                None => at,
                Some(Listed::Local) => self.local_row(at, &stretch.own)?,
                Some(Listed::Whole) => self.whole_row(at, stretch.own.end)?,
            };
            if rows.contains(&row) {
                return Ok(Some(place((columns.event_time_us(row)?, row), order)));
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

/// Rows in order of event time, and the part of them that is wanted.
#[derive(Debug)]
struct Stretch {
    /// All rows that may be among them.
    own: Range<u32>,
    /// Where positions stand for rows; `None` = they are rows.
    listed: Option<Listed>,
    positions: Range<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Listed {
    /// In the part of one scope.
    Local,
    /// In the timeline of all rows.
    Whole,
}

/// Whether the rows of a run in some scopes are found sooner scope by scope than along the
/// timeline of all rows, where those of others are passed by.
fn merges_faster(whole: &Stretch, rows: &Range<u32>, scopes: usize) -> bool {
    let (scopes, run) = (scopes as u64, u64::from(rows.end - rows.start));
    let window = u64::from(whole.positions.end - whole.positions.start);
    let expected = window * run / u64::from(whole.own.end).max(1);
    let depth = u64::from((run / scopes.max(1)).max(1).ilog2());
    let searches = scopes * (2 * depth + 4) * SEARCH_STEP_NS;
    searches + expected * MERGED_ROW_NS < window * POSITION_NS
}

/// The place of (event time, row) in an order, the first one greatest; and back.
fn place((time_us, row): (i64, u32), order: TimeOrder) -> (i64, u32) {
    match order {
        TimeOrder::NewestFirst => (time_us, row),
        TimeOrder::OldestFirst => (!time_us, !row),
    }
}

/// The part of `positions`, whose rows ascend by event time, that lies in the window.
fn window(
    columns: &Columns,
    positions: Range<u32>,
    walk: TimeWalk,
    row_at: impl Fn(u32) -> Result<u32>,
) -> Result<Range<u32>> {
    let before = |at: u32, time_us: i64| Ok(columns.event_time_us(row_at(at)?)? < time_us);
    let (first_us, last_us) = columns.event_times_us();
    let start = match walk.from_us <= first_us {
        true => positions.start,
        false => partition_point(positions.clone(), |at| before(at, walk.from_us))?,
    };
    let end = match walk.to_us > last_us {
        true => positions.end,
        false => gallop_point(start..positions.end, |at| before(at, walk.to_us))?,
    };
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::columns::write_columns;
    use crate::format::VecSink;
    use crate::read::Zone;
    use crate::record::RowFields;
    use crate::scope::Scope;
    use crate::scope_dir::encode_scopes;

    struct Rows {
        times_us: Vec<i64>,
        scopes: ScopeDir,
        columns: Columns,
        timeline: Timeline,
    }

    /// Rows with these times, in scopes of these sizes.
    fn rows(times_us: Vec<i64>, sizes: &[u32]) -> Rows {
        let (mut facts, mut start) = (Vec::new(), 0);
        let all = u32::try_from(times_us.len()).expect("few");
        for (number, size) in sizes.iter().enumerate() {
            let end = if number + 1 == sizes.len() {
                all
            } else {
                all.min(start + size)
            };
            if start < end {
                facts.push(ScopeFacts {
                    key: Scope::parse(&format!("s{number:04}"))
                        .expect("a scope")
                        .key()
                        .into(),
                    rows: start..end,
                    length_sum: 0,
                    event_time_us: (i64::MAX, i64::MIN),
                    own_timeline: false,
                });
            }
            start = end;
        }
        let zone = Zone {
            rows: all,
            vectors: 0,
            scopes: u32::try_from(facts.len()).expect("few"),
            event_time_us: (
                times_us.iter().copied().min().expect("a row"),
                times_us.iter().copied().max().expect("a row"),
            ),
            commit_seq: (0, 0),
            source_class_max: 0,
        };
        for scope in &mut facts {
            let times = &times_us[index(scope.rows.start)..index(scope.rows.end)];
            scope.event_time_us = (
                times.iter().copied().min().expect("a row"),
                times.iter().copied().max().expect("a row"),
            );
        }
        let (mut timeline, mut columns) = (VecSink::default(), VecSink::default());
        write_timeline(&mut timeline, &times_us, &mut facts).expect("memory");
        let fields = |row| RowFields {
            event_time_us: times_us[index(row)],
            commit_seq: 0,
            commit_time_us: 0,
            valid_from_us: 0,
            valid_to_us: 0,
            expires_us: 0,
            source_class: 0,
            importance: f32::NAN,
            length: 0,
            text_tokens: 0,
            summary_tokens: 0,
            cluster: 0,
        };
        write_columns(&mut columns, all, |column, values| {
            for (row, value) in (0..).zip(values) {
                *value = column.value(&fields(row));
            }
            Ok(())
        })
        .expect("memory");
        let section = Section::in_memory;
        let scopes = section("scopes", encode_scopes(&facts, &zone));
        let scopes = ScopeDir::open(&scopes, &zone).expect("sound");
        Rows {
            timeline: Timeline::open(&section("timeline", timeline.bytes), &scopes).expect("sound"),
            columns: Columns::open(&section("columns", columns.bytes), &zone).expect("sound"),
            scopes,
            times_us,
        }
    }

    type Walked = Vec<(u32, i64)>;

    /// The rows that `walk` visits, at most `stop` of them.
    fn visited(walk: impl FnOnce(Visit<'_>) -> Result<()>, stop: usize) -> Walked {
        let mut found = Vec::new();
        walk(&mut |row, time_us| {
            found.push((row, time_us));
            match found.len() == stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .expect("sound");
        found
    }

    fn check(rows: &Rows, run: &Range<u32>, walk: TimeWalk, stop: usize) {
        let Rows {
            scopes,
            columns,
            timeline,
            ..
        } = rows;
        let mut expected: Walked = run
            .clone()
            .map(|row| (row, rows.times_us[index(row)]))
            .filter(|(_, time)| (walk.from_us..walk.to_us).contains(time))
            .collect();
        expected.sort_by_key(|(row, time)| (*time, *row));
        if walk.order == TimeOrder::NewestFirst {
            expected.reverse();
        }
        expected.truncate(stop);
        let chosen = visited(
            |visit| timeline.walk(scopes, columns, run, walk, visit),
            stop,
        );
        assert_eq!(chosen, expected);
        // Both ways, whichever was chosen.
        let of_rows = scopes.of_rows(run);
        let merged = visited(
            |visit| timeline.walk_merged(scopes, columns, of_rows, run, walk, visit),
            stop,
        );
        assert_eq!(merged, expected);
        if scopes.len() > 1 && walk.from_us < walk.to_us {
            let all = 0..scopes.rows();
            let row_at = |at| timeline.whole_row(at, scopes.rows());
            let whole = Stretch {
                own: all.clone(),
                listed: Some(Listed::Whole),
                positions: window(columns, all, walk, row_at).expect("sound"),
            };
            let along = visited(
                |visit| timeline.walk_stretch(columns, &whole, run, walk.order, visit),
                stop,
            );
            assert_eq!(along, expected);
        }
    }

    proptest! {
        #[test]
        fn every_way_along_time_gives_what_a_scan_gives(
            times in prop::collection::vec(prop_oneof![0_i64..20, -1000_i64..1000], 1..400),
            in_order in any::<bool>(),
            sizes in prop::collection::vec(1_u32..60, 1..30),
            run in any::<(prop::sample::Index, prop::sample::Index)>(),
            window in prop_oneof![
                Just((i64::MIN, i64::MAX)),
                (-1100_i64..1100, 0_i64..300).prop_map(|(from, len)| (from, from + len)),
            ],
            newest_first in any::<bool>(),
            stop in prop_oneof![Just(usize::MAX), 1_usize..5, 100_usize..200],
        ) {
            let mut times = times;
            if in_order {
                times.sort_unstable();
            }
            let rows = rows(times, &sizes);
            let ends = [run.0, run.1].map(|end| end.index(rows.times_us.len() + 1));
            let [a, b] = ends.map(|end| u32::try_from(end).expect("few"));
            let order = match newest_first {
                true => TimeOrder::NewestFirst,
                false => TimeOrder::OldestFirst,
            };
            let walk = TimeWalk { from_us: window.0, to_us: window.1, order };
            if a != b {
                check(&rows, &(a.min(b)..a.max(b)), walk, stop);
            }
            check(&rows, &(0..rows.scopes.rows()), walk, stop);
        }
    }

    #[test]
    fn few_scopes_of_a_long_timeline_are_merged_and_many_are_not() {
        let stretch = |len| Stretch {
            own: 0..1_000_000,
            listed: Some(Listed::Whole),
            positions: 0..len,
        };
        assert!(merges_faster(&stretch(1_000_000), &(0..20_000), 20));
        assert!(!merges_faster(&stretch(5_000), &(0..20_000), 1000));
        assert!(!merges_faster(&stretch(400), &(0..250_000), 250));
        assert!(!merges_faster(&stretch(1_000_000), &(0..250_000), 250));
    }
}
