//! How large can a score be, from what is known before any posting is read?
//!
//! Bounds use the scorer's own function on stored (frequency, length) pairs, so they need no
//! slack: a pair with at least a posting's frequency and at most its length scores at least
//! as much, under whatever statistics. (Block-max Pareto pairs: Mallia et al. 2017, "Faster
//! BlockMax WAND with Variable-sized Blocks", section 2, kept unscored.)

use chronolith_segments::TermBounds;

use crate::query::bm25::TermScorer;

/// No posting under these bounds contributes more.
pub(super) fn term_bound(scorer: TermScorer, bounds: &TermBounds) -> i64 {
    let scores = bounds.pairs().iter();
    scores
        .map(|(freq, length)| scorer.score(*freq, *length))
        .max()
        .unwrap_or(0)
}

/// Sums of the bounds of the first lists: place `n` holds that of the first `n`, which is what
/// a row can gain from all of them.
pub(super) fn prefix_sums(bounds: impl Iterator<Item = u32>) -> Vec<i64> {
    let mut sums = vec![0];
    let mut sum = 0;
    for bound in bounds {
        sum += i64::from(bound);
        sums.push(sum);
    }
    sums
}

/// How many of the first lists cannot, together, lift a row to `floor`: a row that only they
/// hold is out, so they need not be read, only asked (MaxScore: Turtle and Flood 1995,
/// section 4.2). `sums` are those of [`prefix_sums`].
pub(super) fn optional(sums: &[i64], floor: i64) -> usize {
    sums.partition_point(|sum| *sum < floor).saturating_sub(1)
}

/// A list is asked instead of read only if it has more postings than this many times those
/// that are read anyway: about a third of their rows need an answer, and one costs as much as
/// reading thirty postings. (Measured on short records, where bounds lie close together.)
const ASK_SHARE: u64 = 10;

/// How many of the first `optional` lists it pays to ask rather than to read. `counts` are the
/// postings of each list; the ones with the larger bounds are read first, since they settle
/// most.
pub(super) fn worth_asking(counts: &[u64], optional: usize) -> usize {
    let read: u64 = counts[optional..].iter().sum();
    let asked = counts[..optional]
        .iter()
        .rposition(|count| *count > read.saturating_mul(ASK_SHARE));
    asked.map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_optional_while_their_sum_stays_below_the_floor() {
        let sums = prefix_sums([2, 3, 10].into_iter());
        assert_eq!(sums, [0, 2, 5, 15]);
        let expected = [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (15, 2), (16, 3)];
        for (floor, lists) in expected {
            assert_eq!(optional(&sums, floor), lists, "floor {floor}");
        }
    }

    #[test]
    fn only_long_lists_are_asked() {
        assert_eq!(worth_asking(&[5_000, 3_000, 100], 2), 2);
        assert_eq!(
            worth_asking(&[5_000, 900, 100], 2),
            1,
            "the second is cheap to read"
        );
        assert_eq!(worth_asking(&[900, 800, 100], 2), 0);
        assert_eq!(worth_asking(&[900, 800, 100], 0), 0);
    }
}
