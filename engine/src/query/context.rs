//! What happened just before and after a hit, in its own scope's timeline?
//!
//! The timeline is ordered by (event time, commit seq). Neighbours are live rows of exactly
//! the hit's scope; the request's filters do not apply to them.

use std::ops::ControlFlow;

use chronolith_segments::{KeyRange, Scope, ScopeRanges, ScopeSelector, TimeOrder};

use super::view::Source;
use crate::error::Error;

/// A neighbouring row, found again by its source and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neighbour {
    pub(crate) time_us: i64,
    pub(crate) seq: u64,
    pub(crate) source: usize,
    pub(crate) row: u32,
}

/// The `count` rows next to (time, seq) in `scope`, in timeline order.
pub(crate) fn neighbours(
    sources: &[Source],
    scope: &Scope,
    at: (i64, u64),
    side: TimeOrder,
    count: usize,
    at_seq: u64,
) -> Result<Vec<Neighbour>, Error> {
    let ranges =
        ScopeRanges::new(&[ScopeSelector::Exact(scope.clone())]).map_err(Error::Refused)?;
    debug_assert_eq!(ranges.ranges(), [KeyRange::exact(scope)]);
    let mut found = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        walk_source(source, index, &ranges, at, side, count, at_seq, &mut found)?;
    }
    found.sort_unstable();
    if side == TimeOrder::NewestFirst {
        found.drain(..found.len().saturating_sub(count));
    } else {
        found.truncate(count);
    }
    Ok(found)
}

#[expect(clippy::too_many_arguments, reason = "one call, straight through")]
fn walk_source(
    source: &Source,
    index: usize,
    ranges: &ScopeRanges,
    at: (i64, u64),
    side: TimeOrder,
    count: usize,
    at_seq: u64,
    found: &mut Vec<Neighbour>,
) -> Result<(), Error> {
    let (from_us, to_us) = match side {
        TimeOrder::NewestFirst => (i64::MIN, at.0.saturating_add(1)),
        TimeOrder::OldestFirst => (at.0, i64::MAX),
    };
    for run in source.partition.select(ranges, at_seq)? {
        let mut taken = 0usize;
        let mut last_us = at.0;
        let mut failed = None;
        source
            .partition
            .walk_time(&run, from_us, to_us, side, &mut |row, time_us| {
                // Rows of one time come in any order: stop only when the time moves on.
                if taken >= count && time_us != last_us {
                    return ControlFlow::Break(());
                }
                last_us = time_us;
                if source.dead.contains(row) {
                    return ControlFlow::Continue(());
                }
                let seq = match source.partition.fields(row) {
                    Ok(fields) => fields.commit_seq,
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                };
                let beyond = match side {
                    TimeOrder::NewestFirst => (time_us, seq) < at,
                    TimeOrder::OldestFirst => (time_us, seq) > at,
                };
                if beyond {
                    taken += 1;
                    found.push(Neighbour {
                        time_us,
                        seq,
                        source: index,
                        row,
                    });
                }
                ControlFlow::Continue(())
            })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(())
}
