//! Which vectors have the best estimates, over all partitions that were scanned?

use crate::kernels::vectors::{MASK_LANES, at_least};

/// A row with its estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// See [`super::CodeQuery`]; never NaN.
    pub estimate: f32,
    /// Number of the partition, the caller's.
    pub source: u32,
    /// Row of the partition.
    pub row: u32,
}

/// Keeps the rows whose estimate is at least that of the `wanted`-th best: with equal ones at
/// the edge all of them, so that the set does not depend on the order of the offers and with
/// it on the layout.
#[derive(Debug)]
pub struct Nearest {
    wanted: usize,
    /// Estimates below it are out for good.
    threshold: f32,
    kept: Vec<Estimated>,
    /// Length of `kept` at which those below the `wanted`-th are dropped.
    full: usize,
}

impl Nearest {
    /// For the `wanted` best rows, at least one.
    pub fn new(wanted: usize) -> Self {
        let wanted = wanted.max(1);
        Self {
            wanted,
            threshold: f32::NEG_INFINITY,
            kept: Vec::new(),
            full: wanted.saturating_mul(2).saturating_add(64),
        }
    }

    /// What an estimate must reach to be kept, so far. Never falls.
    #[inline]
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Offers a row. NaN is out.
    #[inline]
    pub fn offer(&mut self, offered: Estimated) {
        if offered.estimate >= self.threshold {
            self.kept.push(offered);
            if self.kept.len() >= self.full {
                self.shrink();
            }
        }
    }

    /// Offers the rows of a scanned stretch: `estimates[i]` is that of the row that `row_of(i)`
    /// gives, or of none where it is `None`; it is asked where the estimate would be kept.
    ///
    /// # Errors
    /// Those of `row_of`.
    pub fn offer_all<E>(
        &mut self,
        source: u32,
        estimates: &[f32],
        mut row_of: impl FnMut(usize) -> Result<Option<u32>, E>,
    ) -> Result<(), E> {
        for (chunk, lanes) in estimates.chunks(MASK_LANES).enumerate() {
            let mut left = at_least(lanes, self.threshold);
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                left &= left - 1;
                // The threshold may have risen since the mask was made.
                let estimate = lanes[lane];
                if estimate < self.threshold {
                    continue;
                }
                if let Some(row) = row_of(chunk * MASK_LANES + lane)? {
                    self.offer(Estimated {
                        estimate,
                        source,
                        row,
                    });
                }
            }
        }
        Ok(())
    }

    /// Raises the threshold to what estimates, all of which will be offered and pass, must
    /// reach: at the start of a scan, where else most rows of the first stretch would be kept
    /// for a while.
    pub fn expect(&mut self, estimates: &[f32]) {
        if self.threshold > f32::NEG_INFINITY || estimates.len() / 4 < self.wanted {
            return;
        }
        let mut ordered: Vec<f32> = estimates.iter().copied().filter(|x| !x.is_nan()).collect();
        if ordered.len() < self.wanted {
            return;
        }
        let descending = |a: &f32, b: &f32| b.total_cmp(a);
        let (_, edge, _) = ordered.select_nth_unstable_by(self.wanted - 1, descending);
        self.threshold = *edge;
    }

    /// The kept rows by source and row, ascending.
    pub fn into_rows(mut self) -> Vec<Estimated> {
        self.shrink();
        let place = |one: &Estimated| (one.source, one.row);
        self.kept.sort_unstable_by_key(place);
        self.kept
    }

    fn shrink(&mut self) {
        if self.kept.len() <= self.wanted {
            return;
        }
        let descending = |a: &Estimated, b: &Estimated| b.estimate.total_cmp(&a.estimate);
        let at = self.wanted - 1;
        let (_, edge, _) = self.kept.select_nth_unstable_by(at, descending);
        let threshold = edge.estimate;
        // 0 and -0 are equal here as they are in `offer`.
        self.kept.retain(|one| one.estimate >= threshold);
        self.threshold = threshold;
        // Many equal ones may stay: the next look comes when as many more have come.
        self.full = self.kept.len() + self.wanted + 64;
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have few rows")]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The definition: sorted, cut, ties kept.
    fn naive(estimates: &[f32], wanted: usize) -> Vec<u32> {
        let mut sorted: Vec<f32> = estimates.iter().copied().filter(|x| !x.is_nan()).collect();
        sorted.sort_by(|a, b| b.partial_cmp(a).expect("no NaN"));
        let edge = sorted.get(wanted - 1).copied().unwrap_or(f32::NEG_INFINITY);
        let rows = (0..).zip(estimates).filter(|(_, x)| **x >= edge);
        rows.map(|(row, _)| row).collect()
    }

    proptest! {
        #[test]
        fn the_set_is_that_of_the_definition(
            estimates in vec(prop_oneof![
                6 => (-20_i8..20).prop_map(f32::from),
                2 => -20.0_f32..20.0,
                1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(-0.0_f32), Just(0.0)],
            ], 0..900),
            wanted in 1_usize..40,
            cut in 1_usize..200,
        ) {
            let mut nearest = Nearest::new(wanted);
            for (number, part) in estimates.chunks(cut).enumerate() {
                let first = (number * cut) as u32;
                let row = |at: usize| Ok::<_, ()>(Some(first + at as u32));
                nearest.expect(part);
                nearest.offer_all(3, part, row).expect("no error");
            }
            let found: Vec<u32> = nearest.into_rows().iter().map(|one| one.row).collect();
            prop_assert_eq!(found, naive(&estimates, wanted));
        }
    }

    #[test]
    fn rows_that_do_not_pass_take_no_place() {
        let mut nearest = Nearest::new(2);
        let even = |at: usize| Ok::<_, ()>(at.is_multiple_of(2).then_some(at as u32));
        nearest
            .offer_all(0, &[1.0, 9.0, 2.0, 8.0, 3.0], even)
            .expect("no error");
        let rows: Vec<u32> = nearest.into_rows().iter().map(|one| one.row).collect();
        assert_eq!(rows, [2, 4]);
    }
}
