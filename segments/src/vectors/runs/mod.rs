//! Which rows of a scope lie close together, so that a search may leave out the others?
//!
//! A run is a stretch of neighbouring rows of one scope whose vectors look alike: a centroid
//! stands for them, and a radius says how far from it they lie. Good for choosing where to look
//! in a scope of very many rows; says nothing about a row.

mod format;
mod reader;
mod writer;

pub use reader::{ScopeRuns, VectorRuns};
pub(crate) use writer::{RunsWriter, ScopePlan};

use crate::prepared::VectorFormat;
use crate::vectors::widen_slice;

/// Millionths: what a share of rows is counted in.
pub const SHARE_ALL: u32 = 1_000_000;

/// How many of a scope's rows a search has to look at, the best runs first, to find a share of
/// the nearest ones: measured when the runs were made, on vectors of the same scope. Millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeShares {
    /// For 95 of 100 of the nearest.
    pub share_95: u32,
    /// For 99 of 100 of the nearest.
    pub share_99: u32,
}

impl ProbeShares {
    /// Nothing was measured: every row.
    pub const ALL: Self = Self {
        share_95: SHARE_ALL,
        share_99: SHARE_ALL,
    };
}

/// Accumulators of a distance: one order of operations on every machine.
const LANES: usize = 8;

/// How far a stored vector lies from a centroid.
///
/// `scratch` is overwritten. The sum of squares cannot overflow: components are finite f32.
///
/// # Panics
/// If the vector has another dimension than the centroid.
fn distance(centroid: &[f32], stored: &[u8], format: VectorFormat, scratch: &mut Vec<f32>) -> f64 {
    scratch.resize(centroid.len(), 0.0);
    widen_slice(stored, format, scratch);
    let square = |a: &f32, b: &f32| {
        let apart = f64::from(*a) - f64::from(*b);
        apart * apart
    };
    let (a, b) = (centroid.as_chunks::<LANES>(), scratch.as_chunks::<LANES>());
    let mut lanes = [0.0_f64; LANES];
    for (a, b) in a.0.iter().zip(b.0) {
        for lane in 0..LANES {
            lanes[lane] += square(&a[lane], &b[lane]);
        }
    }
    let rest: f64 = a.1.iter().zip(b.1).map(|(a, b)| square(a, b)).sum();
    (lanes.iter().sum::<f64>() + rest).sqrt()
}
