//! Which rows point the same way as the query vector: the exact dot product with the stored
//! vectors of every row that passes the filters.
//!
//! The dot product has one fixed lane and reduction order, so its bits do not depend on
//! layout, threads or SIMD width.

use chronolith_segments::{SegmentError, VectorSpace, dot};

use super::order::{Candidate, TopK};
use super::view::View;

/// What the pass did; layout-dependent, for plans only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct DenseCounters {
    /// Stored vectors compared with the query's.
    pub vectors: u64,
}

/// Scores the rows of `view` (number `index`) that have a vector and pass every filter.
pub(crate) fn score_view(
    view: &View,
    index: usize,
    space: &VectorSpace,
    query: &[f32],
    top: &mut TopK<'_>,
) -> Result<DenseCounters, SegmentError> {
    let mut counters = DenseCounters::default();
    for run in &view.runs {
        let mut rows = Vec::new();
        view.partition()
            .for_each_row(run, &mut |row| rows.push(row));
        for row in rows {
            if !view.passes(row)? {
                continue;
            }
            let Some(score) = score_row(view, row, space, query)? else {
                continue;
            };
            counters.vectors += 1;
            if top.could_enter(score) {
                let time_us = view.partition().event_time_us(row)?;
                top.offer(Candidate {
                    key: score,
                    time_us,
                    view: index,
                    row,
                })?;
            }
        }
    }
    Ok(counters)
}

/// The row's exact similarity, or `None` where it has no vector.
pub(crate) fn score_row(
    view: &View,
    row: u32,
    space: &VectorSpace,
    query: &[f32],
) -> Result<Option<f64>, SegmentError> {
    let stored = view.partition().vector(row)?;
    // Adding 0 turns -0 into +0: the two are one score and must tie.
    Ok(stored.map(|bytes| f64::from(dot(query, &bytes, space.format)) + 0.0))
}
