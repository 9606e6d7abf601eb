//! In which order are texts read for phrases?
//!
//! Best first, a window at a time: rows of one score are often many and come oldest first, and
//! each newer one would beat those before it.

use chronolith_segments::SegmentError;

use crate::query::clauses::{Phrases, Verdict};
use crate::query::order::{Candidate, TopK};
use crate::query::recency::Aging;
use crate::query::view::View;

/// Offers the rows of `view` whose texts hold what is asked, and leaves `waiting` empty.
///
/// # Errors
/// Damage in a text.
pub(super) fn offer_verified(
    waiting: &mut Vec<Candidate>,
    phrases: &Phrases,
    view: &View,
    aging: Aging,
    top: &mut TopK<'_>,
) -> Result<(), SegmentError> {
    waiting.sort_unstable_by(|a, b| {
        let keys = b.key.total_cmp(&a.key);
        keys.then_with(|| b.time_us.cmp(&a.time_us))
    });
    for candidate in waiting.drain(..) {
        if !top.could_enter_at(candidate.key, candidate.time_us) {
            break;
        }
        let shown = || aging.shown(candidate.base, candidate.time_us);
        if phrases.judge(view, candidate.row, shown)? == Verdict::Holds {
            top.offer(candidate)?;
        }
    }
    Ok(())
}
