//! The memtable's plain twin: a vector of rows, every question answered by a scan.

#![expect(clippy::cast_possible_truncation, reason = "a model of few rows")]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::error::SegmentError;
use crate::prepared::Prepared;
use crate::read::{
    Partition, Population, Postings, Run, ScopeEntry, Stored, TermEntry, TermStream, TermVisit,
    TimeOrder, Zone,
};
use crate::record::{RowFields, SourceClass};
use crate::scope::ScopeRanges;
use crate::space::SpaceNumber;

type Result<T> = std::result::Result<T, SegmentError>;

#[derive(Debug)]
struct Row {
    prepared: Arc<Prepared>,
    seq: u64,
    commit_time_us: i64,
}

/// A run's key is the scope's place among the scopes in the order of their first rows.
#[derive(Debug, Default)]
pub(super) struct Naive {
    rows: Vec<Row>,
    scopes: Vec<Vec<u8>>,
}

impl Naive {
    pub(super) fn insert(&mut self, prepared: &Arc<Prepared>, seq: u64, commit_time_us: i64) {
        let key = prepared.record.scope.key();
        if !self.scopes.iter().any(|known| known == key) {
            self.scopes.push(key.to_vec());
        }
        self.rows.push(Row {
            prepared: Arc::clone(prepared),
            seq,
            commit_time_us,
        });
    }

    fn all(&self) -> impl Iterator<Item = (u32, &Row)> {
        (0..).zip(&self.rows)
    }

    fn in_run(&self, run: &Run) -> impl Iterator<Item = (u32, &Row)> {
        let (key, rows) = (self.scopes[run.key as usize].clone(), run.rows.clone());
        let inside = move |row: &(u32, &Row)| {
            rows.contains(&row.0) && row.1.prepared.record.scope.key() == key
        };
        self.all().filter(inside)
    }

    fn row(&self, row: u32) -> &Row {
        &self.rows[row as usize]
    }

    fn rows_with(&self, wanted: impl Fn(&Prepared) -> bool) -> RoaringBitmap {
        self.all()
            .filter(|(_, row)| wanted(&row.prepared))
            .map(|(row, _)| row)
            .collect()
    }
}

fn freq(row: &Row, term: &[u8]) -> u32 {
    row.prepared
        .analyzed
        .terms()
        .find(|(known, _)| *known == term)
        .map_or(0, |(_, freq)| freq)
}

/// Postings and terms alike: a list that is read forwards.
struct Scan {
    found: Vec<(u32, u32)>,
    next: usize,
    count: u32,
}

impl Postings for Scan {
    fn count(&self) -> u32 {
        self.count
    }

    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        while let Some((row, freq)) = self.found.get(self.next).filter(|found| found.0 < end) {
            rows.push(*row);
            freqs.push(*freq);
            self.next += 1;
        }
        Ok(())
    }

    fn freq_at(&mut self, row: u32) -> Result<u32> {
        while self.found.get(self.next).is_some_and(|found| found.0 < row) {
            self.next += 1;
        }
        Ok(self
            .found
            .get(self.next)
            .filter(|found| found.0 == row)
            .map_or(0, |found| found.1))
    }
}

struct AllTerms {
    terms: BTreeMap<Vec<u8>, Vec<(u32, u32)>>,
    current: Vec<(u32, u32)>,
    name: Vec<u8>,
}

impl TermStream for AllTerms {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        let Some((name, postings)) = self.terms.pop_first() else {
            return Ok(None);
        };
        (self.name, self.current) = (name, postings);
        Ok(Some(&self.name))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        *rows = self.current.iter().map(|posting| posting.0).collect();
        *freqs = self.current.iter().map(|posting| posting.1).collect();
        Ok(())
    }
}

impl Partition for Naive {
    fn zone(&self) -> Zone {
        let times = || {
            self.rows
                .iter()
                .map(|row| row.prepared.record.event_time_us)
        };
        let classes = self.rows.iter().map(|row| row.prepared.record.source_class);
        Zone {
            rows: self.rows.len() as u32,
            vectors: self
                .rows
                .iter()
                .filter(|row| row.prepared.vectors.get(SpaceNumber::MAIN).is_some())
                .count() as u32,
            scopes: self.scopes.len() as u32,
            event_time_us: (
                times().min().unwrap_or(i64::MAX),
                times().max().unwrap_or(i64::MIN),
            ),
            commit_seq: (
                self.rows.first().map_or(0, |row| row.seq),
                self.rows.last().map_or(0, |row| row.seq),
            ),
            source_class_max: classes.map(SourceClass::to_column).max().unwrap_or(0),
        }
    }

    fn select(&self, scopes: &ScopeRanges, at_seq: u64) -> Result<Vec<Run>> {
        let end = self.rows.iter().filter(|row| row.seq <= at_seq).count() as u32;
        let mut keys: Vec<(&[u8], u32)> = self.scopes.iter().map(Vec::as_slice).zip(0..).collect();
        keys.sort();
        let wanted = keys.into_iter().filter(|(key, _)| scopes.contains(key));
        let runs = wanted.filter_map(|(_, key)| {
            let first = self.in_run(&Run { key, rows: 0..end }).next()?.0;
            Some(Run {
                key,
                rows: first..end,
            })
        });
        Ok(runs.collect())
    }

    fn population(&self, run: &Run) -> Result<Population> {
        let lengths = self
            .in_run(run)
            .map(|(_, row)| u64::from(row.prepared.analyzed.length()));
        Ok(Population {
            rows: self.in_run(run).count() as u64,
            length_sum: lengths.sum(),
        })
    }

    fn scopes(&self, at_seq: u64) -> Result<Vec<ScopeEntry>> {
        let rows = || self.rows.iter().filter(|row| row.seq <= at_seq);
        let keys: BTreeSet<&[u8]> = rows().map(|row| row.prepared.record.scope.key()).collect();
        let entry = |key: &[u8]| {
            let own = || rows().filter(|row| row.prepared.record.scope.key() == key);
            let times = || own().map(|row| row.prepared.record.event_time_us);
            ScopeEntry {
                key: key.to_vec(),
                population: Population {
                    rows: own().count() as u64,
                    length_sum: own()
                        .map(|row| u64::from(row.prepared.analyzed.length()))
                        .sum(),
                },
                event_time_us: (times().min().expect("a row"), times().max().expect("a row")),
            }
        };
        Ok(keys.into_iter().map(entry).collect())
    }

    fn for_each_row(&self, run: &Run, visit: &mut dyn FnMut(u32)) {
        self.in_run(run).for_each(|(row, _)| visit(row));
    }

    fn walk_time(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        order: TimeOrder,
        visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut found: Vec<(i64, u32)> = self
            .in_run(run)
            .map(|(at, row)| (row.prepared.record.event_time_us, at))
            .collect();
        found.retain(|(time_us, _)| from_us <= *time_us && *time_us < to_us);
        found.sort_unstable();
        if order == TimeOrder::NewestFirst {
            found.reverse();
        }
        for (time_us, row) in found {
            if visit(row, time_us).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn term(&self, _: &[u8]) -> Result<Option<TermEntry>> {
        unreachable!("asked for the postings at once")
    }

    fn postings_of<'a>(&'a self, _: &TermEntry, _: &Run) -> Result<Option<Box<dyn Postings + 'a>>> {
        unreachable!("asked for the postings at once")
    }

    fn postings<'a>(&'a self, term: &[u8], run: &Run) -> Result<Option<Box<dyn Postings + 'a>>> {
        let mut found: Vec<_> = self
            .in_run(run)
            .map(|(at, row)| (at, freq(row, term)))
            .collect();
        found.retain(|found| found.1 > 0);
        let count = found.len() as u32;
        Ok((count > 0).then(|| {
            Box::new(Scan {
                found,
                next: 0,
                count,
            }) as Box<dyn Postings>
        }))
    }

    fn terms_from(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()> {
        let (mut stream, mut from) = (self.terms()?, from.to_vec());
        while let Some(term) = stream.next_term()? {
            if *term < *from {
                continue;
            }
            let entry = self.term(term)?.expect("a term of the stream is held");
            match visit(term, &entry) {
                TermVisit::Continue => {}
                TermVisit::SkipTo(to) => from = to,
                TermVisit::Stop => break,
            }
        }
        Ok(())
    }

    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>> {
        let mut terms: BTreeMap<Vec<u8>, Vec<(u32, u32)>> = BTreeMap::new();
        for (at, row) in self.all() {
            for (term, freq) in row.prepared.analyzed.terms() {
                terms.entry(term.to_vec()).or_default().push((at, freq));
            }
        }
        Ok(Box::new(AllTerms {
            terms,
            current: Vec::new(),
            name: Vec::new(),
        }))
    }

    fn fields(&self, row: u32) -> Result<RowFields> {
        let Row {
            prepared,
            seq,
            commit_time_us,
        } = self.row(row);
        let record = &prepared.record;
        Ok(RowFields {
            event_time_us: record.event_time_us,
            commit_seq: *seq,
            commit_time_us: *commit_time_us,
            valid_from_us: record.event_time_us.min(*commit_time_us),
            valid_to_us: i64::MAX,
            expires_us: i64::MAX,
            source_class: SourceClass::to_column(record.source_class),
            importance: record.importance.unwrap_or(f32::NAN),
            length: prepared.analyzed.length(),
            text_tokens: prepared.text_tokens,
            summary_tokens: prepared.summary_tokens,
            cluster: 0,
        })
    }

    fn event_time_us(&self, row: u32) -> Result<i64> {
        Ok(self.row(row).prepared.record.event_time_us)
    }

    fn length(&self, row: u32) -> Result<u32> {
        Ok(self.row(row).prepared.analyzed.length())
    }

    fn short_lengths(&self) -> Result<&[u8]> {
        Ok(&[])
    }

    fn source_class(&self, row: u32) -> Result<u8> {
        Ok(SourceClass::to_column(
            self.row(row).prepared.record.source_class,
        ))
    }

    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.row(row).prepared.record.scope.key()))
    }

    fn id(&self, row: u32) -> Result<Cow<'_, str>> {
        Ok(Cow::Borrowed(&self.row(row).prepared.record.id))
    }

    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>> {
        Ok(self
            .row(row)
            .prepared
            .record
            .source_id
            .as_deref()
            .map(Cow::Borrowed))
    }

    fn tags(&self, row: u32) -> Result<Vec<String>> {
        Ok(self.row(row).prepared.record.tags.clone())
    }

    fn tag_rows(&self, tag: &str) -> Result<Option<RoaringBitmap>> {
        let rows = self.rows_with(|prepared| prepared.record.tags.iter().any(|own| own == tag));
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    fn untagged_rows(&self) -> Result<RoaringBitmap> {
        Ok(self.rows_with(|prepared| prepared.record.tags.is_empty()))
    }

    fn find(&self, scope_key: &[u8], id: &str, at_seq: u64) -> Result<Option<u32>> {
        let newest = self.all().filter(|(_, row)| {
            let record = &row.prepared.record;
            row.seq <= at_seq && record.scope.key() == scope_key && record.id == id
        });
        Ok(newest.last().map(|(row, _)| row))
    }

    fn vectors(&self, space: SpaceNumber) -> u32 {
        let rows = self.rows.iter();
        let with = rows.filter(|row| row.prepared.vectors.get(space).is_some());
        u32::try_from(with.count()).expect("few rows")
    }

    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        let vectors = &self.row(row).prepared.vectors;
        Ok(vectors.get(space).map(Cow::Borrowed))
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        let record = &self.row(row).prepared.record;
        Ok(Stored {
            text: record.text.clone(),
            summary: record.summary.clone(),
            speaker: record.speaker.clone(),
            source: record.source.clone(),
            attributes: record.attributes.clone(),
            impacts: record.impacts.clone(),
        })
    }
}
