//! How large can a score be, from what is known before any posting is read?
//!
//! Bounds use the scorer's own function on stored (frequency, length) pairs, so they need no
//! slack: a pair with at least a posting's frequency and at most its length scores at least
//! as much, under whatever statistics. (Block-max Pareto pairs: Mallia et al. 2017, "Faster
//! BlockMax WAND with Variable-sized Blocks", section 2, kept unscored.)

use chronolith_segments::{CLASS_LENGTHS, LENGTH_CLASSES, Needs, TermBounds};

use super::table::narrow;
use crate::query::analyse::{QueryTerm, QueryTerms};
use crate::query::bm25::TermScorer;
use crate::query::lookup::Found;

/// No posting under these bounds contributes more.
pub(super) fn term_bound(scorer: TermScorer, bounds: &TermBounds) -> i64 {
    let scores = bounds.pairs().iter();
    scores
        .map(|(freq, length)| scorer.score(*freq, *length))
        .max()
        .unwrap_or(0)
}

/// What no row of the view has more than, by the bounds of its lists.
pub(super) fn sum_bound(query: &QueryTerms, found: &Found<'_>) -> i64 {
    sum_of(query, |term| {
        let entry = found.entry(term.place)?;
        Some(term_bound(term.scorer, &entry.bounds))
    })
}

/// As [`sum_bound`], but of words by their formula alone. Impacts above their bounds are found
/// when they are read.
pub(super) fn most(query: &QueryTerms, found: &Found<'_>) -> i64 {
    sum_of(query, |term| {
        let entry = found.entry(term.place)?;
        Some(match term.scorer.is_linear() {
            true => term_bound(term.scorer, &entry.bounds),
            false => term.scorer.ceiling(),
        })
    })
}

fn sum_of(query: &QueryTerms, bound: impl Fn(&QueryTerm) -> Option<i64>) -> i64 {
    let bound = &bound;
    let groups = query.groups.iter();
    let best = groups.filter_map(|group| group.members.iter().filter_map(bound).max());
    query.terms.iter().filter_map(bound).sum::<i64>() + best.sum::<i64>()
}

/// What a row can gain at most, by the class of its length: most bounds come from the shortest
/// rows, and most rows are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByLength([i32; LENGTH_CLASSES]);

impl ByLength {
    pub(super) const NOTHING: Self = Self([0; LENGTH_CLASSES]);

    /// That of a row whose byte of [`chronolith_segments::Partition::short_lengths`] this is.
    #[cfg(test)]
    fn of(&self, length: u8) -> i32 {
        self.0[usize::from(length / CLASS_LENGTHS).min(LENGTH_CLASSES - 1)]
    }

    /// What is gained of both.
    pub(super) fn plus(self, other: &Self) -> Self {
        Self(std::array::from_fn(|class| self.0[class] + other.0[class]))
    }

    /// What is gained of the better one.
    pub(super) fn or(self, other: &Self) -> Self {
        Self(std::array::from_fn(|class| {
            self.0[class].max(other.0[class])
        }))
    }
}

/// What each row must have already to reach `floor` with the gain of its length. `lengths` has
/// a byte a row, or none at all.
pub(super) fn needs<'a>(floor: i64, gain: &ByLength, lengths: &'a [u8]) -> Needs<'a> {
    let need = |gain: i32| {
        floor
            .saturating_sub(i64::from(gain))
            .max(i64::from(i32::MIN))
    };
    let of_class = |gain: i32| i32::try_from(need(gain)).unwrap_or(i32::MAX);
    Needs::new(gain.0.map(of_class), lengths)
}

/// The shortest length of each class, with what it adds under the fraction.
pub(super) struct LengthClasses([(u32, f64); LENGTH_CLASSES]);

impl LengthClasses {
    /// Those of one population, which all words of a query share.
    pub(super) fn new(scorer: TermScorer) -> Self {
        let mut shortest = (0..).step_by(usize::from(CLASS_LENGTHS));
        Self(std::array::from_fn(|_| {
            let length = shortest.next().unwrap_or(0);
            (length, scorer.norm(length))
        }))
    }

    /// No posting under these bounds contributes more to a row of a length. The sum of all
    /// bounds was checked to fit 31 bits.
    pub(super) fn bounds(&self, scorer: TermScorer, bounds: &TermBounds) -> ByLength {
        let longest = |class: usize| match self.0.get(class + 1) {
            Some((next, _)) => next - 1,
            None => u32::MAX,
        };
        ByLength(std::array::from_fn(|class| {
            let (shortest, norm) = self.0[class];
            let pairs = bounds.pairs().iter();
            let pairs = pairs.filter(|(_, length)| *length <= longest(class));
            let scores = pairs.map(|(freq, length)| match *length <= shortest {
                true => scorer.score_normed(*freq, norm),
                false => scorer.score(*freq, *length),
            });
            narrow(scores.max().unwrap_or(0))
        }))
    }
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

/// As [`suffix_sums`], by the class of a row's length.
pub(super) fn suffix_gains(gains: impl DoubleEndedIterator<Item = ByLength>) -> Vec<ByLength> {
    let mut sums = vec![ByLength::NOTHING];
    let mut sum = ByLength::NOTHING;
    for gain in gains.rev() {
        sum = sum.plus(&gain);
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
    use crate::query::bm25::idf;

    #[test]
    fn no_posting_gains_more_than_its_length_lets_it() {
        let scorer = TermScorer::new(idf(1000, 10), 1.5, 20.0);
        let classes = LengthClasses::new(scorer);
        let postings = [(1, 3), (1, 40), (2, 9), (3, 30), (4, 61), (7, 300)];
        let mut bounds = TermBounds::NONE;
        for (freq, length) in postings {
            bounds.add(freq, length);
        }
        let gains = classes.bounds(scorer, &bounds);
        for (freq, length) in postings {
            let byte = u8::try_from(length).unwrap_or(u8::MAX);
            let score = scorer.score(freq, length);
            assert!(score <= i64::from(gains.of(byte)), "{freq} {length}");
            assert!(i64::from(gains.of(byte)) <= term_bound(scorer, &bounds));
        }
        assert_eq!(
            gains.of(2),
            narrow(scorer.score(1, 3)),
            "nothing is shorter"
        );
        assert_eq!(gains.of(8), narrow(scorer.score(2, 9)));
        let both = suffix_gains([gains, gains].into_iter());
        assert_eq!(both.len(), 3);
        assert_eq!(both[0].of(8), 2 * gains.of(8));
        let lengths = [8, 2, 255];
        let needed = needs(10, &both[0], &lengths);
        let of = |row: u32| 10 - 2 * gains.of(lengths[row as usize]);
        assert_eq!([0, 1, 2].map(|row| needed.of(row)), [0, 1, 2].map(of));
        assert_eq!(needed.least(), of(0));
        assert_eq!(needs(10, &both[0], &[]).of(2), of(0));
        assert_eq!(both[2], ByLength::NOTHING);
    }

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
