//! Which rows point the same way as the query vector?
//!
//! ```text
//!   views --select--> rows that pass the filters --policy--> vectors: score all of them
//!                                                       \--> codes:   estimate all of them,
//!                                                                     score the best R; of very
//!                                                                     many rows, those in the
//!                                                                     best runs alone
//! ```
//!
//! Every score is the dot product with the stored vector, which has one fixed lane and
//! reduction order, so its bits do not depend on layout, threads or SIMD width. By codes the
//! best rows by estimate are scored, over all views, ties at the edge included: a set that
//! does not depend on the layout either.
//!
//! * [`select`]: rows of a view that pass, as ranges or listed.
//! * [`policy`]: vectors or codes, and how many candidates; pure.
//! * [`exact`], [`codes`]: the two ways.
//! * [`probe`], [`share`]: which runs are looked at, where very many rows pass, and how much.

mod codes;
mod exact;
mod policy;
mod probe;
mod select;
mod share;

use chronolith_segments::{Coder, NumberedSpace, SegmentError};

use super::clauses::{Phrases, Verdict};
use super::order::{Candidate, TopK};
use super::view::View;

use probe::Probe;
use select::Selected;
use share::Target;

pub(crate) use policy::Asked as AskedDense;
pub use policy::{CANDIDATES_MAX, DenseWay, PlannedDense};
pub use share::PROBE_ROWS_MIN;

/// What the pass did; layout-dependent, for plans only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct DenseCounters {
    /// Stored vectors compared with the query's.
    pub vectors: u64,
    /// Codes compared with the query's.
    pub codes: u64,
    /// Bytes of vectors and codes that were compared.
    pub bytes: u64,
    /// Runs of rows that look alike whose centroids were compared.
    pub runs: u64,
    /// Those whose rows were not looked at.
    pub runs_left_out: u64,
}

/// The query of the dense channel over one request's views.
pub(crate) struct Dense<'q> {
    pub(crate) own: &'q NumberedSpace,
    pub(crate) coder: &'q Coder,
    pub(crate) vector: &'q [f32],
    pub(crate) phrases: &'q Phrases,
    pub(crate) asked: AskedDense,
    /// Live rows of the requested scopes.
    pub(crate) population: u64,
}

impl Dense<'_> {
    /// Scores rows of the views with an index in `chosen` into `top`.
    ///
    /// # Errors
    /// Damage in what is read.
    pub(crate) fn search(
        &self,
        views: &[View],
        chosen: &[usize],
        top: &mut TopK<'_>,
        counters: &mut DenseCounters,
    ) -> Result<PlannedDense, SegmentError> {
        let rows_max = policy::rows_max(self.asked, top.k(), self.population);
        let mut selected = Vec::with_capacity(chosen.len());
        for index in chosen {
            selected.push(select::select(&views[*index], *index, rows_max)?);
        }
        let facts = policy::Facts {
            asked: self.asked,
            list: top.k(),
            population: self.population,
            rows: selected.iter().map(|one| one.vectors).sum(),
            has_phrases: !self.phrases.is_empty(),
            has_codes: chosen.iter().all(|index| self.has_codes(&views[*index])),
        };
        let planned = policy::choose(&facts);
        let scorer = exact::Scorer { dense: self, views };
        match planned.way {
            DenseWay::Vectors => {
                for rows in &selected {
                    scorer.score_all(rows, top, counters)?;
                }
                Ok(planned)
            }
            DenseWay::Codes { candidates } | DenseWay::Runs { candidates } => {
                let reason = match self.probe(&scorer, &selected, candidates, top, counters)? {
                    Ok(target) => return Ok(planned.probed(candidates, target)),
                    Err(reason) => reason,
                };
                codes::search(&scorer, &selected, candidates, top, counters)?;
                Ok(PlannedDense { reason, ..planned })
            }
        }
    }

    /// Searches a part of very many rows, if that is enough, and says for how many of the best;
    /// else why all must be looked at.
    fn probe(
        &self,
        scorer: &exact::Scorer<'_>,
        selected: &[Selected],
        candidates: usize,
        top: &mut TopK<'_>,
        counters: &mut DenseCounters,
    ) -> Result<Result<Target, &'static str>, SegmentError> {
        let wanted = (top.k(), candidates);
        match probe::probe(self, scorer.views, selected, wanted, counters)? {
            Probe::All(reason) => Ok(Err(reason)),
            Probe::Part(part, target) => {
                if codes::search(scorer, &part, candidates, top, counters)? {
                    return Ok(Ok(target));
                }
                // Filters let few rows through that are far away from each other.
                top.clear();
                Ok(Err(
                    "very many rows, and the best runs have too few of them",
                ))
            }
        }
    }

    /// True where the view's vectors have codes that the query can be compared with, or there
    /// are none.
    fn has_codes(&self, view: &View) -> bool {
        let partition = view.partition();
        partition.code_seed(view.space) == Some(self.coder.seed()) || view.vectors() == 0
    }

    /// Offers a row with its product, unless it cannot be among the best. `passes` is asked
    /// only then.
    fn offer(
        &self,
        view: (&View, usize),
        (row, product): (u32, f32),
        passes: impl FnOnce() -> Result<bool, SegmentError>,
        top: &mut TopK<'_>,
    ) -> Result<(), SegmentError> {
        let score = order_safe(product);
        let (view, index) = view;
        if !top.could_enter(score) || !passes()? {
            return Ok(());
        }
        let time_us = view.partition().event_time_us(row)?;
        if !top.could_enter_at(score, time_us)
            || self.phrases.judge(view, row, || score)? != Verdict::Holds
        {
            return Ok(());
        }
        top.offer(Candidate {
            key: score,
            base: score,
            time_us,
            view: index,
            row,
        })
    }
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
