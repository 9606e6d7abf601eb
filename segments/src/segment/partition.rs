//! How does a segment answer what a query may ask?

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use super::stream::SegmentRows;
use super::{Result, Segment};
use crate::columns::Column;
use crate::error::SegmentError;
use crate::postings::{ListPlace, PostingsCursor, TermInfo};
use crate::prepared::VectorFormat;
use crate::read::{
    Accept, CodeRows, Near, Partition, Population, Postings, Run, ScopeEntry, Stored, TermBounds,
    TermEntry, TermPlace, TermStream, TermVisit, TimeOrder, WindowRows, Zone,
};
use crate::record::RowFields;
use crate::scope::ScopeRanges;
use crate::space::SpaceNumber;
use crate::stream::RowStream;
use crate::text::{decode_detailed, decode_distilled};
use crate::timeline::TimeWalk;
use crate::vectors::{CodeQuery, Nearest, VectorRuns, Vectors, code_seed};

impl Segment {
    /// Cuts a row range into the stretches with a commit seq of at most `at_seq`. Only a
    /// snapshot older than the segment pays for the look at each row.
    fn visible(&self, rows: Range<u32>, at_seq: u64, out: &mut Vec<Run>) -> Result<()> {
        if self.loaded.footer.zone.commit_seq.1 <= at_seq {
            push_joined(out, rows);
            return Ok(());
        }
        for row in rows {
            if self.columns.commit_seq(row)? <= at_seq {
                push_joined(out, row..row + 1);
            }
        }
        Ok(())
    }

    /// Population of rows inside one scope, of which they may be a part.
    fn population_in_scope(&self, scope: usize, rows: &Range<u32>) -> Result<Population> {
        let own = self.scopes.rows_of(scope);
        if rows.start <= own.start && own.end <= rows.end {
            return Ok(self.scopes.population(scope..scope + 1));
        }
        let mut population = Population::default();
        for row in own.start.max(rows.start)..own.end.min(rows.end) {
            population.rows += 1;
            population.length_sum += u64::from(self.columns.length(row)?);
        }
        Ok(population)
    }

    /// What the dictionary says of a term, with the length of its only row.
    pub(super) fn entry_of(&self, info: &TermInfo) -> Result<TermEntry> {
        let bounds = match (info.place, info.bounds.pairs()) {
            // Cut, or not there: see [`TermInfo`].
            (ListPlace::One { row, freq }, [(_, 0 | 255..)]) => {
                TermBounds::one(freq, self.columns.length(row)?)
            }
            _ => info.bounds,
        };
        Ok(TermEntry {
            rows: info.df,
            bounds,
            place: TermPlace::Segment(info.place),
        })
    }

    pub(super) fn check_row(&self, row: u32) -> Result<()> {
        if row < self.scopes.rows() {
            return Ok(());
        }
        let message = format!("row {row} asked for in a segment of {}", self.scopes.rows());
        Err(SegmentError::corrupt(
            &*self.loaded.name,
            "scopes",
            0,
            message,
        ))
    }
}

fn push_joined(out: &mut Vec<Run>, rows: Range<u32>) {
    match out.last_mut() {
        _ if rows.is_empty() => {}
        Some(last) if last.rows.end == rows.start => last.rows.end = rows.end,
        _ => out.push(Run { key: 0, rows }),
    }
}

impl Partition for Segment {
    fn zone(&self) -> Zone {
        self.loaded.footer.zone
    }

    fn select(&self, scopes: &ScopeRanges, at_seq: u64) -> Result<Vec<Run>> {
        let mut found = Vec::new();
        if self.loaded.footer.zone.commit_seq.0 <= at_seq {
            for range in scopes.ranges() {
                self.visible(self.scopes.rows_in(range), at_seq, &mut found)?;
            }
        }
        Ok(found)
    }

    fn population(&self, run: &Run) -> Result<Population> {
        if run.rows.is_empty() {
            return Ok(Population::default());
        }
        self.check_row(run.rows.end - 1)?;
        let scopes = self.scopes.of_rows(&run.rows);
        let (first, last) = (scopes.start, scopes.end - 1);
        let mut population = self.population_in_scope(first, &run.rows)?;
        if last > first {
            let inner = self.scopes.population(first + 1..last);
            let end = self.population_in_scope(last, &run.rows)?;
            population.rows += inner.rows + end.rows;
            population.length_sum += inner.length_sum + end.length_sum;
        }
        Ok(population)
    }

    fn scopes(&self, at_seq: u64) -> Result<Vec<ScopeEntry>> {
        let all = 0..self.scopes.len();
        if self.loaded.footer.zone.commit_seq.1 <= at_seq {
            return Ok(all.map(|scope| self.scopes.entry(scope)).collect());
        }
        let mut entries = Vec::new();
        for scope in all {
            let mut entry: Option<ScopeEntry> = None;
            for row in self.scopes.rows_of(scope) {
                if self.columns.commit_seq(row)? > at_seq {
                    continue;
                }
                let (time, length) = (self.columns.event_time_us(row)?, self.columns.length(row)?);
                let entry = entry.get_or_insert_with(|| ScopeEntry {
                    key: self.scopes.key(scope).to_vec(),
                    population: Population::default(),
                    event_time_us: (time, time),
                });
                entry.population.rows += 1;
                entry.population.length_sum += u64::from(length);
                entry.event_time_us = (
                    entry.event_time_us.0.min(time),
                    entry.event_time_us.1.max(time),
                );
            }
            entries.extend(entry);
        }
        Ok(entries)
    }

    fn for_each_row(&self, run: &Run, visit: &mut dyn FnMut(u32)) {
        run.rows.clone().for_each(visit);
    }

    fn rows_in_run(&self, run: &Run, set: &RoaringBitmap) -> Vec<u32> {
        // In bulk: some ten times faster than row by row.
        let rows = set.range_cardinality(run.rows.clone());
        let mut rows = vec![0; usize::try_from(rows).unwrap_or(0)];
        let filled = set.range(run.rows.clone()).next_many(&mut rows).len();
        rows.truncate(filled);
        rows
    }

    fn walk_time(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        order: TimeOrder,
        visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()> {
        if let Some(last) = run.rows.end.checked_sub(1) {
            self.check_row(last)?;
        }
        let walk = TimeWalk {
            from_us,
            to_us,
            order,
        };
        self.timeline
            .walk(&self.scopes, &self.columns, &run.rows, walk, visit)
    }

    fn window(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        rows_max: usize,
    ) -> Result<Option<WindowRows>> {
        if let Some(last) = run.rows.end.checked_sub(1) {
            self.check_row(last)?;
        }
        let walk = TimeWalk {
            from_us,
            to_us,
            order: TimeOrder::OldestFirst,
        };
        let (scopes, columns) = (&self.scopes, &self.columns);
        self.timeline
            .window_rows(scopes, columns, &run.rows, walk, rows_max)
    }

    fn vectors(&self, space: SpaceNumber) -> u32 {
        self.vectors_of(space).map_or(0, Vectors::count)
    }

    fn vectors_in(&self, space: SpaceNumber, run: &Run) -> Result<u64> {
        let vectors = self.vectors_of(space);
        let ordinals = vectors.map(|vectors| vectors.ordinals(run.rows.clone()));
        Ok(ordinals
            .transpose()?
            .map_or(0, |ordinals| ordinals.len() as u64))
    }

    fn term(&self, term: &[u8]) -> Result<Option<TermEntry>> {
        let found = self.terms()?.get(term)?;
        found.map(|info| self.entry_of(&info)).transpose()
    }

    fn bring_near(&self, terms: &[&[u8]], near: Near) {
        // A dictionary that does not open says so when a term is looked up.
        if let Ok(dictionary) = self.terms() {
            dictionary.bring_near(terms, near);
        }
    }

    fn bring_postings_near(&self, term: &TermEntry) {
        if let (TermPlace::Segment(place), Ok(terms)) = (term.place, self.terms()) {
            terms.bring_postings_near(place);
        }
    }

    fn terms_of(&self, terms: &[&[u8]]) -> Result<Vec<Option<TermEntry>>> {
        let mut infos = Vec::with_capacity(terms.len());
        self.terms()?.get_all(terms, &mut infos)?;
        let entry = |info: Option<TermInfo>| info.map(|info| self.entry_of(&info)).transpose();
        infos.into_iter().map(entry).collect()
    }

    fn postings_of<'a>(
        &'a self,
        term: &TermEntry,
        run: &Run,
    ) -> Result<Option<Box<dyn Postings + 'a>>> {
        let TermPlace::Segment(place) = term.place else {
            unreachable!("a memtable's term is not asked of a segment");
        };
        let info = TermInfo {
            df: term.rows,
            bounds: term.bounds,
            place,
        };
        let cursor = self.terms()?.postings_of(&info, run.rows.clone())?;
        Ok(cursor.map(PostingsCursor::boxed))
    }

    fn terms_from(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()> {
        self.terms()?.walk(from, &mut |term, info| {
            Ok(visit(term, &self.entry_of(&info)?))
        })
    }

    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>> {
        Ok(Box::new(self.terms()?.stream()))
    }

    fn row_stream<'a>(&'a self) -> Result<Box<dyn RowStream + 'a>> {
        Ok(Box::new(SegmentRows::new(self)?))
    }

    fn each_value(
        &self,
        column: Column,
        _: &RoaringBitmap,
        visit: &mut dyn FnMut(u32, u64),
    ) -> Result<()> {
        self.columns.each_value(column, visit)
    }

    fn fields(&self, row: u32) -> Result<RowFields> {
        self.columns.fields(row)
    }

    fn event_time_us(&self, row: u32) -> Result<i64> {
        self.columns.event_time_us(row)
    }

    fn length(&self, row: u32) -> Result<u32> {
        self.columns.length(row)
    }

    fn short_lengths(&self) -> Result<&[u8]> {
        Ok(self.short_lengths.get(|| self.columns.short_lengths())?)
    }

    fn source_class(&self, row: u32) -> Result<u8> {
        self.columns.source_class(row)
    }

    fn importance(&self, row: u32) -> Result<f32> {
        self.columns.importance(row)
    }

    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        self.check_row(row)?;
        Ok(Cow::Borrowed(self.scopes.key(self.scopes.of_row(row))))
    }

    fn id(&self, row: u32) -> Result<Cow<'_, str>> {
        self.ids.get(row).map(Cow::Owned)
    }

    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>> {
        let Some(number) = self.columns.source_id(row)? else {
            return Ok(None);
        };
        let Some(names) = &self.source_ids else {
            let message = format!("row {row} has source id {number} and there are none");
            return Err(SegmentError::corrupt(
                &*self.loaded.name,
                "source_ids",
                0,
                message,
            ));
        };
        names.get(number).map(|name| Some(Cow::Owned(name)))
    }

    fn tags(&self, row: u32) -> Result<Vec<String>> {
        self.tags()?.of_row(row)
    }

    fn tag_rows(&self, tag: &str) -> Result<Option<RoaringBitmap>> {
        self.tags()?.rows_of(tag)
    }

    fn untagged_rows(&self) -> Result<RoaringBitmap> {
        self.tags()?.untagged()
    }

    fn find(&self, scope_key: &[u8], id: &str, at_seq: u64) -> Result<Option<u32>> {
        match self.scopes.find(scope_key) {
            Some(scope) => self
                .ids
                .find(&self.scopes, &self.columns, scope, id, at_seq),
            None => Ok(None),
        }
    }

    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        self.check_row(row)?;
        self.vectors_of(space)
            .map_or(Ok(None), |vectors| vectors.get(row))
    }

    fn score_rows(
        &self,
        space: SpaceNumber,
        query: &[f32],
        _: VectorFormat,
        rows: &[u32],
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        self.vectors_of(space).map_or(Ok(()), |vectors| {
            vectors.score_rows(query, rows, found, scores)
        })
    }

    fn score_run(
        &self,
        space: SpaceNumber,
        query: &[f32],
        _: VectorFormat,
        run: &Run,
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        self.vectors_of(space).map_or(Ok(()), |vectors| {
            vectors.score_range(query, run.rows.clone(), found, scores)
        })
    }

    fn code_seed(&self, space: SpaceNumber) -> Option<u64> {
        let own = self.space(space);
        own.map(|_| code_seed(&self.store_id()))
    }

    fn code(&self, space: SpaceNumber, row: u32, code: &mut Vec<u8>) -> Result<Option<f32>> {
        self.code_of(space, row, code)
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
        self.scan_codes_of(space, query, rows, source, accept, nearest)
    }

    fn vector_runs(&self, space: SpaceNumber) -> Result<Option<&VectorRuns>> {
        self.runs_of(space)
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        self.check_row(row)?;
        let mut stored = self.texts()?.detailed.row(row, decode_detailed)?;
        if let Some(distilled) = &self.texts()?.distilled {
            stored.summary = distilled.row(row, decode_distilled)?;
        }
        Ok(stored)
    }
}
