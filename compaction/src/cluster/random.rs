//! How does a sample come about, the same one every time?

/// Numbers that look random and follow from a seed: splitmix64.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        // Multiply-shift: of 64 random bits the bias is nothing.
        let wide = u128::from(self.next()) * u128::from(end);
        u32::try_from(wide >> 64).expect("below a number of 32 bits")
    }

    /// About normal, mean 0 and deviation 1: the sum of four even ones.
    pub(super) fn normal(&mut self) -> f32 {
        let bits = self.next();
        let quarter = |shift: u32| {
            let sixteen = u16::try_from(bits >> shift & 0xffff).expect("sixteen bits");
            f32::from(sixteen) / 65_535.0 - 0.5
        };
        // Each has variance 1/12.
        (quarter(0) + quarter(16) + quarter(32) + quarter(48)) * 3.0_f32.sqrt()
    }

    /// `wanted` places of `count`, ascending, spread over all of them: one of each stretch.
    pub(super) fn spread(&mut self, count: u32, wanted: u32) -> Vec<u32> {
        let wanted = wanted.min(count);
        let start_of = |part: u32| {
            let start = u64::from(count) * u64::from(part) / u64::from(wanted);
            u32::try_from(start).expect("at most the count")
        };
        let parts = (0..wanted).map(|part| (start_of(part), start_of(part + 1)));
        parts
            .map(|(start, end)| start + self.below(end - start))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_sample_ascends_and_is_the_same_every_time() {
        for (count, wanted) in [(1, 1), (10, 3), (10, 10), (10, 11), (1000, 64)] {
            let spread = Random::new(7).spread(count, wanted);
            assert_eq!(spread, Random::new(7).spread(count, wanted));
            assert_eq!(spread.len(), wanted.min(count) as usize);
            assert!(spread.is_sorted_by(|a, b| a < b), "{spread:?}");
            assert!(spread.iter().all(|place| *place < count));
        }
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut random = Random::new(7);
        let numbers: Vec<f32> = (0..10_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f32>() / 10_000.0;
        let squares = numbers.iter().map(|x| x * x).sum::<f32>() / 10_000.0;
        assert!(mean.abs() < 0.05, "{mean}");
        assert!((squares - 1.0).abs() < 0.05, "{squares}");
    }
}
