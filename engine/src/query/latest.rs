//! Which rows are the newest: the answer to a request without text and without vector.

use std::ops::ControlFlow;

use hashbrown::HashSet;

use super::order::{Candidate, TopK};
use super::view::View;
use crate::error::Error;

/// Offers the newest rows of every run of `view` (number `index`) that pass the filters.
///
/// A run's walk ends when it has given k rows (or k sources) and the time falls below the
/// last one's: rows of one time come in any order, so all of them must be seen.
pub(crate) fn collect_view(
    view: &View,
    index: usize,
    k: usize,
    distinct: bool,
    top: &mut TopK<'_>,
) -> Result<(), Error> {
    for run in &view.runs {
        let mut taken = 0usize;
        let mut last_us = i64::MAX;
        let mut sources = HashSet::new();
        let mut failed = None;
        view.walk_newest(run, &mut |row, time_us| {
            if (taken >= k && time_us < last_us) || !top.could_enter_at(0.0, time_us) {
                return ControlFlow::Break(());
            }
            last_us = time_us;
            let offered = top.offer(Candidate {
                key: 0.0,
                base: 0.0,
                time_us,
                view: index,
                row,
            });
            let counted = offered.and_then(|()| {
                let source = if distinct {
                    view.partition().source_id(row)?
                } else {
                    None
                };
                Ok(source.is_none_or(|source| sources.insert(source.into_owned())))
            });
            match counted {
                Ok(is_new) => {
                    taken += usize::from(is_new);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(())
}
