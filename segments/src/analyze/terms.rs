//! Where do terms go? The reusable output of an analysis: distinct terms with counts, or tokens in order.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::Scratch;
use super::stem::StemCache;

/// Takes terms as they are found.
pub(super) trait Sink {
    /// Whether `range` of a counted token must be right; otherwise it is empty.
    const RANGES: bool;
    /// A token; `part`: inside an identifier, where it counts once a record.
    fn counted(&mut self, term: &str, range: Range<usize>, part: bool);
    /// The whole form of an identifier.
    fn whole(&mut self, term: &str);
    /// One character of a longer CJK run.
    fn single(&mut self, term: &str);
}

/// The terms of one record: distinct, with counts, sorted by bytes. Reuse it: its buffers and its stem
/// cache stay warm.
#[derive(Debug)]
pub struct Analyzed {
    pub(super) scratch: Scratch,
    pub(super) terms: TermSet,
}

impl Analyzed {
    /// Empty, without buffers yet.
    pub fn new() -> Self {
        let scratch = Scratch {
            stems: StemCache::remembering(),
            ..Scratch::default()
        };
        Self {
            scratch,
            terms: TermSet::default(),
        }
    }

    /// Number of counted tokens: the record's length in BM25.
    pub fn length(&self) -> u32 {
        self.terms.length
    }

    /// Number of distinct terms.
    pub fn term_count(&self) -> usize {
        self.terms.entries.len()
    }

    /// Distinct terms and how often each occurs, in byte order.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = (&[u8], u32)> {
        self.terms.iter()
    }
}

impl Default for Analyzed {
    fn default() -> Self {
        Self::new()
    }
}

/// Interned terms: bytes in one arena, found by hash, put in byte order at the end.
#[derive(Debug, Default)]
pub(super) struct TermSet {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    table: HashTable<u32>,
    length: u32,
    /// Queries leave the single characters of longer CJK runs out.
    pub(super) skips_singles: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The first eight bytes, big-endian, zero-filled: most comparisons end here.
    head: u64,
    hash: u64,
    start: usize,
    len: usize,
    count: u32,
    /// Counted once as a part of an identifier: the next part adds nothing.
    is_part: bool,
}

const HASHER: u64 = 0x6368_726f_6e6f;

impl TermSet {
    pub(super) fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.table.clear();
        self.length = 0;
    }

    /// Puts the terms in byte order; no term may be added after.
    pub(super) fn finish(&mut self) {
        let arena = &self.arena;
        self.entries.sort_unstable_by(|a, b| {
            a.head
                .cmp(&b.head)
                .then_with(|| bytes_of(arena, a).cmp(bytes_of(arena, b)))
        });
        self.table.clear();
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u32)> {
        self.entries
            .iter()
            .map(|e| (bytes_of(&self.arena, e), e.count))
    }

    /// Counts `term` once more; false where it is a part that was counted before.
    fn add(&mut self, term: &str, part: bool) -> bool {
        let term = term.as_bytes();
        let hash = FixedState::with_seed(HASHER).hash_one(term);
        let (arena, entries) = (&self.arena, &self.entries);
        let found = self
            .table
            .find(hash, |i| bytes_of(arena, &entries[*i as usize]) == term);
        if let Some(i) = found {
            let entry = &mut self.entries[*i as usize];
            if part && entry.is_part {
                return false;
            }
            entry.is_part |= part;
            entry.count = entry.count.saturating_add(1);
            return true;
        }
        let Ok(index) = u32::try_from(self.entries.len()) else {
            return false; // 2^32 distinct terms need a text far over the record limit
        };
        let mut head = [0; 8];
        let head_len = term.len().min(8);
        head[..head_len].copy_from_slice(&term[..head_len]);
        self.entries.push(Entry {
            head: u64::from_be_bytes(head),
            hash,
            start: self.arena.len(),
            len: term.len(),
            count: 1,
            is_part: part,
        });
        self.arena.extend_from_slice(term);
        let entries = &self.entries;
        self.table
            .insert_unique(hash, index, |i| entries[*i as usize].hash);
        true
    }
}

fn bytes_of<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    &arena[entry.start..entry.start + entry.len]
}

impl Sink for TermSet {
    const RANGES: bool = false;

    fn counted(&mut self, term: &str, _: Range<usize>, part: bool) {
        let is_new = self.add(term, part);
        self.length = self.length.saturating_add(u32::from(is_new));
    }

    fn whole(&mut self, term: &str) {
        self.add(term, false);
    }

    fn single(&mut self, term: &str) {
        if !self.skips_singles {
            self.add(term, false);
        }
    }
}

/// The tokens of a text in order, repeated parts of identifiers too, with the raw bytes each came from.
#[derive(Debug, Default)]
pub struct Tokens {
    arena: String,
    tokens: Vec<(usize, Range<usize>)>,
}

impl Tokens {
    /// Number of tokens: [`Analyzed::length`], and what repeats inside identifiers.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether the text has no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Terms (as indexed) and their byte ranges in the text; CJK bigrams overlap.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        let mut start = 0;
        self.tokens.iter().map(move |(end, range)| {
            let term = &self.arena[start..*end];
            start = *end;
            (term, range.clone())
        })
    }
}

impl Sink for Tokens {
    const RANGES: bool = true;

    fn counted(&mut self, term: &str, range: Range<usize>, _: bool) {
        self.arena.push_str(term);
        self.tokens.push((self.arena.len(), range));
    }

    fn whole(&mut self, _: &str) {}

    fn single(&mut self, _: &str) {}
}
