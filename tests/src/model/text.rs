//! BM25 by the book: contributions are integers of 2^20 to one.

use std::collections::BTreeMap;

use super::Row;

const SCALE: f64 = 1_048_576.0;

/// What a query's terms are worth in a population.
pub(super) struct Weights {
    /// Term, occurrences in the query, df, idf; by term.
    pub(super) terms: Vec<(Vec<u8>, f64, u64, f64)>,
    mean: f64,
}

impl Weights {
    /// Counts df over the population, term by term.
    #[expect(clippy::cast_precision_loss, reason = "tests are small")]
    pub(super) fn new(population: &[&Row], query: &[(Vec<u8>, u32)]) -> Self {
        let mut occurrences: BTreeMap<&[u8], u32> = BTreeMap::new();
        for (term, count) in query {
            *occurrences.entry(term).or_default() += count;
        }
        let n = population.len() as f64;
        let tokens: u64 = population.iter().map(|row| u64::from(row.length)).sum();
        let mean = if tokens == 0 { 1.0 } else { tokens as f64 / n };
        let terms = occurrences.into_iter().map(|(term, count)| {
            let holding = population.iter().filter(|row| row.terms.contains_key(term));
            let df = holding.count();
            let idf = libm::log(1.0 + (n - df as f64 + 0.5) / (df as f64 + 0.5));
            (term.to_vec(), f64::from(count), df as u64, idf)
        });
        Self {
            terms: terms.collect(),
            mean,
        }
    }

    /// One term's contribution, as an integer.
    #[expect(clippy::cast_possible_truncation, reason = "tests are small")]
    pub(super) fn part(&self, index: usize, row: &Row) -> i64 {
        let (term, weight, _, idf) = &self.terms[index];
        let Some(freq) = row.terms.get(term) else {
            return 0;
        };
        let (tf, length) = (f64::from(*freq), f64::from(row.length));
        let norm = 1.2 * (1.0 - 0.75 + 0.75 * length / self.mean);
        let tfnorm = tf * (1.2 + 1.0) / (tf + norm);
        (idf * weight * SCALE * tfnorm).round() as i64
    }

    /// The row's score, or `None` where it holds no term.
    pub(super) fn score(&self, row: &Row) -> Option<f64> {
        let sum: i64 = (0..self.terms.len()).map(|i| self.part(i, row)).sum();
        (sum > 0).then(|| shown(sum))
    }
}

/// The integer sum as a score.
#[expect(clippy::cast_precision_loss, reason = "tests are small")]
pub(super) fn shown(sum: i64) -> f64 {
    sum as f64 / SCALE
}
