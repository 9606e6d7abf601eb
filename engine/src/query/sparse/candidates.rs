//! Which rows of a window could still be among the best, and what do they have so far?

use chronolith_segments::{Needs, SegmentError};

/// Rows that are brought into order first; each later part is twice as large.
const FIRST: usize = 64;

/// Rows with their sums, in one order.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) rows: Vec<u32>,
    pub(super) sums: Vec<i32>,
    /// The rows as they are put in order: see [`pack`].
    keys: Vec<u64>,
}

impl Candidates {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.sums.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Starts with `rows`, which have nothing yet.
    pub(super) fn start_with(&mut self, rows: Vec<u32>) {
        self.sums.clear();
        self.sums.resize(rows.len(), 0);
        self.rows = rows;
    }

    /// Takes the rows with enough from all sums of a window that begins at `start`, ascending,
    /// and leaves the sums zero.
    pub(super) fn scan(&mut self, start: u32, sums: &mut [i32], needs: &Needs<'_>) {
        self.clear();
        let least = needs.least().max(1);
        needs.take_all(start, sums, least, (&mut self.rows, &mut self.sums));
    }

    /// As [`Candidates::scan`], from the sums of the rows that were `touched`, in their order.
    /// A row that was touched needs something, unless it `is_driven`: touched once, and taken
    /// whatever it got.
    pub(super) fn gather(
        &mut self,
        start: u32,
        touched: &[u32],
        sums: &mut [i32],
        (needs, is_driven): (&Needs<'_>, bool),
    ) {
        self.clear();
        let least = match is_driven {
            true => needs.least(),
            false => needs.least().max(1),
        };
        let found = (&mut self.rows, &mut self.sums);
        needs.take_touched(touched, start, sums, least, found);
    }

    /// Puts the rows in ascending order.
    pub(super) fn sort_by_row(&mut self) {
        if self.rows.is_sorted() {
            return;
        }
        self.keys.clear();
        let pairs = self.rows.iter().zip(&self.sums);
        self.keys.extend(pairs.map(|(row, sum)| pack(*row, *sum)));
        // Each list's rows ascend: the stable sort merges such stretches.
        self.keys.sort();
        for ((row, sum), key) in self.rows.iter_mut().zip(&mut self.sums).zip(&self.keys) {
            (*row, *sum) = unpack(*key);
        }
    }

    /// Leaves out the rows that have too little.
    pub(super) fn keep(&mut self, needs: &Needs<'_>) {
        needs.keep(&mut self.rows, &mut self.sums);
    }

    /// Leaves out the rows that do not pass.
    pub(super) fn retain(
        &mut self,
        mut passes: impl FnMut(u32) -> Result<bool, SegmentError>,
    ) -> Result<(), SegmentError> {
        let mut len = 0;
        for at in 0..self.rows.len() {
            let (row, sum) = (self.rows[at], self.sums[at]);
            (self.rows[len], self.sums[len]) = (row, sum);
            len += usize::from(passes(row)?);
        }
        self.rows.truncate(len);
        self.sums.truncate(len);
        Ok(())
    }

    /// Calls `visit` with the rows by descending sum, older rows first among equal sums, until
    /// one is below what `visit` gave back last: what rows need from there on.
    pub(super) fn by_sum(
        &mut self,
        mut need: i64,
        mut visit: impl FnMut(u32, i32) -> Result<i64, SegmentError>,
    ) -> Result<(), SegmentError> {
        let pairs = self.rows.iter().zip(&self.sums);
        let pairs = pairs.filter(|(_, sum)| i64::from(**sum) >= need);
        self.keys.clear();
        self.keys
            .extend(pairs.map(|(row, sum)| pack_by_sum(*row, *sum)));
        let (mut from, mut part) = (0, FIRST);
        while from < self.keys.len() {
            let left = &mut self.keys[from..];
            let upto = part.min(left.len());
            if upto < left.len() {
                left.select_nth_unstable(upto);
            }
            left[..upto].sort_unstable();
            for key in &left[..upto] {
                let (row, sum) = unpack_by_sum(*key);
                if i64::from(sum) < need {
                    return Ok(());
                }
                need = visit(row, sum)?;
            }
            from += upto;
            part *= 2;
        }
        Ok(())
    }
}

/// A row with its sum, which is not negative, as a number that rises with the row.
fn pack(row: u32, sum: i32) -> u64 {
    u64::from(row) << 32 | u64::from(sum.cast_unsigned())
}

fn unpack(key: u64) -> (u32, i32) {
    let [row, sum] = halves(key);
    (row, sum.cast_signed())
}

/// A row with its sum as a number that falls with the sum, and for one sum rises with the row.
fn pack_by_sum(row: u32, sum: i32) -> u64 {
    u64::from(!sum.cast_unsigned()) << 32 | u64::from(row)
}

fn unpack_by_sum(key: u64) -> (u32, i32) {
    let [sum, row] = halves(key);
    (row, (!sum).cast_signed())
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are cut out")]
fn halves(key: u64) -> [u32; 2] {
    [(key >> 32) as u32, key as u32]
}

#[cfg(test)]
mod tests {
    use chronolith_segments::LENGTH_CLASSES;

    use super::*;

    /// Every row needs the same.
    fn all(need: i32) -> Needs<'static> {
        Needs::new([need; LENGTH_CLASSES], &[])
    }

    fn pairs(candidates: &Candidates) -> Vec<(u32, i32)> {
        let rows = candidates.rows.iter().copied();
        rows.zip(candidates.sums.iter().copied()).collect()
    }

    #[test]
    fn both_ways_of_taking_give_the_rows_that_have_enough() {
        let sums: Vec<i32> = (0..100).map(|place| place * 7 % 50).collect();
        let mut expected: Vec<(u32, i32)> = (1000..).zip(sums.clone()).collect();
        expected.retain(|(_, sum)| *sum >= 20);
        let (mut scanned, mut gathered) = (Candidates::default(), Candidates::default());
        let mut left = sums.clone();
        let needs = all(20);
        scanned.scan(1000, &mut left, &needs);
        assert_eq!(pairs(&scanned), expected);
        assert!(left.iter().all(|sum| *sum == 0));
        // Twice touched, and not in order.
        let touched: Vec<u32> = (1000..1100).rev().chain(1000..1100).collect();
        let mut left = sums;
        gathered.gather(1000, &touched, &mut left, (&needs, false));
        gathered.sort_by_row();
        assert_eq!(pairs(&gathered), expected);
        assert!(left.iter().all(|sum| *sum == 0));
        gathered.keep(&all(45));
        expected.retain(|(_, sum)| *sum >= 45);
        assert_eq!(pairs(&gathered), expected);
    }

    #[test]
    fn rows_come_by_descending_sum_until_one_has_too_little() {
        let mut candidates = Candidates::default();
        candidates.start_with((0..1000).collect());
        for (row, sum) in candidates.rows.iter().zip(&mut candidates.sums) {
            *sum = i32::try_from(row * 37 % 500).expect("small");
        }
        let mut expected = pairs(&candidates);
        expected.sort_by_key(|(row, sum)| (-*sum, *row));
        let mut seen = Vec::new();
        let visit = |row, sum| {
            seen.push((row, sum));
            Ok(if seen.len() < 300 { 1 } else { 300 })
        };
        candidates.by_sum(1, visit).unwrap();
        expected.retain(|(_, sum)| *sum >= 300);
        assert_eq!(seen, expected);
    }
}
