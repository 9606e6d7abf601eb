//! How is a term of a segment found?

use std::ops::Range;

use super::dictionary::{Dictionary, FstDictionary, Keys};
use super::format::{ENTRY_BYTES, TRAILER_BYTES, decode, trailer};
use crate::error::SegmentError;
use crate::format::Section;
use crate::postings::{ListPlace, PostingLists, PostingsCursor, u32_at};
use crate::read::{Postings, TermStream};

type Result<T> = std::result::Result<T, SegmentError>;

/// Keys that a stream takes from the dictionary at a time.
const STREAM_KEYS: usize = 512;

/// What the dictionary knows of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermInfo {
    /// Rows of the segment that hold the term.
    pub(crate) df: u32,
    /// Where its postings are.
    pub(crate) place: ListPlace,
}

/// The terms of one segment and their postings.
#[derive(Debug)]
pub(crate) struct Terms {
    dictionary: Box<dyn Dictionary>,
    section: Section,
    /// Where the entries start in `section`.
    entries: u64,
    lists: PostingLists,
}

impl Terms {
    /// Opens sections `terms`, `postings` and `postings_skip` of a segment with `rows` rows.
    /// Verifies and reads the dictionary, no postings.
    ///
    /// # Errors
    /// `Corrupt` where the parts of the dictionary do not fit each other.
    pub(crate) fn open(
        section: Section,
        postings: Section,
        skip: Section,
        rows: u32,
    ) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES as u64);
        let found = section.get(at, TRAILER_BYTES)?;
        let terms = u32_at(&found, 0);
        let fst_bytes = at.checked_sub(u64::from(terms) * ENTRY_BYTES as u64);
        let Some(fst_bytes) = fst_bytes.filter(|bytes| *found == trailer(terms, *bytes)) else {
            let message = format!(
                "trailer {found:?} does not fit a section of {} bytes",
                section.len()
            );
            return Err(section.corrupt(at, message));
        };
        drop(found);
        let dictionary = FstDictionary::open(section.clone(), 0, fst_bytes, terms)?;
        let lists = PostingLists::new(postings, skip, rows);
        Ok(Self {
            dictionary: Box::new(dictionary),
            section,
            entries: fst_bytes,
            lists,
        })
    }

    /// Number of terms.
    pub(crate) fn len(&self) -> u32 {
        self.dictionary.len()
    }

    /// What is known of a term; `None` where no row of the segment holds it.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn get(&self, term: &[u8]) -> Result<Option<TermInfo>> {
        match self.dictionary.ordinal(term)? {
            Some(ordinal) => self.info(ordinal).map(Some),
            None => Ok(None),
        }
    }

    /// The postings in a row range of a term that [`Terms::get`] gave; `None` where no row of
    /// the range holds it.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn postings_of(
        &self,
        info: TermInfo,
        rows: Range<u32>,
    ) -> Result<Option<PostingsCursor<'_>>> {
        PostingsCursor::open(&self.lists, info.df, info.place, rows)
    }

    /// All terms with their postings, ascending.
    pub(crate) fn stream(&self) -> TermsStream<'_> {
        TermsStream {
            terms: self,
            keys: Keys::default(),
            at: 0,
            next: 0,
        }
    }

    fn info(&self, ordinal: u32) -> Result<TermInfo> {
        let at = self.entries + u64::from(ordinal) * ENTRY_BYTES as u64;
        let (df, place) = decode(&self.section.get(at, ENTRY_BYTES)?);
        Ok(TermInfo { df, place })
    }
}

/// All terms of a segment, ascending.
#[derive(Debug)]
pub(crate) struct TermsStream<'a> {
    terms: &'a Terms,
    /// A batch of keys: the last of them is where the next batch goes on, so that the stream
    /// need not keep a place inside the dictionary.
    keys: Keys,
    /// Keys of the batch that were handed out.
    at: usize,
    /// Ordinal of the next key.
    next: u32,
}

impl TermStream for TermsStream<'_> {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        if self.at == self.keys.len() {
            let after = self
                .keys
                .len()
                .checked_sub(1)
                .map(|last| self.keys.get(last).to_vec());
            if self.next == self.terms.len() {
                return Ok(None);
            }
            self.terms.dictionary.keys_after(
                after.as_deref(),
                self.next,
                STREAM_KEYS,
                &mut self.keys,
            )?;
            self.at = 0;
            if self.keys.len() == 0 {
                let message = format!("{} terms found, {} expected", self.next, self.terms.len());
                return Err(self.terms.section.corrupt(0, message));
            }
        }
        self.at += 1;
        self.next += 1;
        Ok(Some(self.keys.get(self.at - 1)))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        rows.clear();
        freqs.clear();
        let ordinal = self
            .next
            .checked_sub(1)
            .expect("a term was asked for before its postings");
        let info = self.terms.info(ordinal)?;
        if let Some(mut cursor) = self.terms.postings_of(info, 0..u32::MAX)? {
            // Bounded by the list's bytes: opening it read its skip data.
            let count = cursor.count() as usize;
            rows.reserve(count);
            freqs.reserve(count);
            cursor.read_until(u32::MAX, rows, freqs)?;
        }
        Ok(())
    }
}
