//! What is in a store, counted.

use std::collections::BTreeMap;

use chronolith_segments::{Population, Scope};
use serde::Serialize;

use crate::error::Error;
use crate::query::Source;
use crate::snapshot::Snapshot;
use crate::spaces::SpaceInfo;

/// One scope of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeStats {
    /// Its path.
    pub scope: String,
    /// Rows, replaced and forgotten ones that are not compacted away yet included.
    pub rows: u64,
}

/// One segment of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentStats {
    /// File number.
    pub file_number: u64,
    /// Level of its bucket.
    pub level: u8,
    /// Start of its bucket, µs.
    pub bucket_start_us: i64,
    /// End of its bucket, µs.
    pub bucket_end_us: i64,
    /// Rows, dead ones included.
    pub rows: u32,
    /// Rows that no longer count.
    pub dead_rows: u64,
    /// Size.
    pub bytes: u64,
}

/// One vector space of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceStats {
    /// Its name.
    pub name: String,
    /// Embedder id of its vectors.
    pub embedder: String,
    /// Dimension of its vectors.
    pub dim: u32,
    /// True of the space that is meant where none is named.
    pub is_default: bool,
    /// Live records with a vector in it at most; exact once compacted.
    pub vectors: u64,
}

impl SpaceStats {
    fn of(info: SpaceInfo) -> Self {
        Self {
            name: info.name,
            embedder: info.space.model,
            dim: info.space.dim,
            is_default: info.is_default,
            vectors: 0,
        }
    }
}

/// A store, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Live records.
    pub records: u64,
    /// Live records with a vector in the default space at most; exact once compacted.
    pub vectors: u64,
    /// Scopes with rows.
    pub scopes: u64,
    /// Live segments.
    pub segments: u64,
    /// Memtables, the active one included.
    pub memtables: u64,
    /// Sealed memtables that wait for their flush.
    pub sealed_memtables: u64,
    /// Bytes of all memtables.
    pub memtable_bytes: u64,
    /// Bytes at which a memtable is sealed.
    pub memtable_bytes_max: u64,
    /// Writes that had to wait for a flush since the open.
    pub writes_delayed: u64,
    /// Writes refused with `Busy` since the open.
    pub writes_refused: u64,
    /// Bytes of the log.
    pub wal_bytes: u64,
    /// Bytes of all live segments.
    pub segment_bytes: u64,
    /// Bytes of the catalog.
    pub catalog_bytes: u64,
    /// What the catalog is doing; `None` where there is none.
    pub catalog: Option<String>,
    /// Rows that are replaced or forgotten and still on disk or in memory.
    pub dead_rows: u64,
    /// Oldest event time, µs.
    pub oldest_ts_us: Option<i64>,
    /// Newest event time, µs.
    pub newest_ts_us: Option<i64>,
    /// Last visible commit seq.
    pub seq: u64,
    /// Last commit seq that segments hold.
    pub flushed_seq: u64,
    /// Generation of the manifest.
    pub generation: u64,
    /// Analyzer id.
    pub analyzer: String,
    /// Embedder id of the vectors of the default space.
    pub embedder: Option<String>,
    /// Dimension of the vectors of the default space.
    pub dim: Option<u32>,
    /// Every vector space, the oldest first.
    pub spaces: Vec<SpaceStats>,
    /// Failure of the background work, if the last try failed.
    pub maintenance_error: Option<String>,
    /// Every live segment.
    pub segment_list: Vec<SegmentStats>,
    /// Every scope, by path.
    pub scope_list: Vec<ScopeStats>,
}

impl Stats {
    /// Counts what a snapshot sees; the rest is the handle's to fill in.
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self, Error> {
        snapshot.check_whole()?;
        let (version, shared) = (&snapshot.version, &snapshot.shared);
        let spaces = &snapshot.spaces;
        let default = spaces.default_space();
        let mut stats = Self {
            segments: version.segments.len() as u64,
            memtables: version.memtables.len() as u64,
            sealed_memtables: version.sealed().len() as u64,
            memtable_bytes: version
                .memtables
                .iter()
                .map(|live| live.table.bytes())
                .sum(),
            memtable_bytes_max: shared.memtable_bytes_max,
            segment_bytes: version.segments.iter().map(|live| live.entry.bytes).sum(),
            seq: snapshot.seq,
            analyzer: shared.analyzer_id.clone(),
            embedder: default.map(|own| own.space.model.clone()),
            dim: default.map(|own| own.space.dim),
            spaces: spaces.infos().into_iter().map(SpaceStats::of).collect(),
            ..Self::default()
        };
        let mut scopes: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for source in version.sources(snapshot.seq) {
            stats.count(snapshot, &source, &mut scopes)?;
        }
        for live in &version.segments {
            stats.segment_list.push(SegmentStats {
                file_number: live.entry.file_number,
                level: live.entry.level,
                bucket_start_us: live.entry.bucket_start_us,
                bucket_end_us: live.entry.bucket_end_us,
                rows: live.entry.rows,
                dead_rows: live.deaths.dead_at(snapshot.seq).len(),
                bytes: live.entry.bytes,
            });
        }
        // A scope of forgotten records alone is none.
        scopes.retain(|_, rows| *rows > 0);
        stats.scopes = scopes.len() as u64;
        let path = |key: &[u8]| {
            Scope::from_key(key)
                .map(|scope| scope.path())
                .unwrap_or_default()
        };
        stats.scope_list = scopes
            .iter()
            .map(|(key, rows)| ScopeStats {
                scope: path(key),
                rows: *rows,
            })
            .collect();
        Ok(stats)
    }

    fn count(
        &mut self,
        snapshot: &Snapshot,
        source: &Source,
        scopes: &mut BTreeMap<Vec<u8>, u64>,
    ) -> Result<(), Error> {
        let (partition, dead) = (&*source.partition, source.dead.len());
        let mut rows = 0;
        for entry in partition.scopes(snapshot.seq)? {
            let Population {
                rows: scope_rows, ..
            } = entry.population;
            rows += scope_rows;
            *scopes.entry(entry.key).or_default() += scope_rows;
            let (oldest, newest) = entry.event_time_us;
            self.oldest_ts_us = Some(self.oldest_ts_us.map_or(oldest, |us| us.min(oldest)));
            self.newest_ts_us = Some(self.newest_ts_us.map_or(newest, |us| us.max(newest)));
        }
        for row in source.dead.iter() {
            let key = partition.scope_key(row)?;
            if let Some(rows) = scopes.get_mut(&*key) {
                *rows = rows.saturating_sub(1);
            }
        }
        self.records += rows - dead.min(rows);
        self.dead_rows += dead;
        let numbered = snapshot.spaces.set().spaces.iter();
        for (own, space) in numbered.zip(&mut self.spaces) {
            let vectors = u64::from(partition.vectors(own.number));
            space.vectors += vectors;
            self.vectors += if space.is_default { vectors } else { 0 };
        }
        Ok(())
    }
}
