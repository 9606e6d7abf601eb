//! Which terms does a prefix or a fuzzy word stand for?
//!
//! For those that a live row of the requested scopes holds, over all partitions, pruned or
//! not. Other scopes share dictionaries with them, so a term that is only there neither counts
//! nor shows: not in the answer, not in whether there are too many.

use std::collections::BTreeSet;

use chronolith_segments::{IMPACT_MARK, Refused, SegmentError, TermEntry, TermVisit};

use super::fuzzy::Fuzzy;
use super::{Clause, EXPANSIONS_MAX, Pattern};
use crate::error::Error;
use crate::query::lookup::live_rows;
use crate::query::view::View;

/// Terms that are collected before their rows are counted: no partition is asked for postings
/// in the middle of a walk.
const BATCH: usize = 512;

/// What becomes of a term on a walk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The pattern stands for it.
    Match,
    /// It does not.
    Miss,
    /// It does not, nor for any before this one.
    SkipTo(Vec<u8>),
    /// It does not, nor for any later one.
    End,
}

enum Matcher<'p> {
    Prefix(&'p [u8]),
    Fuzzy(Fuzzy),
}

impl<'p> Matcher<'p> {
    fn new(pattern: &'p Pattern) -> Self {
        match pattern.distance {
            None => Self::Prefix(pattern.folded.as_bytes()),
            Some(distance) => Self::Fuzzy(Fuzzy::new(&pattern.folded, distance)),
        }
    }

    /// No matching term comes before.
    fn first(&self) -> Vec<u8> {
        match self {
            Self::Prefix(start) => start.to_vec(),
            Self::Fuzzy(_) => Vec::new(),
        }
    }

    fn judge(&mut self, term: &[u8]) -> Judged {
        if term.first() == Some(&IMPACT_MARK) {
            // Tokens of impacts are no words, and stand behind all words.
            return Judged::End;
        }
        match self {
            Self::Prefix(start) if term.starts_with(start) => Judged::Match,
            Self::Prefix(_) => Judged::End,
            Self::Fuzzy(fuzzy) => fuzzy.judge(term),
        }
    }
}

/// The terms that `pattern` stands for, ascending.
///
/// # Errors
/// Refused where there are more than [`EXPANSIONS_MAX`]; damage in what is read.
pub(crate) fn expand(
    views: &[View],
    pattern: &Pattern,
    clause: &Clause,
) -> Result<BTreeSet<Vec<u8>>, Error> {
    let mut terms = BTreeSet::new();
    for view in views {
        if !add_live_terms(view, &mut Matcher::new(pattern), &mut terms)? {
            let advice = match clause {
                Clause::Fuzzy { distance: 2, .. } => "allow one change, or write a longer word",
                Clause::Fuzzy { .. } => "write a longer word",
                _ => "write more of the word",
            };
            let message = format!(
                "`{}` stands for more than {EXPANSIONS_MAX} terms of these scopes; {advice}",
                clause.text()
            );
            return Err(Refused::new(clause.kind(), message).into());
        }
    }
    Ok(terms)
}

/// Adds the matching terms of the view's live rows; false once there are too many.
fn add_live_terms(
    view: &View,
    matcher: &mut Matcher<'_>,
    terms: &mut BTreeSet<Vec<u8>>,
) -> Result<bool, SegmentError> {
    let mut from = matcher.first();
    loop {
        let batch = matching(view, matcher, &from)?;
        let is_last = batch.len() < BATCH;
        if let Some((last, _)) = batch.last() {
            from.clone_from(last);
            from.push(0);
        }
        for (term, entry) in batch {
            if !terms.contains(&term) && live_rows(view, &entry)? > 0 {
                terms.insert(term);
                if terms.len() > EXPANSIONS_MAX {
                    return Ok(false);
                }
            }
        }
        if is_last {
            return Ok(true);
        }
    }
}

/// The first matching terms of the partition that are not below `from`, whoever holds them.
fn matching(
    view: &View,
    matcher: &mut Matcher<'_>,
    from: &[u8],
) -> Result<Vec<(Vec<u8>, TermEntry)>, SegmentError> {
    let mut batch = Vec::new();
    view.partition().terms_from(from, &mut |term, entry| {
        match matcher.judge(term) {
            Judged::Match => batch.push((term.to_vec(), *entry)),
            Judged::Miss => {}
            Judged::SkipTo(next) => return TermVisit::SkipTo(next),
            Judged::End => return TermVisit::Stop,
        }
        if batch.len() < BATCH {
            TermVisit::Continue
        } else {
            TermVisit::Stop
        }
    })?;
    Ok(batch)
}
