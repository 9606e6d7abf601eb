//! A partition that answers each row for itself: what a merge reads through it, it reads by the
//! calls that queries use.

use std::borrow::Cow;
use std::ops::ControlFlow;

use chronolith_segments::{
    Partition, Population, Postings, RowFields, Run, ScopeEntry, ScopeRanges, SegmentError,
    SpaceNumber, Stored, TermEntry, TermStream, TermVisit, TimeOrder, Zone,
};
use roaring::RoaringBitmap;

type Result<T> = std::result::Result<T, SegmentError>;

#[derive(Debug)]
pub struct Plain<'a>(pub &'a dyn Partition);

impl Partition for Plain<'_> {
    fn zone(&self) -> Zone {
        self.0.zone()
    }

    fn select(&self, scopes: &ScopeRanges, at_seq: u64) -> Result<Vec<Run>> {
        self.0.select(scopes, at_seq)
    }

    fn population(&self, run: &Run) -> Result<Population> {
        self.0.population(run)
    }

    fn scopes(&self, at_seq: u64) -> Result<Vec<ScopeEntry>> {
        self.0.scopes(at_seq)
    }

    fn for_each_row(&self, run: &Run, visit: &mut dyn FnMut(u32)) {
        self.0.for_each_row(run, visit);
    }

    fn walk_time(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        order: TimeOrder,
        visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()> {
        self.0.walk_time(run, from_us, to_us, order, visit)
    }

    fn term(&self, term: &[u8]) -> Result<Option<TermEntry>> {
        self.0.term(term)
    }

    fn postings_of<'a>(
        &'a self,
        term: &TermEntry,
        run: &Run,
    ) -> Result<Option<Box<dyn Postings + 'a>>> {
        self.0.postings_of(term, run)
    }

    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>> {
        self.0.terms()
    }

    fn terms_from(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()> {
        self.0.terms_from(from, visit)
    }

    fn fields(&self, row: u32) -> Result<RowFields> {
        self.0.fields(row)
    }

    fn event_time_us(&self, row: u32) -> Result<i64> {
        self.0.event_time_us(row)
    }

    fn length(&self, row: u32) -> Result<u32> {
        self.0.length(row)
    }

    fn short_lengths(&self) -> Result<&[u8]> {
        self.0.short_lengths()
    }

    fn source_class(&self, row: u32) -> Result<u8> {
        self.0.source_class(row)
    }

    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        self.0.scope_key(row)
    }

    fn id(&self, row: u32) -> Result<Cow<'_, str>> {
        self.0.id(row)
    }

    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>> {
        self.0.source_id(row)
    }

    fn tags(&self, row: u32) -> Result<Vec<String>> {
        self.0.tags(row)
    }

    fn tag_rows(&self, tag: &str) -> Result<Option<RoaringBitmap>> {
        self.0.tag_rows(tag)
    }

    fn untagged_rows(&self) -> Result<RoaringBitmap> {
        self.0.untagged_rows()
    }

    fn find(&self, scope_key: &[u8], id: &str, at_seq: u64) -> Result<Option<u32>> {
        self.0.find(scope_key, id, at_seq)
    }

    fn vectors(&self, space: SpaceNumber) -> u32 {
        self.0.vectors(space)
    }

    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        self.0.vector(space, row)
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        self.0.stored(row)
    }
}
