//! What does a memtable know of a term? Its rows and frequencies, for a query and for a merge.

use super::Memtable;
use super::list::View;
use crate::error::SegmentError;
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
    pub(super) fn new(view: View<'a, POSTING_WORDS>, rows: &std::ops::Range<u32>) -> Option<Self> {
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

/// One (scope, term) list of a sealed memtable, in the order of terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortedPair {
    term: u32,
    /// Address of the list of (row, tf).
    list: u32,
}

impl Memtable {
    /// All lists, ascending by term bytes; sorted once.
    fn sorted_pairs(&self) -> &[SortedPair] {
        self.sorted_pairs.get_or_init(|| {
            let entries: Vec<u32> = self.pair_table.values().collect();
            let words = &self.arena.words;
            let pair = |entry: &u32| SortedPair {
                term: words.get(u64::from(*entry) + 1),
                list: entry + 2,
            };
            let mut pairs: Vec<SortedPair> = entries.iter().map(pair).collect();
            let ranks = self.term_ranks();
            pairs.sort_unstable_by_key(|pair| (ranks[pair.term as usize], pair.list));
            pairs.into()
        })
    }

    /// Rank by bytes of every term ordinal.
    fn term_ranks(&self) -> Vec<u32> {
        let mut ordinals: Vec<u32> = self.term_table.values().map(|value| value - 1).collect();
        ordinals.sort_unstable_by_key(|ordinal| self.term(*ordinal));
        let mut ranks = vec![0; ordinals.len()];
        for (rank, ordinal) in (0..).zip(&ordinals) {
            ranks[*ordinal as usize] = rank;
        }
        ranks
    }

    pub(super) fn term_stream(&self) -> Terms<'_> {
        assert!(
            self.is_sealed(),
            "a memtable is sealed before its terms are merged"
        );
        Terms {
            memtable: self,
            pairs: self.sorted_pairs(),
            current: &[],
            merged: Vec::new(),
        }
    }
}

/// The terms of a sealed memtable.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    memtable: &'a Memtable,
    /// Pairs of the terms to come.
    pairs: &'a [SortedPair],
    /// Pairs of the current term.
    current: &'a [SortedPair],
    /// Kept for its allocation.
    merged: Vec<(u32, u32)>,
}

impl TermStream for Terms<'_> {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        let Some(first) = self.pairs.first() else {
            self.current = &[];
            return Ok(None);
        };
        let same = self
            .pairs
            .iter()
            .take_while(|pair| pair.term == first.term)
            .count();
        (self.current, self.pairs) = self.pairs.split_at(same);
        Ok(Some(self.memtable.term(first.term)))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        self.merged.clear();
        for pair in self.current {
            let view = View::<POSTING_WORDS>::new(&self.memtable.arena, pair.list);
            let entries = (0..view.count()).map(|at| (view.get(at, 0), view.get(at, 1)));
            self.merged.extend(entries);
        }
        // Scopes interleave; a row is in one scope, so rows are distinct.
        self.merged.sort_unstable();
        rows.clear();
        freqs.clear();
        rows.extend(self.merged.iter().map(|entry| entry.0));
        freqs.extend(self.merged.iter().map(|entry| entry.1));
        Ok(())
    }
}
