//! How do the records of a store get vectors in a new space while it is in use?
//!
//! Each record that lacks one is written once more, as it is, with the vector: the same text,
//! times, tags and vectors bit by bit, also the time at which it became known. Only its seq is a
//! new one. A record that somebody changed or forgot meanwhile is passed by. What is done is
//! seen from the records alone, so a migration that was interrupted goes on where it was.
//!
//! ```text
//!   snapshot --> rows that lack the space --> embed (caller) --> batch, refused where a record
//!      ^                                                         is no longer of its seq
//!      +------- again, for what came since, until nothing does
//! ```

use std::time::Duration;

use chronolith_segments::{Partition, Record, SpaceNumber, StoredVectors, prepare_vector};
use chronolith_wal::Durability;
use serde::Serialize;

use super::Store;
use crate::error::Error;
use crate::query::Source;
use crate::snapshot::{Snapshot, StoredRecord};
use crate::spaces::SpaceError;
use crate::write::{PutMode, Ready, ReadyBatch};

/// Records that are embedded and written at a time, where a migration does not say.
const BATCH_RECORDS: usize = 64;
/// Most of them.
const BATCH_RECORDS_MAX: usize = 4096;
/// Tries to write a batch of which some record was changed: each try takes at least one out.
const TRIES_MAX: usize = BATCH_RECORDS_MAX + 1;

/// How a migration goes about it.
#[derive(Debug, Clone)]
pub struct MigrateOptions {
    /// Records that are embedded and written at a time, 1 to 4096.
    pub batch_records: usize,
    /// Pause after each batch, for the others who use the store.
    pub pause: Duration,
}

impl Default for MigrateOptions {
    fn default() -> Self {
        Self {
            batch_records: BATCH_RECORDS,
            pause: Duration::ZERO,
        }
    }
}

/// What a migration has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Migrated {
    /// Records that were found without a vector in the space.
    pub lacking: u64,
    /// Those that got one.
    pub filled: u64,
    /// Those for which the embedder gave none: they go on lacking it.
    pub passed: u64,
    /// Those that were changed or forgotten meanwhile; who changed them is found again.
    pub changed: u64,
}

/// A record with all its vectors as stored.
struct Lacking {
    record: StoredRecord,
    vectors: StoredVectors,
}

impl Store {
    /// Gives every record that lacks a vector in the named space one: `embed` gets records, and
    /// gives a vector, or `None`, for each. Writers and readers go on meanwhile, and the default
    /// space serves; call [`Store::set_default_space`] when this has returned. Records that are
    /// written meanwhile without a vector in the space are found too.
    ///
    /// A record that is filled stays what it is, with its id, event time and known time, and gets a
    /// new commit seq: snapshots that were taken before see it as it was. One that is forgotten
    /// meanwhile stays forgotten. Call it again after a crash or an error: what is filled is not
    /// asked for again.
    ///
    /// # Errors
    /// [`Error::Space`] where there is no such space; [`Error::Embedder`] where `embed` failed,
    /// gave as many vectors as there were not records, or ones that the space refuses; those of
    /// [`Store::write`]. What was filled before stays.
    pub fn migrate_space<E: std::fmt::Display>(
        &self,
        name: &str,
        options: &MigrateOptions,
        mut embed: impl FnMut(&[StoredRecord]) -> Result<Vec<Option<Vec<f32>>>, E>,
        progress: &mut dyn FnMut(&Migrated),
    ) -> Result<Migrated, Error> {
        let number = self.space_number(name)?;
        let batch_records = options.batch_records.clamp(1, BATCH_RECORDS_MAX);
        let mut done = Migrated::default();
        let mut above_seq = 0;
        loop {
            let snapshot = self.snapshot();
            let mut fill = |rows: &mut Vec<Lacking>| -> Result<(), Error> {
                let asked: Vec<StoredRecord> = rows.iter().map(|row| row.record.clone()).collect();
                let vectors = embed(&asked).map_err(|error| Error::Embedder {
                    cause: error.to_string(),
                })?;
                self.fill(name, std::mem::take(rows), vectors, &mut done)?;
                progress(&done);
                self.core().shared.env.clock.sleep(options.pause);
                Ok(())
            };
            let found = each_lacking(&snapshot, number, above_seq, batch_records, &mut fill)?;
            if !found {
                self.sync()?;
                return Ok(done);
            }
            // What this pass wrote is not lacking; what it passed by is not asked for again.
            above_seq = snapshot.seq();
        }
    }

    fn space_number(&self, name: &str) -> Result<SpaceNumber, Error> {
        let spaces = self.core().shared.spaces();
        match spaces.set().named(name) {
            Some(own) => Ok(own.number),
            None => Err(SpaceError::unknown(spaces.set(), name).into()),
        }
    }

    /// Writes the records once more, each with its new vector.
    fn fill(
        &self,
        name: &str,
        rows: Vec<Lacking>,
        vectors: Vec<Option<Vec<f32>>>,
        done: &mut Migrated,
    ) -> Result<(), Error> {
        done.lacking += rows.len() as u64;
        if vectors.len() != rows.len() {
            let (given, asked) = (vectors.len(), rows.len());
            let cause = format!("it gave {given} vectors for {asked} records");
            return Err(Error::Embedder { cause });
        }
        // Not by the number of the start: the space may be gone, and another one come.
        let spaces = self.core().shared.spaces();
        let Some(own) = spaces.set().named(name) else {
            return Err(SpaceError::unknown(spaces.set(), name).into());
        };
        let mut wanted = Vec::with_capacity(rows.len());
        for (mut row, vector) in rows.into_iter().zip(vectors) {
            let Some(vector) = vector else {
                done.passed += 1;
                continue;
            };
            let stored =
                prepare_vector(&own.space, &vector).map_err(|refused| Error::Embedder {
                    cause: format!("of record {}: {refused}", row.record.record.id),
                })?;
            row.vectors.put(own.number, stored);
            wanted.push(row);
        }
        for _ in 0..TRIES_MAX {
            if wanted.is_empty() {
                return Ok(());
            }
            match self.rewrite(&wanted) {
                Ok(()) => {
                    done.filled += wanted.len() as u64;
                    return Ok(());
                }
                Err(Error::Changed { index }) => {
                    wanted.remove(index);
                    done.changed += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn rewrite(&self, rows: &[Lacking]) -> Result<(), Error> {
        let core = self.core();
        let shared = &core.shared;
        let operations = shared.with_scratch(|scratch| -> Result<Vec<Ready>, Error> {
            let ready = |row: &Lacking| {
                let (record, vectors) = (plain(&row.record.record), row.vectors.clone());
                let mut prepared = Box::new(shared.prepare_replayed(record, vectors, scratch)?);
                prepared.known_since_us = Some(row.record.commit_time_us);
                Ok(Ready::Put {
                    prepared,
                    mode: PutMode::Upsert,
                    over_seq: Some(row.record.commit_seq),
                })
            };
            rows.iter().map(ready).collect()
        })?;
        let batch = ReadyBatch::of(operations, Vec::new())?;
        self.write_ready_at(batch, Durability::Buffered)
    }
}

/// The record without its vectors, which lie beside it.
fn plain(record: &Record) -> Record {
    Record {
        vector: None,
        vectors: Vec::new(),
        ..record.clone()
    }
}

/// Calls `visit` with live records above a seq that lack a space, so many at a time; says
/// whether there was any. `visit` empties what it gets.
fn each_lacking(
    snapshot: &Snapshot,
    space: SpaceNumber,
    above_seq: u64,
    batch_records: usize,
    visit: &mut dyn FnMut(&mut Vec<Lacking>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let (mut found, mut rows) = (false, Vec::new());
    for source in snapshot.version.sources(snapshot.seq) {
        for row in lacking_rows(&source, space, above_seq, snapshot.seq)? {
            found = true;
            rows.push(read(snapshot, &*source.partition, row)?);
            if rows.len() >= batch_records {
                visit(&mut rows)?;
            }
        }
    }
    if !rows.is_empty() {
        visit(&mut rows)?;
    }
    Ok(found)
}

/// Live rows of a partition that lack a space, with a seq above and up to these.
fn lacking_rows(
    source: &Source,
    space: SpaceNumber,
    above_seq: u64,
    upto_seq: u64,
) -> Result<Vec<u32>, Error> {
    let (partition, mut rows) = (&*source.partition, Vec::new());
    let zone = partition.zone();
    let all_have = partition.vectors(space) == zone.rows;
    if all_have || zone.commit_seq.1 <= above_seq || zone.commit_seq.0 > upto_seq {
        return Ok(rows);
    }
    for row in (0..zone.rows).filter(|row| !source.dead.contains(*row)) {
        let is_asked = |seq: u64| seq > above_seq && seq <= upto_seq;
        if partition.vector(space, row)?.is_none() && is_asked(partition.fields(row)?.commit_seq) {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn read(snapshot: &Snapshot, partition: &dyn Partition, row: u32) -> Result<Lacking, Error> {
    let mut vectors = StoredVectors::default();
    for own in &snapshot.spaces.set().spaces {
        if let Some(vector) = partition.vector(own.number, row)? {
            vectors.put(own.number, vector.into_owned());
        }
    }
    Ok(Lacking {
        record: snapshot.stored_record(partition, row)?,
        vectors,
    })
}
