//! Which centroid is a vector nearest to? The one with the largest `<v, c> - |c|^2 / 2`.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::{Result, Work, index, u32_of};

/// Largest ones that are looked for side by side.
const LANES: usize = 16;

/// Centroids with half their squared lengths.
#[derive(Debug, Clone)]
pub(super) struct Centroids {
    dim: usize,
    /// `[count, dim]`.
    pub(super) values: Vec<f32>,
    halves: Vec<f32>,
}

impl Centroids {
    /// * `values`: `[count, dim]`, finite.
    pub(super) fn new(dim: usize, values: Vec<f32>) -> Self {
        let halves = values.chunks_exact(dim).map(|centroid| {
            let square: f32 = centroid.iter().map(|x| x * x).sum();
            square / 2.0
        });
        Self {
            dim,
            halves: halves.collect(),
            values,
        }
    }

    pub(super) fn count(&self) -> u32 {
        u32_of(self.halves.len())
    }

    /// Replaces `nearest` by the nearest centroid of each vector of `[n, dim]`: the lowest of
    /// those that are as near, and 0 where lengths overflow f32 and nothing is near.
    pub(super) fn nearest(&self, block: &[f32], scratch: &mut Vec<f32>, nearest: &mut Vec<u32>) {
        products(&self.values, block, self.dim, scratch);
        nearest.clear();
        for row in scratch.chunks_exact_mut(self.halves.len()) {
            for (score, half) in row.iter_mut().zip(&self.halves) {
                *score -= half;
            }
            nearest.push(first_of_largest(row));
        }
    }
}

/// Place of the first of the largest; 0 where there is none, as sums beyond f32 leave NaN.
fn first_of_largest(scores: &[f32]) -> u32 {
    let mut most = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = scores.as_chunks::<LANES>();
    // No branch: a larger one is taken, and NaN never is.
    let larger = |most: &mut f32, score: f32| *most = if score > *most { score } else { *most };
    for chunk in chunks {
        for (most, score) in most.iter_mut().zip(chunk) {
            larger(most, *score);
        }
    }
    let mut largest = f32::NEG_INFINITY;
    for score in most.iter().chain(rest) {
        larger(&mut largest, *score);
    }
    let first = scores.iter().position(|score| *score == largest);
    u32_of(first.unwrap_or(0))
}

/// Replaces `to` by `[n, m]`: the dot products of each of `vectors`, `[n, dim]`, with each of
/// `with`, `[m, dim]`.
pub(super) fn products(with: &[f32], vectors: &[f32], dim: usize, to: &mut Vec<f32>) {
    let (m, n) = (with.len() / dim, vectors.len() / dim);
    to.clear();
    to.resize(m * n, 0.0);
    // Column-major to faer: a vector is a column.
    matmul(
        MatMut::from_column_major_slice_mut(to, m, n),
        Accum::Replace,
        MatRef::from_column_major_slice(with, dim, m).transpose(),
        MatRef::from_column_major_slice(vectors, dim, n),
        1.0_f32,
        Par::Seq,
    );
}

/// Nearest centroid of each vector of `work`.
pub(super) fn assign_all(work: &Work<'_>, centroids: &Centroids) -> Result<Vec<u32>> {
    let mut assigned = Vec::with_capacity(index(work.count()));
    let (mut scratch, mut nearest) = (Vec::new(), Vec::new());
    work.each_block(|_, block| {
        centroids.nearest(block, &mut scratch, &mut nearest);
        assigned.extend_from_slice(&nearest);
    })?;
    Ok(assigned)
}
