//! In which order do the kept rows of all inputs stand, and where did each one go?

use std::collections::BTreeMap;

use super::{MergeInput, ROW_DROPPED, Result};
use crate::error::SegmentError;
use crate::format::Bucket;
use crate::format::bytes::index;
use crate::limits::ROWS_MAX;
use crate::read::{Partition, Zone};
use crate::scope_dir::ScopeFacts;

/// Where an output row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    input: u32,
    row: u32,
}

/// All that is decided before the first byte is written.
#[derive(Debug)]
pub(super) struct Merge<'a> {
    inputs: &'a [MergeInput<'a>],
    origins: Vec<Origin>,
    remap: Vec<Vec<u32>>,
    /// Scopes; whether one has a timeline of its own is not yet known.
    pub(super) scopes: Vec<ScopeFacts>,
    /// Event times by output row, µs.
    pub(super) times_us: Vec<i64>,
    /// Commit seqs by output row.
    pub(super) seqs: Vec<u64>,
    /// Lengths in counted tokens by output row.
    pub(super) lengths: Vec<u32>,
    /// Zone; its count of vectors is not yet known.
    pub(super) zone: Zone,
    /// Sum of all lengths.
    pub(super) length_sum: u64,
}

/// Keys of all scopes, ascending.
type ScopeKeys = Vec<Box<[u8]>>;

/// What orders rows, and where one comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    scope: u32,
    cluster: u32,
    event_time_us: i64,
    seq: u64,
    // Last, so that the order is total even where an input holds a seq twice.
    input: u32,
    row: u32,
}

impl<'a> Merge<'a> {
    /// Orders the kept rows.
    pub(super) fn new(inputs: &'a [MergeInput<'a>], bucket: &Bucket) -> Result<Self> {
        let rows: u64 = inputs.iter().map(|input| input.keep.len()).sum();
        if rows == 0 || rows > u64::from(ROWS_MAX) {
            return Err(SegmentError::Limit(format!(
                "{rows} rows in a segment; 1 to {ROWS_MAX}"
            )));
        }
        let (keys, scope_keys) = order(inputs)?;
        let zone = Zone {
            rows: u32::try_from(rows).expect("at most ROWS_MAX"),
            vectors: 0,
            scopes: u32::try_from(scope_keys.len()).expect("a scope has a row"),
            event_time_us: (i64::MAX, i64::MIN),
            commit_seq: (u64::MAX, 0),
            source_class_max: 0,
        };
        let mut merge = Self {
            inputs,
            origins: Vec::with_capacity(keys.len()),
            remap: inputs
                .iter()
                .map(|input| vec![ROW_DROPPED; index(input.partition.zone().rows)])
                .collect(),
            scopes: Vec::with_capacity(scope_keys.len()),
            times_us: Vec::with_capacity(keys.len()),
            seqs: Vec::with_capacity(keys.len()),
            lengths: Vec::with_capacity(keys.len()),
            zone,
            length_sum: 0,
        };
        for key in keys {
            assert!(
                bucket.contains(key.event_time_us),
                "a segment holds rows of its bucket alone"
            );
            merge.place(key, &scope_keys)?;
        }
        assert_eq!(
            merge.scopes.len(),
            scope_keys.len(),
            "every scope has a row"
        );
        Ok(merge)
    }

    fn place(&mut self, key: Key, scope_keys: &ScopeKeys) -> Result<()> {
        let at = u32::try_from(self.origins.len()).expect("at most ROWS_MAX");
        let input = &self.inputs[index(key.input)];
        self.remap[index(key.input)][index(key.row)] = at;
        self.origins.push(Origin {
            input: key.input,
            row: key.row,
        });
        let length = input.partition.length(key.row)?;
        self.lengths.push(length);
        let length = u64::from(length);
        let time = key.event_time_us;
        if self.scopes.len() == index(key.scope) {
            self.scopes.push(ScopeFacts {
                key: scope_keys[index(key.scope)].clone(),
                rows: at..at,
                length_sum: 0,
                event_time_us: (time, time),
                own_timeline: false,
            });
        }
        let scope = self.scopes.last_mut().expect("pushed with its first row");
        scope.rows.end = at + 1;
        scope.length_sum += length;
        scope.event_time_us = (
            scope.event_time_us.0.min(time),
            scope.event_time_us.1.max(time),
        );
        self.length_sum += length;
        self.times_us.push(time);
        self.seqs.push(key.seq);
        let zone = &mut self.zone;
        zone.event_time_us = (
            zone.event_time_us.0.min(time),
            zone.event_time_us.1.max(time),
        );
        zone.commit_seq = (
            zone.commit_seq.0.min(key.seq),
            zone.commit_seq.1.max(key.seq),
        );
        zone.source_class_max = zone
            .source_class_max
            .max(input.partition.source_class(key.row)?);
        Ok(())
    }

    /// The inputs.
    pub(super) fn inputs(&self) -> &'a [MergeInput<'a>] {
        self.inputs
    }

    /// Output rows with the partition and row each one comes from, ascending.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'a dyn Partition, u32)> {
        self.origins.iter().map(|origin| self.resolve(*origin))
    }

    /// Partition and row of an output row.
    pub(super) fn row(&self, at: u32) -> (&'a dyn Partition, u32) {
        self.resolve(self.origins[index(at)])
    }

    /// Output rows of the rows of an input.
    pub(super) fn remap(&self, input: usize) -> &[u32] {
        &self.remap[input]
    }

    /// Output rows of the rows of each input.
    pub(super) fn into_remap(self) -> Vec<Vec<u32>> {
        self.remap
    }

    fn resolve(&self, origin: Origin) -> (&'a dyn Partition, u32) {
        (self.inputs[index(origin.input)].partition, origin.row)
    }
}

/// The keys of all kept rows, sorted, and the scopes that they number.
fn order(inputs: &[MergeInput<'_>]) -> Result<(Vec<Key>, ScopeKeys)> {
    let mut numbers: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
    let mut keys = Vec::new();
    for (number, input) in (0_u32..).zip(inputs) {
        // Neighbours mostly share a scope.
        let mut last: Option<(Box<[u8]>, u32)> = None;
        for row in &input.keep {
            let key = input.partition.scope_key(row)?;
            let scope = match &last {
                Some((last_key, scope)) if **last_key == *key => *scope,
                _ => {
                    let next = u32::try_from(numbers.len()).expect("at most ROWS_MAX");
                    let scope = *numbers.entry((&*key).into()).or_insert(next);
                    last = Some(((&*key).into(), scope));
                    scope
                }
            };
            let fields = input.partition.fields(row)?;
            let (cluster, event_time_us, seq) =
                (fields.cluster, fields.event_time_us, fields.commit_seq);
            keys.push(Key {
                scope,
                cluster,
                event_time_us,
                seq,
                input: number,
                row,
            });
        }
    }
    let mut ranks = vec![0; numbers.len()];
    for (rank, number) in (0_u32..).zip(numbers.values()) {
        ranks[index(*number)] = rank;
    }
    keys.iter_mut()
        .for_each(|key| key.scope = ranks[index(key.scope)]);
    keys.sort_unstable();
    Ok((keys, numbers.into_keys().collect()))
}
