//! Where do the query's terms stand in each view, and how many live rows hold them?
//!
//! Each term is looked up once a partition. What the counting opens is kept for the scoring.

use chronolith_segments::{Postings, SegmentError, TermEntry};
use chronolith_vfs::planted::{self, Bug};

use super::view::{PartitionName, View};

/// One term's postings in one run.
pub(crate) type Cursor<'v> = Box<dyn Postings + 'v>;

/// What one view knows of the query's terms, in the order of the terms.
#[derive(Default)]
pub(crate) struct Found<'v> {
    terms: Vec<FoundTerm<'v>>,
}

#[derive(Default)]
struct FoundTerm<'v> {
    /// `None` where no row of the partition holds the term.
    entry: Option<TermEntry>,
    /// Rows of the view's runs that hold it, dead ones included.
    count: u64,
    /// One a run, where counting opened it and left it at its start.
    cursors: Vec<Option<Cursor<'v>>>,
}

impl<'v> Found<'v> {
    /// Looks `terms` up in `view`, and adds their live rows to `frequencies`.
    ///
    /// # Errors
    /// Damage in dictionary or postings.
    pub(crate) fn new(
        view: &'v View,
        terms: &[&[u8]],
        frequencies: &mut [u64],
    ) -> Result<Self, SegmentError> {
        let entries = view.partition().terms_of(terms)?;
        let mut found = Self {
            terms: Vec::with_capacity(terms.len()),
        };
        for (entry, frequency) in entries.into_iter().zip(frequencies) {
            let mut one = FoundTerm {
                entry,
                ..FoundTerm::default()
            };
            *frequency += one.count_live(view)?;
            found.terms.push(one);
        }
        Ok(found)
    }

    /// Brings the first postings of all terms near, without waiting for them.
    pub(crate) fn bring_near(&self, view: &View) {
        for entry in self.terms.iter().filter_map(|term| term.entry.as_ref()) {
            view.partition().bring_postings_near(entry);
        }
    }

    /// The term's entry, where a row of the view's runs holds it.
    pub(crate) fn entry(&self, term: usize) -> Option<&TermEntry> {
        let found = self.terms.get(term)?;
        found.entry.as_ref().filter(|_| found.count > 0)
    }

    /// The term's postings in run number `run`, from their start; `None` where there are none.
    /// What the counting opened is handed out first; asked again, another one is opened.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn cursor(
        &mut self,
        view: &'v View,
        term: usize,
        run: usize,
    ) -> Result<Option<Cursor<'v>>, SegmentError> {
        let found = &mut self.terms[term];
        let Some(entry) = found.entry.filter(|_| found.count > 0) else {
            return Ok(None);
        };
        let kept = found.cursors.get_mut(run).and_then(Option::take);
        match kept {
            Some(cursor) => Ok(Some(cursor)),
            None => view.partition().postings_of(&entry, &view.runs[run]),
        }
    }
}

impl<'v> FoundTerm<'v> {
    /// Live rows of the view that hold the term: rank differences less the dead rows among
    /// them.
    fn count_live(&mut self, view: &'v View) -> Result<u64, SegmentError> {
        let Some(entry) = &self.entry else {
            return Ok(0);
        };
        let live = view.runs.iter().zip(&view.dead_rows);
        let live_rows: usize = live
            .map(|(run, dead)| run.rows.len().saturating_sub(dead.len()))
            .sum();
        let mut dead_count = 0;
        if covers_segment(view) && view.dead_rows[0].is_empty() {
            self.count = u64::from(entry.rows);
            return self.checked(view, dead_count, live_rows);
        }
        self.cursors.reserve(view.runs.len());
        for (run, dead) in view.runs.iter().zip(&view.dead_rows) {
            let Some(mut cursor) = view.partition().postings_of(entry, run)? else {
                self.cursors.push(None);
                continue;
            };
            self.count += u64::from(cursor.count());
            for row in dead {
                dead_count += u64::from(cursor.freq_at(*row)? > 0);
            }
            self.cursors.push(Some(cursor).filter(|_| dead.is_empty()));
        }
        if planted::is_on(Bug::DeadInFrequency) {
            dead_count = 0;
        }
        self.checked(view, dead_count, live_rows)
    }

    /// The count less the dead rows. It comes from the dictionary and the skip data, the rows
    /// from the scope directory: bytes of a file that may contradict each other.
    fn checked(&self, view: &View, dead: u64, live_rows: usize) -> Result<u64, SegmentError> {
        let live = self.count.checked_sub(dead);
        live.filter(|live| *live <= live_rows as u64)
            .ok_or_else(|| view.contradiction("terms", "a term is in more rows than there are"))
    }
}

/// Live rows of the view that hold the term of `entry`.
///
/// # Errors
/// Damage in the postings.
pub(crate) fn live_rows(view: &View, entry: &TermEntry) -> Result<u64, SegmentError> {
    let mut term = FoundTerm {
        entry: Some(*entry),
        ..FoundTerm::default()
    };
    term.count_live(view)
}

/// True where the view is all of a segment, so that a term's rows there are its count.
fn covers_segment(view: &View) -> bool {
    let [run] = &*view.runs else {
        return false;
    };
    matches!(view.source.name, PartitionName::Segment(_))
        && run.rows == (0..view.partition().zone().rows)
}
