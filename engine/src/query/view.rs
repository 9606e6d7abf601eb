//! What does one query see of one partition: its runs, its dead rows and its filters.

use std::sync::{Arc, OnceLock};

use chronolith_segments::{
    Partition, Run, ScopeRanges, SegmentError, SpaceNumber, TimeOrder, segment_file_name,
};
use roaring::RoaringBitmap;

use super::bm25::Statistics;
use super::clauses::ClauseRows;

/// How a partition is called in plans: stable across queries of one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "number")]
pub enum PartitionName {
    /// A segment file's number.
    Segment(u64),
    /// A memtable, counted from the oldest.
    Memtable(u64),
}

impl std::fmt::Display for PartitionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Segment(number) => write!(f, "segment {number:016x}"),
            Self::Memtable(number) => write!(f, "memtable {number}"),
        }
    }
}

/// One partition as one snapshot sees it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) name: PartitionName,
    pub(crate) partition: Arc<dyn Partition>,
    /// Rows dead at the snapshot's seq.
    pub(crate) dead: Arc<RoaringBitmap>,
}

/// A source with the runs of one request.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) source: Source,
    /// Whose vectors are compared, where vectors are.
    pub(crate) space: SpaceNumber,
    /// Never empty.
    pub(crate) runs: Vec<Run>,
    /// Dead rows of each run, ascending.
    pub(crate) dead_rows: Vec<Vec<u32>>,
    /// Set by pruning; `None` = every live row passes the tag filter.
    pub(crate) tagged: Option<RoaringBitmap>,
    /// Set once terms are looked up, where rows are not asked in ascending order or all of
    /// them are: what clauses require and exclude.
    pub(crate) clause_rows: OnceLock<ClauseRows>,
    /// Half-open event time window, where the request has one that cuts this partition.
    pub(crate) window_us: Option<(i64, i64)>,
    /// Weakest source class column value that passes; 0 = all.
    pub(crate) class_min: u8,
}

impl View {
    /// The request's part of a source, or `None` where it holds none of its scopes.
    pub(crate) fn new(
        source: &Source,
        scopes: &ScopeRanges,
        at_seq: u64,
        space: SpaceNumber,
    ) -> Result<Option<Self>, SegmentError> {
        let runs = source.partition.select(scopes, at_seq)?;
        if runs.is_empty() {
            return Ok(None);
        }
        let dead_rows = runs
            .iter()
            .map(|run| {
                if source.dead.is_empty() {
                    Vec::new()
                } else {
                    source.partition.rows_in_run(run, &source.dead)
                }
            })
            .collect();
        let source = source.clone();
        Ok(Some(Self {
            source,
            space,
            runs,
            dead_rows,
            tagged: None,
            clause_rows: OnceLock::new(),
            window_us: None,
            class_min: 0,
        }))
    }

    /// Rows of the partition with a vector of the space, dead ones included.
    pub(crate) fn vectors(&self) -> u32 {
        self.partition().vectors(self.space)
    }

    /// True where every row of the partition has one.
    pub(crate) fn all_have_vectors(&self) -> bool {
        self.vectors() == self.partition().zone().rows
    }

    /// The partition.
    pub(crate) fn partition(&self) -> &dyn Partition {
        &*self.source.partition
    }

    /// This partition's live share of the population.
    pub(crate) fn statistics(&self) -> Result<Statistics, SegmentError> {
        let mut sum = Statistics::default();
        for (run, dead) in self.runs.iter().zip(&self.dead_rows) {
            let all = self.partition().population(run)?;
            sum.rows += all.rows - dead.len() as u64;
            let mut dead_length = 0;
            for row in dead {
                dead_length += u64::from(self.partition().length(*row)?);
            }
            // The sum stands in the scope directory, each length in its column: bytes of a file
            // that may contradict each other.
            let live = all.length_sum.checked_sub(dead_length);
            sum.length_sum += live.ok_or_else(|| {
                self.contradiction("scopes", "dead rows are longer than all rows")
            })?;
        }
        Ok(sum)
    }

    /// Two parts of the partition's file that cannot both be true.
    pub(crate) fn contradiction(&self, section: &'static str, message: &str) -> SegmentError {
        let file = match self.source.name {
            PartitionName::Segment(number) => segment_file_name(number),
            PartitionName::Memtable(_) => self.source.name.to_string(),
        };
        SegmentError::corrupt(file, section, 0, message)
    }

    /// True where the request has filters that live rows of this view may not pass.
    pub(crate) fn has_filters(&self) -> bool {
        self.tagged.is_some()
            || self.window_us.is_some()
            || self.class_min > 0
            || self.clause_rows.get().is_some()
    }

    /// True if the row is live and passes every filter. Rows are those of a run.
    pub(crate) fn passes(&self, row: u32) -> Result<bool, SegmentError> {
        if !self.passes_but_time(row)? {
            return Ok(false);
        }
        match self.window_us {
            Some((from, to)) => {
                let time = self.partition().event_time_us(row)?;
                Ok(from <= time && time < to)
            }
            None => Ok(true),
        }
    }

    /// As [`View::passes`] for a row that lies in the window.
    pub(crate) fn passes_but_time(&self, row: u32) -> Result<bool, SegmentError> {
        if self.source.dead.contains(row) {
            return Ok(false);
        }
        if self
            .tagged
            .as_ref()
            .is_some_and(|tagged| !tagged.contains(row))
        {
            return Ok(false);
        }
        if self.clause_rows.get().is_some_and(|rows| !rows.passes(row)) {
            return Ok(false);
        }
        let class_min = self.class_min;
        Ok(class_min == 0 || self.partition().source_class(row)? >= class_min)
    }

    /// Walks the live rows that pass every filter, newest first, until `visit` breaks.
    pub(crate) fn walk_newest(
        &self,
        run: &Run,
        visit: &mut dyn FnMut(u32, i64) -> std::ops::ControlFlow<()>,
    ) -> Result<(), SegmentError> {
        let (from, to) = self.window_us.unwrap_or((i64::MIN, i64::MAX));
        let mut failed = None;
        self.partition()
            .walk_time(
                run,
                from,
                to,
                TimeOrder::NewestFirst,
                &mut |row, time| match self.passes(row) {
                    Ok(true) => visit(row, time),
                    Ok(false) => std::ops::ControlFlow::Continue(()),
                    Err(error) => {
                        failed = Some(error);
                        std::ops::ControlFlow::Break(())
                    }
                },
            )?;
        failed.map_or(Ok(()), Err)
    }
}
