//! How are the candidates found by codes, and the best of them scored?
//!
//! [`scan`] offers given rows of one view to a collector that all views share. A plan that
//! looks at a part of the rows only calls it with the runs of its choice.

use chronolith_segments::{
    Accept, CodeQuery, CodeRows, Estimated, Nearest, SegmentError, VectorSpace, error_bound,
};

use super::DenseCounters;
use super::exact::Scorer;
use super::select::{Rows, Selected};
use crate::query::order::TopK;
use crate::query::view::View;

/// Candidates that are scored before the list is looked at again.
const STEP: usize = 48;
/// Of the bound on an estimate's error: beyond it lie about six in a thousand. Measured on the
/// evaluation sets it loses no more than one row of the best ten in a thousand.
const EPSILON: f64 = 2.5;
/// By how much the candidates grow where their sources were too few for the list.
const GROWTH: usize = 4;

/// Scores the best `candidates` of the selected rows by estimate into `top`; false where there
/// are fewer, so that every row was one.
///
/// # Errors
/// Damage in codes, vectors or filters.
pub(super) fn search(
    scorer: &Scorer<'_>,
    selected: &[Selected],
    candidates: usize,
    top: &mut TopK<'_>,
    counters: &mut DenseCounters,
) -> Result<bool, SegmentError> {
    let query = scorer.dense.coder.query(scorer.dense.vector);
    let mut wanted = candidates;
    loop {
        let mut nearest = Nearest::new(wanted);
        for one in selected {
            let view = (&scorer.views[one.index], one.index);
            let ask = !one.all_pass;
            match &one.rows {
                Rows::Runs(runs) => {
                    for run in runs {
                        scan(
                            view,
                            CodeRows::Run(run),
                            ask,
                            &query,
                            &mut nearest,
                            counters,
                        )?;
                    }
                }
                Rows::Listed(rows) => {
                    scan(
                        view,
                        CodeRows::Listed(rows),
                        ask,
                        &query,
                        &mut nearest,
                        counters,
                    )?;
                }
            }
        }
        let found = nearest.into_rows();
        let all = found.len() < wanted;
        score(scorer, &query, found, top, counters)?;
        // Candidates of few sources leave a list of distinct ones short.
        if all || !top.is_distinct() || top.settle()? >= top.k() {
            return Ok(!all);
        }
        top.clear();
        wanted = wanted.saturating_mul(GROWTH);
    }
}

/// Compares the codes of `rows`, rows of view number `index`, and offers them. `ask`: rows must
/// still pass the filters.
///
/// # Errors
/// Damage in codes or filters.
pub(super) fn scan(
    (view, index): (&View, usize),
    rows: CodeRows<'_>,
    ask: bool,
    query: &CodeQuery,
    nearest: &mut Nearest,
    counters: &mut DenseCounters,
) -> Result<(), SegmentError> {
    let source = u32::try_from(index).expect("a version has few partitions");
    let mut passes = |row: u32| view.passes(row);
    let accept: Option<Accept<'_>> = if ask { Some(&mut passes) } else { None };
    let partition = view.partition();
    let codes = partition.scan_codes(view.space, query, rows, source, accept, nearest)?;
    counters.codes += codes;
    // A code has its factor, 4 bytes, beside it.
    counters.bytes += codes * (query.code_bytes() as u64 + 4);
    Ok(())
}

/// Scores candidates by their vectors, the best estimates first, until no other is likely to
/// be among the best.
///
/// In steps that end between different estimates, so that the layout does not show.
fn score(
    scorer: &Scorer<'_>,
    query: &CodeQuery,
    mut found: Vec<Estimated>,
    top: &mut TopK<'_>,
    counters: &mut DenseCounters,
) -> Result<(), SegmentError> {
    let margin = margin(&scorer.dense.own.space);
    let place = |one: &Estimated| (one.source, one.row);
    found.sort_unstable_by(|a, b| {
        b.estimate
            .total_cmp(&a.estimate)
            .then_with(|| place(a).cmp(&place(b)))
    });
    let mut rest = &mut found[..];
    let mut rows = Vec::new();
    while let Some(first) = rest.first() {
        if let (Some(margin), Some(threshold)) = (margin, top.threshold())
            && query.product(first.estimate) + margin < threshold
        {
            break;
        }
        let mut n = rest.len().min(STEP);
        while n < rest.len() && rest[n].estimate == rest[n - 1].estimate {
            n += 1;
        }
        let (step, later) = rest.split_at_mut(n);
        rest = later;
        step.sort_unstable_by_key(place);
        for of_view in step.chunk_by(|a, b| a.source == b.source) {
            rows.clear();
            rows.extend(of_view.iter().map(|one| one.row));
            scorer.score_rows(of_view[0].source as usize, &rows, top, counters)?;
        }
        // What the threshold is must not depend on the order inside the step.
        top.settle()?;
    }
    Ok(())
}

/// By how much a product may exceed its estimate, but for a few in a thousand; `None` where
/// that depends on each vector's length.
fn margin(space: &VectorSpace) -> Option<f64> {
    let factor = typical_factor(space.dim)?;
    space
        .normalised
        .then(|| error_bound(1.0, factor, 1.0, space.dim, EPSILON))
}

/// The factor of a code that keeps of a direction what codes keep on average: a cosine of
/// sqrt(2 / pi).
fn typical_factor(dim: u32) -> Option<f32> {
    let padded = f64::from(dim.checked_next_multiple_of(64)?);
    #[expect(clippy::cast_possible_truncation, reason = "about a tenth")]
    let factor = (std::f64::consts::FRAC_PI_2 / padded).sqrt() as f32;
    Some(factor)
}
