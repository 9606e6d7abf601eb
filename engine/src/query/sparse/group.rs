//! What does a row get from terms of which only the best counts?
//!
//! A prefix or a fuzzy word stands for several terms; a row gets the largest of their
//! contributions. The bound of a group is the largest of its members' bounds.

use chronolith_segments::SegmentError;

use super::table::ScoreTable;
use crate::query::lookup::Cursor;

/// The members' postings in one run.
pub(super) struct Group<'a> {
    members: Vec<(Cursor<'a>, &'a ScoreTable)>,
    /// One member's postings of a window.
    rows: Vec<u32>,
    freqs: Vec<u32>,
    /// All members' rows with contributions.
    merged: Vec<(u32, u32)>,
}

impl<'a> Group<'a> {
    pub(super) fn new(members: Vec<(Cursor<'a>, &'a ScoreTable)>) -> Self {
        Self {
            members,
            rows: Vec::new(),
            freqs: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Postings of all members.
    pub(super) fn count(&self) -> u64 {
        let counts = self.members.iter().map(|(cursor, _)| cursor.count());
        counts.map(u64::from).sum()
    }

    /// Number of members.
    pub(super) fn cursors(&self) -> usize {
        self.members.len()
    }

    /// Appends the rows below `end` that any member holds and that were not yet read,
    /// ascending, to `rows`, and what each gets to `scores`.
    pub(super) fn read_until(
        &mut self,
        end: u32,
        contribution: impl Fn(&ScoreTable, u32, u32) -> Result<u32, SegmentError>,
        rows: &mut Vec<u32>,
        scores: &mut Vec<u32>,
    ) -> Result<(), SegmentError> {
        self.merged.clear();
        for (cursor, table) in &mut self.members {
            self.rows.clear();
            self.freqs.clear();
            cursor.read_until(end, &mut self.rows, &mut self.freqs)?;
            for (row, freq) in self.rows.iter().zip(&self.freqs) {
                self.merged.push((*row, contribution(table, *row, *freq)?));
            }
        }
        self.merged.sort_unstable();
        for same_row in self.merged.chunk_by(|a, b| a.0 == b.0) {
            let (row, best) = same_row[same_row.len() - 1];
            rows.push(row);
            scores.push(best);
        }
        Ok(())
    }

    /// What `row` gets; rows are asked ascending.
    pub(super) fn best_at(
        &mut self,
        row: u32,
        contribution: impl Fn(&ScoreTable, u32, u32) -> Result<u32, SegmentError>,
    ) -> Result<u32, SegmentError> {
        let mut best = 0;
        for (cursor, table) in &mut self.members {
            let freq = cursor.freq_at(row)?;
            if freq > 0 {
                best = best.max(contribution(table, row, freq)?);
            }
        }
        Ok(best)
    }
}
