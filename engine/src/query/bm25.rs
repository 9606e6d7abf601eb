//! What is one term worth in one row: BM25 as integers, so that sums never depend on order.
//!
//! score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len / avglen)),
//! idf = ln(1 + (N - df + 0.5) / (df + 0.5)) (Robertson and Zaragoza 2009, with the idf that
//! stays above 0). A contribution is round(idf * tfnorm * weight * 2^20), from f64 operations
//! that are each rounded, never fused; `ln` comes from the `libm` crate so that it is the same
//! everywhere.
//!
//! A token with a weight of its own in the record (see [`Record::impacts`]) is worth
//! round(query weight * record weight * 2^20): no idf, no length.
//!
//! [`Record::impacts`]: chronolith_segments::Record::impacts

use chronolith_segments::{IMPACT_FREQ_MAX, IMPACT_STEP};

/// Saturation of the term frequency.
pub(crate) const K1: f64 = 1.2;
/// How much length counts.
pub(crate) const B: f64 = 0.75;
/// Scores are integers of this many to one.
pub(crate) const SCALE: f64 = (1u64 << 20) as f64;

/// The rows that statistics are taken from: live rows of the requested scopes, before filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Statistics {
    /// Live rows.
    pub rows: u64,
    /// Sum of their lengths in counted tokens.
    pub length_sum: u64,
}

impl Statistics {
    /// Mean length; 1 where there is nothing to average, so that nothing divides by zero.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn average_length(self) -> f64 {
        if self.rows == 0 || self.length_sum == 0 {
            1.0
        } else {
            self.length_sum as f64 / self.rows as f64
        }
    }
}

/// idf of a term that occurs in `df` of `rows` live rows.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(crate) fn idf(rows: u64, df: u64) -> f64 {
    debug_assert!(df <= rows);
    let (n, df) = (rows as f64, df as f64);
    libm::log(1.0 + (n - df + 0.5) / (df + 0.5))
}

/// One term's scorer under one population.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermScorer {
    /// idf * weight * 2^20; of an impact weight * step * 2^20.
    scale: f64,
    /// True of an impact: a contribution is the scale times the frequency.
    is_linear: bool,
    /// Mean length of the population.
    average_length: f64,
}

impl TermScorer {
    /// A scorer for a term of this idf and query weight.
    pub(crate) fn new(idf: f64, weight: f64, average_length: f64) -> Self {
        Self {
            scale: idf * weight * SCALE,
            is_linear: false,
            average_length,
        }
    }

    /// A scorer for an impact's token of this query weight.
    pub(crate) fn of_impact(weight: f64) -> Self {
        Self {
            scale: weight * IMPACT_STEP * SCALE,
            is_linear: true,
            average_length: 1.0,
        }
    }

    /// True of an impact.
    pub(crate) fn is_linear(self) -> bool {
        self.is_linear
    }

    /// Mean length of the population.
    pub(crate) fn average_length(self) -> f64 {
        self.average_length
    }

    /// The contribution of `freq` occurrences in a row of `length` tokens. Rises with `freq`
    /// and falls with `length`, rounding included: each step of it does.
    pub(crate) fn score(self, freq: u32, length: u32) -> i64 {
        self.score_normed(freq, self.norm(length))
    }

    /// What a row's length adds to the frequency under the fraction.
    pub(crate) fn norm(self, length: u32) -> f64 {
        K1 * (1.0 - B + B * f64::from(length) / self.average_length)
    }

    /// As [`TermScorer::score`], with the length's part computed before.
    pub(crate) fn score_normed(self, freq: u32, norm: f64) -> i64 {
        if self.is_linear {
            // More is in no record; what bounds a memtable's list is clamped to the same.
            return round(self.scale * f64::from(freq.min(IMPACT_FREQ_MAX)));
        }
        let tf = f64::from(freq);
        round(self.scale * (tf * (K1 + 1.0) / (tf + norm)))
    }

    /// No posting contributes more.
    pub(crate) fn ceiling(self) -> i64 {
        self.score(u32::MAX, 0)
    }
}

/// The nearest whole number, halves away from 0, of a number from 0 to 2^52: what `f64::round`
/// gives, without the call that it is where the processor's own rounding may not be used.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "idf < 45, tfnorm < 2.2, weight <= 100 * 2^16: far below 2^52"
)]
fn round(value: f64) -> i64 {
    let whole = value as i64;
    whole + i64::from(value - whole as f64 >= 0.5)
}

/// The score as it is shown.
#[expect(clippy::cast_precision_loss, reason = "sums stay below 2^53")]
pub(crate) fn shown(sum: i64) -> f64 {
    sum as f64 / SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_value_is_reproduced() {
        // N = 3, df = 1, tf = 1, length = mean: tfnorm is exactly 1.
        let scorer = TermScorer::new(idf(3, 1), 1.0, 4.0);
        let expected = (1.0 + 2.5 / 1.5f64).ln();
        assert!((shown(scorer.score(1, 4)) - expected).abs() < 1e-6);
    }

    #[test]
    fn a_contribution_rises_with_frequency_and_falls_with_length() {
        let scorer = TermScorer::new(idf(1000, 10), 1.0, 20.0);
        assert!(scorer.score(2, 20) > scorer.score(1, 20));
        assert!(scorer.score(1, 21) < scorer.score(1, 20));
        assert!(scorer.score(u32::MAX, 1) > 0);
    }

    #[test]
    fn an_impact_is_the_product_of_both_weights() {
        let scorer = TermScorer::of_impact(2.5);
        assert_eq!(shown(scorer.score(3 * 256, 17)), 7.5);
        assert_eq!(scorer.score(3, 1), scorer.score(3, 1000));
        assert_eq!(scorer.ceiling(), scorer.score(IMPACT_FREQ_MAX, 5));
        assert!(scorer.score(2, 9) > scorer.score(1, 9));
    }

    #[test]
    fn rounding_is_that_of_f64() {
        for value in [
            0.0,
            0.5,
            0.499_999_999_999_999_94,
            1.5,
            2.5,
            1e9 + 0.5,
            4e15 + 0.5,
        ] {
            assert_eq!(shown(round(value)) * SCALE, value.round(), "{value}");
        }
    }

    #[test]
    fn a_term_in_every_row_still_counts() {
        assert!(idf(5, 5) > 0.0);
    }
}
