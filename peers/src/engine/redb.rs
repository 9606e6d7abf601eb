//! How is redb used? One table from id to record, `Durability::Immediate` (its default).

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use super::{Engine, Failure, Handle, Settings, from_value, to_value};
use crate::records::Record;

/// With `checked`, every open verifies all checksums (`set_check_integrity_on_open`).
pub struct Redb {
    pub checked: bool,
}

const FILE: &str = "records.redb";
const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("records");

impl Engine for Redb {
    fn name(&self) -> &'static str {
        if self.checked { "redb+check" } else { "redb" }
    }

    fn about(&self) -> &'static str {
        if self.checked {
            "redb 4.6 with set_check_integrity_on_open, which is off by default"
        } else {
            "redb 4.6; Durability::Immediate; clean-up = compact"
        }
    }

    fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Handle>, Failure> {
        let mut builder = Database::builder();
        builder.set_check_integrity_on_open(self.checked);
        if settings.small_buffers {
            builder.set_cache_size(1 << 20);
        }
        Ok(Box::new(Open(builder.create(dir.join(FILE))?)))
    }

    /// There is no log: after a kill the open repairs the one file.
    fn is_log(&self, path: &str) -> bool {
        path == FILE
    }
}

struct Open(Database);

impl Open {
    /// Runs `read` on the table; `none` where no commit has made it yet.
    fn read<T>(
        &self,
        none: T,
        read: impl FnOnce(redb::ReadOnlyTable<&'static str, &'static [u8]>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.0.begin_read()?.open_table(TABLE) {
            Ok(table) => read(table),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(none),
            Err(error) => Err(error.into()),
        }
    }
}

impl Handle for Open {
    fn put(&mut self, records: &[Record]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for record in records {
                table.insert(record.id.as_str(), to_value(record)?.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn delete(&mut self, records: &[Record]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for record in records {
                table.remove(record.id.as_str())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.0.compact()?;
        Ok(())
    }

    fn get(&mut self, _scope: &str, id: &str) -> Result<Option<Record>, Failure> {
        self.read(None, |table| {
            let value = table.get(id)?;
            value.map(|value| from_value(value.value())).transpose()
        })
    }

    fn list(&mut self) -> Result<Vec<String>, Failure> {
        self.read(Vec::new(), |table| {
            let mut ids = Vec::new();
            for entry in table.iter()? {
                ids.push(entry?.0.value().to_owned());
            }
            Ok(ids)
        })
    }

    fn count(&mut self) -> Result<u64, Failure> {
        self.read(0, |table| Ok(table.len()?))
    }

    fn search(&mut self, _word: &str) -> Result<Option<Vec<String>>, Failure> {
        Ok(None)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.0.close()?)
    }
}
