//! What does a reader see? An immutable list of partitions, and how far it may look.
//!
//! A version is replaced whole when a memtable is sealed, flushed or a compaction lands;
//! commits only move the visible seq. A reader takes both as one: it reads the seq between two
//! looks at the version that agree, so every row at or below the seq is in the version.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use chronolith_segments::{DeathLog, Memtable, Partition, Segment, SegmentError};
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::atomic::AtomicU64 as SharedSeq;

use crate::manifest::SegmentEntry;
use crate::query::{PartitionName, Source};
use crate::swap::ArcSwap;
use crate::tag_graph::TagGraph;

/// A segment that counts, with the deaths of its rows.
#[derive(Debug)]
pub(crate) struct LiveSegment {
    pub(crate) segment: Arc<Segment>,
    pub(crate) entry: SegmentEntry,
    pub(crate) deaths: DeathLog,
}

/// A segment that counts and cannot be opened, or whose dead rows are not known: its rows may be
/// in any scope.
#[derive(Debug)]
pub(crate) struct LostSegment {
    pub(crate) file_number: u64,
    /// File, section, offset and message of the damage.
    pub(crate) damage: (String, &'static str, u64, String),
}

impl LostSegment {
    /// The damage, as often as it is asked for.
    pub(crate) fn error(&self) -> SegmentError {
        let (file, section, offset, message) = &self.damage;
        SegmentError::corrupt(file, section, *offset, message)
    }
}

/// A memtable that counts, with the deaths of its rows.
#[derive(Debug)]
pub(crate) struct LiveMemtable {
    pub(crate) table: Arc<Memtable>,
    pub(crate) deaths: DeathLog,
    /// Counted up over the life of the handle.
    pub(crate) number: u64,
    /// Last seq applied while this was the active memtable, rows or not.
    pub(crate) last_seq: AtomicU64,
    /// When that one became known, µs.
    pub(crate) last_time_us: AtomicI64,
    /// Last seq applied before it began.
    pub(crate) base_seq: u64,
    /// What forgets and tag edges applied since it began weigh in memory and log, in bytes.
    pub(crate) rowless_bytes: AtomicU64,
    /// The tag graph as of its last seq, set when it is sealed.
    pub(crate) sealed_graph: OnceLock<Arc<TagGraph>>,
}

impl LiveMemtable {
    pub(crate) fn new(table: Memtable, number: u64, last_seq: u64) -> Self {
        Self {
            table: Arc::new(table),
            deaths: DeathLog::default(),
            number,
            last_seq: AtomicU64::new(last_seq),
            last_time_us: AtomicI64::new(i64::MIN),
            base_seq: last_seq,
            rowless_bytes: AtomicU64::new(0),
            sealed_graph: OnceLock::new(),
        }
    }

    /// The tag graph as of the last seq of a sealed memtable.
    pub(crate) fn tag_graph(&self) -> Arc<TagGraph> {
        Arc::clone(
            self.sealed_graph
                .get()
                .expect("only sealed memtables are flushed"),
        )
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq.load(Ordering::Acquire)
    }

    /// True if nothing was applied to it: neither rows nor deaths nor tag edges.
    pub(crate) fn is_untouched(&self) -> bool {
        self.last_seq() == self.base_seq
    }
}

/// Everything that counts. The last memtable is the active one; the others are sealed, oldest
/// first.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) segments: Vec<Arc<LiveSegment>>,
    /// Only in a reader's version: an open for writing refuses what it cannot open.
    pub(crate) lost: Vec<Arc<LostSegment>>,
    pub(crate) memtables: Vec<Arc<LiveMemtable>>,
    pub(crate) tag_graph: Arc<TagGraph>,
    /// The graph before the last batch that changed it, and that batch's last seq: a reader
    /// may take this version before the batch is visible.
    pub(crate) tag_graph_before: Option<(u64, Arc<TagGraph>)>,
}

impl Version {
    /// The tag graph as of `at_seq`, which this version was current at.
    pub(crate) fn tag_graph_at(&self, at_seq: u64) -> &TagGraph {
        match &self.tag_graph_before {
            Some((changed_seq, before)) if at_seq < *changed_seq => before,
            _ => &self.tag_graph,
        }
    }

    /// Partitions with their dead rows at `at_seq`: segments by number, then memtables.
    pub(crate) fn sources(&self, at_seq: u64) -> Vec<Source> {
        let segments = self.segments.iter().map(|live| Source {
            name: PartitionName::Segment(live.entry.file_number),
            partition: Arc::clone(&live.segment) as Arc<dyn Partition>,
            dead: live
                .deaths
                .dead_at(match planted::is_on(Bug::SnapshotSeesLater) {
                    true => u64::MAX,
                    false => at_seq,
                }),
        });
        let memtables = self
            .memtables
            .iter()
            .filter(|live| live.table.zone().rows > 0)
            .map(|live| Source {
                name: PartitionName::Memtable(live.number),
                partition: Arc::clone(&live.table) as Arc<dyn Partition>,
                dead: live.deaths.dead_at(at_seq),
            });
        segments.chain(memtables).collect()
    }

    /// The active memtable.
    pub(crate) fn active(&self) -> &Arc<LiveMemtable> {
        self.memtables
            .last()
            .expect("a version always has an active memtable")
    }

    /// The sealed memtables, oldest first.
    pub(crate) fn sealed(&self) -> &[Arc<LiveMemtable>] {
        &self.memtables[..self.memtables.len() - 1]
    }
}

/// The current version and how far it may be looked into.
#[derive(Debug)]
pub(crate) struct Current {
    version: ArcSwap<Version>,
    visible_seq: SharedSeq,
}

impl Current {
    pub(crate) fn new(version: Version, visible_seq: u64) -> Self {
        Self {
            version: ArcSwap::from_pointee(version),
            visible_seq: SharedSeq::new(visible_seq),
        }
    }

    /// The version and the seq that belong together.
    pub(crate) fn load(&self) -> (Arc<Version>, u64) {
        loop {
            let version = self.version.load_full();
            let seq = self.visible_seq.load(Ordering::Acquire);
            // While this Arc is held no other version can have its address.
            if Arc::ptr_eq(&version, &self.version.load()) {
                return (version, seq);
            }
        }
    }

    /// The version alone, for whoever holds the apply lock.
    pub(crate) fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// How far commits are visible.
    pub(crate) fn visible_seq(&self) -> u64 {
        self.visible_seq.load(Ordering::Acquire)
    }

    /// Makes commits up to `seq` visible. Only under the apply lock, in seq order.
    pub(crate) fn show_upto(&self, seq: u64) {
        debug_assert!(
            seq >= self.visible_seq.load(Ordering::Relaxed),
            "visibility never goes back"
        );
        self.visible_seq.store(seq, Ordering::Release);
    }

    /// Replaces the version. Only under the apply lock.
    pub(crate) fn replace(&self, version: Version) {
        self.version.store(Arc::new(version));
    }
}
