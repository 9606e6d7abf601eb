//! How is SQLite used? One table of records, one contentless FTS5 table over the analysed
//! terms, joined by row number.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::{Connection, params};

use super::{Found, K, Loader, Searcher};
use crate::bench::corpus::{Query, Record};
use crate::engine::Failure;

const FILE: &str = "records.sqlite";

const SCHEMA: &str = "
CREATE TABLE records (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL, scope TEXT NOT NULL,
  time_us INTEGER NOT NULL, text TEXT NOT NULL);
CREATE UNIQUE INDEX records_by_id ON records (scope, id);
CREATE INDEX records_by_time ON records (time_us);
CREATE VIRTUAL TABLE words USING fts5 (
  terms, content='', detail='none', tokenize='unicode61 remove_diacritics 0');";

fn open(dir: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(dir.join(FILE))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // KiB: as much as the other engines let the kernel cache for them.
    connection.pragma_update(None, "cache_size", -(64 << 10))?;
    connection.pragma_update(None, "mmap_size", 4i64 << 30)?;
    Ok(connection)
}

pub fn loader(dir: &Path) -> Result<Box<dyn Loader>, Failure> {
    let connection = open(dir)?;
    connection.execute_batch(SCHEMA)?;
    Ok(Box::new(Filling {
        connection,
        rows: 0,
    }))
}

struct Filling {
    connection: Connection,
    rows: i64,
}

impl Loader for Filling {
    fn put(&mut self, records: &[Record], terms: &[String]) -> Result<(), Failure> {
        let transaction = self.connection.transaction()?;
        {
            let mut record_in = transaction.prepare_cached(
                "INSERT INTO records (n, id, scope, time_us, text) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let mut words_in =
                transaction.prepare_cached("INSERT INTO words (rowid, terms) VALUES (?1, ?2)")?;
            for (record, terms) in records.iter().zip(terms) {
                self.rows += 1;
                record_in.execute(params![
                    self.rows,
                    record.id,
                    record.scope,
                    record.time_us,
                    record.text
                ])?;
                words_in.execute(params![self.rows, terms])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        self.connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        self.connection.close().map_err(|(_, error)| error.into())
    }
}

pub fn searcher(dir: &Path) -> Result<Box<dyn Searcher>, Failure> {
    Ok(Box::new(Open(open(dir)?)))
}

struct Open(Connection);

impl Searcher for Open {
    fn search(&mut self, query: &Query) -> Result<Vec<Found>, Failure> {
        if query.decay_us.is_some() {
            return Err("FTS5 has no decay".into());
        }
        let mut any = String::new();
        for (term, _) in &query.terms {
            let or = if any.is_empty() { "" } else { " OR " };
            write!(any, "{or}\"{term}\"")?;
        }
        let (from_us, to_us) = query.window_us.unwrap_or((i64::MIN, i64::MAX));
        let filter = match (query.window_us.is_some(), query.scope != "/") {
            (false, false) => "",
            (true, _) => "AND r.time_us >= ?2 AND r.time_us < ?3",
            (false, true) => "AND r.scope = ?4",
        };
        let sql = format!(
            "SELECT r.id, r.time_us FROM words JOIN records r ON r.n = words.rowid
             WHERE words MATCH ?1 {filter} ORDER BY bm25(words) LIMIT {K}"
        );
        let mut statement = self.0.prepare_cached(&sql)?;
        let parameters: &[&dyn rusqlite::ToSql] = &[&any, &from_us, &to_us, &query.scope];
        let used = statement.parameter_count().min(parameters.len());
        let rows = statement.query_map(&parameters[..used], |row| {
            Ok(Found {
                id: row.get(0)?,
                time_us: row.get(1)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn partitions(&self) -> Result<u64, Failure> {
        Ok(1)
    }
}
