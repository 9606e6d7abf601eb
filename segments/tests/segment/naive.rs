//! Rows in a plain vector: an input of the writer, and what the reader is compared with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use chronolith_segments::{
    Bucket, MergeInput, NumberedSpace, Partition, Population, Postings, ReadMode, RowFields, Run,
    Scope, ScopeEntry, ScopeRanges, Segment, SegmentError, SegmentSpec, SpaceNumber, Stored,
    TermEntry, TermStream, TermVisit, TimeOrder, TokenCounter, VectorFormat, VectorSpace, Written,
    Zone, write_segment,
};
use roaring::RoaringBitmap;

use crate::memory::MemoryVfs;

type Result<T> = std::result::Result<T, SegmentError>;

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub scope: Scope,
    pub id: String,
    pub fields: RowFields,
    pub tags: Vec<String>,
    pub terms: BTreeMap<Vec<u8>, u32>,
    pub source_id: Option<String>,
    pub vector: Option<Vec<u8>>,
    /// In the space [`OTHER`].
    pub other: Option<Vec<u8>>,
    pub stored: Stored,
}

impl Row {
    /// A row of the plainest kind.
    pub fn plain(scope: &str, id: &str, event_time_us: i64, seq: u64, text: &str) -> Self {
        let mut terms = BTreeMap::new();
        for word in text.split_whitespace() {
            *terms.entry(word.as_bytes().to_vec()).or_default() += 1;
        }
        Self {
            scope: Scope::parse(scope).expect("a scope"),
            id: id.into(),
            fields: RowFields {
                event_time_us,
                commit_seq: seq,
                commit_time_us: event_time_us + 5,
                valid_from_us: event_time_us,
                valid_to_us: i64::MAX,
                expires_us: i64::MAX,
                source_class: 0,
                importance: f32::NAN,
                length: terms.values().sum(),
                text_tokens: TokenCounter::BytesOverFour.cost(text),
                summary_tokens: 0,
                cluster: 0,
            },
            tags: Vec::new(),
            terms,
            source_id: None,
            vector: None,
            other: None,
            stored: Stored {
                text: text.into(),
                ..Stored::default()
            },
        }
    }

    /// What orders rows of a segment.
    pub fn place(&self) -> (&[u8], u32, i64, u64) {
        (
            self.scope.key(),
            self.fields.cluster,
            self.fields.event_time_us,
            self.fields.commit_seq,
        )
    }
}

/// Fields with the float as bits: NaN equals itself.
pub fn bits(fields: &RowFields) -> (RowFields, u32) {
    (
        RowFields {
            importance: 0.0,
            ..*fields
        },
        fields.importance.to_bits(),
    )
}

impl Row {
    pub fn in_space(&self, space: SpaceNumber) -> Option<&[u8]> {
        match space {
            SpaceNumber::MAIN => self.vector.as_deref(),
            OTHER => self.other.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Naive {
    pub rows: Vec<Row>,
}

pub const STORE_ID: [u8; 16] = *b"sixteen byte id.";
pub const DIM: u32 = 3;

pub fn spec(file_number: u64) -> SegmentSpec {
    SegmentSpec {
        store_id: STORE_ID,
        file_number,
        analyzer_id: "default-2".into(),
        spaces: vec![NumberedSpace::main(VectorSpace {
            model: "m".into(),
            dim: DIM,
            format: VectorFormat::F32,
            normalised: true,
        })],
        layout: SpaceNumber::MAIN,
        token_counter: TokenCounter::BytesOverFour,
        bucket: Bucket {
            level: 2,
            start_us: -1_000_000_000_000_000_000,
            end_us: 1_000_000_000_000_000_000,
        },
        lineage: vec![3, 9],
        train_dictionary: false,
    }
}

/// A space beside the main one, of another dimension and form.
pub const OTHER: SpaceNumber = SpaceNumber::new(2);
pub const OTHER_DIM: u32 = 5;

/// As [`spec`], in a store with a second space.
pub fn spec_of_two(file_number: u64) -> SegmentSpec {
    let mut spec = spec(file_number);
    spec.spaces.push(NumberedSpace {
        number: OTHER,
        name: "other".into(),
        space: VectorSpace {
            model: "n".into(),
            dim: OTHER_DIM,
            format: VectorFormat::F16,
            normalised: false,
        },
    });
    spec
}

pub fn dir() -> &'static Path {
    Path::new("segments")
}

/// Writes all rows of one partition.
pub fn write_all(vfs: &MemoryVfs, spec: &SegmentSpec, rows: Vec<Row>) -> Written {
    let naive = Naive { rows };
    let keep = (0..u32::try_from(naive.rows.len()).expect("few")).collect();
    write_segment(
        vfs,
        dir(),
        spec,
        &[MergeInput {
            partition: &naive,
            keep,
        }],
    )
    .expect("written")
}

pub fn open(vfs: &MemoryVfs, written: &Written, mode: ReadMode) -> Segment {
    Segment::open(vfs, dir(), &written.meta.file, STORE_ID, mode).expect("sound")
}

/// Row and frequency.
pub type Pairs = Vec<(u32, u32)>;

struct NaiveTerms {
    terms: Vec<(Vec<u8>, Pairs)>,
    at: usize,
}

impl TermStream for NaiveTerms {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        self.at += 1;
        Ok(self.terms.get(self.at - 1).map(|(term, _)| &term[..]))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        (*rows, *freqs) = self.terms[self.at - 1].1.iter().copied().unzip();
        Ok(())
    }
}

/// The terms of these rows with their postings.
pub fn terms_of(rows: &[Row]) -> BTreeMap<Vec<u8>, Pairs> {
    let mut terms: BTreeMap<Vec<u8>, Pairs> = BTreeMap::new();
    for (row, content) in (0..).zip(rows) {
        for (term, freq) in &content.terms {
            terms.entry(term.clone()).or_default().push((row, *freq));
        }
    }
    terms
}

impl Naive {
    fn row(&self, row: u32) -> &Row {
        &self.rows[row as usize]
    }
}

const NOT_ASKED: &str = "the writer does not ask";

impl Partition for Naive {
    fn zone(&self) -> Zone {
        Zone {
            rows: u32::try_from(self.rows.len()).expect("few"),
            vectors: self
                .rows
                .iter()
                .map(|row| u32::from(row.vector.is_some()))
                .sum(),
            scopes: 0,
            event_time_us: (0, 0),
            commit_seq: (0, 0),
            source_class_max: 0,
        }
    }

    fn select(&self, _: &ScopeRanges, _: u64) -> Result<Vec<Run>> {
        unreachable!("{NOT_ASKED}")
    }

    fn population(&self, _: &Run) -> Result<Population> {
        unreachable!("{NOT_ASKED}")
    }

    fn scopes(&self, _: u64) -> Result<Vec<ScopeEntry>> {
        unreachable!("{NOT_ASKED}")
    }

    fn for_each_row(&self, _: &Run, _: &mut dyn FnMut(u32)) {
        unreachable!("{NOT_ASKED}")
    }

    fn walk_time(
        &self,
        _: &Run,
        _: i64,
        _: i64,
        _: TimeOrder,
        _: &mut dyn FnMut(u32, i64) -> ControlFlow<()>,
    ) -> Result<()> {
        unreachable!("{NOT_ASKED}")
    }

    fn term(&self, _: &[u8]) -> Result<Option<TermEntry>> {
        unreachable!("{NOT_ASKED}")
    }

    fn postings_of<'a>(&'a self, _: &TermEntry, _: &Run) -> Result<Option<Box<dyn Postings + 'a>>> {
        unreachable!("{NOT_ASKED}")
    }

    fn terms_from(
        &self,
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &TermEntry) -> TermVisit,
    ) -> Result<()> {
        unreachable!("{NOT_ASKED}")
    }

    fn terms<'a>(&'a self) -> Result<Box<dyn TermStream + 'a>> {
        Ok(Box::new(NaiveTerms {
            terms: terms_of(&self.rows).into_iter().collect(),
            at: 0,
        }))
    }

    fn fields(&self, row: u32) -> Result<RowFields> {
        Ok(self.row(row).fields)
    }

    fn event_time_us(&self, row: u32) -> Result<i64> {
        Ok(self.row(row).fields.event_time_us)
    }

    fn length(&self, row: u32) -> Result<u32> {
        Ok(self.row(row).fields.length)
    }

    fn short_lengths(&self) -> Result<&[u8]> {
        unreachable!("{NOT_ASKED}")
    }

    fn source_class(&self, row: u32) -> Result<u8> {
        Ok(self.row(row).fields.source_class)
    }

    fn scope_key(&self, row: u32) -> Result<Cow<'_, [u8]>> {
        Ok(self.row(row).scope.key().into())
    }

    fn id(&self, row: u32) -> Result<Cow<'_, str>> {
        Ok((&*self.row(row).id).into())
    }

    fn source_id(&self, row: u32) -> Result<Option<Cow<'_, str>>> {
        Ok(self.row(row).source_id.as_deref().map(Cow::Borrowed))
    }

    fn tags(&self, row: u32) -> Result<Vec<String>> {
        Ok(self.row(row).tags.clone())
    }

    fn tag_rows(&self, _: &str) -> Result<Option<RoaringBitmap>> {
        unreachable!("{NOT_ASKED}")
    }

    fn untagged_rows(&self) -> Result<RoaringBitmap> {
        unreachable!("{NOT_ASKED}")
    }

    fn find(&self, _: &[u8], _: &str, _: u64) -> Result<Option<u32>> {
        unreachable!("{NOT_ASKED}")
    }

    fn vectors(&self, space: SpaceNumber) -> u32 {
        let with = self.rows.iter().filter(|row| row.in_space(space).is_some());
        u32::try_from(with.count()).expect("few")
    }

    fn vector(&self, space: SpaceNumber, row: u32) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(self.row(row).in_space(space).map(Cow::Borrowed))
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        Ok(self.row(row).stored.clone())
    }
}
