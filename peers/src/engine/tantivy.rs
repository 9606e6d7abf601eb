//! How is tantivy used? Stored text, one commit for each batch, one indexing thread, the
//! default merge policy.

use std::path::Path;

use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::{AllQuery, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TEXT, Value,
};
use tantivy::{
    DocAddress, Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term, doc,
};

use super::{Engine, Failure, Handle, Settings};
use crate::records::{RECORDS, Record};

pub struct Tantivy;

/// The least that tantivy accepts for one thread.
const WRITER_BYTES: usize = 15_000_000;

impl Engine for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn about(&self) -> &'static str {
        "tantivy 0.27; a commit for each batch; clean-up = merge of all segments, \
         garbage_collect_files"
    }

    fn open(&self, dir: &Path, _settings: Settings) -> Result<Box<dyn Handle>, Failure> {
        let mut schema = Schema::builder();
        schema.add_text_field("id", STRING | STORED);
        schema.add_text_field("scope", STRING | STORED);
        schema.add_i64_field("time_us", INDEXED | STORED | FAST);
        schema.add_text_field("text", TEXT | STORED);
        let index = Index::open_or_create(MmapDirectory::open(dir)?, schema.build())?;
        let schema = index.schema();
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        Ok(Box::new(Open {
            id: schema.get_field("id")?,
            scope: schema.get_field("scope")?,
            time_us: schema.get_field("time_us")?,
            text: schema.get_field("text")?,
            index,
            reader,
            writer: None,
        }))
    }

    fn is_log(&self, _path: &str) -> bool {
        false
    }
}

struct Open {
    id: Field,
    scope: Field,
    time_us: Field,
    text: Field,
    index: Index,
    reader: IndexReader,
    /// Made by the first write: reading needs none.
    writer: Option<IndexWriter>,
}

impl Open {
    fn writer(&mut self) -> Result<&mut IndexWriter, Failure> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.index.writer_with_num_threads(1, WRITER_BYTES)?,
        };
        Ok(self.writer.insert(writer))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.writer()?.commit()?;
        Ok(())
    }

    /// The ids of the hits, by descending score, then in the order of the documents.
    fn ids(&self, query: &dyn Query, limit: usize) -> Result<Vec<String>, Failure> {
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let top = TopDocs::with_limit(limit).order_by_score();
        let hits: Vec<(f32, DocAddress)> = searcher.search(query, &top)?;
        let mut ids = Vec::new();
        for (_, address) in hits {
            ids.push(self.record(&searcher.doc(address)?)?.id);
        }
        Ok(ids)
    }

    fn record(&self, document: &TantivyDocument) -> Result<Record, Failure> {
        let text = |field: Field, name: &str| -> Result<String, Failure> {
            let value = document.get_first(field).and_then(|value| value.as_str());
            Ok(value
                .ok_or(format!("a document without {name}"))?
                .to_owned())
        };
        let time_us = document
            .get_first(self.time_us)
            .and_then(|value| value.as_i64());
        Ok(Record {
            id: text(self.id, "id")?,
            scope: text(self.scope, "scope")?,
            time_us: time_us.ok_or("a document without time")?,
            text: text(self.text, "text")?,
        })
    }
}

impl Handle for Open {
    fn put(&mut self, records: &[Record]) -> Result<(), Failure> {
        let (id, scope, time_us, text) = (self.id, self.scope, self.time_us, self.text);
        let writer = self.writer()?;
        for record in records {
            writer.add_document(doc!(
                id => record.id.as_str(), scope => record.scope.as_str(),
                time_us => record.time_us, text => record.text.as_str(),
            ))?;
        }
        self.commit()
    }

    /// Every commit is in sealed files already.
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn delete(&mut self, records: &[Record]) -> Result<(), Failure> {
        let id = self.id;
        let writer = self.writer()?;
        for record in records {
            writer.delete_term(Term::from_field_text(id, &record.id));
        }
        self.commit()
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        let segments = self.index.searchable_segment_ids()?;
        let writer = self.writer()?;
        if !segments.is_empty() {
            writer.merge(&segments).wait()?;
        }
        writer.garbage_collect_files().wait()?;
        Ok(())
    }

    fn get(&mut self, _scope: &str, id: &str) -> Result<Option<Record>, Failure> {
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        let query = TermQuery::new(Term::from_field_text(self.id, id), IndexRecordOption::Basic);
        let hits = searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
        match hits.first() {
            Some((_, address)) => Ok(Some(self.record(&searcher.doc(*address)?)?)),
            None => Ok(None),
        }
    }

    fn list(&mut self) -> Result<Vec<String>, Failure> {
        let mut ids = self.ids(&AllQuery, 1 << 20)?;
        ids.sort();
        Ok(ids)
    }

    fn count(&mut self) -> Result<u64, Failure> {
        self.reader.reload()?;
        Ok(self.reader.searcher().num_docs())
    }

    fn search(&mut self, word: &str) -> Result<Option<Vec<String>>, Failure> {
        let term = Term::from_field_text(self.text, word);
        let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
        Ok(Some(self.ids(&query, RECORDS)?))
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        if let Some(writer) = self.writer.take() {
            writer.wait_merging_threads()?;
        }
        Ok(())
    }
}
