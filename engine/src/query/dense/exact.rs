//! How are rows scored by their vectors?

use chronolith_segments::SegmentError;

use super::select::{Rows, Selected, parts};
use super::{Dense, DenseCounters};
use crate::query::order::TopK;
use crate::query::view::View;

/// Listed rows that are scored at a time.
const STEP: usize = 1024;

/// Scores rows of a request's views.
pub(super) struct Scorer<'s> {
    pub(super) dense: &'s Dense<'s>,
    pub(super) views: &'s [View],
}

/// Rows that have a vector, and their products: as many.
#[derive(Debug, Default)]
struct Scored {
    rows: Vec<u32>,
    products: Vec<f32>,
}

impl Scorer<'_> {
    /// Scores every selected row that passes.
    pub(super) fn score_all(
        &self,
        selected: &Selected,
        top: &mut TopK<'_>,
        counters: &mut DenseCounters,
    ) -> Result<(), SegmentError> {
        let passes = !selected.all_pass;
        let mut scored = Scored::default();
        match &selected.rows {
            Rows::Listed(rows) => {
                for rows in rows.chunks(STEP) {
                    self.score_listed(selected.index, rows, &mut scored)?;
                    self.offer(selected.index, &mut scored, passes, top, counters)?;
                }
            }
            Rows::Runs(runs) => {
                let (vector, format) = (self.dense.vector, self.dense.own.space.format);
                let partition = self.views[selected.index].partition();
                for part in runs.iter().flat_map(parts) {
                    let Scored { rows, products } = &mut scored;
                    partition.score_run(
                        self.dense.own.number,
                        vector,
                        format,
                        &part,
                        rows,
                        products,
                    )?;
                    self.offer(selected.index, &mut scored, passes, top, counters)?;
                }
            }
        }
        Ok(())
    }

    /// Scores rows of one view, ascending, that are known to pass.
    pub(super) fn score_rows(
        &self,
        index: usize,
        rows: &[u32],
        top: &mut TopK<'_>,
        counters: &mut DenseCounters,
    ) -> Result<(), SegmentError> {
        let mut scored = Scored::default();
        self.score_listed(index, rows, &mut scored)?;
        self.offer(index, &mut scored, false, top, counters)
    }

    fn score_listed(
        &self,
        index: usize,
        rows: &[u32],
        scored: &mut Scored,
    ) -> Result<(), SegmentError> {
        let (vector, format) = (self.dense.vector, self.dense.own.space.format);
        let Scored {
            rows: found,
            products,
        } = scored;
        self.views[index].partition().score_rows(
            self.dense.own.number,
            vector,
            format,
            rows,
            found,
            products,
        )
    }

    /// Offers what was scored, and empties it. Where `ask`, rows must still pass the filters.
    fn offer(
        &self,
        index: usize,
        scored: &mut Scored,
        ask: bool,
        top: &mut TopK<'_>,
        counters: &mut DenseCounters,
    ) -> Result<(), SegmentError> {
        let view = &self.views[index];
        for (row, product) in scored.rows.iter().zip(&scored.products) {
            let passes = || if ask { view.passes(*row) } else { Ok(true) };
            self.dense
                .offer((view, index), (*row, *product), passes, top)?;
        }
        let vectors = scored.rows.len() as u64;
        counters.vectors += vectors;
        counters.bytes += vectors * self.dense.own.space.vector_bytes() as u64;
        scored.rows.clear();
        scored.products.clear();
        Ok(())
    }
}
