//! When do neighbouring buckets become one of a higher level?
//!
//! When the time of the higher window has passed: old data is asked for by words far more often
//! than by day, and every segment costs a question the same few look-ups, whatever its rows.
//! So the segments of a span of time number about its logarithm, not its days.
//!
//! A climb rewrites all rows of a window, and so it must take many segments off at once: a
//! ladder of [1, 7, 28, 84, 336] days makes weeks of days, 28 days of weeks, and 336 days of
//! those, and leaves the level between out. A window of too many rows for one climb becomes several
//! segments, the oldest first.

use std::collections::BTreeMap;

use crate::bucket::{Bucket, bucket_of, smallest_bucket};
use crate::pick::{Candidate, Pick, Reason, passed_head, pick_of};

/// A climb merges at least this many segments.
pub const CLIMB_SEGMENTS_MIN: usize = 4;
/// No climb makes a segment of more rows than this: what a merge keeps in memory grows with
/// them, and a question gains little from larger ones.
pub const CLIMB_ROWS_MAX: u64 = 1 << 20;
/// Nor of more bytes than this: while it is written, all of it stands on disk twice.
pub const CLIMB_BYTES_MAX: u64 = 1 << 30;

/// Picks the segments of the widest passed window that are worth a climb. Windows that end
/// before `newest_us` have passed.
///
/// In a window with one large segment and few other rows those others wait for company, as late
/// rows do everywhere.
pub(crate) fn pick_climb(
    segments: &[Candidate],
    newest_us: i64,
    base_us: i64,
    ladder: &[u32],
) -> Option<Pick> {
    // Widest first: where several windows have passed a row is rewritten once.
    for level in (1..ladder.len()).rev() {
        for (window, mut members) in windows(segments, level, base_us, ladder) {
            if window.end_us > newest_us {
                continue;
            }
            let Some(chosen) = group_of(&mut members) else {
                continue;
            };
            let buckets: Vec<Bucket> = chosen.iter().map(|segment| segment.bucket).collect();
            let bucket = smallest_bucket(&buckets, base_us, ladder)?;
            let reason = Reason::PassedWindow {
                segments: chosen.len(),
            };
            return Some(pick_of(&chosen, bucket, reason));
        }
    }
    None
}

/// The segments of a window that climb together: all but those that are large beside the others,
/// or the oldest that fit where all are too many.
fn group_of(members: &mut [Candidate]) -> Option<Vec<Candidate>> {
    members.sort_unstable_by_key(|segment| (segment.rows, segment.file_number));
    let head = &members[..passed_head(members)];
    if is_small_enough(head) {
        return (head.len() >= CLIMB_SEGMENTS_MIN).then(|| head.to_vec());
    }
    members.sort_unstable_by_key(|segment| (segment.bucket.start_us, segment.file_number));
    let mut group: Vec<Candidate> = Vec::new();
    for segment in members.iter() {
        group.push(*segment);
        if !is_small_enough(&group) {
            group.pop();
            if is_worth_it(&group) {
                break;
            }
            group = vec![*segment];
        }
    }
    is_worth_it(&group).then_some(group)
}

fn is_small_enough(chosen: &[Candidate]) -> bool {
    let rows: u64 = chosen.iter().map(|segment| u64::from(segment.rows)).sum();
    let bytes: u64 = chosen.iter().map(|segment| segment.bytes).sum();
    rows <= CLIMB_ROWS_MAX && bytes <= CLIMB_BYTES_MAX
}

/// Enough segments, none of them large beside the others.
fn is_worth_it(group: &[Candidate]) -> bool {
    let mut by_rows = group.to_vec();
    by_rows.sort_unstable_by_key(|segment| segment.rows);
    group.len() >= CLIMB_SEGMENTS_MIN && passed_head(&by_rows) == group.len()
}

/// The segments that lie inside each window of `level`, oldest window first.
fn windows(
    segments: &[Candidate],
    level: usize,
    base_us: i64,
    ladder: &[u32],
) -> BTreeMap<Bucket, Vec<Candidate>> {
    let mut windows: BTreeMap<Bucket, Vec<Candidate>> = BTreeMap::new();
    for segment in segments {
        if usize::from(segment.bucket.level) <= level {
            let window = bucket_of(segment.bucket.start_us, level, base_us, ladder);
            windows.entry(window).or_default().push(*segment);
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulate;

    const DAY: i64 = 86_400_000_000;
    const LADDER: [u32; 5] = [1, 7, 28, 84, 336];

    /// One segment of `rows` for each base window, oldest first.
    fn days(base_us: i64, days: std::ops::Range<u64>, rows: u32) -> Vec<Candidate> {
        let segment = |day: u64| Candidate {
            file_number: day + 1,
            bucket: bucket_of(i64::try_from(day).unwrap() * base_us, 0, base_us, &LADDER),
            rows,
            dead_rows: 0,
            bytes: u64::from(rows) * 200,
            loose_rows: 0,
            dropped_rows: 0,
        };
        days.map(segment).collect()
    }

    /// Adds segments one by one, each time until nothing pays; gives what is left, the most
    /// segments there were, and the rows rewritten.
    fn live(added: Vec<Candidate>, base_us: i64) -> (Vec<Candidate>, usize, u64) {
        let (mut segments, mut most, mut rewritten) = (Vec::new(), 0, 0);
        for segment in added {
            let now_us = segment.bucket.start_us;
            let number = segments.iter().map(|s: &Candidate| s.file_number).max();
            segments.push(Candidate {
                file_number: number.unwrap_or(0) + 1,
                ..segment
            });
            let (idle, rows) = simulate(segments, base_us, &LADDER, now_us);
            (segments, rewritten) = (idle, rewritten + rows);
            most = most.max(segments.len());
        }
        (segments, most, rewritten)
    }

    #[test]
    fn ten_years_of_days_leave_few_segments_and_rewrite_each_row_a_few_times() {
        let days = days(DAY, 0..3650, 300);
        let (left, most, rewritten) = live(days, DAY);
        assert_eq!(
            left.iter().map(|s| u64::from(s.rows)).sum::<u64>(),
            3650 * 300
        );
        assert!(
            left.len() <= 35 && most <= 40,
            "{} left, {most} at most",
            left.len()
        );
        assert!(rewritten <= 3650 * 300 * 5, "{rewritten} rows rewritten");
    }

    #[test]
    fn three_years_of_months_leave_few_segments() {
        let (left, most, rewritten) = live(days(30 * DAY, 617..654, 27_000), 30 * DAY);
        assert!(
            left.len() <= 8 && most <= 12,
            "{} left, {most} at most",
            left.len()
        );
        assert!(rewritten <= 37 * 27_000 * 2, "{rewritten} rows rewritten");
    }

    #[test]
    fn months_of_ever_more_rows_leave_few_segments() {
        let mut months = days(30 * DAY, 617..654, 0);
        for (rows, month) in (2..).zip(&mut months) {
            month.rows = rows * 7_000;
        }
        let all: u64 = months.iter().map(|month| u64::from(month.rows)).sum();
        let (left, most, rewritten) = live(months, 30 * DAY);
        assert!(
            left.len() <= 14 && most <= 16,
            "{} left, {most} at most",
            left.len()
        );
        assert!(rewritten <= all * 2, "{rewritten} rows of {all} rewritten");
    }

    #[test]
    fn a_window_that_may_grow_stays_as_it_is() {
        let week = days(DAY, 7..13, 5_000);
        assert_eq!(pick_climb(&week, 12 * DAY, DAY, &LADDER), None);
        let next = days(DAY, 7..15, 5_000);
        let pick = pick_climb(&next, 14 * DAY, DAY, &LADDER).expect("the first week is over");
        assert_eq!(pick.inputs, [8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(pick.bucket, bucket_of(7 * DAY, 1, DAY, &LADDER));
        assert_eq!(pick.reason, Reason::PassedWindow { segments: 7 });
    }

    #[test]
    fn rows_of_the_future_let_no_time_pass() {
        let live_beside = |far: Option<u64>| {
            let (mut segments, mut rewritten) = (Vec::new(), 0);
            segments.extend(far.map(|far| days(DAY, far..far + 1, 5_000)[0]));
            for (number, day) in (10_000..).zip(days(DAY, 0..300, 5_000)) {
                let now_us = day.bucket.start_us;
                segments.push(Candidate {
                    file_number: 1000 * number,
                    ..day
                });
                let (idle, rows) = simulate(segments, DAY, &LADDER, now_us);
                (segments, rewritten) = (idle, rewritten + rows);
            }
            (segments.len(), rewritten)
        };
        let (alone, beside) = (live_beside(None), live_beside(Some(40_000)));
        assert_eq!((alone.0 + 1, alone.1), beside);
    }

    #[test]
    fn a_climb_stays_below_its_limit() {
        let large = days(DAY, 0..8, 200_000);
        let pick = |segments: &[Candidate]| pick_climb(segments, 7 * DAY, DAY, &LADDER);
        let oldest = pick(&large).expect("the week has 1.4 million rows");
        assert_eq!(
            oldest.inputs,
            [1, 2, 3, 4, 5],
            "as many of it as may be one"
        );
        let huge = days(DAY, 0..8, 300_000);
        assert_eq!(pick(&huge), None, "three are not worth it");
        let others = days(DAY, 0..8, 140_000);
        assert!(pick(&others).is_some());
        let wide = others.into_iter().map(|segment| Candidate {
            bytes: CLIMB_BYTES_MAX / 3,
            loose_rows: 0,
            dropped_rows: 0,
            ..segment
        });
        assert_eq!(pick(&wide.collect::<Vec<_>>()), None, "more than its bytes");
    }

    #[test]
    fn late_rows_wait_for_company() {
        let mut segments = days(DAY, 0..8, 10_000);
        let pick = |segments: &[Candidate]| pick_climb(segments, 7 * DAY, DAY, &LADDER);
        let week = pick(&segments).expect("a week").bucket;
        segments.drain(..7);
        segments.push(Candidate {
            file_number: 100,
            bucket: week,
            rows: 70_000,
            ..segments[0]
        });
        segments.extend(days(DAY, 0..3, 500));
        assert_eq!(pick(&segments), None);
    }
}
