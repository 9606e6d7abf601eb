//! Which ids does no segment hold? Asked before a batch goes to the log.
//!
//! A segment never changes: what is not in it will not be in it. So the look-up is done outside
//! every lock, one segment after the other, which keeps what it reads near; damage shows before
//! anything is written; and when the batch is applied, only the segments that came since are
//! looked into.

use chronolith_segments::{Partition, Scope, SegmentError};

use super::prepare::Ready;
use crate::version::{LiveSegment, Version};

/// What was found out about a batch before it went to the log.
#[derive(Debug, Default)]
pub(crate) struct Probed {
    /// File numbers of the segments that were looked into, ascending.
    segments: Box<[u64]>,
    /// Of each operation: none of them has a row of its id.
    absent: Box<[bool]>,
}

impl Probed {
    /// Looks for the operations' ids in the segments of `version`. A record that is live in a
    /// memtable is looked for no further.
    pub(crate) fn of(version: &Version, operations: &[Ready]) -> Result<Self, SegmentError> {
        let named = operations.iter().map(|operation| operation.target());
        let named: Vec<Option<(&Scope, &str)>> = named.collect();
        let mut wanted = Vec::with_capacity(operations.len());
        for (at, (scope, id)) in numbered(&named) {
            if !is_live_in_memory(version, scope, id)? {
                wanted.push((at, scope, id));
            }
        }
        let mut absent = vec![false; operations.len()];
        for (at, ..) in &wanted {
            absent[*at] = true;
        }
        for live in &version.segments {
            look_into(live, &mut wanted, &mut absent)?;
        }
        let segments = version.segments.iter();
        Ok(Self {
            segments: segments.map(|live| live.entry.file_number).collect(),
            absent: absent.into(),
        })
    }

    /// Places in `version` of the segments that were not looked into.
    pub(crate) fn unseen(&self, version: &Version) -> Vec<usize> {
        let places = version.segments.iter().enumerate();
        let unseen = places.filter(|(_, live)| {
            let number = live.entry.file_number;
            self.segments.binary_search(&number).is_err()
        });
        unseen.map(|(at, _)| at).collect()
    }

    /// True where no segment that was looked into has a row of the operation's id.
    pub(crate) fn is_absent(&self, operation: usize) -> bool {
        self.absent.get(operation) == Some(&true)
    }
}

/// The operations that name a record, by place.
fn numbered<'a>(
    named: &'a [Option<(&'a Scope, &'a str)>],
) -> impl Iterator<Item = (usize, (&'a Scope, &'a str))> {
    let named = named.iter().enumerate();
    named.filter_map(|(at, target)| target.map(|target| (at, target)))
}

fn is_live_in_memory(version: &Version, scope: &Scope, id: &str) -> Result<bool, SegmentError> {
    for live in version.memtables.iter().rev() {
        if let Some(row) = live.table.find(scope.key(), id, u64::MAX)?
            && !live.deaths.is_dead(row)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes out of `wanted` what is live in the segment, and notes what it has a row of.
fn look_into(
    live: &LiveSegment,
    wanted: &mut Vec<(usize, &Scope, &str)>,
    absent: &mut [bool],
) -> Result<(), SegmentError> {
    let mut kept = 0;
    for from in 0..wanted.len() {
        let (at, scope, id) = wanted[from];
        let row = live.segment.find(scope.key(), id, u64::MAX)?;
        absent[at] &= row.is_none();
        // At most one row of an id is live.
        if row.is_none_or(|row| live.deaths.is_dead(row)) {
            wanted[kept] = wanted[from];
            kept += 1;
        }
    }
    wanted.truncate(kept);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::apply::{Place, find_live_in};
    use super::super::{Batch, ReadyBatch};
    use super::*;
    use crate::{Maintenance, Options, Record, Setup, Store};

    fn batch(ids: &[&str]) -> Batch {
        let mut batch = Batch::new();
        for id in ids {
            let scope = Scope::parse("a").expect("a scope");
            batch.upsert(Record::new(scope, *id, 1_700_000_000_000_000, "text"));
        }
        batch
    }

    #[test]
    fn what_came_since_is_looked_into() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::create(Setup::default());
        options.maintenance = Maintenance::Manual;
        let store = Store::open(dir.path(), options).expect("creates");
        store.write(batch(&["old"])).expect("writes");
        store.flush().expect("flushes");
        store.write(batch(&["in memory"])).expect("writes");

        let version = store.snapshot().version;
        let ids = ["old", "new", "in memory", "late"];
        let ready = ReadyBatch::new(store.shared(), batch(&ids)).expect("fits");
        let probed = Probed::of(&version, &ready.operations).expect("sound");
        let absent = (0..ids.len() + 1).map(|at| probed.is_absent(at));
        assert_eq!(
            absent.collect::<Vec<_>>(),
            [false, true, false, true, false]
        );
        assert!(probed.unseen(&version).is_empty());

        store.write(batch(&["late"])).expect("writes");
        store.flush().expect("flushes");
        let version = store.snapshot().version;
        let unseen = probed.unseen(&version);
        assert_eq!(unseen.len(), 1, "the segment of the second flush");
        let scope = Scope::parse("a").expect("a scope");
        let find = |id: &str| find_live_in(&version, &scope, id, unseen.iter().copied());
        assert!(matches!(find("late"), Ok(Some(Place::Segment(..)))));
        assert!(matches!(find("new"), Ok(None)));

        store.compact(true, &mut |_| {}).expect("compacts");
        let version = store.snapshot().version;
        assert_eq!(probed.unseen(&version).len(), version.segments.len());
    }
}
