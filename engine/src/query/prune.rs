//! Which partitions cannot matter? Decided from metadata, one-sidedly, with the reason.
//!
//! `Skip` only where no row of the request can lie inside; what is unknown stays. A skipped
//! partition still counts in the population: statistics come from the scopes' rows before
//! any filter.

use std::collections::BTreeSet;

use chronolith_segments::{SegmentError, SourceClass};
use chronolith_vfs::planted::{self, Bug};
use roaring::RoaringBitmap;

use super::analyse::QueryTerms;
use super::lookup::Found;
use super::request::Mode;
use super::view::View;
use crate::tag_graph::Closure;

/// What becomes of a partition, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Its rows are looked at.
    Search,
    /// It holds no row of the requested scopes.
    NoScope,
    /// All its rows lie outside the time range.
    NoTime,
    /// None of its rows carries a required tag.
    NoTag,
    /// All its rows are of a weaker source class.
    NoSource,
    /// None of its rows in scope holds a term of the query.
    NoTerm,
    /// None of its rows has a vector.
    NoVector,
    /// No row of it can score as much as the last hit.
    Bound,
    /// The budget of time was spent before.
    Budget,
}

/// The filters of a request, resolved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    /// Half-open event time range.
    pub(crate) time_us: (Option<i64>, Option<i64>),
    /// Conjunction of disjunctions of tags with their closures.
    pub(crate) tags: Vec<Vec<Closure>>,
    /// Weakest class that passes.
    pub(crate) min_source: Option<SourceClass>,
}

impl Filters {
    /// Every tag that stands for a group, ascending, for the plan.
    pub(crate) fn tag_names(&self) -> Vec<Vec<String>> {
        let names = |group: &Vec<Closure>| -> Vec<String> {
            let all: BTreeSet<&String> = group.iter().flat_map(|closure| &closure.tags).collect();
            all.into_iter().cloned().collect()
        };
        self.tags.iter().map(names).collect()
    }
}

/// Decides by what clauses require and by what the channels need: terms for sparse, vectors
/// for dense.
pub(crate) fn decide_channels(
    view: &View,
    mode: Option<Mode>,
    terms: &QueryTerms,
    found: &Found<'_>,
) -> Decision {
    if !terms.filter.could_pass(found) {
        return Decision::NoTerm;
    }
    let needs_terms = matches!(mode, Some(Mode::Sparse | Mode::Hybrid));
    let needs_vectors = matches!(mode, Some(Mode::Dense | Mode::Hybrid));
    if mode.is_none() || (needs_vectors && view.vectors() > 0) {
        return Decision::Search;
    }
    match needs_terms {
        false => Decision::NoVector,
        true if terms.any_scores(found) => Decision::Search,
        true => Decision::NoTerm,
    }
}

/// Decides by zone and tags, and leaves in the view what must still be checked row by row.
pub(crate) fn decide(view: &mut View, filters: &Filters) -> Result<Decision, SegmentError> {
    let zone = view.partition().zone();
    let (oldest, newest) = zone.event_time_us;
    let since = filters.time_us.0.unwrap_or(i64::MIN);
    let until = filters.time_us.1.unwrap_or(i64::MAX);
    let since_kept = since.saturating_add(i64::from(planted::is_on(Bug::WindowStartOffByOne)));
    if newest < since_kept || oldest >= until {
        return Ok(Decision::NoTime);
    }
    let no_window = planted::is_on(Bug::TagsWithoutTime) && !filters.tags.is_empty();
    if (since > oldest || until <= newest) && !no_window {
        view.window_us = Some((since, until));
    }
    let class_min = SourceClass::to_column(filters.min_source);
    if zone.source_class_max < class_min {
        return Ok(Decision::NoSource);
    }
    view.class_min = class_min;
    if !filters.tags.is_empty() {
        let tagged = tagged_rows(view, &filters.tags)?;
        if tagged.is_empty() {
            return Ok(Decision::NoTag);
        }
        view.tagged = Some(tagged);
    }
    Ok(Decision::Search)
}

/// Rows that carry at least one tag of every group.
fn tagged_rows(view: &View, groups: &[Vec<Closure>]) -> Result<RoaringBitmap, SegmentError> {
    let mut all: Option<RoaringBitmap> = None;
    for group in groups {
        let mut any = match planted::is_on(Bug::UntaggedLetIn) {
            true => view.partition().untagged_rows()?,
            false => RoaringBitmap::new(),
        };
        for closure in group {
            any |= closure_rows(view, closure)?;
        }
        let joined = match all {
            Some(all) => all & any,
            None => any,
        };
        if joined.is_empty() {
            return Ok(joined);
        }
        all = Some(joined);
    }
    Ok(all.unwrap_or_default())
}

/// Rows that carry a tag of the closure, inside the scopes where it holds.
fn closure_rows(view: &View, closure: &Closure) -> Result<RoaringBitmap, SegmentError> {
    let mut rows = RoaringBitmap::new();
    for tag in &closure.tags {
        if let Some(tagged) = view.partition().tag_rows(tag)? {
            rows |= tagged;
        }
    }
    let Some(within) = &closure.within else {
        return Ok(rows);
    };
    let mut inside = RoaringBitmap::new();
    for run in view.partition().select(within, u64::MAX)? {
        inside.extend(view.partition().rows_in_run(&run, &rows));
    }
    Ok(inside)
}
