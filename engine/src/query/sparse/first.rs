//! Which few rows show early what a hit must have?
//!
//! Until k rows are known nothing can be left out, and the view that is looked at first is
//! often the largest. So some rows of the lists with the largest bounds, which are the
//! shortest ones, are scored before any list is read: the best of all rows is rarely far
//! above the best of these. They raise the floor that all threads share and are not offered;
//! the pass over all rows comes to them again.

use chronolith_segments::{Run, SegmentError};

use super::few::POSTINGS_A_LOOKUP;
use super::run::{List, Scored};

/// From how many postings on the few rows are worth their price.
const POSTINGS_MIN: u64 = 4096;
/// Most look-ups that the few rows may take; else as many as cost what reading all postings
/// does.
const LOOKUPS_MAX: u64 = 1024;
/// The k-th best of less rows than this many times k says little.
const TIMES_K: u64 = 2;

/// Rows from the lists with the largest bounds, ascending; none where they would not pay.
///
/// # Errors
/// Damage in postings.
pub(super) fn rows(lists: &mut [List<'_>], run: &Run, k: usize) -> Result<Vec<u32>, SegmentError> {
    let postings: u64 = lists.iter().map(List::count).sum();
    let cursors: usize = lists.iter().map(List::cursors).sum();
    let mut left = rows_max(postings, cursors);
    let (mut rows, mut freqs) = (Vec::new(), Vec::new());
    if left < TIMES_K * k as u64 {
        return Ok(rows);
    }
    lists.sort_by_key(|list| std::cmp::Reverse(list.bound));
    for list in lists {
        let (count, Scored::Term(cursor, _)) = (list.count(), &mut list.scored) else {
            continue;
        };
        // Of a list that is too long the first part, as if its rows lay evenly. Where they lie
        // close together more are read, but no more are asked for.
        let part = run.rows.len() as u64 * left.min(count) / count.max(1);
        let end = u64::from(run.rows.start) + part;
        cursor.read_until(
            u32::try_from(end).unwrap_or(u32::MAX),
            &mut rows,
            &mut freqs,
        )?;
        let most = rows_max(postings, cursors);
        rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        left = most - rows.len() as u64;
        if left < TIMES_K * k as u64 {
            break;
        }
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

/// How many rows may be asked for in `cursors` lists of so many postings together.
fn rows_max(postings: u64, cursors: usize) -> u64 {
    match postings < POSTINGS_MIN {
        true => 0,
        false => (postings / POSTINGS_A_LOOKUP).min(LOOKUPS_MAX) / cursors.max(1) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_postings_are_read_without_a_first_look() {
        assert_eq!(rows_max(POSTINGS_MIN - 1, 3), 0);
        assert_eq!(rows_max(8000, 2), 250);
        assert_eq!(rows_max(1 << 30, 4), LOOKUPS_MAX / 4, "never many");
        assert_eq!(rows_max(8000, 0), 500);
    }
}
