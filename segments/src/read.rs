//! What a query may ask of a partition, memtable or segment alike.
//!
//! A partition hands out [`Run`]s for a request's scopes; everything else is asked of a run
//! or of a row inside one. An operator never sees a row outside its runs, so isolation is
//! structure and not a filter someone may forget.
//!
//! A partition knows nothing of deletes: rows that died later are kept beside it
//! ([`crate::DeleteSet`], [`crate::DeathLog`]) and subtracted by the reader.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use crate::columns::Column;
use crate::error::SegmentError;
use crate::postings::ListPlace;
use crate::prepared::VectorFormat;
use crate::record::RowFields;
use crate::scope::ScopeRanges;
use crate::scores::{Scores, Sums};
use crate::space::SpaceNumber;
use crate::stream::{EachRow, RowStream};
use crate::vectors::{CodeQuery, Nearest, VectorRuns, dot};

pub use bounds::TermBounds;

mod bounds;

type Result<T> = std::result::Result<T, SegmentError>;

/// A stretch of rows that a request may see.
///
/// In a segment all rows of `rows` belong to the run. In a memtable the run is one scope's
/// rows below `rows.end`; rows of other scopes lie between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Private to the partition that made it (a memtable's scope ordinal).
    pub key: u32,
    /// Row range that holds the run.
    pub rows: Range<u32>,
}

/// What pruning may know of a partition without touching its bulk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Rows, dead ones included.
    pub rows: u32,
    /// Rows with a vector in the main space; see [`Partition::vectors`] for any.
    pub vectors: u32,
    /// Scopes with rows.
    pub scopes: u32,
    /// Smallest and largest event time, µs, both inclusive. Meaningless where `rows` is 0.
    pub event_time_us: (i64, i64),
    /// Smallest and largest commit seq, both inclusive. Meaningless where `rows` is 0.
    pub commit_seq: (u64, u64),
    /// Strongest source class column value.
    pub source_class_max: u8,
}

/// Row count and summed lengths: a run's share of the BM25 population.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Population {
    /// Rows, dead ones included.
    pub rows: u64,
    /// Sum of their exact lengths in counted tokens.
    pub length_sum: u64,
}

/// One scope of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeEntry {
    /// The scope's key.
    pub key: Vec<u8>,
    /// Its rows, dead ones included.
    pub population: Population,
    /// Smallest and largest event time, µs, both inclusive.
    pub event_time_us: (i64, i64),
}

/// The variable-width parts of a row that are read only for rows that are returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stored {
    /// Full text.
    pub text: String,
    /// Short text.
    pub summary: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// JSON object, or empty.
    pub attributes: String,
    /// Tokens with weights, ascending by token.
    pub impacts: Vec<(String, f32)>,
}

/// The byte of [`Partition::short_lengths`] for rows of this length or more.
pub const LENGTH_LONG: u8 = u8::MAX;

/// Order of a walk along a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrder {
    /// Ascending event time.
    OldestFirst,
    /// Descending event time.
    NewestFirst,
}

/// How a walk along terms goes on; see [`Partition::terms_from`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermVisit {
    /// To the next term.
    Continue,
    /// To the first later term that is not below this one.
    SkipTo(Vec<u8>),
    /// Not at all.
    Stop,
}

/// What a partition knows of a term: looked up once a query, good for every run of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermEntry {
    /// Rows of the partition that hold the term, dead ones included; an upper bound in a
    /// memtable.
    pub rows: u32,
    /// What bounds their postings.
    pub bounds: TermBounds,
    pub(crate) place: TermPlace,
}

/// The rows of a run in a window of event time; see [`Partition::window`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowRows {
    /// All rows of a part of the run.
    Run(Run),
    /// These, ascending.
    Listed(Vec<u32>),
}

/// Whether a row passes; see [`Partition::scan_codes`].
pub type Accept<'a> = &'a mut dyn FnMut(u32) -> Result<bool>;

/// The row, where it passes.
#[inline]
pub(crate) fn passing(accept: &mut Option<Accept<'_>>, row: u32) -> Result<Option<u32>> {
    match accept {
        Some(accept) => Ok(accept(row)?.then_some(row)),
        None => Ok(Some(row)),
    }
}

/// Rows whose codes are scanned; see [`Partition::scan_codes`].
#[derive(Debug, Clone, Copy)]
pub enum CodeRows<'a> {
    /// All rows of a run, or of a part of one: in a segment any range of its rows.
    Run(&'a Run),
    /// These, ascending.
    Listed(&'a [u32]),
}

/// What of a look-up is brought near beforehand; see [`Partition::bring_near`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// Where the index says in which block a term would be.
    Index,
    /// The block, which takes the index being near.
    Block,
}

/// Where a partition keeps a term's postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermPlace {
    /// A segment's posting list.
    Segment(ListPlace),
    /// Ordinal of the term.
    Memtable(u32),
}

/// One term's postings inside one run, rows ascending.
pub trait Postings: Send {
    /// Rows of the run that hold the term, dead ones included: a rank difference, no scan.
    fn count(&self) -> u32;

    /// Appends the postings with row < `end` that were not yet read to `rows` and `freqs`.
    ///
    /// # Errors
    /// Damage in the postings.
    fn read_until(&mut self, end: u32, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()>;

    /// What bounds the postings with row < `end` that were not yet read, from skip data alone;
    /// [`TermBounds::NONE`] where there are none, as far as that shows.
    ///
    /// # Errors
    /// Damage in the skip data.
    fn bounds_until(&mut self, end: u32) -> Result<TermBounds> {
        let _ = end;
        Ok(TermBounds::UNKNOWN)
    }

    /// The term's frequency in `row`, 0 if it does not hold it. Rows must be asked in
    /// ascending order; postings before `row` are skipped for good.
    ///
    /// # Errors
    /// Damage in the postings.
    fn freq_at(&mut self, row: u32) -> Result<u32>;

    /// Adds what the postings inside `rows` that were not yet read are worth. Row ranges are
    /// asked in ascending order; postings before `rows` are skipped for good.
    ///
    /// # Errors
    /// Damage in the postings or in a row's length.
    fn add_until(
        &mut self,
        rows: Range<u32>,
        scores: &Scores<'_>,
        sums: &mut Sums<'_>,
    ) -> Result<()> {
        let (mut read, mut freqs) = (Vec::new(), Vec::new());
        self.read_until(rows.end, &mut read, &mut freqs)?;
        for (row, freq) in read.iter().zip(&freqs) {
            if *row >= rows.start {
                sums.add_one(*row, scores.of(*row, *freq)?);
            }
        }
        Ok(())
    }

    /// Adds to `sums` what each of `rows` gets, which are as many; rows without the term get
    /// nothing. Rows ascend, in one call and over all calls; postings before the last of them
    /// are skipped for good.
    ///
    /// # Errors
    /// Damage in the postings or in a row's length.
    fn add_at(&mut self, rows: &[u32], scores: &Scores<'_>, sums: &mut [i32]) -> Result<()> {
        for (row, sum) in rows.iter().zip(sums) {
            match self.freq_at(*row)? {
                0 => {}
                freq => *sum += scores.of(*row, freq)?,
            }
        }
        Ok(())
    }
}

/// All terms of a partition, ascending by bytes, for a merge.
pub trait TermStream {
    /// Moves to the next term; `None` at the end.
    ///
    /// # Errors
    /// Damage in the dictionary.
    fn next_term(&mut self) -> Result<Option<&[u8]>>;

    /// Replaces `rows` and `freqs` by the current term's postings over all rows, ascending.
    ///
    /// # Errors
    /// Damage in the postings.
    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()>;
}

/// A set of rows with all their indexes: a memtable or a segment.
///
/// `row` arguments must be below [`Zone::rows`]; asking for another one is the caller's bug
/// and panics or returns `Corrupt`, never another row's data.
pub trait Partition: Send + Sync + std::fmt::Debug {
    /// What pruning may know.
    fn zone(&self) -> Zone;

    /// The runs that hold the request's scopes, ascending by rows (segment) or scope
    /// (memtable); empty where the partition has none of them. Rows with a commit seq above
    /// `at_seq` are outside.
    ///
    /// # Errors
    /// Damage in the scope directory.
    fn select(&self, scopes: &ScopeRanges, at_seq: u64) -> Result<Vec<Run>>;

    /// The run's share of the BM25 population, dead rows included.
    ///
    /// # Errors
    /// Damage in the scope directory or the length column.
    fn population(&self, run: &Run) -> Result<Population>;

    /// Scopes with at least one row at or below `at_seq`, ascending by key.
    ///
    /// # Errors
    /// Damage in the scope directory.
    fn scopes(&self, at_seq: u64) -> Result<Vec<ScopeEntry>>;

    /// Calls `visit` with every row of the run, ascending.
    fn for_each_row(&self, run: &Run, visit: &mut dyn FnMut(u32));

    /// The rows of `set` that lie in the run, ascending. A partition whose runs are plain
    /// row ranges answers without a walk.
    fn rows_in_run(&self, run: &Run, set: &RoaringBitmap) -> Vec<u32> {
        let mut rows = Vec::new();
        self.for_each_row(run, &mut |row| {
            if set.contains(row) {
                rows.push(row);
            }
        });
        rows
    }

    /// Walks the run's rows with `from_us <= event time < to_us` along the timeline; rows of
    /// one time come in any fixed order. Found by binary search, not by a scan.
    ///
    /// # Errors
    /// Damage in timeline or columns.
    fn walk_time(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        order: TimeOrder,
        visit: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()>;

    /// The run's rows with `from_us <= event time < to_us`; `None` where they are more than
    /// `rows_max` and no plain range. Cheaper than a walk, which gives each row's time.
    ///
    /// # Errors
    /// Damage in timeline or columns.
    fn window(
        &self,
        run: &Run,
        from_us: i64,
        to_us: i64,
        rows_max: usize,
    ) -> Result<Option<WindowRows>> {
        let mut rows = Vec::new();
        let mut take = |row, _| {
            rows.push(row);
            match rows.len() > rows_max {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.walk_time(run, from_us, to_us, TimeOrder::OldestFirst, &mut take)?;
        rows.sort_unstable();
        Ok((rows.len() <= rows_max).then_some(WindowRows::Listed(rows)))
    }

    /// Rows with a vector in a space, dead ones included.
    fn vectors(&self, space: SpaceNumber) -> u32 {
        match space.is_main() {
            true => self.zone().vectors,
            false => 0,
        }
    }

    /// Rows of the run that have a vector in a space, dead ones included.
    ///
    /// # Errors
    /// Damage in the vectors.
    fn vectors_in(&self, space: SpaceNumber, run: &Run) -> Result<u64> {
        let all = self.vectors(space);
        if all == self.zone().rows || all == 0 {
            let rows = self.population(run)?.rows;
            return Ok(if all == 0 { 0 } else { rows });
        }
        let (mut vectors, mut rows) = (0, Vec::new());
        self.for_each_row(run, &mut |row| rows.push(row));
        for row in rows {
            vectors += u64::from(self.vector(space, row)?.is_some());
        }
        Ok(vectors)
    }

    /// What is known of `term`; `None` where no row of the partition holds it.
    ///
    /// # Errors
    /// Damage in the dictionary.
    fn term(&self, term: &[u8]) -> Result<Option<TermEntry>>;

    /// Brings near what looking `terms` up will read, without waiting for it: asked of many
    /// partitions before the first is looked into, their waiting times run side by side. Changes
    /// no answer and reports no damage.
    fn bring_near(&self, terms: &[&[u8]], near: Near) {
        let _ = (terms, near);
    }

    /// Brings near the first of a term's postings; as [`Partition::bring_near`].
    fn bring_postings_near(&self, term: &TermEntry) {
        let _ = term;
    }

    /// As [`Partition::term`] for each of `terms`, in their order; cheaper than one by one.
    ///
    /// # Errors
    /// Damage in the dictionary.
    fn terms_of(&self, terms: &[&[u8]]) -> Result<Vec<Option<TermEntry>>> {
        terms.iter().map(|term| self.term(term)).collect()
    }

    /// The postings inside the run of a term that [`Partition::term`] of the same partition
    /// gave; `None` where no row of the run holds it.
    ///
    /// # Errors
    /// Damage in the postings.
    fn postings_of<'a>(
        &'a self,
        term: &TermEntry,
        run: &Run,
    ) -> Result<Option<Box<dyn Postings + 'a>>>;

    /// The postings of `term` inside the run; `None` where no row of the run holds it.
    ///
    /// # Errors
    /// Damage in dictionary or postings.
    fn postings<'a>(&'a self, term: &[u8], run: &Run) -> Result<Option<Box<dyn Postings + 'a>>> {
        match self.term(term)? {
            Some(entry) => self.postings_of(&entry, run),
            None => Ok(None),
        }
    }

    /// All terms with their postings, for a merge. A memtable must be sealed.
    ///
    /// # Errors
    /// Damage in dictionary or postings.
    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>>;

    /// All rows, for a merge. A memtable must be sealed.
    ///
    /// # Errors
    /// Damage in tags or texts.
    fn row_stream<'a>(&'a self) -> Result<Box<dyn RowStream + 'a>> {
        Ok(Box::new(EachRow::new(self)))
    }

    /// Calls `visit` with the rows of `rows`, and maybe with others, ascending, each with its
    /// value in a column: for a merge.
    ///
    /// # Errors
    /// Damage in the column.
    fn each_value(
        &self,
        column: Column,
        rows: &RoaringBitmap,
        visit: &mut dyn FnMut(u32, u64),
    ) -> Result<()> {
        for row in rows {
            visit(
                row,
                match column {
                    Column::SourceId if self.source_id(row)?.is_none() => 0,
                    Column::SourceId => u64::from(row) + 1,
                    column => column.value(&self.fields(row)?),
                },
            );
        }
        Ok(())
    }

    /// Calls `visit` with the terms from `from` on, ascending by bytes, until it says stop. A
    /// walk that skips costs what it visits, in a segment: a prefix its matches, an automaton
    /// the terms between its dead ends. A memtable sorts all terms that are not below `from`.
    ///
    /// # Errors
    /// Damage in dictionary or postings.
    fn terms_from(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()>;

    /// All fixed-width fields of a row.
    ///
    /// # Errors
    /// Damage in the columns.
    fn fields(&self, row: u32) -> Result<RowFields>;

    /// Event time of a row, µs.
    ///
    /// # Errors
    /// Damage in the column.
    fn event_time_us(&self, row: u32) -> Result<i64>;

    /// Exact length of a row in counted tokens.
    ///
    /// # Errors
    /// Damage in the column.
    fn length(&self, row: u32) -> Result<u32>;

    /// One byte a row: its exact length, or [`LENGTH_LONG`] where that is as long or longer
    /// and [`Partition::length`] must be asked. Empty where the partition keeps no such bytes.
    ///
    /// # Errors
    /// Damage in the column.
    fn short_lengths(&self) -> Result<&[u8]>;

    /// Source class column value of a row; 0 = none.
    ///
    /// # Errors
    /// Damage in the column.
    fn source_class(&self, row: u32) -> Result<u8>;

    /// Importance of a row; NaN = none.
    ///
    /// # Errors
    /// Damage in the column.
    fn importance(&self, row: u32) -> Result<f32> {
        self.fields(row).map(|fields| fields.importance)
    }

    /// Key of the row's scope.
    ///
    /// # Errors
    /// Damage in the scope directory.
    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>>;

    /// Record id of a row.
    ///
    /// # Errors
    /// Damage in the ids.
    fn id(&self, row: u32) -> Result<Cow<'_, str>>;

    /// Source id of a row.
    ///
    /// # Errors
    /// Damage in the source ids.
    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>>;

    /// Tag names of a row, ascending.
    ///
    /// # Errors
    /// Damage in the tags.
    fn tags(&self, row: u32) -> Result<Vec<String>>;

    /// Rows that carry exactly this tag; `None` where there are none. May hold rows of other
    /// scopes and above the reader's seq: intersect with a run.
    ///
    /// # Errors
    /// Damage in the tags.
    fn tag_rows(&self, tag: &str) -> Result<Option<RoaringBitmap>>;

    /// Rows without any tag. As [`Partition::tag_rows`].
    ///
    /// # Errors
    /// Damage in the tags.
    fn untagged_rows(&self) -> Result<RoaringBitmap>;

    /// The newest row with this id in this scope whose commit seq is at most `at_seq`.
    ///
    /// # Errors
    /// Damage in the id dictionary.
    fn find(&self, scope_key: &[u8], id: &str, at_seq: u64) -> Result<Option<u32>>;

    /// The row's vector in a space, in the stored format (see [`crate::VectorSpace`]); `None`
    /// where the record has none.
    ///
    /// # Errors
    /// Damage in the vectors.
    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>>;

    /// Appends the rows of `rows` that have a vector in a space to `found`, and to `scores` the
    /// product of each with `query`, as [`crate::dot`] gives it. `rows` ascend; `format` is the
    /// space's.
    ///
    /// # Errors
    /// Damage in the vectors.
    fn score_rows(
        &self,
        space: SpaceNumber,
        query: &[f32],
        format: VectorFormat,
        rows: &[u32],
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        for row in rows {
            if let Some(vector) = self.vector(space, *row)? {
                found.push(*row);
                scores.push(dot(query, &vector, format));
            }
        }
        Ok(())
    }

    /// As [`Partition::score_rows`] of all rows of a run, in row order.
    ///
    /// # Errors
    /// As [`Partition::score_rows`].
    fn score_run(
        &self,
        space: SpaceNumber,
        query: &[f32],
        format: VectorFormat,
        run: &Run,
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) -> Result<()> {
        let mut rows = Vec::new();
        self.for_each_row(run, &mut |row| rows.push(row));
        self.score_rows(space, query, format, &rows, found, scores)
    }

    /// Seed of the codes of its vectors in a space, see [`crate::code_seed`]; `None` where it
    /// keeps none.
    fn code_seed(&self, space: SpaceNumber) -> Option<u64> {
        let _ = space;
        None
    }

    /// Appends the code of a row's vector in a space to `code` and gives its factor; `None`, and nothing
    /// appended, where the row has no vector or the partition no codes.
    ///
    /// # Errors
    /// Damage in the codes.
    fn code(&self, space: SpaceNumber, row: u32, code: &mut Vec<u8>) -> Result<Option<f32>> {
        let _ = (space, row, code);
        Ok(None)
    }

    /// Offers those of `rows` that have a vector in a space to `nearest`, as rows of `source`; gives how
    /// many codes were compared. `accept` is asked for a row only where its estimate would be
    /// kept, so a filter that most rows pass costs next to nothing; without it all pass.
    ///
    /// Only where [`Partition::code_seed`] is the query's: a partition without codes offers
    /// none.
    ///
    /// # Errors
    /// Damage in the codes; those of `accept`.
    fn scan_codes(
        &self,
        space: SpaceNumber,
        query: &CodeQuery,
        rows: CodeRows<'_>,
        source: u32,
        accept: Option<Accept<'_>>,
        nearest: &mut Nearest,
    ) -> Result<u64> {
        let _ = (space, query, rows, source, accept, nearest);
        Ok(0)
    }

    /// Which rows lie close together in a space; `None` where nobody has looked.
    ///
    /// # Errors
    /// Damage in the runs.
    fn vector_runs(&self, space: SpaceNumber) -> Result<Option<&VectorRuns>> {
        let _ = space;
        Ok(None)
    }

    /// Text and the like. The only call that decompresses.
    ///
    /// # Errors
    /// Damage in the text blocks.
    fn stored(&self, row: u32) -> Result<Stored>;
}
