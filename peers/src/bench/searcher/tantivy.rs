//! How is tantivy used? Frequencies without positions, one writer, the default merges; scope as
//! a term filter, time as a range over its fast column.

use std::ops::Bound;
use std::path::Path;

use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, Occur, Query as Asked, RangeQuery, TermQuery,
};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value,
};
use tantivy::tokenizer::WhitespaceTokenizer;
use tantivy::{
    DocAddress, Index, IndexReader, IndexWriter, ReloadPolicy, Searcher as View, TantivyDocument,
    Term, doc,
};

use super::{Found, K, Loader, Searcher};
use crate::bench::corpus::{Query, Record};
use crate::engine::Failure;

/// Memory of the one writer: twice Chronolith's memtable.
const WRITER_BYTES: usize = 128 << 20;
const WORDS: &str = "words";

/// Where the ids of the hits come from; times come from their fast column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Stored documents, as any string id.
    Documents,
    /// A fast column of numbers: the best case, possible because these ids are numbers.
    Columns,
    /// Nowhere: addresses only.
    Nothing,
}

#[derive(Clone, Copy)]
struct Fields {
    id: Field,
    number: Field,
    scope: Field,
    time_us: Field,
    terms: Field,
    text: Field,
}

fn schema() -> Schema {
    let mut schema = Schema::builder();
    schema.add_text_field("id", STRING | STORED);
    schema.add_u64_field("number", FAST);
    schema.add_text_field("scope", STRING);
    schema.add_i64_field("time_us", FAST);
    let words = TextFieldIndexing::default()
        .set_tokenizer(WORDS)
        .set_index_option(IndexRecordOption::WithFreqs);
    schema.add_text_field("terms", TextOptions::default().set_indexing_options(words));
    schema.add_text_field("text", STORED);
    schema.build()
}

fn open(dir: &Path) -> Result<(Index, Fields), Failure> {
    let index = Index::open_or_create(MmapDirectory::open(dir)?, schema())?;
    index
        .tokenizers()
        .register(WORDS, WhitespaceTokenizer::default());
    let schema = index.schema();
    let fields = Fields {
        id: schema.get_field("id")?,
        number: schema.get_field("number")?,
        scope: schema.get_field("scope")?,
        time_us: schema.get_field("time_us")?,
        terms: schema.get_field("terms")?,
        text: schema.get_field("text")?,
    };
    Ok((index, fields))
}

pub fn loader(dir: &Path) -> Result<Box<dyn Loader>, Failure> {
    let (index, fields) = open(dir)?;
    let writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
    Ok(Box::new(Filling { writer, fields }))
}

struct Filling {
    writer: IndexWriter,
    fields: Fields,
}

impl Loader for Filling {
    fn put(&mut self, records: &[Record], terms: &[String]) -> Result<(), Failure> {
        let fields = self.fields;
        for (record, terms) in records.iter().zip(terms) {
            self.writer.add_document(doc!(
                fields.id => record.id.as_str(), fields.number => record.id.parse::<u64>()?,
                fields.scope => record.scope.as_str(),
                fields.time_us => record.time_us, fields.terms => terms.as_str(),
                fields.text => record.text.as_str(),
            ))?;
        }
        Ok(())
    }

    fn settle(mut self: Box<Self>) -> Result<(), Failure> {
        self.writer.commit()?;
        self.writer.garbage_collect_files().wait()?;
        Ok(self.writer.wait_merging_threads()?)
    }
}

pub fn searcher(dir: &Path, fetch: Fetch) -> Result<Box<dyn Searcher>, Failure> {
    let (index, fields) = open(dir)?;
    let reader: IndexReader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into()?;
    let view = reader.searcher();
    let mut columns = Vec::new();
    for segment in view.segment_readers() {
        let fast = segment.fast_fields();
        columns.push((fast.u64("number")?, fast.i64("time_us")?));
    }
    Ok(Box::new(Open {
        fields,
        view,
        fetch,
        columns,
    }))
}

struct Open {
    fields: Fields,
    view: View,
    fetch: Fetch,
    /// By segment.
    columns: Vec<(Column<u64>, Column<i64>)>,
}

impl Open {
    fn query(&self, query: &Query) -> Box<dyn Asked> {
        let clauses = query.terms.iter().map(|(term, count)| {
            let term = Term::from_field_text(self.fields.terms, term);
            let one: Box<dyn Asked> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
            let asked = match count {
                1 => one,
                _ => Box::new(BoostQuery::new(
                    one,
                    f32::from(u16::try_from(*count).unwrap_or(u16::MAX)),
                )),
            };
            (Occur::Should, asked)
        });
        let words: Box<dyn Asked> = Box::new(BooleanQuery::new(clauses.collect()));
        let mut filters: Vec<Box<dyn Asked>> = Vec::new();
        if query.scope != "/" {
            let term = Term::from_field_text(self.fields.scope, &query.scope);
            filters.push(Box::new(TermQuery::new(term, IndexRecordOption::Basic)));
        }
        if let Some((from_us, to_us)) = query.window_us {
            let at = |time_us| Term::from_field_i64(self.fields.time_us, time_us);
            let range = RangeQuery::new(Bound::Included(at(from_us)), Bound::Excluded(at(to_us)));
            filters.push(Box::new(range));
        }
        if filters.is_empty() {
            return words;
        }
        let unscored = |filter| -> (Occur, Box<dyn Asked>) {
            (Occur::Must, Box::new(ConstScoreQuery::new(filter, 0.0)))
        };
        let filters = filters.into_iter().map(unscored);
        let all = std::iter::once((Occur::Must, words)).chain(filters);
        Box::new(BooleanQuery::new(all.collect()))
    }

    fn found(&self, address: DocAddress) -> Result<Found, Failure> {
        let segment = usize::try_from(address.segment_ord)?;
        let (numbers, times) = self
            .columns
            .get(segment)
            .ok_or("a segment without columns")?;
        let id = match self.fetch {
            Fetch::Nothing => {
                return Ok(Found {
                    id: String::new(),
                    time_us: 0,
                });
            }
            Fetch::Columns => {
                let number = numbers.first(address.doc_id);
                number.ok_or("a row without number")?.to_string()
            }
            Fetch::Documents => {
                let document: TantivyDocument = self.view.doc(address)?;
                let id = document
                    .get_first(self.fields.id)
                    .and_then(|value| value.as_str());
                id.ok_or("a document without id")?.to_owned()
            }
        };
        let time_us = times.first(address.doc_id).ok_or("a row without time")?;
        Ok(Found { id, time_us })
    }
}

impl Searcher for Open {
    fn search(&mut self, query: &Query) -> Result<Vec<Found>, Failure> {
        if query.decay_us.is_some() {
            return Err("tantivy has no decay".into());
        }
        let top = TopDocs::with_limit(K).order_by_score();
        let hits = self.view.search(&self.query(query), &top)?;
        hits.into_iter()
            .map(|(_, address)| self.found(address))
            .collect()
    }

    fn partitions(&self) -> Result<u64, Failure> {
        Ok(u64::try_from(self.view.segment_readers().len())?)
    }
}
