//! What stays of an analysis? The terms of one record, packed: a few hundred bytes a record.
//!
//! [`Analyzed`] is a worker's tool, with warm buffers and a stem cache of 256 KiB; a batch of
//! records must not hold one each.

use crate::analyze::Analyzed;
use crate::impacts::{IMPACT_MARK, impact_freq};

/// Distinct terms of a record with their frequencies, ascending by bytes, and its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowTerms {
    length: u32,
    /// The terms, one behind the other.
    bytes: Box<[u8]>,
    entries: Box<[Entry]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Where the term ends in the bytes; the one before says where it starts.
    end: usize,
    freq: u32,
}

impl RowTerms {
    /// Counted tokens: the record's length in BM25.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Number of distinct terms.
    pub fn term_count(&self) -> usize {
        self.entries.len()
    }

    /// Distinct terms and how often each occurs, ascending by bytes.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = (&[u8], u32)> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let term = &self.bytes[start..entry.end];
            start = entry.end;
            (term, entry.freq)
        })
    }
}

impl From<&Analyzed> for RowTerms {
    fn from(analyzed: &Analyzed) -> Self {
        Self::new(analyzed, &[])
    }
}

impl RowTerms {
    /// The terms of a text and those of its impacts, which come ascending by token: their mark
    /// stands behind every text.
    pub(crate) fn new(analyzed: &Analyzed, impacts: &[(String, f32)]) -> Self {
        let of_text = analyzed.terms().map(|(term, _)| term.len()).sum::<usize>();
        let of_impacts = impacts.iter().map(|(token, _)| token.len() + 1);
        let mut bytes = Vec::with_capacity(of_text + of_impacts.sum::<usize>());
        let mut entries = Vec::with_capacity(analyzed.term_count() + impacts.len());
        let mut push = |parts: [&[u8]; 2], freq| {
            bytes.extend_from_slice(parts[0]);
            bytes.extend_from_slice(parts[1]);
            entries.push(Entry {
                end: bytes.len(),
                freq,
            });
        };
        for (term, freq) in analyzed.terms() {
            push([term, &[]], freq);
        }
        for (token, weight) in impacts {
            push([&[IMPACT_MARK], token.as_bytes()], impact_freq(*weight));
        }
        Self {
            length: analyzed.length(),
            bytes: bytes.into(),
            entries: entries.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::Analyzer;

    #[test]
    fn packing_keeps_every_term_in_order() {
        let mut analyzed = Analyzed::new();
        for text in ["", "b a ccc b", "src/main.rs fails with E0277"] {
            Analyzer::default().analyze(text, &mut analyzed);
            let packed = RowTerms::from(&analyzed);
            assert_eq!(packed.length(), analyzed.length());
            assert_eq!(packed.term_count(), analyzed.term_count());
            assert!(packed.terms().eq(analyzed.terms()));
        }
    }
}
