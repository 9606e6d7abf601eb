//! Which of two rows comes first, and which k rows come first of all.
//!
//! Total order: score descending, event time descending, scope ascending, id ascending, seq
//! descending. Scope, id and seq are read only where everything before them ties.

use std::cell::RefCell;
use std::cmp::Ordering;

use chronolith_segments::SegmentError;
use chronolith_vfs::planted::{self, Bug};
use hashbrown::HashMap;

use super::view::View;

/// A row that could be a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    /// What is ordered by; larger is better, never NaN.
    pub(crate) key: f64,
    /// The score that the key was made of: before age.
    pub(crate) base: f64,
    /// Event time, µs.
    pub(crate) time_us: i64,
    /// Index of its view.
    pub(crate) view: usize,
    /// Row in that view's partition.
    pub(crate) row: u32,
}

/// Compares candidates; remembers damage met while reading a tie, since sorting cannot fail.
pub(crate) struct TotalOrder<'a> {
    views: &'a [View],
    failed: RefCell<Option<SegmentError>>,
}

impl<'a> TotalOrder<'a> {
    pub(crate) fn new(views: &'a [View]) -> Self {
        Self {
            views,
            failed: RefCell::new(None),
        }
    }

    /// `Less` = `a` comes before `b`.
    pub(crate) fn compare(&self, a: &Candidate, b: &Candidate) -> Ordering {
        b.key
            .total_cmp(&a.key)
            .then(b.time_us.cmp(&a.time_us))
            .then_with(|| {
                if (a.view, a.row) == (b.view, b.row) {
                    return Ordering::Equal;
                }
                self.compare_names(a, b).unwrap_or_else(|error| {
                    self.failed.borrow_mut().get_or_insert(error);
                    (a.view, a.row).cmp(&(b.view, b.row))
                })
            })
    }

    fn compare_names(&self, a: &Candidate, b: &Candidate) -> Result<Ordering, SegmentError> {
        let (pa, pb) = (
            self.views[a.view].partition(),
            self.views[b.view].partition(),
        );
        if planted::is_on(Bug::TieReversed) && a.view != b.view {
            return Ok(b.view.cmp(&a.view));
        }
        let scopes = pa.scope_key(a.row)?.cmp(&pb.scope_key(b.row)?);
        if scopes.is_ne() {
            return Ok(scopes);
        }
        let ids = pa.id(a.row)?.cmp(&pb.id(b.row)?);
        if ids.is_ne() {
            return Ok(ids);
        }
        Ok(pb
            .fields(b.row)?
            .commit_seq
            .cmp(&pa.fields(a.row)?.commit_seq))
    }

    /// Fails if any comparison met damage.
    pub(crate) fn finish(&self) -> Result<(), SegmentError> {
        self.failed.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// Keeps the best `k` candidates, or the best row of each of the best `k` sources.
pub(crate) struct TopK<'a> {
    k: usize,
    order: TotalOrder<'a>,
    /// Everything that may still be among the best. In order, best first, where `sorted`.
    kept: Vec<Candidate>,
    /// The k-th best, as far as it is known; whatever comes after it is out.
    last: Option<Candidate>,
    distinct: bool,
    /// Short lists are kept in order, so that the k-th best is known after each candidate;
    /// others are cut back to k when they have doubled.
    sorted: bool,
}

/// Smallest size at which the buffer is cut: sorting tiny buffers often costs more.
const CUT_MIN: usize = 64;
/// Longest list that is kept in order: a candidate moves half of it.
const SORTED_MAX: usize = 256;

impl<'a> TopK<'a> {
    /// An empty list over `views`. `distinct` keeps one row a source id.
    pub(crate) fn new(views: &'a [View], k: usize, distinct: bool) -> Self {
        Self {
            k,
            order: TotalOrder::new(views),
            kept: Vec::new(),
            last: None,
            distinct,
            sorted: !distinct && k <= SORTED_MAX,
        }
    }

    /// The key of the k-th best so far, once there are k: no row below it gets in.
    pub(crate) fn threshold(&self) -> Option<f64> {
        self.last.as_ref().map(|last| last.key)
    }

    /// True if a row with this key could still get in, whatever its time and names.
    pub(crate) fn could_enter(&self, key: f64) -> bool {
        self.k > 0 && self.last.as_ref().is_none_or(|last| key >= last.key)
    }

    /// As [`TopK::could_enter`], with the time known.
    pub(crate) fn could_enter_at(&self, key: f64, time_us: i64) -> bool {
        self.k > 0
            && self
                .last
                .as_ref()
                .is_none_or(|last| key > last.key || (key == last.key && time_us >= last.time_us))
    }

    /// Takes a candidate that passed every filter.
    pub(crate) fn offer(&mut self, candidate: Candidate) -> Result<(), SegmentError> {
        debug_assert!(!candidate.key.is_nan());
        if !self.could_enter_at(candidate.key, candidate.time_us) {
            return Ok(());
        }
        if self.sorted {
            return self.insert(candidate);
        }
        self.kept.push(candidate);
        if self.kept.len() >= (2 * self.k).max(CUT_MIN) {
            self.cut()?;
        }
        Ok(())
    }

    fn insert(&mut self, candidate: Candidate) -> Result<(), SegmentError> {
        let Self { order, kept, .. } = self;
        let place = kept.partition_point(|other| order.compare(other, &candidate).is_lt());
        if place < self.k {
            kept.truncate(self.k - 1);
            kept.insert(place, candidate);
            if kept.len() == self.k {
                self.last = kept.last().copied();
            }
        }
        self.order.finish()
    }

    fn cut(&mut self) -> Result<(), SegmentError> {
        let Self { order, kept, .. } = self;
        kept.sort_by(|a, b| order.compare(a, b));
        if self.distinct {
            self.keep_first_of_each_source()?;
        }
        if self.kept.len() >= self.k {
            self.kept.truncate(self.k);
            self.last = self.kept.last().copied();
        }
        self.order.finish()
    }

    /// In the total order the first row of a source stands for it. A source that is cut can
    /// come back with a better row; one with a worse row stays out rightly.
    fn keep_first_of_each_source(&mut self) -> Result<(), SegmentError> {
        let mut seen: HashMap<String, ()> = HashMap::new();
        let mut first = Vec::with_capacity(self.kept.len());
        for candidate in &self.kept {
            let partition = self.order.views[candidate.view].partition();
            let is_first = match partition.source_id(candidate.row)? {
                Some(source) => seen.insert(source.into_owned(), ()).is_none(),
                None => true,
            };
            if is_first {
                first.push(*candidate);
            }
        }
        self.kept = first;
        Ok(())
    }

    /// The best k, best first.
    pub(crate) fn finish(mut self) -> Result<Vec<Candidate>, SegmentError> {
        self.cut()?;
        self.kept.truncate(self.k);
        Ok(self.kept)
    }
}
