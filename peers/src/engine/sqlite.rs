//! How is SQLite used? One table, an index on time, and FTS5 over the text with the triggers of
//! its manual; `synchronous=FULL` in both journal modes.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::{Engine, Failure, Handle, Settings};
use crate::records::Record;

pub enum Sqlite {
    Rollback,
    Wal,
}

const FILE: &str = "records.sqlite";

const SCHEMA: &str = "
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS records (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL,
  time_us INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS records_by_time ON records (scope, time_us);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='records', content_rowid='n');
CREATE TRIGGER IF NOT EXISTS records_in AFTER INSERT ON records BEGIN
  INSERT INTO words (rowid, text) VALUES (new.n, new.text);
END;
CREATE TRIGGER IF NOT EXISTS records_out AFTER DELETE ON records BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.n, old.text);
END;
COMMIT;";

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        match self {
            Self::Rollback => "sqlite",
            Self::Wal => "sqlite-wal",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Rollback => {
                "SQLite as bundled by rusqlite 0.43, FTS5; rollback journal, synchronous FULL; \
                 clean-up = FTS5 optimize, VACUUM"
            }
            Self::Wal => "the same, journal mode WAL, synchronous FULL; clean-up also checkpoints",
        }
    }

    fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Handle>, Failure> {
        let connection = Connection::open(dir.join(FILE))?;
        let wal = matches!(self, Self::Wal);
        let mode = if wal { "WAL" } else { "DELETE" };
        connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        if settings.small_buffers {
            connection.pragma_update(None, "cache_size", 100)?;
        }
        let exists: bool = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'words'",
            [],
            |row| row.get(0),
        )?;
        if !exists {
            connection.execute_batch(SCHEMA)?;
        }
        Ok(Box::new(Open { connection, wal }))
    }

    fn is_log(&self, path: &str) -> bool {
        matches!(self, Self::Wal) && path.ends_with("-wal")
    }
}

struct Open {
    connection: Connection,
    wal: bool,
}

impl Open {
    fn checkpoint(&self) -> Result<(), Failure> {
        if self.wal {
            self.connection
                .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }

    fn ids(&self, sql: &str, word: &[&str]) -> Result<Vec<String>, Failure> {
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(word), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Handle for Open {
    fn put(&mut self, records: &[Record]) -> Result<(), Failure> {
        let transaction = self.connection.transaction()?;
        for record in records {
            transaction.execute(
                "INSERT INTO records (id, scope, time_us, text) VALUES (?1, ?2, ?3, ?4)",
                params![record.id, record.scope, record.time_us, record.text],
            )?;
        }
        Ok(transaction.commit()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.checkpoint()
    }

    fn delete(&mut self, records: &[Record]) -> Result<(), Failure> {
        for record in records {
            self.connection
                .execute("DELETE FROM records WHERE id = ?1", [&record.id])?;
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.connection
            .execute_batch("INSERT INTO words (words) VALUES ('optimize'); VACUUM")?;
        self.checkpoint()
    }

    fn get(&mut self, scope: &str, id: &str) -> Result<Option<Record>, Failure> {
        let found = self.connection.query_row(
            "SELECT id, scope, time_us, text FROM records WHERE id = ?1 AND scope = ?2",
            [id, scope],
            |row| {
                Ok(Record {
                    id: row.get(0)?,
                    scope: row.get(1)?,
                    time_us: row.get(2)?,
                    text: row.get(3)?,
                })
            },
        );
        Ok(found.optional()?)
    }

    fn list(&mut self) -> Result<Vec<String>, Failure> {
        self.ids("SELECT id FROM records ORDER BY n", &[])
    }

    fn count(&mut self) -> Result<u64, Failure> {
        let count: i64 = self
            .connection
            .query_row("SELECT count(*) FROM records", [], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }

    fn search(&mut self, word: &str) -> Result<Option<Vec<String>>, Failure> {
        let sql = "SELECT r.id FROM words JOIN records r ON r.n = words.rowid
                   WHERE words MATCH ?1 ORDER BY bm25(words), r.n";
        Ok(Some(self.ids(sql, &[word])?))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}
