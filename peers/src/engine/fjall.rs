//! How is fjall used? One keyspace from id to record, batches persisted with `SyncAll`.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Engine, Failure, Handle, Settings, from_value, to_value};
use crate::records::Record;

pub struct Fjall;

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn about(&self) -> &'static str {
        "fjall 3.1.13; batches at SyncAll; clean-up = rotate_memtable_and_wait, major_compact"
    }

    fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Handle>, Failure> {
        let database = Database::builder(dir).worker_threads(1).open()?;
        let keyspace = database.keyspace("records", || {
            let options = KeyspaceCreateOptions::default();
            if settings.small_buffers {
                options.max_memtable_size(1 << 20)
            } else {
                options
            }
        })?;
        Ok(Box::new(Open { database, keyspace }))
    }

    fn is_log(&self, path: &str) -> bool {
        path.ends_with(".jnl")
    }
}

struct Open {
    database: Database,
    keyspace: Keyspace,
}

impl Handle for Open {
    fn put(&mut self, records: &[Record]) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for record in records {
            batch.insert(&self.keyspace, record.id.as_str(), to_value(record)?);
        }
        Ok(batch.commit()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    fn delete(&mut self, records: &[Record]) -> Result<(), Failure> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for record in records {
            batch.remove(&self.keyspace, record.id.as_str());
        }
        Ok(batch.commit()?)
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.keyspace.major_compact()?)
    }

    fn get(&mut self, _scope: &str, id: &str) -> Result<Option<Record>, Failure> {
        let value = self.keyspace.get(id)?;
        value.map(|value| from_value(&value)).transpose()
    }

    fn list(&mut self) -> Result<Vec<String>, Failure> {
        let mut ids = Vec::new();
        for guard in self.keyspace.iter() {
            ids.push(String::from_utf8(guard.key()?.to_vec())?);
        }
        Ok(ids)
    }

    fn count(&mut self) -> Result<u64, Failure> {
        Ok(u64::try_from(self.keyspace.len()?)?)
    }

    fn search(&mut self, _word: &str) -> Result<Option<Vec<String>>, Failure> {
        Ok(None)
    }

    /// fjall closes when the last handle goes; its manual asks for a persist before.
    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
