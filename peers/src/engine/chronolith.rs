//! How is Chronolith used? `Synced` writes, mapped segments, background maintenance: the
//! defaults.

use std::path::Path;

use chronolith::{Batch, Options, Request, Scope, ScopeSelector, Setup, Store, StoredRecord};

use super::{Engine, Failure, Handle, Settings};
use crate::records::{RECORDS, Record};

pub struct Chronolith;

impl Engine for Chronolith {
    fn name(&self) -> &'static str {
        "chronolith"
    }

    fn about(&self) -> &'static str {
        "this checkout; Synced; delete = forget, clean-up = compact(force)"
    }

    fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Handle>, Failure> {
        let mut options = Options::create(Setup::default());
        if settings.small_buffers {
            options.memtable_bytes_max = 1 << 20;
            options.log_file_bytes_max = 1 << 20;
        }
        Ok(Box::new(Open(Store::open(dir, options)?)))
    }

    fn is_log(&self, path: &str) -> bool {
        path.starts_with("wal/")
    }
}

struct Open(Store);

fn record_of(stored: StoredRecord) -> Record {
    Record {
        id: stored.record.id,
        scope: stored.record.scope.path(),
        time_us: stored.record.event_time_us,
        text: stored.record.text,
    }
}

impl Handle for Open {
    fn put(&mut self, records: &[Record]) -> Result<(), Failure> {
        let mut batch = Batch::new();
        for record in records {
            batch.upsert(chronolith::Record::new(
                Scope::parse(&record.scope)?,
                record.id.as_str(),
                record.time_us,
                record.text.as_str(),
            ));
        }
        self.0.write(batch)?;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    fn delete(&mut self, records: &[Record]) -> Result<(), Failure> {
        for record in records {
            self.0
                .forget(Scope::parse(&record.scope)?, record.id.as_str())?;
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.0.compact(true, &mut |_| ())?;
        Ok(())
    }

    fn get(&mut self, scope: &str, id: &str) -> Result<Option<Record>, Failure> {
        Ok(self.0.get(&Scope::parse(scope)?, id)?.map(record_of))
    }

    fn list(&mut self) -> Result<Vec<String>, Failure> {
        let mut ids = Vec::new();
        let all = ScopeSelector::parse("/")?;
        self.0.snapshot().for_each_record(&[all], &mut |stored| {
            ids.push(stored.record.id);
            Ok(())
        })?;
        ids.sort();
        Ok(ids)
    }

    fn count(&mut self) -> Result<u64, Failure> {
        Ok(self.0.stats()?.records)
    }

    fn search(&mut self, word: &str) -> Result<Option<Vec<String>>, Failure> {
        let request = Request::within(ScopeSelector::parse("/")?)
            .text(word)
            .k(RECORDS);
        let hits = self.0.retrieve(&request)?.hits;
        Ok(Some(hits.into_iter().map(|hit| hit.id).collect()))
    }

    fn told(&self) -> Option<String> {
        let report = self.0.recovery_report();
        report.ambiguous.then(|| {
            format!(
                "ambiguous: {} bytes of the log's end dropped, which may have been acknowledged",
                report.bytes_dropped
            )
        })
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
