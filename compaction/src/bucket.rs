//! Which window of event time does a row, or a segment, belong to?
//!
//! A ladder is a base width and multiples of it, each a multiple of the one before; windows
//! are aligned to the epoch, so a window lies inside exactly one of the next level. The level
//! above the last is all time.

use std::collections::BTreeMap;

/// A bucket of a flush has at least this many rows ...
pub const FLUSH_ROWS_MIN: usize = 4096;
/// ... or this many bytes of text, or is the widest one.
pub const FLUSH_BYTES_MIN: u64 = 1 << 20;

/// A half-open window of event time at one level of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// 0 is the base; the number of widths is "all time".
    pub level: u8,
    /// First instant inside, µs; `i64::MIN` for all time.
    pub start_us: i64,
    /// First instant outside, µs; `i64::MAX` for all time and for the last window.
    pub end_us: i64,
}

impl Bucket {
    /// True if the instant lies inside.
    pub fn contains(&self, time_us: i64) -> bool {
        self.start_us <= time_us && (time_us < self.end_us || self.end_us == i64::MAX)
    }

    /// True if `other` lies inside, as a window of this level or a lower one.
    pub fn covers(&self, other: &Self) -> bool {
        self.level >= other.level && self.start_us <= other.start_us && other.end_us <= self.end_us
    }
}

/// The window of `level` that holds `time_us`.
///
/// * `base_us`: width of level 0, above 0. `ladder`: widths in units of the base.
///
/// Windows at the ends of time are cut where µs end.
pub fn bucket_of(time_us: i64, level: usize, base_us: i64, ladder: &[u32]) -> Bucket {
    let level_byte = u8::try_from(level.min(ladder.len())).unwrap_or(u8::MAX);
    let Some(units) = ladder.get(level) else {
        return Bucket {
            level: level_byte,
            start_us: i64::MIN,
            end_us: i64::MAX,
        };
    };
    let width = i128::from(base_us) * i128::from(*units);
    let start = i128::from(time_us).div_euclid(width) * width;
    let clamp = |us: i128| i64::try_from(us).unwrap_or(if us < 0 { i64::MIN } else { i64::MAX });
    Bucket {
        level: level_byte,
        start_us: clamp(start),
        end_us: clamp(start + width),
    }
}

/// The lowest window that covers all of `buckets`; `None` for none.
pub fn smallest_bucket(buckets: &[Bucket], base_us: i64, ladder: &[u32]) -> Option<Bucket> {
    let first = buckets.first()?;
    let from = buckets
        .iter()
        .map(|bucket| usize::from(bucket.level))
        .max()?;
    (from..=ladder.len())
        .map(|level| bucket_of(first.start_us, level, base_us, ladder))
        .find(|wide| buckets.iter().all(|bucket| wide.covers(bucket)))
}

/// What a flush must know of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowAge {
    /// The row.
    pub row: u32,
    /// Its event time, µs.
    pub event_time_us: i64,
    /// About how many bytes it takes.
    pub bytes: u64,
}

/// Cuts rows into buckets: for each stretch of time the lowest level that gives at least
/// [`FLUSH_ROWS_MIN`] rows or [`FLUSH_BYTES_MIN`] bytes; stragglers go to the lowest window
/// that holds them all. So a flush over years of sparse data makes a few segments.
///
/// Returns buckets ascending with their rows ascending; every row exactly once.
pub fn choose_buckets(rows: &[RowAge], base_us: i64, ladder: &[u32]) -> Vec<(Bucket, Vec<u32>)> {
    let mut left: Vec<RowAge> = rows.to_vec();
    let mut chosen: BTreeMap<Bucket, Vec<u32>> = BTreeMap::new();
    for level in 0..ladder.len() {
        let mut windows: BTreeMap<Bucket, Vec<RowAge>> = BTreeMap::new();
        for row in left.drain(..) {
            windows
                .entry(bucket_of(row.event_time_us, level, base_us, ladder))
                .or_default()
                .push(row);
        }
        for (bucket, rows) in windows {
            let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
            if rows.len() >= FLUSH_ROWS_MIN || bytes >= FLUSH_BYTES_MIN {
                chosen.insert(bucket, rows.into_iter().map(|row| row.row).collect());
            } else {
                left.extend(rows);
            }
        }
    }
    let windows: Vec<Bucket> = left
        .iter()
        .map(|row| bucket_of(row.event_time_us, 0, base_us, ladder))
        .collect();
    if let Some(bucket) = smallest_bucket(&windows, base_us, ladder) {
        // The window may have been chosen above for rows of a denser stretch: one segment then.
        chosen
            .entry(bucket)
            .or_default()
            .extend(left.iter().map(|row| row.row));
    }
    for rows in chosen.values_mut() {
        rows.sort_unstable();
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;
    const LADDER: [u32; 3] = [1, 7, 28];

    fn row(row: u32, event_time_us: i64) -> RowAge {
        RowAge {
            row,
            event_time_us,
            bytes: 100,
        }
    }

    #[test]
    fn a_window_lies_inside_exactly_one_of_the_next_level() {
        for time in [i64::MIN, -DAY - 1, -1, 0, DAY, 100 * DAY + 7, i64::MAX] {
            let all: Vec<Bucket> = (0..=3)
                .map(|level| bucket_of(time, level, DAY, &LADDER))
                .collect();
            for pair in all.windows(2) {
                assert!(pair[1].covers(&pair[0]), "{time}: {pair:?}");
            }
            assert!(all.iter().all(|bucket| bucket.contains(time)), "{time}");
        }
    }

    #[test]
    fn sparse_years_make_one_segment() {
        let rows: Vec<RowAge> = (0..3000).map(|i| row(i, i64::from(i) * DAY)).collect();
        let chosen = choose_buckets(&rows, DAY, &LADDER);
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].0.level, 3);
        assert_eq!(chosen[0].1.len(), 3000);
    }

    #[test]
    fn a_dense_day_gets_its_own_and_every_row_goes_once() {
        let dense = (0..5000).map(|i| row(i, 10 * DAY + i64::from(i)));
        let sparse = (5000..5010).map(|i| row(i, i64::from(i) * DAY));
        let rows: Vec<RowAge> = dense.chain(sparse).collect();
        let chosen = choose_buckets(&rows, DAY, &LADDER);
        let levels: Vec<u8> = chosen.iter().map(|(bucket, _)| bucket.level).collect();
        assert_eq!(
            levels,
            [0, 2],
            "the stragglers span less than one window of 28 days"
        );
        let mut all: Vec<u32> = chosen.into_iter().flat_map(|(_, rows)| rows).collect();
        all.sort_unstable();
        assert_eq!(all, (0..5010).collect::<Vec<u32>>());
    }

    #[test]
    fn no_rows_make_no_bucket() {
        assert_eq!(choose_buckets(&[], DAY, &LADDER), []);
    }
}
