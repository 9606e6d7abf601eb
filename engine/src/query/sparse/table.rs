//! What does a posting contribute, without dividing for each?
//!
//! Most rows are short and most frequencies are 1, so a table of contributions by (frequency,
//! length) answers for nearly all postings. It holds what [`TermScorer`] computes, to the bit.

use chronolith_segments::LENGTH_LONG;

use crate::query::analyse::QueryTerm;
use crate::query::bm25::TermScorer;

/// Lengths of a table's row: each below [`LENGTH_LONG`].
const LENGTHS: usize = LENGTH_LONG as usize;
/// A place for each value of a byte, so that no index leaves the row.
type FreqRow = [u32; 256];

/// Fewer postings than this are computed one by one.
const POSTINGS_MIN: u64 = 128;
/// From this many on, frequencies up to [`FREQS_MAX`] are worth a row.
const POSTINGS_MANY: u64 = 4096;
/// Rows of a full table.
const FREQS_MAX: usize = 4;

/// One term's contributions.
pub(super) struct ScoreTable {
    pub(super) scorer: TermScorer,
    /// By frequency - 1, then by length.
    rows: Vec<FreqRow>,
}

impl ScoreTable {
    /// Tables for the terms of a query whose contributions fit 31 bits in sum.
    pub(super) fn all(terms: &[QueryTerm]) -> Vec<Self> {
        let mut norms: Vec<f64> = Vec::new();
        let table = |term: &QueryTerm| {
            let scorer = term.scorer;
            let freqs = match term.df {
                _ if scorer.is_linear() => 0,
                0..POSTINGS_MIN => 0,
                POSTINGS_MIN..POSTINGS_MANY => 1,
                POSTINGS_MANY.. => FREQS_MAX,
            };
            if freqs > 0 && norms.is_empty() {
                // One population a query: all its terms have one average length.
                norms.extend((0..u32::from(LENGTH_LONG)).map(|length| scorer.norm(length)));
            }
            let row = |freq| {
                let mut row = [0; 256];
                for (score, norm) in row.iter_mut().zip(&norms) {
                    *score = narrow(scorer.score_normed(freq, *norm));
                }
                row
            };
            let rows = (1..).map(row).take(freqs).collect();
            Self { scorer, rows }
        };
        terms.iter().map(table).collect()
    }

    /// The contribution, where the table has it. `length` is a byte of `short_lengths`.
    pub(super) fn get(&self, freq: u32, length: u8) -> Option<u32> {
        let row = self.rows.get(freq.wrapping_sub(1) as usize)?;
        (usize::from(length) < LENGTHS).then(|| row[usize::from(length)])
    }

    /// The contribution of `freq` occurrences in a row of `length` tokens.
    pub(super) fn score(&self, freq: u32, length: u32) -> u32 {
        narrow(self.scorer.score(freq, length))
    }

    /// Contributions of frequency 1 by length.
    pub(super) fn once(&self) -> Option<&FreqRow> {
        self.rows.first()
    }
}

/// A contribution of a query whose contributions fit 31 bits in sum.
pub(super) fn narrow(score: i64) -> u32 {
    u32::try_from(score).expect("the sum of all ceilings was checked to fit")
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
        let tables = ScoreTable::all(&[term(1), term(200), term(50_000)]);
        assert!(tables[0].get(1, 20).is_none(), "too few for a table");
        assert!(tables[1].get(2, 20).is_none());
        for table in &tables {
            for freq in 0..9 {
                for length in 0..=LENGTH_LONG {
                    let expected = table.score(freq, u32::from(length));
                    let found = table.get(freq, length);
                    assert!(
                        found.is_none_or(|found| found == expected),
                        "{freq} {length}"
                    );
                    assert!(length < LENGTH_LONG || found.is_none());
                }
            }
        }
        assert!(tables[2].get(4, 254).is_some());
    }
}
