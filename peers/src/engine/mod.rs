//! What is an engine under trial? Something that opens a directory and keeps records in it.
//!
//! Each is used as its own documentation shows it, at its strongest ordinary durability, with
//! no check switched on that is off by default (`redb+check` shows the one that can be).

mod chronolith;
mod fjall;
mod redb;
mod sqlite;
mod tantivy;

use std::path::Path;

use crate::records::Record;

/// Any error that an engine names.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How an engine is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Buffers in memory are as small as the engine allows, so that a few megabytes reach every
    /// kind of file.
    pub small_buffers: bool,
}

/// An engine and the way it is set up.
pub trait Engine: Sync {
    /// The column of the table.
    fn name(&self) -> &'static str;

    /// Its version and its settings, for the legend.
    fn about(&self) -> &'static str;

    /// Opens the store in the directory `dir`, creating it where the directory is empty.
    fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Handle>, Failure>;

    /// Whether the file at this path, relative to the store, holds acknowledged writes that have
    /// not reached the engine's sealed files. An engine without such a file has no log.
    fn is_log(&self, path: &str) -> bool;
}

/// An open store.
pub trait Handle {
    /// Writes the records in one commit; returns once the engine says that it is durable.
    fn put(&mut self, records: &[Record]) -> Result<(), Failure>;

    /// Brings what was written into the engine's sealed files (flush, checkpoint).
    fn settle(&mut self) -> Result<(), Failure>;

    /// Deletes the records, durably, in the ordinary way.
    fn delete(&mut self, records: &[Record]) -> Result<(), Failure>;

    /// What a user calls so that deleted bytes go (merge, compaction, VACUUM).
    fn clean_up(&mut self) -> Result<(), Failure>;

    /// The record of this id in this scope.
    fn get(&mut self, scope: &str, id: &str) -> Result<Option<Record>, Failure>;

    /// The ids of all records, ascending.
    fn list(&mut self) -> Result<Vec<String>, Failure>;

    /// How many records there are, as the engine counts them.
    fn count(&mut self) -> Result<u64, Failure>;

    /// The ids of the records with this word, best first; `None` where the engine has no index
    /// of words.
    fn search(&mut self, word: &str) -> Result<Option<Vec<String>>, Failure>;

    /// What the open reported as lost or doubtful, through the API. No answer for an engine that
    /// has no such report.
    fn told(&self) -> Option<String> {
        None
    }

    /// Closes the store.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// All engines, in the order of the table.
pub fn all() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(chronolith::Chronolith),
        Box::new(sqlite::Sqlite::Rollback),
        Box::new(sqlite::Sqlite::Wal),
        Box::new(redb::Redb { checked: false }),
        Box::new(redb::Redb { checked: true }),
        Box::new(fjall::Fjall),
        Box::new(tantivy::Tantivy),
    ]
}

/// The engine of this name.
pub fn named(name: &str) -> Option<Box<dyn Engine>> {
    all().into_iter().find(|engine| engine.name() == name)
}

/// A record as the engines with plain keys and values keep it: JSON.
fn to_value(record: &Record) -> Result<Vec<u8>, Failure> {
    Ok(serde_json::to_vec(record)?)
}

fn from_value(value: &[u8]) -> Result<Record, Failure> {
    Ok(serde_json::from_slice(value)?)
}
