//! Which rows point the same way as the query vector: the exact dot product with the stored
//! vectors of every row that passes the filters.
//!
//! The dot product has one fixed lane and reduction order, so its bits do not depend on
//! layout, threads or SIMD width.

use chronolith_segments::{SegmentError, VectorSpace, dot};

use super::clauses::{Phrases, Verdict};
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
    phrases: &Phrases,
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
                if !top.could_enter_at(score, time_us)
                    || phrases.judge(view, row, || score)? != Verdict::Holds
                {
                    continue;
                }
                top.offer(Candidate {
                    key: score,
                    base: score,
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
    Ok(stored.map(|bytes| order_safe(dot(query, &bytes, space.format))))
}

/// The product as a score that can be ordered and normalised. Vectors that are not scaled to
/// unit length may overflow: their products end at the ends of f32, and one without a value
/// (infinity less infinity) comes last. Adding 0 turns -0 into +0: the two are one score.
fn order_safe(product: f32) -> f64 {
    if product.is_nan() {
        return f64::from(f32::MIN);
    }
    f64::from(product.clamp(f32::MIN, f32::MAX)) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_overflows_is_still_a_finite_score() {
        let products = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.5];
        let ends = (f64::from(f32::MIN), f64::from(f32::MAX));
        let scores = products.map(order_safe);
        assert_eq!(scores, [ends.0, ends.1, ends.0, 0.0, 0.5]);
        assert!(scores[3].is_sign_positive());
    }
}
