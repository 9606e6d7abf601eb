//! What does a row get from terms of which only the best counts?
//!
//! A prefix or a fuzzy word stands for several terms; a row gets the largest of their
//! contributions. The bound of a group is the largest of its members' bounds.

use std::ops::Range;

use chronolith_segments::{SegmentError, Sums};

use super::table::TermTable;
use crate::query::lookup::Cursor;
use crate::query::view::View;

/// One term's postings in one run, and what none of them contributes more than.
pub(super) struct Member<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) table: &'a TermTable,
    pub(super) bound: i64,
}

/// The members' postings in one run.
pub(super) struct Group<'a> {
    members: Vec<Member<'a>>,
    /// One member's postings of a window.
    rows: Vec<u32>,
    freqs: Vec<u32>,
    /// All members' rows with contributions.
    merged: Vec<(u32, i32)>,
}

impl<'a> Group<'a> {
    pub(super) fn new(members: Vec<Member<'a>>) -> Self {
        Self {
            members,
            rows: Vec::new(),
            freqs: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Postings of all members.
    pub(super) fn count(&self) -> u64 {
        let counts = self.members.iter().map(|member| member.cursor.count());
        counts.map(u64::from).sum()
    }

    /// Number of members.
    pub(super) fn cursors(&self) -> usize {
        self.members.len()
    }

    /// Adds what the rows inside `rows` get that any member holds and that were not yet read.
    pub(super) fn add_until(
        &mut self,
        rows: Range<u32>,
        view: &View,
        lengths: &[u8],
        sums: &mut Sums<'_>,
    ) -> Result<(), SegmentError> {
        self.merged.clear();
        for member in &mut self.members {
            self.rows.clear();
            self.freqs.clear();
            let (read, freqs) = (&mut self.rows, &mut self.freqs);
            member.cursor.read_until(rows.end, read, freqs)?;
            let (read, merged) = (self.rows.iter().zip(&self.freqs), &mut self.merged);
            let worth = member.table.of(view, lengths, member.bound);
            worth.with_scores(|scores| {
                for (row, freq) in read.filter(|(row, _)| **row >= rows.start) {
                    merged.push((*row, scores.of(*row, *freq)?));
                }
                Ok::<_, SegmentError>(())
            })?;
        }
        self.merged.sort_unstable();
        for same_row in self.merged.chunk_by(|a, b| a.0 == b.0) {
            let (row, best) = same_row[same_row.len() - 1];
            sums.add_one(row, best);
        }
        Ok(())
    }

    /// Adds what each of `rows`, which ascend, gets to its sum.
    pub(super) fn add_at(
        &mut self,
        rows: &[u32],
        view: &View,
        lengths: &[u8],
        sums: &mut [i32],
    ) -> Result<(), SegmentError> {
        for (row, sum) in rows.iter().zip(sums) {
            let mut best = 0;
            for member in &mut self.members {
                let freq = member.cursor.freq_at(*row)?;
                if freq > 0 {
                    let worth = member.table.of(view, lengths, member.bound);
                    best = best.max(worth.score(*row, freq)?);
                }
            }
            *sum += best;
        }
        Ok(())
    }
}
