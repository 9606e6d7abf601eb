//! How do terms and their postings get into a segment?

use super::blocks::push_key;
use super::format::{BASE_BYTES, BLOCK_TERMS, Entry, KEY_BYTES_MAX, Shape, hash_of, is_wide};
use super::index;
use crate::error::SegmentError;
use crate::format::SectionSink;
use crate::format::bytes::index as row_index;
use crate::postings::PostingsWriter;
use crate::scope_dir::shared_prefix;

type Result<T> = std::result::Result<T, SegmentError>;

/// Writes a segment's terms, ascending, each with its postings.
///
/// Postings stream out; the dictionary and the skip data stay in memory until the end: about
/// 20 bytes a term and 12 bytes per 128 postings.
#[derive(Debug)]
pub(crate) struct TermsWriter<'a> {
    seed: u64,
    /// By row.
    lengths: &'a [u32],
    hashes: Vec<u64>,
    /// Blocks that are done.
    blocks: Vec<u8>,
    /// Where each block starts.
    starts: Vec<u32>,
    /// Entries and keys of the block that is not done.
    entries: Vec<u8>,
    keys: Vec<u8>,
    last_key: Vec<u8>,
    postings: PostingsWriter,
    /// Lengths of the rows of a term.
    scratch: Vec<u32>,
}

/// What is left to write after the last term.
#[derive(Debug)]
pub(crate) struct TermsBytes {
    /// The bytes of section `terms`.
    pub(crate) terms: Vec<u8>,
    /// The bytes of section `postings_skip`.
    pub(crate) skip: Vec<u8>,
}

impl<'a> TermsWriter<'a> {
    /// A writer without terms, for rows of these lengths. Look-ups hash with the seed, which no
    /// caller should be able to choose.
    pub(crate) fn new(seed: u64, lengths: &'a [u32]) -> Self {
        Self {
            seed,
            lengths,
            hashes: Vec::new(),
            blocks: Vec::new(),
            starts: Vec::new(),
            entries: Vec::new(),
            keys: Vec::new(),
            last_key: Vec::new(),
            postings: PostingsWriter::default(),
            scratch: Vec::new(),
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
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        assert!(
            self.hashes.is_empty() || *term > *self.last_key,
            "terms ascend"
        );
        assert!(
            term.len() <= KEY_BYTES_MAX,
            "terms are bounded by the record's limits"
        );
        self.scratch.clear();
        let lengths = rows.iter().map(|row| self.lengths[row_index(*row)]);
        self.scratch.extend(lengths);
        let added = self.postings.add(postings, rows, freqs, &self.scratch)?;
        let entry = Entry::of(&added).ok_or_else(|| {
            SegmentError::Limit("skip data of 1 TiB; merge fewer rows at once".into())
        })?;
        let is_head = self.entries.is_empty();
        let shared = match is_head {
            true => 0,
            false => shared_prefix(&self.last_key, term),
        };
        let wide = is_wide(self.lengths.len());
        self.entries.extend_from_slice(&entry.encode(wide));
        push_key(shared, &term[shared..], &mut self.keys);
        self.last_key.clear();
        self.last_key.extend_from_slice(term);
        self.hashes.push(hash_of(term, self.seed));
        if self.hashes.len().is_multiple_of(BLOCK_TERMS as usize) {
            self.close_block(postings)?;
        }
        Ok(())
    }

    /// The dictionary and the skip data. Writes what is left of the postings.
    ///
    /// # Errors
    /// The sink's, or a passed limit.
    pub(crate) fn finish(mut self, postings: &mut dyn SectionSink) -> Result<TermsBytes> {
        if !self.entries.is_empty() {
            self.close_block(postings)?;
        }
        let terms = u32::try_from(self.hashes.len())
            .map_err(|_| SegmentError::Limit("2^32 terms in a segment".into()))?;
        let shape = Shape {
            terms,
            buckets: Shape::buckets_for(terms),
            blocks_bytes: self.start()?,
            seed: self.seed,
        };
        let mut bytes = index::encode(&shape, &self.hashes);
        bytes.extend_from_slice(&self.blocks);
        self.starts.push(shape.blocks_bytes);
        for start in &self.starts {
            bytes.extend_from_slice(&start.to_le_bytes());
        }
        bytes.extend_from_slice(&shape.encode());
        Ok(TermsBytes {
            terms: bytes,
            skip: self.postings.finish(),
        })
    }

    fn close_block(&mut self, postings: &mut dyn SectionSink) -> Result<()> {
        self.starts.push(self.start()?);
        let base = self.postings.flush_short(postings)?;
        self.blocks
            .extend_from_slice(&base.to_le_bytes()[..BASE_BYTES]);
        self.blocks.append(&mut self.entries);
        self.blocks.append(&mut self.keys);
        Ok(())
    }

    fn start(&self) -> Result<u32> {
        u32::try_from(self.blocks.len())
            .map_err(|_| SegmentError::Limit("a dictionary of 4 GiB".into()))
    }
}
