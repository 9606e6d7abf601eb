//! What is in the catalog: two keyspaces, and the segments that were taken in.
//!
//! | keyspace | key | value |
//! | --- | --- | --- |
//! | locators | scope key, 0x00, id | file number, row: LEB128 |
//! | hashes | scope key, 0x00, xxh3-64 of the text, little-endian | id |
//!
//! A scope's key ends with 0x00 and no component is empty, so scope and rest split in one way.
//! Entries of records that were forgotten or compacted away stay until the next rebuild: a
//! locator is a hint, and so is a hash, which two texts may share. Where a compaction's inputs
//! were taken in, its output is not: their hashes are the same, and their locators lead to it
//! as long as the catalog is open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronolith_segments::{Partition, Scope};
use chronolith_vfs::Env;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Fault, journal};
use crate::version::LiveSegment;

/// Directory of the database inside the catalog's.
pub(crate) const DB_DIR: &str = "db";
/// Rows of one write batch.
const BATCH_ROWS: u32 = 1024;
/// Block cache of the database, bytes.
const CACHE_BYTES: u64 = 8 << 20;
/// A memtable of the database, bytes.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// A journal with more content than this is emptied at a close, bytes.
const JOURNAL_KEPT_BYTES: u64 = 4 << 20;
/// How long a close waits for the last tables, in waits of a millisecond.
const TABLE_WAITS_MAX: u32 = 5000;
/// Smallest journal limit that the database takes, bytes.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// How far the catalog has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// Generation of the manifest it last followed.
    pub(super) generation: u64,
    /// Highest flushed seq it last followed.
    pub(super) watermark: u64,
    /// Locators written.
    pub(super) locators: u64,
    /// File numbers of the segments it has taken in and that were live then.
    pub(super) segments: BTreeSet<u64>,
}

/// Where a record was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Locator {
    pub(crate) file_number: u64,
    pub(crate) row: u32,
}

impl Locator {
    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(10);
        for mut number in [self.file_number, u64::from(self.row)] {
            while number >= 0x80 {
                bytes.push(number.to_le_bytes()[0] | 0x80);
                number >>= 7;
            }
            bytes.push(number.to_le_bytes()[0]);
        }
        bytes
    }

    /// `None` for bytes that are no locator.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut numbers = [0_u64; 2];
        let mut bytes = bytes.iter();
        for number in &mut numbers {
            let mut shift = 0;
            loop {
                let byte = bytes.next()?;
                *number |= u64::from(byte & 0x7f).checked_shl(shift)?;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
        }
        Some(Self {
            file_number: numbers[0],
            row: u32::try_from(numbers[1]).ok()?,
        })
    }
}

/// An open database.
pub(super) struct Db {
    database: Database,
    handles: Handles,
    known: Known,
}

/// What look-ups need.
#[derive(Clone)]
pub(super) struct Handles {
    locators: Keyspace,
    hashes: Keyspace,
    moved: Arc<Moved>,
}

/// Where the rows of compacted segments went, as far as this opening saw it.
#[derive(Default)]
struct Moved(Mutex<BTreeMap<u64, u64>>);

impl Moved {
    /// Notes that the rows of `inputs`, and what had gone there, are in `output`.
    fn note(&self, inputs: &[u64], output: u64) {
        let mut moved = self.lock();
        for to in moved.values_mut().filter(|to| inputs.contains(to)) {
            *to = output;
        }
        moved.extend(inputs.iter().map(|input| (*input, output)));
    }

    /// The file where the rows of a file are now.
    fn resolve(&self, file_number: u64) -> u64 {
        *self.lock().get(&file_number).unwrap_or(&file_number)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // A half-noted move is a hint that leads nowhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").finish_non_exhaustive()
    }
}

fn fault(error: impl fmt::Display) -> Fault {
    error.to_string()
}

impl Db {
    pub(super) fn open(path: &Path, known: Known) -> Result<Self, Fault> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .worker_threads(1)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            .open()
            .map_err(fault)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let locators = database.keyspace("locators", options).map_err(fault)?;
        let hashes = database.keyspace("hashes", options).map_err(fault)?;
        let handles = Handles {
            locators,
            hashes,
            moved: Arc::default(),
        };
        Ok(Self {
            database,
            handles,
            known,
        })
    }

    pub(super) fn handles(&self) -> Handles {
        self.handles.clone()
    }

    pub(super) fn locators_written(&self) -> u64 {
        self.known.locators
    }

    /// Takes in every segment that is not known yet.
    pub(super) fn follow(
        &mut self,
        segments: &[Arc<LiveSegment>],
        generation: u64,
        flushed_seq: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let live: BTreeSet<u64> = segments.iter().map(|live| live.entry.file_number).collect();
        for segment in segments {
            let number = segment.entry.file_number;
            if self.known.segments.contains(&number) {
                continue;
            }
            let inputs = segment.segment.lineage();
            if !inputs.is_empty() && inputs.iter().all(|i| self.known.segments.contains(i)) {
                self.handles.moved.note(inputs, number);
            } else if !self.take_in(segment, is_stopped)? {
                return Ok(());
            }
            self.known.segments.insert(number);
        }
        self.known.segments = live;
        self.known.generation = generation;
        self.known.watermark = flushed_seq;
        Ok(())
    }

    /// Writes a segment's entries; false where it was stopped half-way.
    fn take_in(
        &mut self,
        live: &LiveSegment,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<bool, Fault> {
        let segment = &*live.segment;
        let dead = live.deaths.dead_at(u64::MAX);
        let rows = segment.zone().rows;
        let mut stream = segment.row_stream().map_err(fault)?;
        let (mut from, mut id) = (0, String::new());
        while from < rows {
            let to = rows.min(from + BATCH_ROWS);
            let mut batch = self.database.batch();
            for row in (from..to).filter(|row| !dead.contains(*row)) {
                let scope = stream.scope(row).map_err(fault)?;
                id.clear();
                stream.id(row, &mut id).map_err(fault)?;
                let scope = stream.scope_key(scope).map_err(fault)?;
                let text = segment.stored(row).map_err(fault)?.text;
                let locator = Locator {
                    file_number: live.entry.file_number,
                    row,
                };
                let place = key(&scope, id.as_bytes());
                batch.insert(&self.handles.locators, place, locator.encode());
                let hash = xxh3_64(text.as_bytes()).to_le_bytes();
                batch.insert(&self.handles.hashes, key(&scope, &hash), id.as_bytes());
                self.known.locators += 1;
            }
            batch.commit().map_err(fault)?;
            from = to;
            if from < rows && is_stopped() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Syncs, closes and leaves no longer a journal in `path` than need be; returns how far it
    /// had come.
    pub(super) fn close(self, env: &Env, path: &Path) -> Result<Known, Fault> {
        self.database.persist(PersistMode::SyncAll).map_err(fault)?;
        let found = journal::active(&*env.vfs, path).map_err(fault)?;
        let is_long = found.is_some_and(|(_, end)| end > JOURNAL_KEPT_BYTES);
        let is_in_tables = is_long && self.write_tables(env)?;
        let known = self.known;
        drop((self.handles, self.database));
        if let Some((active, end)) = journal::active(&*env.vfs, path).map_err(fault)? {
            let len = if is_in_tables { 0 } else { end };
            journal::cut(&*env.vfs, &active, len).map_err(fault)?;
        }
        Ok(known)
    }

    /// Moves everything into tables; false where that takes too long.
    fn write_tables(&self, env: &Env) -> Result<bool, Fault> {
        let keyspaces = [&self.handles.locators, &self.handles.hashes];
        for keyspace in keyspaces {
            keyspace.rotate_memtable().map_err(fault)?;
        }
        for _ in 0..TABLE_WAITS_MAX {
            if keyspaces.iter().all(|k| k.sealed_memtable_count() == 0) {
                return Ok(true);
            }
            env.clock.sleep(Duration::from_millis(1));
        }
        Ok(false)
    }
}

impl Handles {
    pub(super) fn locate(&self, scope: &Scope, id: &str) -> Result<Option<Locator>, Fault> {
        let value = self
            .locators
            .get(key(scope.key(), id.as_bytes()))
            .map_err(fault)?;
        Ok(value.and_then(|value| {
            let locator = Locator::decode(&value)?;
            Some(Locator {
                file_number: self.moved.resolve(locator.file_number),
                ..locator
            })
        }))
    }
}

fn key(scope_key: &[u8], rest: &[u8]) -> Vec<u8> {
    [scope_key, b"\0", rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope::parse("a").expect("a scope")
    }

    fn write(db: &Db, from: u32, to: u32) {
        for start in (from..to).step_by(1000) {
            let mut batch = db.database.batch();
            for at in start..to.min(start + 1000) {
                let id = format!("record-{at:090}");
                let locator = Locator {
                    file_number: 7,
                    row: at,
                };
                let place = key(scope().key(), id.as_bytes());
                batch.insert(&db.handles.locators, place, locator.encode());
            }
            batch.commit().expect("written");
        }
    }

    #[test]
    fn a_locator_leads_to_where_compactions_took_its_row() {
        let moved = Moved::default();
        moved.note(&[1, 2], 5);
        moved.note(&[3], 6);
        moved.note(&[5, 6], 9);
        let found = [1, 2, 3, 4, 5, 6, 9].map(|file_number| moved.resolve(file_number));
        assert_eq!(found, [9, 9, 9, 4, 9, 9, 9]);
    }

    fn check(db: &Db, upto: u32) {
        for at in (0..upto).step_by(997).chain([upto - 1]) {
            let id = format!("record-{at:090}");
            let found = db.handles.locate(&scope(), &id).expect("read");
            assert_eq!(found.map(|found| found.row), Some(at));
        }
    }

    /// Bytes of the journals of a closed database.
    fn journals(path: &Path) -> u64 {
        let vfs = Env::real().vfs;
        let files = vfs.list(path).expect("listed").into_iter();
        let journals = files.filter(|file| file.name.ends_with(".jnl"));
        let len = |name: &str| vfs.stat(&path.join(name)).expect("there").len;
        journals.map(|file| len(&file.name)).sum()
    }

    #[test]
    fn a_locator_comes_back_and_damage_is_none() {
        for (file_number, row) in [(0, 0), (127, 128), (1 << 40, 3 << 20), (u64::MAX, u32::MAX)] {
            let locator = Locator { file_number, row };
            let bytes = locator.encode();
            assert_eq!(Locator::decode(&bytes), Some(locator));
            assert_eq!(Locator::decode(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Locator::decode(&[0xff; 40]), None);
    }

    #[test]
    fn a_close_leaves_a_short_journal_and_loses_nothing() {
        let env = Env::real();
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(DB_DIR);
        let (mut upto, mut emptied) = (0, 0);
        for rows in [100, 45_000, 50, 50_000, 1] {
            let db = Db::open(&path, Known::default()).expect("opens");
            if upto > 0 {
                check(&db, upto);
            }
            write(&db, upto, upto + rows);
            upto += rows;
            check(&db, upto);
            db.close(&env, &path).expect("closes");
            let bytes = journals(&path);
            assert!(bytes <= JOURNAL_KEPT_BYTES, "{bytes} bytes of journals");
            emptied += u32::from(bytes == 0);
        }
        assert_eq!(emptied, 2, "the long ones");
        check(&Db::open(&path, Known::default()).expect("opens"), upto);
    }
}
