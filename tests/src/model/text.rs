//! BM25 by the book: contributions are integers of 2^20 to one.

use super::Row;
use super::clauses::Clauses;

const SCALE: f64 = 1_048_576.0;

/// Term, weight in the query, df, idf.
pub(super) type Weighted = (Vec<u8>, f64, u64, f64);

/// What a query's terms are worth in a population.
pub(super) struct Weights {
    /// By term.
    pub(super) terms: Vec<Weighted>,
    /// What scores as its best: the clause's text and its terms.
    pub(super) groups: Vec<(String, Vec<Weighted>)>,
    mean: f64,
}

impl Weights {
    /// Counts df over the population, term by term.
    #[expect(clippy::cast_precision_loss, reason = "tests are small")]
    pub(super) fn new(population: &[&Row], clauses: &Clauses) -> Self {
        let n = population.len() as f64;
        let tokens: u64 = population.iter().map(|row| u64::from(row.length)).sum();
        let mean = if tokens == 0 { 1.0 } else { tokens as f64 / n };
        let weigh = |term: &Vec<u8>, weight: f64| {
            let holding = population.iter().filter(|row| row.terms.contains_key(term));
            let df = holding.count();
            let idf = libm::log(1.0 + (n - df as f64 + 0.5) / (df as f64 + 0.5));
            let idf = if term[0] == 0xff { 1.0 } else { idf };
            (term.clone(), weight, df as u64, idf)
        };
        let terms = clauses.scored.iter();
        let groups = clauses.groups.iter().map(|(text, weight, members)| {
            let members = members.iter().map(|term| weigh(term, *weight));
            (text.clone(), members.collect())
        });
        Self {
            terms: terms.map(|(term, weight)| weigh(term, *weight)).collect(),
            groups: groups.collect(),
            mean,
        }
    }

    /// One term's contribution, as an integer.
    #[expect(clippy::cast_possible_truncation, reason = "tests are small")]
    pub(super) fn part(&self, (term, weight, _, idf): &Weighted, row: &Row) -> i64 {
        let Some(freq) = row.terms.get(term) else {
            return 0;
        };
        let (tf, length) = (f64::from(*freq), f64::from(row.length));
        if term[0] == 0xff {
            return (weight * (tf / 256.0) * SCALE).round() as i64;
        }
        let norm = 1.2 * (1.0 - 0.75 + 0.75 * length / self.mean);
        let tfnorm = tf * (1.2 + 1.0) / (tf + norm);
        (idf * weight * SCALE * tfnorm).round() as i64
    }

    /// The row's score, or `None` where it holds no term.
    pub(super) fn score(&self, row: &Row) -> Option<f64> {
        let terms = self.terms.iter().map(|term| self.part(term, row));
        let best = self.groups.iter().map(|(_, members)| {
            let parts = members.iter().map(|term| self.part(term, row));
            parts.max().unwrap_or(0)
        });
        let sum = terms.sum::<i64>() + best.sum::<i64>();
        (sum > 0).then(|| shown(sum))
    }
}

/// The integer sum as a score.
#[expect(clippy::cast_precision_loss, reason = "tests are small")]
pub(super) fn shown(sum: i64) -> f64 {
    sum as f64 / SCALE
}
