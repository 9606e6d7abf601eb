//! Which rows of a partition no longer count: durable sets and the log of later deaths.

use std::sync::{Arc, Mutex, PoisonError};

use roaring::RoaringBitmap;

/// Why a row died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DeathKind {
    /// Forgotten by id.
    Deleted = 1,
    /// A newer record of the same (scope, id) took its place.
    Superseded = 2,
    /// Kept, but out of default reads.
    Archived = 3,
}

impl DeathKind {
    /// Reads the byte on disk; unknown values are `None`.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Deleted, Self::Superseded, Self::Archived]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// One entry of a delete set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Death {
    /// The row.
    pub row: u32,
    /// Commit seq of the operation that killed it.
    pub seq: u64,
    /// Why.
    pub kind: DeathKind,
    /// End of the row's validity, µs.
    pub valid_to_us: i64,
}

/// Dead rows of one partition as of one seq. Immutable; entries ascend by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeleteSet {
    entries: Vec<Death>,
    rows: RoaringBitmap,
}

impl DeleteSet {
    /// Builds the set; of two entries for a row the one with the lower seq stays, since a row
    /// dies once.
    pub fn new(mut entries: Vec<Death>) -> Self {
        entries.sort_unstable_by_key(|death| (death.row, death.seq));
        entries.dedup_by_key(|death| death.row);
        let rows = entries.iter().map(|death| death.row).collect();
        Self { entries, rows }
    }

    /// Entries, ascending by row.
    pub fn entries(&self) -> &[Death] {
        &self.entries
    }

    /// The dead rows.
    pub fn rows(&self) -> &RoaringBitmap {
        &self.rows
    }
}

/// Deaths that no durable delete set holds yet, in seq order, with a cached set of rows.
///
/// One writer appends (under the engine's apply lock); readers ask for the dead rows as of a
/// seq. A reader holds the lock only while it copies an `Arc` or merges the new entries.
#[derive(Debug, Default)]
pub struct DeathLog {
    inner: Mutex<DeathLogInner>,
}

#[derive(Debug, Default)]
struct DeathLogInner {
    /// Ascending by seq.
    entries: Vec<Death>,
    /// Rows of the first `cached_entries` entries.
    cached: Arc<RoaringBitmap>,
    cached_entries: usize,
    /// Rows of all entries: what the writer asks, without touching the readers' set.
    all: RoaringBitmap,
}

impl DeathLog {
    /// A log that starts with `base`: rows already dead when the partition was opened.
    pub fn new(base: &DeleteSet) -> Self {
        let mut entries = base.entries().to_vec();
        entries.sort_unstable_by_key(|death| (death.seq, death.row));
        let inner = DeathLogInner {
            cached_entries: entries.len(),
            entries,
            cached: Arc::new(base.rows().clone()),
            all: base.rows().clone(),
        };
        Self {
            inner: Mutex::new(inner),
        }
    }

    /// Appends a death. Seqs must not go back.
    pub fn push(&self, death: Death) {
        let mut inner = self.lock();
        debug_assert!(
            inner
                .entries
                .last()
                .is_none_or(|last| last.seq <= death.seq)
        );
        inner.all.insert(death.row);
        inner.entries.push(death);
    }

    /// True if the row is dead by now. For the writer, who sees everything that was applied.
    pub fn is_dead(&self, row: u32) -> bool {
        self.lock().all.contains(row)
    }

    /// Number of deaths by now.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// True while no row died.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows dead at `at_seq`.
    pub fn dead_at(&self, at_seq: u64) -> Arc<RoaringBitmap> {
        let mut inner = self.lock();
        let upto = inner.entries.partition_point(|death| death.seq <= at_seq);
        if upto == inner.cached_entries {
            return Arc::clone(&inner.cached);
        }
        if upto < inner.cached_entries {
            // An old snapshot: rare, so it is built anew and not kept.
            return Arc::new(
                inner.entries[..upto]
                    .iter()
                    .map(|death| death.row)
                    .collect(),
            );
        }
        let from = inner.cached_entries;
        let fresh: Vec<u32> = inner.entries[from..upto]
            .iter()
            .map(|death| death.row)
            .collect();
        Arc::make_mut(&mut inner.cached).extend(fresh);
        inner.cached_entries = upto;
        Arc::clone(&inner.cached)
    }

    /// Entries with seq at most `at_seq`, ascending by seq.
    pub fn entries_at(&self, at_seq: u64) -> Vec<Death> {
        let inner = self.lock();
        let upto = inner.entries.partition_point(|death| death.seq <= at_seq);
        inner.entries[..upto].to_vec()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DeathLogInner> {
        // The state is valid after every statement, so a panicking holder leaves it usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(row: u32, seq: u64) -> Death {
        Death {
            row,
            seq,
            kind: DeathKind::Deleted,
            valid_to_us: 0,
        }
    }

    #[test]
    fn a_reader_sees_the_deaths_up_to_its_seq() {
        let log = DeathLog::new(&DeleteSet::new(vec![death(9, 1)]));
        log.push(death(3, 5));
        log.push(death(4, 7));
        let rows = |at| log.dead_at(at).iter().collect::<Vec<_>>();
        assert_eq!(rows(7), [3, 4, 9]);
        assert_eq!(rows(5), [3, 9], "an older snapshot after a newer one");
        assert_eq!(rows(0), [0; 0]);
        log.push(death(5, 8));
        assert_eq!(rows(u64::MAX), [3, 4, 5, 9]);
        assert_eq!(log.entries_at(5), [death(9, 1), death(3, 5)]);
    }
}
