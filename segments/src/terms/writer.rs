//! How do terms and their postings get into a segment?

use super::dictionary::FstBuilder;
use super::format::{encode, trailer};
use crate::error::SegmentError;
use crate::format::SectionSink;
use crate::postings::PostingsWriter;

/// Writes a segment's terms, ascending, each with its postings.
///
/// Postings stream out; the dictionary and the skip data stay in memory until the end: about
/// 20 bytes a term and 12 bytes per 128 postings.
#[derive(Debug)]
pub(crate) struct TermsWriter {
    fst: FstBuilder,
    entries: Vec<u8>,
    postings: PostingsWriter,
}

/// What is left to write after the last term.
#[derive(Debug)]
pub(crate) struct TermsBytes {
    /// The bytes of section `terms`.
    pub(crate) terms: Vec<u8>,
    /// The bytes of section `postings_skip`.
    pub(crate) skip: Vec<u8>,
}

impl TermsWriter {
    /// A writer without terms.
    pub(crate) fn new() -> Self {
        Self {
            fst: FstBuilder::new(),
            entries: Vec::new(),
            postings: PostingsWriter::default(),
        }
    }

    /// Writes the next term, above all before it, and its postings to `postings`, the sink of
    /// section `postings`. Rows ascend, frequencies are 1 or more. A term without postings is
    /// left out.
    ///
    /// # Errors
    /// The sink's, or a passed limit.
    ///
    /// # Panics
    /// If the term is not above the one before, or `rows` and `freqs` differ in length.
    pub(crate) fn add(
        &mut self,
        postings: &mut dyn SectionSink,
        term: &[u8],
        rows: &[u32],
        freqs: &[u32],
    ) -> Result<(), SegmentError> {
        if rows.is_empty() {
            return Ok(());
        }
        let df = u32::try_from(rows.len())
            .map_err(|_| SegmentError::Limit("2^32 rows with one term".into()))?;
        let place = self.postings.add(postings, rows, freqs)?;
        self.fst.push(term)?;
        self.entries.extend_from_slice(&encode(df, place)?);
        Ok(())
    }

    /// The dictionary and the skip data.
    pub(crate) fn finish(self) -> TermsBytes {
        let terms = self.fst.keys();
        let mut bytes = self.fst.finish();
        let fst_bytes = bytes.len() as u64;
        bytes.extend_from_slice(&self.entries);
        bytes.extend_from_slice(&trailer(terms, fst_bytes));
        TermsBytes {
            terms: bytes,
            skip: self.postings.finish(),
        }
    }
}
