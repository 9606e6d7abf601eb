//! What is in the catalog: two keyspaces, and the segments that were taken in.
//!
//! | keyspace | key | value |
//! | --- | --- | --- |
//! | locators | scope key, 0x00, id | file number, LEB128 |
//! | hashes | scope key, 0x00, xxh3-64 of the text, little-endian | id |
//!
//! A scope's key ends with 0x00 and no component is empty, so scope and rest split in one way.
//! Entries of records that were forgotten or compacted away stay until the next rebuild: a
//! locator is a hint, and so is a hash, which two texts may share. Where a compaction's inputs
//! were taken in, its output is not: their hashes are the same, and their locators lead to it
//! (`moved`).

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chronolith_segments::{Partition, Scope};
use chronolith_vfs::Env;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::moved::Moved;
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
    /// File numbers of the live segments that it has taken in or followed.
    pub(super) segments: BTreeSet<u64>,
    /// Where the rows of segments went that were followed.
    pub(super) moved: Moved,
}

/// The segment where a record was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Locator {
    pub(crate) file_number: u64,
}

impl Locator {
    fn encode(self) -> Vec<u8> {
        let (mut bytes, mut number) = (Vec::with_capacity(10), self.file_number);
        while number >= 0x80 {
            bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
        bytes
    }

    /// `None` for bytes that are no locator.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (last, before) = bytes.split_last()?;
        if last & 0x80 != 0 || !before.iter().all(|byte| byte & 0x80 != 0) {
            return None;
        }
        let mut file_number = 0_u64;
        for (byte, shift) in bytes.iter().zip((0_u32..).step_by(7)) {
            file_number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        }
        Some(Self { file_number })
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
    /// As `Known` has it.
    moved: Arc<ArcSwap<Moved>>,
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
            moved: Arc::new(ArcSwap::from_pointee(known.moved.clone())),
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

    /// Follows what compactions did to the known segments, and takes in every one that is not
    /// known yet where `takes_in` says until when.
    pub(super) fn follow(
        &mut self,
        segments: &[Arc<LiveSegment>],
        generation: u64,
        flushed_seq: u64,
        takes_in: Option<&dyn Fn() -> bool>,
    ) -> Result<(), Fault> {
        let live: BTreeSet<u64> = segments.iter().map(|live| live.entry.file_number).collect();
        for segment in segments {
            let number = segment.entry.file_number;
            if self.known.segments.contains(&number) {
                continue;
            }
            if !self.note_moved(segment) {
                let Some(is_stopped) = takes_in else { continue };
                if !self.take_in(segment, is_stopped)? {
                    return Ok(());
                }
            }
            self.known.segments.insert(number);
        }
        self.known.moved.keep_live(&live);
        self.share_moved();
        self.known.segments.retain(|number| live.contains(number));
        self.known.generation = generation;
        self.known.watermark = flushed_seq;
        Ok(())
    }

    /// Leads the locators of a compaction's inputs to its output; false where they are not all
    /// known, or too many are led on.
    fn note_moved(&mut self, live: &LiveSegment) -> bool {
        let inputs = live.segment.lineage();
        let is_noted = !inputs.is_empty()
            && inputs.iter().all(|i| self.known.segments.contains(i))
            && self.known.moved.note(inputs, live.entry.file_number);
        if is_noted {
            self.share_moved();
        }
        is_noted
    }

    fn share_moved(&self) {
        self.handles.moved.store(Arc::new(self.known.moved.clone()));
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
            let file_number = self.moved.load().resolve(locator.file_number);
            Some(Locator { file_number })
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
                    file_number: u64::from(at),
                };
                let place = key(scope().key(), id.as_bytes());
                batch.insert(&db.handles.locators, place, locator.encode());
            }
            batch.commit().expect("written");
        }
    }

    fn check(db: &Db, upto: u32) {
        for at in (0..upto).step_by(997).chain([upto - 1]) {
            let id = format!("record-{at:090}");
            let found = db.handles.locate(&scope(), &id).expect("read");
            let file_number = u64::from(at);
            assert_eq!(found, Some(Locator { file_number }));
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
        for file_number in [0, 127, 128, 1 << 40, u64::MAX] {
            let locator = Locator { file_number };
            let bytes = locator.encode();
            assert_eq!(Locator::decode(&bytes), Some(locator));
            assert_eq!(Locator::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Locator::decode(&[&bytes[..], &[1]].concat()), None);
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
