//! Which rows does a filter leave, where they are so few that each can be asked for its terms?
//!
//! A time range goes through the timeline by binary search, a tag filter through its set. The
//! rows are then looked up in the posting lists instead of the lists being read.

use std::ops::ControlFlow;

use chronolith_segments::{Run, SegmentError, TimeOrder};

use crate::query::view::View;

/// What looking one row up in one list costs, in postings read.
pub(super) const POSTINGS_A_LOOKUP: u64 = 16;
/// Postings that are read without a look at the filters.
const POSTINGS_MIN: u64 = 1024;

/// How many rows are cheaper to look up in `lists` lists than to read all their postings; 0 =
/// none.
pub(super) fn rows_max(postings: u64, lists: usize) -> usize {
    if postings < POSTINGS_MIN {
        return 0;
    }
    let lookups = postings / POSTINGS_A_LOOKUP;
    usize::try_from(lookups / lists.max(1) as u64).unwrap_or(usize::MAX)
}

/// The rows of the run that the time range, or the tags, leave, ascending; `None` where there
/// is neither or where they are more than `rows_max`. The other filters are still to be asked.
///
/// # Errors
/// Damage in timeline or columns.
pub(super) fn rows(
    view: &View,
    run: &Run,
    rows_max: usize,
) -> Result<Option<Vec<u32>>, SegmentError> {
    if rows_max == 0 {
        return Ok(None);
    }
    if let Some(tagged) = &view.tagged
        && tagged.len() <= rows_max as u64
    {
        return Ok(Some(view.partition().rows_in_run(run, tagged)));
    }
    let Some((from_us, to_us)) = view.window_us else {
        return Ok(None);
    };
    let mut rows = Vec::new();
    let mut is_few = true;
    let order = TimeOrder::OldestFirst;
    view.partition()
        .walk_time(run, from_us, to_us, order, &mut |row, _| {
            is_few = rows.len() < rows_max;
            if !is_few {
                return ControlFlow::Break(());
            }
            rows.push(row);
            ControlFlow::Continue(())
        })?;
    rows.sort_unstable();
    Ok(is_few.then_some(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_looked_up_where_that_is_less_work() {
        assert_eq!(rows_max(POSTINGS_MIN - 1, 1), 0, "not worth a look");
        assert_eq!(rows_max(16_000, 4), 250);
        assert_eq!(rows_max(16_000, 1), 1000);
    }
}
