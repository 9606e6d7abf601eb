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

/// Sums of the bounds of the last lists: place `n` holds that of all but the first `n`, which
/// is what a row can gain from those at most.
pub(super) fn suffix_sums(bounds: impl DoubleEndedIterator<Item = i64>) -> Vec<i64> {
    let mut sums = vec![0];
    let mut sum = 0;
    for bound in bounds.rev() {
        sum += bound;
        sums.push(sum);
    }
    sums.reverse();
    sums
}

/// How many of the first lists hold all rows that can reach `floor`: those after them cannot,
/// together, so a row that only they hold is out, and they need not be read, only asked
/// (MaxScore: Turtle and Flood 1995, section 4.2). `rest` are the sums of [`suffix_sums`].
pub(super) fn essential(rest: &[i64], floor: i64) -> usize {
    rest.partition_point(|sum| *sum >= floor)
}

/// A list that need not be read is, if it has no more postings than those that are read anyway,
/// or no more than this: to decode it is most of the work of asking it for the rows that are
/// left. (Measured on short records, where bounds lie close together and many rows are left.)
const POSTINGS_CHEAP: u64 = 256;

/// How many lists to read of which the first `essential` must be. `counts` are the postings of
/// each.
pub(super) fn worth_reading(counts: &[u64], essential: usize) -> usize {
    let (first, others) = counts.split_at(essential);
    let mut postings: u64 = first.iter().sum();
    let is_cheap = |count: &&u64| {
        let is_cheap = **count <= postings.max(POSTINGS_CHEAP);
        postings += **count;
        is_cheap
    };
    essential + others.iter().take_while(is_cheap).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_essential_until_the_rest_stays_below_the_floor() {
        let rest = suffix_sums([10, 3, 2].into_iter());
        assert_eq!(rest, [15, 5, 2, 0]);
        let expected = [(1, 3), (2, 3), (3, 2), (5, 2), (6, 1), (15, 1), (16, 0)];
        for (floor, lists) in expected {
            assert_eq!(essential(&rest, floor), lists, "floor {floor}");
        }
    }

    #[test]
    fn short_lists_are_read_though_they_need_not_be() {
        assert_eq!(worth_reading(&[100, 3_000, 5_000], 1), 1);
        assert_eq!(
            worth_reading(&[100, 200, 5_000], 1),
            2,
            "the second is cheap"
        );
        assert_eq!(worth_reading(&[900, 800, 1_000], 1), 3);
        assert_eq!(worth_reading(&[900, 800, 1_000], 3), 3);
    }
}
