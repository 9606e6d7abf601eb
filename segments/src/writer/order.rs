//! In which order do the kept rows of all inputs stand, and where did each one go?

use std::collections::BTreeMap;
use std::ops::Range;

use super::cluster::{Clusterer, Clusters};
use super::{MergeInput, ROW_DROPPED, Result};
use crate::columns::{Column, signed};
use crate::error::SegmentError;
use crate::format::Bucket;
use crate::format::bytes::index;
use crate::limits::ROWS_MAX;
use crate::read::{Partition, Zone};
use crate::scope_dir::ScopeFacts;
use crate::space::SpaceNumber;
use crate::stream::RowStream;
use crate::vectors::ScopePlan;

/// Where an output row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) input: u32,
    pub(super) row: u32,
}

/// All that is decided before the first byte is written: about 32 bytes a row, and while rows
/// are put in order up to 16 more.
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
    /// Cluster numbers by output row; empty where every row has 0.
    pub(super) clusters: Vec<u32>,
    /// Runs of scopes whose rows were clustered for this merge, ascending by scope.
    pub(super) runs: Vec<ScopePlan>,
    /// Lengths in counted tokens by output row.
    pub(super) lengths: Vec<u32>,
    /// Zone; its count of vectors is not yet known.
    pub(super) zone: Zone,
    /// Sum of all lengths.
    pub(super) length_sum: u64,
}

impl<'a> Merge<'a> {
    /// Orders the kept rows. Without a clusterer they keep the cluster numbers they have.
    pub(super) fn new(
        inputs: &'a [MergeInput<'a>],
        bucket: &Bucket,
        clusterer: Option<Clusterer<'_>>,
    ) -> Result<Self> {
        let rows: u64 = inputs.iter().map(|input| input.keep.len()).sum();
        if rows == 0 || rows > u64::from(ROWS_MAX) {
            return Err(SegmentError::Limit(format!(
                "{rows} rows in a segment; 1 to {ROWS_MAX}"
            )));
        }
        let zone = Zone {
            rows: u32::try_from(rows).expect("at most ROWS_MAX"),
            vectors: 0,
            scopes: 0,
            event_time_us: (i64::MAX, i64::MIN),
            commit_seq: (u64::MAX, 0),
            source_class_max: 0,
        };
        let mut merge = Self {
            inputs,
            origins: Vec::new(),
            remap: inputs
                .iter()
                .map(|input| vec![ROW_DROPPED; index(input.partition.zone().rows)])
                .collect(),
            scopes: Vec::new(),
            times_us: Vec::new(),
            seqs: Vec::new(),
            clusters: Vec::new(),
            runs: Vec::new(),
            lengths: Vec::new(),
            zone,
            length_sum: 0,
        };
        merge.place_by_scope()?;
        merge.times_us = merge.column(Column::EventTime, signed)?;
        merge.seqs = merge.column(Column::CommitSeq, |seq| seq)?;
        let clusters = match clusterer {
            Some(clusterer) => clusterer.cluster(&merge)?,
            None => merge.kept_clusters()?,
        };
        (merge.clusters, merge.runs) = (clusters.numbers, clusters.plans);
        merge.sort_scopes();
        merge.lengths = merge.column(Column::Length, u32_of)?;
        merge.sum_up(bucket)?;
        Ok(merge)
    }

    /// Places the rows of each scope behind those of the scopes below, inputs in order.
    fn place_by_scope(&mut self) -> Result<()> {
        let mut numbers = ScopeNumbers::default();
        // Until a row has its place: the number of its scope.
        for (input, remap) in self.inputs.iter().zip(&mut self.remap) {
            let mut stream = input.partition.row_stream()?;
            let mut known = Vec::new();
            for row in &input.keep {
                let number = stream.scope(row)?;
                remap[index(row)] = numbers.of(&*stream, number, &mut known)?;
            }
        }
        let mut free = self.lay_out(numbers);
        self.origins = vec![Origin { input: 0, row: 0 }; index(self.zone.rows)];
        for (number, (input, remap)) in (0_u32..).zip(self.inputs.iter().zip(&mut self.remap)) {
            for row in &input.keep {
                let to = &mut remap[index(row)];
                let free = &mut free[index(*to)];
                *to = *free;
                self.origins[index(*free)] = Origin { input: number, row };
                *free += 1;
            }
        }
        Ok(())
    }

    /// Gives each scope its rows; gives the first of them by the scopes' numbers.
    fn lay_out(&mut self, numbers: ScopeNumbers) -> Vec<u32> {
        let mut free = vec![0; numbers.rows.len()];
        let mut next = 0;
        for (key, number) in numbers.by_key {
            let rows = numbers.rows[index(number)];
            free[index(number)] = next;
            self.scopes.push(ScopeFacts {
                key,
                rows: next..next + rows,
                length_sum: 0,
                event_time_us: (i64::MAX, i64::MIN),
                own_timeline: false,
            });
            next += rows;
        }
        assert_eq!(next, self.zone.rows, "every row has a scope");
        self.zone.scopes = u32::try_from(self.scopes.len()).expect("a scope has a row");
        free
    }

    /// A column by output row, as the rows stand now.
    fn column<T: Clone + Default>(
        &self,
        column: Column,
        value_of: impl Fn(u64) -> T,
    ) -> Result<Vec<T>> {
        let mut values = vec![T::default(); index(self.zone.rows)];
        self.each_value(column, |to, value| values[index(to)] = value_of(value))?;
        Ok(values)
    }

    /// Calls `visit` with every output row and its value in a column, the rows of each input
    /// in the order of that input.
    pub(super) fn each_value(&self, column: Column, mut visit: impl FnMut(u32, u64)) -> Result<()> {
        for (input, remap) in self.inputs.iter().zip(&self.remap) {
            input
                .partition
                .each_value(column, &input.keep, &mut |row, value| {
                    let to = remap[index(row)];
                    if to != ROW_DROPPED {
                        visit(to, value);
                    }
                })?;
        }
        Ok(())
    }

    /// Puts the rows of each scope in order of cluster, event time and seq. They lie in as many
    /// ascending stretches as there are inputs.
    fn sort_scopes(&mut self) {
        let mut order = Vec::new();
        for scope in 0..self.scopes.len() {
            let rows = self.scopes[scope].rows.clone();
            let key = |row: u32| {
                let row = index(row);
                let cluster = self.clusters.get(row).copied().unwrap_or(0);
                (cluster, self.times_us[row], self.seqs[row])
            };
            if rows.clone().is_sorted_by_key(key) {
                continue;
            }
            order.clear();
            order.extend(rows.clone());
            // Stable: where a seq stands twice, inputs and their rows stay in order. It finds
            // the stretches.
            order.sort_by_key(|row| key(*row));
            self.reorder(rows, &order);
        }
    }

    /// The cluster numbers that the rows have in the inputs.
    fn kept_clusters(&self) -> Result<Clusters> {
        let mut clustered = false;
        self.each_value(Column::Cluster, |_, cluster| clustered |= cluster > 0)?;
        let numbers = match clustered {
            true => self.column(Column::Cluster, u32_of)?,
            false => Vec::new(),
        };
        Ok(Clusters {
            numbers,
            plans: Vec::new(),
        })
    }

    /// Puts rows in a new order: `order` has the old places of `rows`.
    fn reorder(&mut self, rows: Range<u32>, order: &[u32]) {
        fn pick<T: Copy>(values: &mut [T], rows: &Range<u32>, order: &[u32]) {
            let picked: Vec<T> = order.iter().map(|from| values[index(*from)]).collect();
            values[index(rows.start)..index(rows.end)].copy_from_slice(&picked);
        }
        pick(&mut self.times_us, &rows, order);
        pick(&mut self.seqs, &rows, order);
        pick(&mut self.origins, &rows, order);
        if !self.clusters.is_empty() {
            pick(&mut self.clusters, &rows, order);
        }
        for row in rows {
            let origin = self.origins[index(row)];
            self.remap[index(origin.input)][index(origin.row)] = row;
        }
    }

    /// What scopes and zone know of their rows.
    fn sum_up(&mut self, bucket: &Bucket) -> Result<()> {
        for scope in &mut self.scopes {
            let rows = index(scope.rows.start)..index(scope.rows.end);
            let lengths = &self.lengths[rows.clone()];
            scope.length_sum = lengths.iter().map(|length| u64::from(*length)).sum();
            self.length_sum += scope.length_sum;
            scope.event_time_us = span(&self.times_us[rows], scope.event_time_us);
        }
        let zone = &mut self.zone;
        zone.event_time_us = span(&self.times_us, zone.event_time_us);
        zone.commit_seq = span(&self.seqs, zone.commit_seq);
        assert!(
            bucket.contains(zone.event_time_us.0) && bucket.contains(zone.event_time_us.1),
            "a segment holds rows of its bucket alone"
        );
        let mut class_max = 0;
        self.each_value(Column::SourceClass, |_, class| {
            class_max = class.max(class_max)
        })?;
        self.zone.source_class_max = u8::try_from(class_max).expect("a column of bytes");
        Ok(())
    }

    /// True where a row of an input, kept or not, has a vector in a space.
    pub(super) fn has_vectors(&self, space: SpaceNumber) -> bool {
        let mut inputs = self.inputs.iter();
        inputs.any(|input| input.partition.vectors(space) > 0)
    }

    /// The inputs.
    pub(super) fn inputs(&self) -> &'a [MergeInput<'a>] {
        self.inputs
    }

    /// The rows of all inputs, one stream an input.
    pub(super) fn streams(&self) -> Result<Vec<Box<dyn RowStream + 'a>>> {
        let streams = self.inputs.iter().map(|input| input.partition.row_stream());
        streams.collect()
    }

    /// Output rows with the input and row each one comes from, ascending.
    pub(super) fn origins(&self) -> impl Iterator<Item = (usize, u32)> {
        let origins = self.origins.iter();
        origins.map(|origin| (index(origin.input), origin.row))
    }

    /// Output rows with the partition and row each one comes from, ascending.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'a dyn Partition, u32)> {
        let origins = self.origins();
        origins.map(|(input, row)| (self.inputs[input].partition, row))
    }

    /// Where an output row comes from.
    pub(super) fn origin_of(&self, row: u32) -> Origin {
        self.origins[index(row)]
    }

    /// The partition and row that an output row comes from.
    pub(super) fn origin(&self, row: u32) -> (&'a dyn Partition, u32) {
        let Origin { input, row } = self.origin_of(row);
        (self.inputs[index(input)].partition, row)
    }

    /// Output rows of the rows of an input.
    pub(super) fn remap(&self, input: usize) -> &[u32] {
        &self.remap[input]
    }

    /// Output rows of the rows of each input.
    pub(super) fn into_remap(self) -> Vec<Vec<u32>> {
        self.remap
    }
}

/// Numbers of scopes, over all inputs.
#[derive(Debug, Default)]
struct ScopeNumbers {
    by_key: BTreeMap<Box<[u8]>, u32>,
    /// Rows of each scope.
    rows: Vec<u32>,
}

impl ScopeNumbers {
    /// Counts a row of the scope that is `private` to a stream and gives the scope's number;
    /// `known` has those of the stream.
    fn of(&mut self, stream: &dyn RowStream, private: u32, known: &mut Vec<u32>) -> Result<u32> {
        const UNKNOWN: u32 = u32::MAX;
        if known.len() <= index(private) {
            known.resize(index(private) + 1, UNKNOWN);
        }
        let known = &mut known[index(private)];
        if *known == UNKNOWN {
            let key = stream.scope_key(private)?;
            *known = match self.by_key.get(&*key) {
                Some(number) => *number,
                None => {
                    let next = u32::try_from(self.rows.len()).expect("at most ROWS_MAX");
                    self.by_key.insert((&*key).into(), next);
                    self.rows.push(0);
                    next
                }
            };
        }
        self.rows[index(*known)] += 1;
        Ok(*known)
    }
}

/// A value of a column that has no larger ones.
fn u32_of(value: u64) -> u32 {
    u32::try_from(value).expect("a column of 32 bits is read with a check of them")
}

/// The least and the largest of `values`, and of `so_far`.
fn span<T: Copy + Ord>(values: &[T], so_far: (T, T)) -> (T, T) {
    let add = |(least, most): (T, T), value: &T| (least.min(*value), most.max(*value));
    values.iter().fold(so_far, add)
}
