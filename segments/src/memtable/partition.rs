//! How does a memtable answer what a query may ask of a partition? Nothing here can fail.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use super::list::View;
use super::postings::Cursor;
use super::stream::MemtableRows;
use super::sync::Ordering;
use super::{
    COMMIT_SEQ, COMMIT_TIME, IMPORTANCE, LENGTH, Memtable, NO_ROW, OLDER_ROW, SCOPE,
    SCOPE_LENGTH_SUM, SCOPE_TIME_MAX, SCOPE_TIME_MIN, SOURCE_CLASS, SUMMARY_TOKENS, TEXT_TOKENS,
};
use crate::columns::{Column, ordered};
use crate::error::SegmentError;
use crate::prepared::VectorFormat;
use crate::read::{
    Accept, CodeRows, Partition, Population, Postings, Run, ScopeEntry, Stored, TermBounds,
    TermEntry, TermPlace, TermStream, TermVisit, TimeOrder, Zone,
};
use crate::record::RowFields;
use crate::scope::{KeyRange, ScopeRanges};
use crate::space::SpaceNumber;
use crate::stream::RowStream;
use crate::vectors::{CodeQuery, Nearest};

type Result<T> = std::result::Result<T, SegmentError>;

impl Partition for Memtable {
    fn zone(&self) -> Zone {
        // Rows first: what is read after them may run ahead of them, never behind.
        let rows = self.rows();
        let seq_of = |row: u32| self.column_u64(row, COMMIT_SEQ);
        let last = rows.checked_sub(1);
        Zone {
            rows,
            vectors: self.vectors_below(SpaceNumber::MAIN, rows),
            scopes: self.scope_count.load(Ordering::Relaxed),
            event_time_us: (
                self.extremes.event_time_us_min.load(Ordering::Relaxed),
                self.extremes.event_time_us_max.load(Ordering::Relaxed),
            ),
            commit_seq: last.map_or((0, 0), |row| (seq_of(0), seq_of(row))),
            source_class_max: self.extremes.source_class_max.load(Ordering::Relaxed),
        }
    }

    fn select(&self, scopes: &ScopeRanges, at_seq: u64) -> Result<Vec<Run>> {
        let end = self.rows_at(at_seq);
        let mut runs = Vec::new();
        let mut add = |scope: u32| {
            let rows = self.scope_rows(scope);
            if rows.count() > 0 && rows.get(0, 0) < end {
                runs.push(Run {
                    key: scope,
                    rows: rows.get(0, 0)..end,
                });
            }
        };
        for range in scopes.ranges() {
            if is_exact(range) {
                self.find_scope(&range.from).into_iter().for_each(&mut add);
            } else {
                self.walk_scopes(range, &mut add);
            }
        }
        Ok(runs)
    }

    fn population(&self, run: &Run) -> Result<Population> {
        let rows = self.scope_rows(run.key);
        let Range { start, end } = places(&rows, &run.rows);
        let sum_before = |place: u32| match place.checked_sub(1) {
            Some(last) => rows.get_u64(last, SCOPE_LENGTH_SUM),
            None => 0,
        };
        Ok(Population {
            rows: u64::from(end - start),
            length_sum: sum_before(end) - sum_before(start),
        })
    }

    fn scopes(&self, at_seq: u64) -> Result<Vec<ScopeEntry>> {
        let end = self.rows_at(at_seq);
        let mut entries = Vec::new();
        self.walk_scopes(
            &KeyRange {
                from: Vec::new(),
                to: None,
            },
            &mut |scope| {
                let rows = self.scope_rows(scope);
                let count = rows.count_below(end);
                let Some(last) = count.checked_sub(1) else {
                    return;
                };
                entries.push(ScopeEntry {
                    key: self.scope(scope).key.to_vec(),
                    population: Population {
                        rows: u64::from(count),
                        length_sum: rows.get_u64(last, SCOPE_LENGTH_SUM),
                    },
                    event_time_us: (
                        rows.get_u64(last, SCOPE_TIME_MIN).cast_signed(),
                        rows.get_u64(last, SCOPE_TIME_MAX).cast_signed(),
                    ),
                });
            },
        );
        Ok(entries)
    }

    fn for_each_row(&self, run: &Run, visit: &mut dyn FnMut(u32)) {
        let rows = self.scope_rows(run.key);
        for place in places(&rows, &run.rows) {
            visit(rows.get(place, 0));
        }
    }

    fn rows_in_run(&self, run: &Run, set: &RoaringBitmap) -> Vec<u32> {
        if run.rows.is_empty() {
            return Vec::new();
        }
        let rows = self.scope_rows(run.key);
        let places = places(&rows, &run.rows);
        // The shorter side leads: the set's rows know their scope, the scope its rows.
        if set.range_cardinality(run.rows.clone()) < u64::from(places.end - places.start) {
            let inside = set.range(run.rows.clone());
            return inside
                .filter(|row| self.column(*row, SCOPE) == run.key)
                .collect();
        }
        places
            .map(|place| rows.get(place, 0))
            .filter(|row| set.contains(*row))
            .collect()
    }

    fn walk_time(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        order: TimeOrder,
        visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()> {
        let rows = self.scope_rows(run.key);
        let Range { start, end } = places(&rows, &run.rows);
        let timed = |place: u32| {
            let row = rows.get(place, 0);
            (self.event_time(row), row)
        };
        if self.scope(run.key).disordered_at.load(Ordering::Relaxed) >= end {
            let from = rows.partition(start, end, |place| timed(place).0 < from_us);
            let to = rows.partition(from, end, |place| timed(place).0 < to_us);
            walk((from..to).map(timed), order, visit);
        } else {
            let mut found: Vec<_> = (start..end).map(timed).collect();
            found.retain(|(time_us, _)| (from_us..to_us).contains(time_us));
            found.sort_unstable();
            walk(found.into_iter(), order, visit);
        }
        Ok(())
    }

    fn term(&self, term: &[u8]) -> Result<Option<TermEntry>> {
        Ok(self.find_term(term).map(|term| self.entry_of(term)))
    }

    fn postings_of<'a>(
        &'a self,
        term: &TermEntry,
        run: &Run,
    ) -> Result<Option<Box<dyn Postings + 'a>>> {
        let TermPlace::Memtable(term) = term.place else {
            unreachable!("a segment's term is not asked of a memtable");
        };
        let list = self.find_pair(run.key, term);
        let cursor = list.and_then(|list| Cursor::new(View::new(&self.arena, list), &run.rows));
        Ok(cursor.map(|cursor| Box::new(cursor) as Box<dyn Postings + 'a>))
    }

    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>> {
        Ok(Box::new(self.term_stream()))
    }

    fn row_stream<'a>(&'a self) -> Result<Box<dyn RowStream + 'a>> {
        Ok(Box::new(MemtableRows(self)))
    }

    fn each_value(
        &self,
        column: Column,
        rows: &RoaringBitmap,
        visit: &mut dyn FnMut(u32, u64),
    ) -> Result<()> {
        let mut each = |value: &dyn Fn(u32) -> u64| {
            rows.iter().for_each(|row| visit(row, value(row)));
        };
        let commit_time = |row| self.column_u64(row, COMMIT_TIME).cast_signed();
        match column {
            Column::EventTime => each(&|row| ordered(self.event_time(row))),
            Column::CommitSeq => each(&|row| self.column_u64(row, COMMIT_SEQ)),
            Column::CommitTime => each(&|row| ordered(commit_time(row))),
            Column::ValidLag => each(&|row| {
                let time = self.event_time(row);
                ordered(time.wrapping_sub(time.min(commit_time(row))))
            }),
            Column::ValidTo | Column::Expires => each(&|_| ordered(i64::MAX)),
            Column::SourceClass => each(&|row| u64::from(self.column(row, SOURCE_CLASS))),
            Column::Importance => {
                each(&|row| match f32::from_bits(self.column(row, IMPORTANCE)) {
                    importance if importance.is_nan() => u64::MAX,
                    importance => u64::from(importance.to_bits()),
                });
            }
            Column::Length => each(&|row| u64::from(self.column(row, LENGTH))),
            Column::TextTokens => each(&|row| u64::from(self.column(row, TEXT_TOKENS))),
            Column::SummaryTokens => each(&|row| u64::from(self.column(row, SUMMARY_TOKENS))),
            Column::Cluster => each(&|_| 0),
            Column::SourceId => each(&|row| match self.body(row).source_id {
                Some(_) => u64::from(row) + 1,
                None => 0,
            }),
        }
        Ok(())
    }

    fn terms_from(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()> {
        // Terms of rows that are not published yet may be among them: they have no postings.
        let terms = (0..).map_while(|ordinal| Some((&**self.terms.get(ordinal)?, ordinal)));
        let mut found: Vec<(&[u8], u32)> = terms.filter(|(term, _)| *term >= from).collect();
        found.sort_unstable();
        let mut at = 0;
        while let Some((term, ordinal)) = found.get(at) {
            at += 1;
            match visit(term, &self.entry_of(*ordinal)) {
                TermVisit::Continue => {}
                TermVisit::SkipTo(to) => {
                    at += found[at..].partition_point(|(term, _)| **term < *to);
                }
                TermVisit::Stop => break,
            }
        }
        Ok(())
    }

    fn fields(&self, row: u32) -> Result<RowFields> {
        let event_time_us = self.event_time(row);
        let commit_time_us = self.column_u64(row, COMMIT_TIME).cast_signed();
        Ok(RowFields {
            event_time_us,
            commit_seq: self.column_u64(row, COMMIT_SEQ),
            commit_time_us,
            valid_from_us: event_time_us.min(commit_time_us),
            valid_to_us: i64::MAX,
            expires_us: i64::MAX,
            source_class: self.source_class(row)?,
            importance: f32::from_bits(self.column(row, IMPORTANCE)),
            length: self.column(row, LENGTH),
            text_tokens: self.column(row, TEXT_TOKENS),
            summary_tokens: self.column(row, SUMMARY_TOKENS),
            cluster: 0,
        })
    }

    fn event_time_us(&self, row: u32) -> Result<i64> {
        Ok(self.event_time(row))
    }

    fn length(&self, row: u32) -> Result<u32> {
        Ok(self.column(row, LENGTH))
    }

    fn short_lengths(&self) -> Result<&[u8]> {
        Ok(&[])
    }

    fn source_class(&self, row: u32) -> Result<u8> {
        Ok(self.column(row, SOURCE_CLASS).to_le_bytes()[0])
    }

    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.scope(self.column(row, SCOPE)).key))
    }

    fn id(&self, row: u32) -> Result<Cow<'_, str>> {
        Ok(Cow::Borrowed(&self.body(row).id))
    }

    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>> {
        Ok(self.body(row).source_id.as_deref().map(Cow::Borrowed))
    }

    fn tags(&self, row: u32) -> Result<Vec<String>> {
        Ok(self
            .body(row)
            .tags
            .iter()
            .map(|tag| self.tag(*tag).name.to_string())
            .collect())
    }

    fn tag_rows(&self, tag: &str) -> Result<Option<RoaringBitmap>> {
        let rows = self
            .find_tag(tag)
            .map(|tag| self.row_set(self.tag(tag).rows));
        Ok(rows.filter(|rows| !rows.is_empty()))
    }

    fn untagged_rows(&self) -> Result<RoaringBitmap> {
        Ok(self.row_set(self.untagged))
    }

    fn find(&self, scope_key: &[u8], id: &str, at_seq: u64) -> Result<Option<u32>> {
        // Rows first: a chain may start with a row that is not published yet.
        let end = self.rows_at(at_seq);
        let entry = self
            .find_scope(scope_key)
            .and_then(|scope| self.find_id(scope, id));
        let Some(entry) = entry else { return Ok(None) };
        let mut row = self.arena.words.observe(u64::from(entry) + 1);
        while row != NO_ROW && row >= end {
            // Not `column`: the row may be above the published ones, and is only passed by.
            row = self
                .columns
                .get(u64::from(row) * super::ROW_WORDS + OLDER_ROW);
        }
        Ok((row != NO_ROW).then_some(row))
    }

    fn vectors(&self, space: SpaceNumber) -> u32 {
        self.vectors_below(space, self.rows())
    }

    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(self.body(row).vector(space).map(Cow::Borrowed))
    }

    fn score_rows(
        &self,
        space: SpaceNumber,
        query: &[f32],
        format: VectorFormat,
        rows: &[u32],
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        self.score_vectors(space, query, format, rows, found, scores);
        Ok(())
    }

    fn code_seed(&self, space: SpaceNumber) -> Option<u64> {
        self.coded(space).map(|(_, coder)| coder.seed())
    }

    fn code(&self, space: SpaceNumber, row: u32, code: &mut Vec<u8>) -> Result<Option<f32>> {
        let coded = self.coded(space);
        Ok(coded.and_then(|(own, _)| self.push_code(own, row, code)))
    }

    fn scan_codes(
        &self,
        space: SpaceNumber,
        query: &CodeQuery,
        rows: CodeRows<'_>,
        source: u32,
        accept: Option<Accept<'_>>,
        nearest: &mut Nearest,
    ) -> Result<u64> {
        match rows {
            CodeRows::Listed(rows) => {
                self.scan_rows(space, query, rows.iter().copied(), source, accept, nearest)
            }
            CodeRows::Run(run) => {
                let mut rows = Vec::new();
                self.for_each_row(run, &mut |row| rows.push(row));
                self.scan_rows(space, query, rows.into_iter(), source, accept, nearest)
            }
        }
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        let body = self.body(row);
        Ok(Stored {
            text: body.text.to_string(),
            summary: body.summary.as_deref().map(str::to_owned),
            speaker: body.speaker.as_deref().map(str::to_owned),
            source: body.source.as_deref().map(str::to_owned),
            attributes: body.attributes.to_string(),
            impacts: body.impacts.to_vec(),
        })
    }
}

impl Memtable {
    /// Rows below a published one that have a vector in a space.
    fn vectors_below(&self, space: SpaceNumber, rows: u32) -> u32 {
        let last = rows.checked_sub(1).zip(self.space(space));
        last.map_or(0, |(row, own)| own.count(row))
    }

    fn entry_of(&self, ordinal: u32) -> TermEntry {
        TermEntry {
            rows: self.rows(),
            bounds: TermBounds::UNKNOWN,
            place: TermPlace::Memtable(ordinal),
        }
    }

    /// Calls `visit` with the scopes whose keys lie in the range, ascending by key.
    fn walk_scopes(&self, range: &KeyRange, visit: &mut impl FnMut(u32)) {
        let key_of = |scope: u32| &*self.scope(scope).key;
        self.scope_order
            .walk(&self.arena, &range.from, key_of, |scope| {
                let inside = range.to.as_deref().is_none_or(|to| key_of(scope) < to);
                if inside {
                    visit(scope);
                }
                inside
            });
    }

    /// The published rows of a list of rows.
    fn row_set(&self, list: u32) -> RoaringBitmap {
        let view = View::<1>::new(&self.arena, list);
        (0..view.count_below(self.rows()))
            .map(|place| view.get(place, 0))
            .collect()
    }
}

/// Places in a list of the rows in `rows`.
fn places<const W: usize>(list: &View<'_, W>, rows: &Range<u32>) -> Range<u32> {
    let end = list.count_below(rows.end);
    list.seek(0, rows.start).min(end)..end
}

/// True where a range can hold one key only: `key` up to `key 0x00`, see [`KeyRange::exact`].
fn is_exact(range: &KeyRange) -> bool {
    let next = range.to.as_deref().and_then(|to| to.split_last());
    !range.from.is_empty() && next == Some((&0, range.from.as_slice()))
}

fn walk(
    rows: impl DoubleEndedIterator<Item = (i64, u32)>,
    order: TimeOrder,
    visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
) {
    let mut each = |(time_us, row): (i64, u32)| visit(row, time_us);
    // A break is the visitor's wish, not a failure.
    let _stopped = match order {
        TimeOrder::OldestFirst => rows.into_iter().try_for_each(&mut each),
        TimeOrder::NewestFirst => rows.rev().try_for_each(&mut each),
    };
}
