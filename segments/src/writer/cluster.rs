//! Which rows of a scope look alike? Whoever merges says so; here their vectors are handed out
//! and the answer becomes cluster numbers, by which the rows are put in order, and runs.

use super::Result;
use super::order::{Merge, Origin};
use crate::error::SegmentError;
use crate::format::bytes::index;
use crate::space::NumberedSpace;
use crate::vectors::{ProbeShares, SHARE_ALL, ScopePlan, widen_slice};

/// The vectors of one scope, in an order that stays.
pub trait VectorRows {
    /// How many there are.
    fn count(&self) -> u32;

    /// Components of each.
    fn dim(&self) -> usize;

    /// Puts the vector at place `at`, which is below [`VectorRows::count`], into `vector`, which
    /// is [`VectorRows::dim`] long. All components are finite.
    ///
    /// # Errors
    /// Damage in the vectors.
    fn read_into(&self, at: u32, vector: &mut [f32]) -> Result<()>;
}

/// The runs that the vectors of a scope form.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// Of each vector: its run, from 0. No run is empty.
    pub runs: Vec<u32>,
    /// `[runs, dim]`: what stands for each, finite.
    pub centroids: Vec<f32>,
    /// How much of the scope a search has to look at.
    pub shares: ProbeShares,
}

/// Says which rows of a scope look alike. Nothing but the scope's own vectors enters: no
/// answer of another scope may change by what this one holds.
pub trait ClusterRows {
    /// Whether a scope with so many vectors gets runs. Asked before vectors are read.
    fn wants(&self, vectors: u32) -> bool;

    /// The runs of a scope; `None` where there is nothing to tell apart.
    ///
    /// * `parents`: `[n, dim]`, centroids that its rows had before the merge: a good start.
    /// * `goes_on`: asked every few milliseconds.
    ///
    /// # Errors
    /// Damage in the vectors; [`SegmentError::Stopped`] where `goes_on` said no.
    fn cluster(
        &self,
        vectors: &dyn VectorRows,
        parents: &[f32],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Clustering>>;
}

/// Who clusters, and what.
#[derive(Clone, Copy)]
pub(super) struct Clusterer<'c> {
    pub(super) space: &'c NumberedSpace,
    pub(super) rows: &'c dyn ClusterRows,
    pub(super) goes_on: &'c dyn Fn() -> bool,
}

/// The numbers of the rows and what they stand for.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    /// By output row, as the rows stand before they are put in order: 0 = none. Empty where
    /// every row has 0.
    pub(super) numbers: Vec<u32>,
    /// Scopes with runs, ascending.
    pub(super) plans: Vec<ScopePlan>,
}

impl Clusterer<'_> {
    /// Clusters the scopes of a merge whose rows stand scope by scope.
    pub(super) fn cluster(&self, merge: &Merge<'_>) -> Result<Clusters> {
        let mut clusters = Clusters::default();
        if !merge.has_vectors(self.space.number) {
            return Ok(clusters);
        }
        for (number, scope) in (0_u32..).zip(&merge.scopes) {
            if !self.rows.wants(scope.rows.end - scope.rows.start) {
                continue;
            }
            let vectors = ScopeVectors::of(merge, scope.rows.clone(), self.space)?;
            if !self.rows.wants(vectors.count()) {
                continue;
            }
            let parents = vectors.parents()?;
            if let Some(found) = self.rows.cluster(&vectors, &parents, self.goes_on)? {
                clusters.add(number, &vectors, found, merge.zone.rows)?;
            }
        }
        Ok(clusters)
    }
}

impl Clusters {
    /// Takes the runs of one scope over.
    ///
    /// # Errors
    /// `Corrupt` where the inputs have vectors that no caller could write.
    fn add(
        &mut self,
        scope: u32,
        vectors: &ScopeVectors<'_, '_>,
        found: Clustering,
        rows: u32,
    ) -> Result<()> {
        let runs = found.centroids.len() / vectors.dim();
        assert_eq!(found.runs.len(), vectors.rows.len(), "a run of each vector");
        if !found.centroids.iter().all(|x| x.is_finite()) {
            // No caller can write such a vector; a file of another hand may hold it.
            let message = "a vector that is merged is not of finite numbers";
            return Err(SegmentError::corrupt("an input", "vectors", 0, message));
        }
        self.numbers.resize(index(rows), 0);
        let mut sizes = vec![0_u32; runs];
        for (row, run) in vectors.rows.iter().zip(&found.runs) {
            self.numbers[index(*row)] = run + 1;
            sizes[index(*run)] += 1;
        }
        assert!(!sizes.contains(&0), "no run is empty");
        let first_row = vectors.scope.end - u32_of(vectors.rows.len());
        let mut end = first_row;
        let ends = sizes.iter().map(|size| {
            end += size;
            end
        });
        let share = |share: u32| share.clamp(1, SHARE_ALL);
        self.plans.push(ScopePlan {
            scope,
            first_row,
            ends: ends.collect(),
            centroids: found.centroids,
            shares: ProbeShares {
                share_95: share(found.shares.share_95),
                share_99: share(found.shares.share_99),
            },
        });
        Ok(())
    }
}

/// The vectors of a scope, wherever the inputs have them.
struct ScopeVectors<'m, 'a> {
    merge: &'m Merge<'a>,
    space: &'m NumberedSpace,
    scope: std::ops::Range<u32>,
    /// Output rows with a vector, ascending.
    rows: Vec<u32>,
}

impl<'m, 'a> ScopeVectors<'m, 'a> {
    fn of(
        merge: &'m Merge<'a>,
        scope: std::ops::Range<u32>,
        space: &'m NumberedSpace,
    ) -> Result<Self> {
        let mut rows = Vec::with_capacity(scope.len());
        for row in scope.clone() {
            let (partition, from) = merge.origin(row);
            if partition.vector(space.number, from)?.is_some() {
                rows.push(row);
            }
        }
        Ok(Self {
            merge,
            space,
            scope,
            rows,
        })
    }

    /// Centroids that the rows had in the inputs.
    fn parents(&self) -> Result<Vec<f32>> {
        let (mut parents, mut before) = (Vec::new(), None);
        for row in &self.rows {
            let Origin { input, row } = self.merge.origin_of(*row);
            // Rows of an input stand together as long as the scope is not in order.
            if before.replace(input) == Some(input) {
                continue;
            }
            let partition = self.merge.inputs()[index(input)].partition;
            let Some(runs) = partition.vector_runs(self.space.number)? else {
                continue;
            };
            for scope in runs.scopes_in(&(row..row + 1)) {
                parents.extend(runs.centroids(scope.runs.clone())?);
            }
        }
        Ok(parents)
    }
}

impl VectorRows for ScopeVectors<'_, '_> {
    fn count(&self) -> u32 {
        u32_of(self.rows.len())
    }

    fn dim(&self) -> usize {
        self.space.space.dim as usize
    }

    fn read_into(&self, at: u32, vector: &mut [f32]) -> Result<()> {
        let row = self.rows[index(at)];
        let (partition, from) = self.merge.origin(row);
        let Some(stored) = partition.vector(self.space.number, from)? else {
            let message = format!("row {from} had a vector and has none");
            return Err(SegmentError::corrupt("an input", "vector_rows", 0, message));
        };
        widen_slice(&stored, self.space.space.format, vector);
        Ok(())
    }
}

fn u32_of(len: usize) -> u32 {
    u32::try_from(len).expect("at most ROWS_MAX")
}
