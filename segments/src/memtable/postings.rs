//! What does a memtable know of a term? Its rows and frequencies, for a query and for a merge.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Memtable;
use super::list::{self, View};
use super::words::split;
use crate::error::SegmentError;
use crate::format::bytes::head;
use crate::read::{Postings, TermStream};

type Result<T> = std::result::Result<T, SegmentError>;

/// Words of a posting: row, frequency.
pub(super) const POSTING_WORDS: usize = 2;

/// A term's postings in one run.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    view: View<'a, POSTING_WORDS>,
    next: u32,
    end: u32,
    count: u32,
}

impl<'a> Cursor<'a> {
    /// The postings with a row in `rows`; `None` if there are none.
    pub(super) fn new(view: View<'a, POSTING_WORDS>, rows: &Range<u32>) -> Option<Self> {
        let end = view.count_below(rows.end);
        let next = view.seek(0, rows.start).min(end);
        (next < end).then_some(Self {
            view,
            next,
            end,
            count: end - next,
        })
    }
}

impl Postings for Cursor<'_> {
    fn count(&self) -> u32 {
        self.count
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        while self.next < self.end {
            let row = self.view.get(self.next, 0);
            if row >= end {
                break;
            }
            rows.push(row);
            freqs.push(self.view.get(self.next, 1));
            self.next += 1;
        }
        Ok(())
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        self.next = self.view.seek(self.next, row).min(self.end);
        if self.next < self.end && self.view.get(self.next, 0) == row {
            return Ok(self.view.get(self.next, 1));
        }
        Ok(0)
    }
}

/// Frequencies from here on stand beside the others.
const FREQ_LARGE: u8 = u8::MAX;

/// All postings of a sealed memtable by term: each bucket of a flush walks them, which takes
/// them from one place to the next and not from list to list.
#[derive(Debug)]
pub(super) struct SortedPostings {
    /// The terms, ascending, one behind the other.
    terms: Box<[u8]>,
    /// Where each of them ends.
    term_ends: Box<[usize]>,
    /// Where the postings of each of them end.
    ends: Box<[u32]>,
    /// Rows of the postings, ascending inside each term.
    rows: Box<[u32]>,
    /// Their frequencies, or [`FREQ_LARGE`].
    freqs: Box<[u8]>,
    /// Larger frequencies, by (place of the term, row).
    large: BTreeMap<(u32, u32), u32>,
}

impl SortedPostings {
    fn of(memtable: &Memtable) -> Self {
        let mut lists: Vec<u32> = memtable.pair_table.values().collect();
        // In the order in which they were made, memory is read forwards.
        lists.sort_unstable();
        let ordinals = memtable.sorted_terms();
        let ends = ends_of(memtable, &ordinals, &lists);
        let total = ends.last().map_or(0, |end| *end as usize);
        let (mut terms, mut term_ends) = (Vec::new(), Vec::with_capacity(ordinals.len()));
        for ordinal in &ordinals {
            terms.extend_from_slice(memtable.term(*ordinal));
            term_ends.push(terms.len());
        }
        let mut sorted = Self {
            rows: vec![0; total].into(),
            freqs: vec![0; total].into(),
            large: BTreeMap::new(),
            terms: terms.into(),
            term_ends: term_ends.into(),
            ends,
        };
        sorted.fill(memtable, &ordinals, &lists);
        drop((ordinals, lists));
        sorted.sort_terms();
        sorted
    }

    /// Puts the postings of each list behind those of its term that are there.
    fn fill(&mut self, memtable: &Memtable, ordinals: &[u32], lists: &[u32]) {
        let mut free = vec![0_u32; ordinals.len()];
        for (at, ordinal) in ordinals.iter().enumerate() {
            free[*ordinal as usize] = self.start(at);
        }
        let mut large = Vec::new();
        for list in lists {
            let ordinal = memtable.arena.words.get(u64::from(*list) + 1);
            let free = &mut free[ordinal as usize];
            list::for_each::<POSTING_WORDS>(&memtable.arena, list + 2, |[row, freq]| {
                self.rows[*free as usize] = row;
                self.freqs[*free as usize] = u8::try_from(freq).unwrap_or(FREQ_LARGE);
                if freq >= u32::from(FREQ_LARGE) {
                    large.push((*free, row, freq));
                }
                *free += 1;
            });
        }
        for (posting, row, freq) in large {
            let term = self.ends.partition_point(|end| *end <= posting);
            let term = u32::try_from(term).expect("a term has an ordinal");
            self.large.insert((term, row), freq);
        }
    }

    /// Scopes interleave: the rows of a term ascend in each scope's list alone.
    fn sort_terms(&mut self) {
        let mut scratch: Vec<u64> = Vec::new();
        for at in 0..self.ends.len() {
            let range = self.range(at);
            let (rows, freqs) = (&mut self.rows[range.clone()], &mut self.freqs[range]);
            if rows.is_sorted() {
                continue;
            }
            scratch.clear();
            // A row is in one scope, so rows are distinct.
            let postings = rows.iter().zip(freqs.iter());
            scratch.extend(postings.map(|(row, freq)| u64::from(*row) << 8 | u64::from(*freq)));
            scratch.sort_unstable();
            for ((row, freq), posting) in rows.iter_mut().zip(freqs).zip(&scratch) {
                let [low, high] = split(posting >> 8);
                debug_assert_eq!(high, 0);
                (*row, *freq) = (low, posting.to_le_bytes()[0]);
            }
        }
    }

    fn start(&self, at: usize) -> u32 {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Where the postings of the term at a place lie.
    fn range(&self, at: usize) -> Range<usize> {
        self.start(at) as usize..self.ends[at] as usize
    }

    fn term(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.term_ends[before]);
        &self.terms[start..self.term_ends[at]]
    }
}

/// Where the postings of each of the terms with these ordinals end, one behind the other.
fn ends_of(memtable: &Memtable, ordinals: &[u32], lists: &[u32]) -> Box<[u32]> {
    let words = &memtable.arena.words;
    let mut counts = vec![0_u32; ordinals.len()];
    for list in lists {
        let term = words.get(u64::from(*list) + 1);
        // A posting takes two words of the arena, which has 2^32.
        counts[term as usize] += words.observe(u64::from(*list) + 2);
    }
    let mut end = 0;
    let ends = ordinals.iter().map(|ordinal| {
        end += counts[*ordinal as usize];
        end
    });
    ends.collect()
}

impl Memtable {
    /// All postings, ascending by term bytes; sorted once.
    fn sorted_postings(&self) -> &SortedPostings {
        self.sorted_postings
            .get_or_init(|| SortedPostings::of(self))
    }

    /// Ordinals of all terms, ascending by bytes.
    fn sorted_terms(&self) -> Box<[u32]> {
        let ordinals = self.term_table.values().map(|value| value - 1);
        // Most pairs differ in their first bytes, which then stand side by side.
        let mut terms: Vec<(u64, u32)> = ordinals
            .map(|ordinal| (head(self.term(ordinal)), ordinal))
            .collect();
        terms.sort_unstable_by(|(a_head, a), (b_head, b)| {
            a_head
                .cmp(b_head)
                .then_with(|| self.term(*a).cmp(self.term(*b)))
        });
        terms.into_iter().map(|(_, ordinal)| ordinal).collect()
    }

    pub(super) fn term_stream(&self) -> Terms<'_> {
        assert!(
            self.is_sealed(),
            "a memtable is sealed before its terms are merged"
        );
        Terms {
            sorted: self.sorted_postings(),
            next: 0,
        }
    }
}

/// The terms of a sealed memtable.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    sorted: &'a SortedPostings,
    /// Place of the term to come.
    next: usize,
}

impl TermStream for Terms<'_> {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        if self.next == self.sorted.ends.len() {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(self.sorted.term(self.next - 1)))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        let at = self.next - 1;
        let range = self.sorted.range(at);
        rows.clear();
        freqs.clear();
        rows.extend_from_slice(&self.sorted.rows[range.clone()]);
        freqs.extend(self.sorted.freqs[range].iter().map(|freq| u32::from(*freq)));
        if self.sorted.large.is_empty() {
            return Ok(());
        }
        let term = u32::try_from(at).expect("a term has an ordinal");
        for (row, freq) in rows.iter().zip(freqs) {
            if *freq == u32::from(FREQ_LARGE) {
                *freq = self.sorted.large[&(term, *row)];
            }
        }
        Ok(())
    }
}
