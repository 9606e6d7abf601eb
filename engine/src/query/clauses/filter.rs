//! Does a row hold what clauses require, and lack what they exclude?
//!
//! Two forms of one filter. [`RunFilter`] asks cursors, for rows that come ascending and of
//! which few are asked: the sparse pass, where a row must first score enough. [`ClauseRows`]
//! is a set of rows, for those who look at every row or in another order.

use chronolith_segments::SegmentError;
use chronolith_segments::analyze::Analyzer;
use roaring::RoaringBitmap;

use super::Phrases;
use crate::query::lookup::{Cursor, Found};
use crate::query::view::View;

/// What clauses ask of a row. Terms are named by their places in [`Found`].
#[derive(Debug)]
pub(crate) struct ClauseFilter {
    /// All of them must be there.
    pub(crate) required: Vec<usize>,
    /// A row that holds all terms of one of these is out.
    pub(crate) excluded: Vec<Vec<usize>>,
    /// What the text must hold.
    pub(crate) phrases: Phrases,
}

impl ClauseFilter {
    /// The filter of a request without clauses.
    pub(crate) fn none(analyzer: Analyzer) -> Self {
        Self {
            required: Vec::new(),
            excluded: Vec::new(),
            phrases: Phrases::new(analyzer, Vec::new()),
        }
    }

    /// True where every row passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.required.is_empty() && self.excluded.is_empty()
    }

    /// False where no row of the view can hold what is required.
    pub(crate) fn could_pass(&self, found: &Found<'_>) -> bool {
        let mut required = self.required.iter();
        required.all(|term| found.entry(*term).is_some())
    }
}

/// The filter over one run, asked with rows ascending.
#[derive(Default)]
pub(crate) struct RunFilter<'v> {
    /// The rarest first.
    required: Vec<Cursor<'v>>,
    excluded: Vec<Vec<Cursor<'v>>>,
}

impl<'v> RunFilter<'v> {
    /// True where every row passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.required.is_empty() && self.excluded.is_empty()
    }

    /// The filter over run number `run`; `None` where none of its rows passes.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn open(
        filter: &ClauseFilter,
        view: &'v View,
        found: &mut Found<'v>,
        run: usize,
    ) -> Result<Option<Self>, SegmentError> {
        let mut opened = Self::default();
        for term in &filter.required {
            match found.cursor(view, *term, run)? {
                Some(cursor) => opened.required.push(cursor),
                None => return Ok(None),
            }
        }
        opened.required.sort_by_key(|cursor| cursor.count());
        for terms in &filter.excluded {
            if let Some(cursors) = open_all(terms, view, found, run)? {
                opened.excluded.push(cursors);
            }
        }
        Ok(Some(opened))
    }

    /// True where the row holds what is required and nothing that is excluded.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn passes(&mut self, row: u32) -> Result<bool, SegmentError> {
        if !holds_all(&mut self.required, row)? {
            return Ok(false);
        }
        for cursors in &mut self.excluded {
            if holds_all(cursors, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Cursors of all terms; `None` where one of them has no posting in the run.
fn open_all<'v>(
    terms: &[usize],
    view: &'v View,
    found: &mut Found<'v>,
    run: usize,
) -> Result<Option<Vec<Cursor<'v>>>, SegmentError> {
    let mut cursors = Vec::with_capacity(terms.len());
    for term in terms {
        match found.cursor(view, *term, run)? {
            Some(cursor) => cursors.push(cursor),
            None => return Ok(None),
        }
    }
    Ok(Some(cursors))
}

/// True where the row has a posting in every cursor. A cursor behind the first that lacks the
/// row is not moved, which is well: rows ascend.
fn holds_all(cursors: &mut [Cursor<'_>], row: u32) -> Result<bool, SegmentError> {
    for cursor in cursors {
        if cursor.freq_at(row)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The filter as sets of one view's rows.
#[derive(Debug, Clone)]
pub(crate) struct ClauseRows {
    /// `None` = nothing is required.
    required: Option<RoaringBitmap>,
    excluded: RoaringBitmap,
}

impl ClauseRows {
    /// Reads the postings of every term of the filter in the view's runs.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn read<'v>(
        filter: &ClauseFilter,
        view: &'v View,
        found: &mut Found<'v>,
    ) -> Result<Self, SegmentError> {
        let required = match &*filter.required {
            [] => None,
            terms => Some(rows_with_all(terms, view, found)?),
        };
        let mut excluded = RoaringBitmap::new();
        for terms in &filter.excluded {
            excluded |= rows_with_all(terms, view, found)?;
        }
        Ok(Self { required, excluded })
    }

    /// The rows that hold what is required; `None` where nothing is.
    pub(crate) fn required(&self) -> Option<&RoaringBitmap> {
        self.required.as_ref()
    }

    /// True where the row holds what is required and nothing that is excluded.
    pub(crate) fn passes(&self, row: u32) -> bool {
        let required = self.required.as_ref();
        required.is_none_or(|rows| rows.contains(row)) && !self.excluded.contains(row)
    }
}

fn rows_with_all<'v>(
    terms: &[usize],
    view: &'v View,
    found: &mut Found<'v>,
) -> Result<RoaringBitmap, SegmentError> {
    let mut all: Option<RoaringBitmap> = None;
    let (mut rows, mut freqs) = (Vec::new(), Vec::new());
    for term in terms {
        let mut with_term = RoaringBitmap::new();
        for (place, run) in view.runs.iter().enumerate() {
            if let Some(mut cursor) = found.cursor(view, *term, place)? {
                rows.clear();
                freqs.clear();
                cursor.read_until(run.rows.end, &mut rows, &mut freqs)?;
                with_term.extend(rows.iter().copied());
            }
        }
        let both = match all {
            Some(all) => all & with_term,
            None => with_term,
        };
        if both.is_empty() {
            return Ok(both);
        }
        all = Some(both);
    }
    Ok(all.unwrap_or_default())
}
