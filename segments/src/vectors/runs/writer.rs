//! How do runs get into a segment?

use std::ops::Range;

use half::f16;

use super::format::Trailer;
use super::{ProbeShares, distance};
use crate::format::bytes::Put;
use crate::prepared::{VectorFormat, VectorSpace};
use crate::vectors::format::component_bytes;
use crate::vectors::widen;

/// The runs of one scope before its vectors are written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScopePlan {
    /// Number in the scope directory.
    pub(crate) scope: u32,
    /// First row of the first run.
    pub(crate) first_row: u32,
    /// Row after the last of each run, ascending.
    pub(crate) ends: Vec<u32>,
    /// `[runs, dim]`: the centroids, finite.
    pub(crate) centroids: Vec<f32>,
    /// How much of it a search has to look at.
    pub(crate) shares: ProbeShares,
}

/// One run while its vectors go by.
#[derive(Debug)]
struct Run {
    rows: Range<u32>,
    /// As it is stored, and as it is read: the radius is counted from that.
    stored: Vec<u8>,
    centroid: Vec<f32>,
    radius: f64,
}

/// Writes the runs of one segment; sees every vector first.
#[derive(Debug)]
pub(crate) struct RunsWriter {
    format: VectorFormat,
    dim: u32,
    /// Scope, first run, shares.
    scopes: Vec<(u32, u32, ProbeShares)>,
    runs: Vec<Run>,
    /// The run that the next row may lie in.
    at: usize,
    scratch: Vec<f32>,
}

impl RunsWriter {
    /// A writer of these scopes' runs, ascending.
    pub(crate) fn new(space: &VectorSpace, plans: &[ScopePlan]) -> Self {
        let mut writer = Self {
            format: space.format,
            dim: space.dim,
            scopes: Vec::with_capacity(plans.len()),
            runs: Vec::new(),
            at: 0,
            scratch: Vec::new(),
        };
        for plan in plans {
            let first = u32::try_from(plan.ends.len()).expect("fewer runs than rows");
            writer.scopes.push((plan.scope, first, plan.shares));
            let dim = space.dim as usize;
            assert_eq!(plan.centroids.len(), plan.ends.len() * dim, "one a run");
            let mut start = plan.first_row;
            for (end, centroid) in plan.ends.iter().zip(plan.centroids.chunks_exact(dim)) {
                let stored = narrow(centroid, space.format);
                writer.runs.push(Run {
                    rows: start..*end,
                    centroid: widen(&stored, space.format),
                    stored,
                    radius: 0.0,
                });
                start = *end;
            }
        }
        writer
    }

    /// Sees the vector of a row as it is stored. Rows come ascending.
    pub(crate) fn see(&mut self, row: u32, stored: &[u8]) {
        while self
            .runs
            .get(self.at)
            .is_some_and(|run| run.rows.end <= row)
        {
            self.at += 1;
        }
        let Some(run) = self.runs.get_mut(self.at) else {
            return;
        };
        if run.rows.contains(&row) {
            let apart = distance(&run.centroid, stored, self.format, &mut self.scratch);
            run.radius = run.radius.max(apart);
        }
    }

    /// The bytes of section `vector_runs` in a segment of so many rows; `None` where no scope
    /// has runs.
    pub(crate) fn finish(self, rows: u32) -> Option<Vec<u8>> {
        if self.scopes.is_empty() {
            return None;
        }
        let (mut bytes, mut first) = (Vec::new(), 0);
        let count = |len: usize| u32::try_from(len).expect("fewer runs than rows");
        for (scope, runs, shares) in &self.scopes {
            bytes.put_u32(*scope);
            bytes.put_u32(self.runs[first].rows.start);
            bytes.put_u32(*runs);
            bytes.put_u32(shares.share_95);
            bytes.put_u32(shares.share_99);
            bytes.put_u32(0);
            first += *runs as usize;
        }
        for run in &self.runs {
            bytes.put_u32(run.rows.end);
            bytes.put_u32(0);
            bytes.put_u64(run.radius.to_bits());
        }
        for run in &self.runs {
            bytes.put(&run.stored);
        }
        let trailer = Trailer {
            rows,
            scopes: count(self.scopes.len()),
            runs: count(self.runs.len()),
            dim: self.dim,
            component_bytes: component_bytes(self.format),
        };
        bytes.put(&trailer.encode());
        Some(bytes)
    }
}

/// A centroid as the space stores vectors. It stays finite: it is a mean of such vectors.
fn narrow(centroid: &[f32], format: VectorFormat) -> Vec<u8> {
    match format {
        VectorFormat::F32 => centroid.iter().flat_map(|x| x.to_le_bytes()).collect(),
        VectorFormat::F16 => {
            let halves = centroid
                .iter()
                .map(|x| f16::from_f32(*x).clamp(f16::MIN, f16::MAX));
            halves.flat_map(f16::to_le_bytes).collect()
        }
    }
}
