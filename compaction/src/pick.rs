//! Which segments become one? From metadata alone, with the reason.
//!
//! Five rules, first match wins:
//!
//! 1. A segment with many dead rows is rewritten alone.
//! 2. Segments of one bucket whose sizes do not grow geometrically are merged: sorted by
//!    rows, the longest head in which the last is at most the sum of the others. What stays
//!    grows at least twofold a step, so n rows leave about log2(n) segments, and a row is
//!    rewritten about log2(n) times. A bucket whose time has passed gets no more rows, but for
//!    late ones: there the rest is merged into one, unless it is small beside the largest.
//! 3. When the small segments of different buckets pile up, those under the lowest window
//!    that holds several of them are merged into it: sparse data climbs the ladder.
//! 4. Segments of a higher window whose time has passed are merged into it: see `climb`.
//! 5. A segment of a bucket whose time has passed, with many rows that a merge would lay out by
//!    their vectors and that no merge has seen, is rewritten alone, once.

use std::collections::BTreeMap;
use std::fmt;

use crate::bucket::{Bucket, bucket_of, smallest_bucket};
use crate::climb::pick_climb;

/// A segment below this many rows is small.
pub const SMALL_ROWS: u32 = 4096;
/// No merge makes a segment of more rows than this.
pub const MERGE_ROWS_MAX: u64 = 4 << 20;
/// A segment is rewritten alone when more than one in this many of its rows is dead.
pub const DEAD_SHARE: u32 = 4;
/// Small segments of different buckets that may lie about.
const SMALL_SEGMENTS_MAX: usize = 4;
/// Segments of one bucket above [`SMALL_ROWS`] merge this many at a time at least.
const LARGE_FANOUT: usize = 4;
/// In a bucket that a later one has followed the largest segment is merged as well, unless it
/// has more rows than this many times those of the others: then late rows wait for company.
const PASSED_SHARE: u64 = 4;

/// A segment is rewritten alone for so many rows of its large scopes that no merge has laid out:
/// a search by vector leaves rows out where tens of thousands pass, and these never.
pub const LOOSE_ROWS_MIN: u32 = 8192;

/// What a pick must know of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its file number.
    pub file_number: u64,
    /// Its bucket.
    pub bucket: Bucket,
    /// Its rows, dead ones included.
    pub rows: u32,
    /// Rows that a rewrite would drop.
    pub dead_rows: u32,
    /// Its size.
    pub bytes: u64,
    /// Rows of large scopes with vectors that no merge has laid out: 0 for what a merge wrote.
    pub loose_rows: u32,
    /// Vectors that a rewrite would drop: of spaces that the store no longer has.
    pub dropped_rows: u32,
}

/// Why a compaction was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// More than a quarter of the rows are dead.
    Dead {
        /// Dead rows.
        dead_rows: u32,
        /// All rows.
        rows: u32,
    },
    /// Sizes in one bucket do not grow geometrically.
    SameBucket {
        /// How many segments.
        segments: usize,
    },
    /// The bucket's time has passed.
    PassedBucket {
        /// How many segments.
        segments: usize,
    },
    /// Small segments of several buckets pile up.
    SmallPile {
        /// How many segments.
        segments: usize,
    },
    /// The time of a window of a higher level has passed.
    PassedWindow {
        /// How many segments.
        segments: usize,
    },
    /// Rows with vectors lie as a flush left them.
    Loose {
        /// How many.
        rows: u32,
    },
    /// Vectors are of spaces that the store no longer has.
    Dropped {
        /// How many.
        rows: u32,
    },
    /// The caller asked for everything.
    Forced {
        /// How many segments.
        segments: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dead { dead_rows, rows } => write!(f, "{dead_rows} of {rows} rows are dead"),
            Self::SameBucket { segments } => {
                write!(f, "{segments} segments of one bucket are of like size")
            }
            Self::PassedBucket { segments } => {
                write!(f, "{segments} segments of one bucket whose time has passed")
            }
            Self::SmallPile { segments } => {
                write!(f, "{segments} small segments lie in neighbouring buckets")
            }
            Self::PassedWindow { segments } => {
                write!(
                    f,
                    "{segments} segments of a wider window whose time has passed"
                )
            }
            Self::Loose { rows } => {
                write!(f, "{rows} rows with vectors were never laid out")
            }
            Self::Dropped { rows } => {
                write!(f, "{rows} vectors are of spaces that were dropped")
            }
            Self::Forced { segments } => write!(f, "asked for: {segments} segments"),
        }
    }
}

/// One compaction to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// File numbers to merge, ascending.
    pub inputs: Vec<u64>,
    /// Bucket of the result.
    pub bucket: Bucket,
    /// Why.
    pub reason: Reason,
}

/// Picks the next compaction; `None` where none pays.
///
/// * `now_us`: the clock. A window has passed when a later one has rows and the clock has come
///   to it: rows of the future alone let no time pass.
/// * `force`: also merge whatever shares a bucket and rewrite whatever has a dead row, or vectors
///   of a space that the store no longer has.
pub fn pick(
    segments: &[Candidate],
    base_us: i64,
    ladder: &[u32],
    now_us: i64,
    force: bool,
) -> Option<Pick> {
    let newest_us = segments
        .iter()
        .map(|segment| segment.bucket.start_us)
        .max()?;
    let newest_us = newest_us.min(bucket_of(now_us, 0, base_us, ladder).start_us);
    pick_dead(segments, force)
        .or_else(|| pick_same_bucket(segments, newest_us, force))
        .or_else(|| pick_small_pile(segments, base_us, ladder, force))
        .or_else(|| pick_climb(segments, newest_us, base_us, ladder))
        .or_else(|| pick_loose(segments, newest_us, force))
        .or_else(|| pick_dropped(segments, force))
}

pub(crate) fn pick_of(chosen: &[Candidate], bucket: Bucket, reason: Reason) -> Pick {
    let mut inputs: Vec<u64> = chosen.iter().map(|segment| segment.file_number).collect();
    inputs.sort_unstable();
    Pick {
        inputs,
        bucket,
        reason,
    }
}

fn pick_dead(segments: &[Candidate], force: bool) -> Option<Pick> {
    let worn = |segment: &&Candidate| {
        segment.dead_rows > if force { 0 } else { segment.rows / DEAD_SHARE }
    };
    let segment = segments
        .iter()
        .filter(worn)
        .max_by_key(|segment| (segment.dead_rows, segment.file_number))?;
    let reason = Reason::Dead {
        dead_rows: segment.dead_rows,
        rows: segment.rows,
    };
    Some(pick_of(&[*segment], segment.bucket, reason))
}

/// Only where everything is asked for: else such vectors go with the next merge of their rows.
fn pick_dropped(segments: &[Candidate], force: bool) -> Option<Pick> {
    let segment = segments
        .iter()
        .filter(|segment| force && segment.dropped_rows > 0)
        .min_by_key(|segment| segment.file_number)?;
    let reason = Reason::Dropped {
        rows: segment.dropped_rows,
    };
    Some(pick_of(&[*segment], segment.bucket, reason))
}

/// The oldest that nothing else will merge soon.
fn pick_loose(segments: &[Candidate], newest_us: i64, force: bool) -> Option<Pick> {
    let passed = |segment: &&Candidate| force || segment.bucket.end_us <= newest_us;
    let segment = segments
        .iter()
        .filter(|segment| segment.loose_rows >= LOOSE_ROWS_MIN)
        .filter(passed)
        .min_by_key(|segment| segment.file_number)?;
    let reason = Reason::Loose {
        rows: segment.loose_rows,
    };
    Some(pick_of(&[*segment], segment.bucket, reason))
}

/// `newest_us`: where time has come to; windows that end before it have passed.
fn pick_same_bucket(segments: &[Candidate], newest_us: i64, force: bool) -> Option<Pick> {
    let mut buckets: BTreeMap<Bucket, Vec<Candidate>> = BTreeMap::new();
    for segment in segments {
        buckets.entry(segment.bucket).or_default().push(*segment);
    }
    for (bucket, mut members) in buckets {
        members.sort_unstable_by_key(|segment| (segment.rows, segment.file_number));
        let passed = bucket.end_us <= newest_us;
        let (count, reason) = if force {
            let segments = fitting(&members);
            (segments, Reason::Forced { segments })
        } else if let segments @ 2.. = geometric_head(&members) {
            (segments, Reason::SameBucket { segments })
        } else {
            let segments = if passed { passed_head(&members) } else { 0 };
            (segments, Reason::PassedBucket { segments })
        };
        if count >= 2 {
            return Some(pick_of(&members[..count], bucket, reason));
        }
    }
    None
}

/// How many of the smallest fit into one segment.
fn fitting(members: &[Candidate]) -> usize {
    let mut sum = 0;
    members
        .iter()
        .take_while(|segment| {
            sum += u64::from(segment.rows);
            sum <= MERGE_ROWS_MAX
        })
        .count()
}

/// Length of the longest head whose last is at most the sum of the others.
fn geometric_head(members: &[Candidate]) -> usize {
    let (mut sum, mut head) = (0u64, 0);
    for (index, segment) in members.iter().take(fitting(members)).enumerate() {
        let rows = u64::from(segment.rows);
        // Large ones are dear to rewrite: wait until several have come together.
        if rows <= sum && (segment.rows < SMALL_ROWS || index + 1 >= LARGE_FANOUT) {
            head = index + 1;
        }
        sum += rows;
    }
    head
}

/// Length of the longest head whose last is not too large beside the others.
pub(crate) fn passed_head(members: &[Candidate]) -> usize {
    let (mut sum, mut head) = (0u64, 0);
    for (index, segment) in members.iter().take(fitting(members)).enumerate() {
        let rows = u64::from(segment.rows);
        if rows <= sum * PASSED_SHARE {
            head = index + 1;
        }
        sum += rows;
    }
    head
}

fn pick_small_pile(
    segments: &[Candidate],
    base_us: i64,
    ladder: &[u32],
    force: bool,
) -> Option<Pick> {
    let small: Vec<Candidate> = segments
        .iter()
        .filter(|segment| segment.rows < SMALL_ROWS)
        .copied()
        .collect();
    if small.len() <= if force { 1 } else { SMALL_SEGMENTS_MAX } {
        return None;
    }
    for level in 1..=ladder.len() {
        let mut windows: BTreeMap<Bucket, Vec<Candidate>> = BTreeMap::new();
        for segment in small
            .iter()
            .filter(|segment| usize::from(segment.bucket.level) <= level)
        {
            windows
                .entry(bucket_of(segment.bucket.start_us, level, base_us, ladder))
                .or_default()
                .push(*segment);
        }
        let fullest = windows.into_values().max_by_key(Vec::len);
        if let Some(chosen) = fullest.filter(|chosen| chosen.len() >= 2) {
            let buckets: Vec<Bucket> = chosen.iter().map(|segment| segment.bucket).collect();
            let bucket = smallest_bucket(&buckets, base_us, ladder)?;
            return Some(pick_of(
                &chosen,
                bucket,
                Reason::SmallPile {
                    segments: chosen.len(),
                },
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulate;

    const DAY: i64 = 86_400_000_000;
    const LADDER: [u32; 5] = [1, 7, 28, 84, 336];
    const NOW: i64 = i64::MAX;

    fn segment(file_number: u64, day: i64, level: usize, rows: u32) -> Candidate {
        let bucket = bucket_of(day * DAY, level, DAY, &LADDER);
        Candidate {
            file_number,
            bucket,
            rows,
            dead_rows: 0,
            bytes: u64::from(rows) * 100,
            loose_rows: 0,
            dropped_rows: 0,
        }
    }

    #[test]
    fn three_hundred_single_records_over_three_hundred_days_leave_few_segments() {
        let mut segments = Vec::new();
        let mut most = 0;
        let mut rewritten = 0;
        for i in 0..300u32 {
            let next = segments
                .iter()
                .map(|s: &Candidate| s.file_number)
                .max()
                .map_or(1, |n| n + 1);
            segments.push(segment(next, i64::from(i), 0, 1));
            let (idle, rows) = simulate(segments, DAY, &LADDER, NOW);
            segments = idle;
            rewritten += rows;
            most = most.max(segments.len());
        }
        assert!(most <= 10, "{most} segments at the worst moment");
        assert_eq!(segments.iter().map(|s| s.rows).sum::<u32>(), 300);
        assert!(rewritten <= 300 * 40, "{rewritten} rows rewritten");
    }

    #[test]
    fn vectors_of_dropped_spaces_are_rewritten_where_all_is_asked_for() {
        let mut stale = segment(1, 0, 0, 1000);
        stale.dropped_rows = 7;
        let all = [stale, segment(2, 9, 0, 5000)];
        assert_eq!(pick(&all, DAY, &LADDER, NOW, false), None);
        let pick = pick(&all, DAY, &LADDER, NOW, true).expect("a pick");
        assert_eq!(
            (pick.inputs, pick.reason),
            (vec![1], Reason::Dropped { rows: 7 })
        );
    }

    #[test]
    fn a_segment_with_many_dead_rows_is_rewritten_alone() {
        let mut worn = segment(1, 0, 0, 1000);
        worn.dead_rows = 251;
        let pick = pick(&[worn, segment(2, 9, 0, 5000)], DAY, &LADDER, NOW, false).expect("a pick");
        assert_eq!(
            (pick.inputs, pick.reason),
            (
                vec![1],
                Reason::Dead {
                    dead_rows: 251,
                    rows: 1000
                }
            )
        );
    }

    #[test]
    fn what_grows_geometrically_is_left_alone() {
        let grown = [
            segment(1, 0, 0, 1),
            segment(2, 0, 0, 2),
            segment(3, 0, 0, 4),
        ];
        assert_eq!(pick(&grown, DAY, &LADDER, NOW, false), None);
        let forced = pick(&grown, DAY, &LADDER, NOW, true).expect("a pick");
        assert_eq!(forced.inputs, [1, 2, 3]);
    }

    #[test]
    fn large_segments_of_a_bucket_wait_for_company() {
        let two = [segment(1, 0, 0, 10_000), segment(2, 0, 0, 10_000)];
        assert_eq!(pick(&two, DAY, &LADDER, NOW, false), None);
        let four: Vec<Candidate> = (1..=4).map(|i| segment(i, 0, 0, 10_000)).collect();
        assert_eq!(
            pick(&four, DAY, &LADDER, NOW, false)
                .expect("a pick")
                .inputs,
            [1, 2, 3, 4]
        );
    }

    #[test]
    fn a_bucket_whose_time_has_passed_becomes_one_segment() {
        let mut segments = vec![segment(1, 0, 0, 10_000), segment(2, 0, 0, 30_000)];
        assert_eq!(
            pick(&segments, DAY, &LADDER, NOW, false),
            None,
            "it may grow"
        );
        segments.push(segment(3, 1, 0, 10));
        let picked = pick(&segments, DAY, &LADDER, NOW, false).expect("a pick");
        assert_eq!(picked.inputs, [1, 2]);
        assert_eq!(picked.reason, Reason::PassedBucket { segments: 2 });
        // A few late rows are not worth rewriting all others.
        segments[0].rows = 5_000;
        assert_eq!(pick(&segments, DAY, &LADDER, NOW, false), None);
    }

    #[test]
    fn late_rows_cost_a_passed_bucket_few_rewrites() {
        let mut segments = vec![segment(1, 0, 0, 20_000), segment(2, 9, 0, 20_000)];
        let mut rewritten = 0;
        for number in 3..103 {
            let next = 1000 * number;
            segments.push(segment(next, 0, 0, 500));
            let (idle, rows) = simulate(segments, DAY, &LADDER, NOW);
            (segments, rewritten) = (idle, rewritten + rows);
        }
        assert!(segments.len() <= 8, "{} segments", segments.len());
        assert!(
            rewritten <= 50_000 * 12,
            "{rewritten} rows rewritten for 50,000"
        );
    }

    #[test]
    fn a_merge_stays_below_its_limit_and_forcing_ends() {
        let huge: Vec<Candidate> = (1..=4).map(|i| segment(i, 0, 0, 3 << 20)).collect();
        assert_eq!(pick(&huge, DAY, &LADDER, NOW, false), None);
        assert_eq!(pick(&huge, DAY, &LADDER, NOW, true), None);
        assert_eq!(pick(&[segment(1, 0, 0, 10)], DAY, &LADDER, NOW, true), None);
    }

    #[test]
    fn rows_that_no_merge_has_laid_out_are_rewritten_once() {
        let mut loose = segment(1, 3, 0, 20_000);
        loose.loose_rows = 20_000;
        let later = segment(2, 9, 0, 100);
        let picked = pick(&[loose, later], DAY, &LADDER, NOW, false).expect("a pick");
        assert_eq!((picked.inputs, picked.bucket), (vec![1], loose.bucket));
        assert_eq!(picked.reason, Reason::Loose { rows: 20_000 });
        // The newest bucket still gets rows, and a merge of them lays all out.
        assert_eq!(pick(&[loose], DAY, &LADDER, NOW, false), None);
        assert!(pick(&[loose], DAY, &LADDER, NOW, true).is_some());
        let few = Candidate {
            loose_rows: LOOSE_ROWS_MIN - 1,
            ..loose
        };
        assert_eq!(pick(&[few, later], DAY, &LADDER, NOW, false), None);
        let (idle, rewritten) = simulate(vec![loose, later], DAY, &LADDER, NOW);
        assert_eq!(
            (idle.len(), rewritten),
            (2, 20_000),
            "what a merge wrote is not loose"
        );
    }
}
