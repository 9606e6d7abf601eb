//! What does a posting contribute, without dividing for each?
//!
//! A table of contributions by (frequency, length) answers for nearly all postings. It holds
//! what [`TermScorer`] computes, to the bit, and as much of it as pays for the postings there
//! are.

use chronolith_segments::{LENGTH_LONG, ScoreTable, Scores, SegmentError};

use crate::query::analyse::QueryTerm;
use crate::query::bm25::TermScorer;
use crate::query::view::View;

/// From how many postings on the table has a row for frequencies up to this one: what it saves
/// must pay for its making.
const ROWS_FROM: [u64; ScoreTable::FREQS_MAX] = [48, 512, 4096, 16_384];
/// Lengths of up to so many average ones are in the table; few rows are longer.
const AVERAGES: f64 = 4.0;

/// One term's contributions.
pub(super) struct TermTable {
    pub(super) scorer: TermScorer,
    known: ScoreTable,
}

impl TermTable {
    /// Tables for the terms of a query whose contributions fit 31 bits in sum.
    pub(super) fn all(terms: &[QueryTerm]) -> Vec<Self> {
        let mut norms: Vec<f64> = Vec::new();
        let table = |term: &QueryTerm| {
            let scorer = term.scorer;
            let freqs = match scorer.is_linear() {
                true => 0,
                false => ROWS_FROM.partition_point(|from| *from <= term.df),
            };
            if freqs > 0 && norms.is_empty() {
                // One population a query: all its terms have one average length.
                let longest = scorer.average_length() * AVERAGES;
                let lengths = (0..u32::from(LENGTH_LONG)).take_while(|n| f64::from(*n) <= longest);
                norms.extend(lengths.map(|length| scorer.norm(length)));
            }
            let mut known = ScoreTable::UNKNOWN;
            for (freq, count) in (1..=freqs).zip(1_u32..) {
                let score = |norm: &f64| narrow(scorer.score_normed(count, *norm));
                known.set(freq, norms.iter().map(score));
            }
            Self { scorer, known }
        };
        terms.iter().map(table).collect()
    }

    /// What the postings of one of the term's lists are worth: that of `view`, whose short
    /// lengths are `lengths`, and of which no posting contributes more than `bound`.
    pub(super) fn of<'a>(&'a self, view: &'a View, lengths: &'a [u8], bound: i64) -> Worth<'a> {
        Worth {
            table: self,
            view,
            lengths,
            bound,
        }
    }
}

/// What the postings of one list are worth.
#[derive(Clone, Copy)]
pub(super) struct Worth<'a> {
    table: &'a TermTable,
    view: &'a View,
    lengths: &'a [u8],
    bound: i64,
}

impl Worth<'_> {
    /// The contribution of `freq` occurrences in row `row`.
    ///
    /// # Errors
    /// Damage in the row's length; an impact above its list's bound. What impacts may sum up to
    /// is known from bounds alone, which a file states.
    pub(super) fn score(&self, row: u32, freq: u32) -> Result<i32, SegmentError> {
        let length = match self.lengths.get(row as usize) {
            Some(length) if *length < LENGTH_LONG => u32::from(*length),
            _ => self.view.partition().length(row)?,
        };
        let scorer = self.table.scorer;
        let score = scorer.score(freq, length);
        if scorer.is_linear() && score > self.bound {
            let message = format!("row {row} has an impact above its list's bound");
            return Err(self.view.contradiction("postings", &message));
        }
        Ok(narrow(score))
    }

    /// Calls `with` with what those who read postings ask.
    pub(super) fn with_scores<T>(&self, with: impl FnOnce(&Scores<'_>) -> T) -> T {
        with(&Scores {
            table: &self.table.known,
            lengths: self.lengths,
            ask: &|row, freq| self.score(row, freq),
        })
    }
}

/// A contribution of a query whose contributions fit 31 bits in sum.
pub(super) fn narrow(score: i64) -> i32 {
    i32::try_from(score).expect("the sum of all ceilings was checked to fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::bm25::idf;

    #[test]
    fn the_table_says_what_the_formula_says() {
        let term = |df| QueryTerm {
            term: b"t".to_vec(),
            place: 0,
            weight: 3.0,
            df,
            idf: idf(100_000, df),
            scorer: TermScorer::new(idf(100_000, df), 3.0, 27.3),
        };
        let tables = TermTable::all(&[term(47), term(200), term(50_000)]);
        assert!(tables[0].known.get(1, 20).is_none(), "too few for a table");
        assert!(tables[1].known.get(2, 20).is_none());
        for table in &tables {
            for freq in 1..9 {
                for length in 0..=LENGTH_LONG {
                    let expected = narrow(table.scorer.score(freq, u32::from(length)));
                    let found = table.known.get(freq, length);
                    assert!(
                        found.is_none_or(|found| found == expected),
                        "{freq} {length}"
                    );
                    assert!(length < LENGTH_LONG || found.is_none());
                }
            }
        }
        assert!(tables[2].known.get(4, 109).is_some());
        assert!(tables[2].known.get(4, 110).is_none(), "few are so long");
    }
}
