//! Which of two rows comes first, and which k rows come first of all.
//!
//! Total order: score descending, event time descending, scope ascending, id ascending, seq
//! descending. Scope, id and seq are read only where everything before them ties.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicU64};

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
    /// Where other lists work on other parts of the rows.
    shared: Option<&'a SharedFloor>,
}

/// The best threshold of several lists over parts of the same rows: what is below the k-th
/// best of one part is below that of the whole.
#[derive(Debug)]
pub(crate) struct SharedFloor(AtomicU64);

impl SharedFloor {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(rising(f64::NEG_INFINITY)))
    }

    fn key(&self) -> f64 {
        // Relaxed: the number alone is shared, and an old one only prunes less.
        falling(self.0.load(atomic::Ordering::Relaxed))
    }

    fn raise(&self, key: f64) {
        self.0.fetch_max(rising(key), atomic::Ordering::Relaxed);
    }
}

/// The number's bits so turned that they rise with it: `total_cmp` as a comparison of integers.
fn rising(key: f64) -> u64 {
    let bits = key.to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// The inverse of [`rising`].
fn falling(bits: u64) -> f64 {
    f64::from_bits(match bits >> 63 {
        0 => !bits,
        _ => bits & !(1 << 63),
    })
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
            shared: None,
        }
    }

    /// An empty list for a part of the rows, which also leaves out what is below the
    /// thresholds of other parts, ties kept.
    pub(crate) fn part<'p>(&self, floor: &'p SharedFloor) -> TopK<'p>
    where
        'a: 'p,
    {
        let views: &'a [View] = self.order.views;
        TopK {
            shared: Some(floor),
            ..TopK::new(views, self.k, self.distinct)
        }
    }

    /// True where one row a source is kept.
    pub(crate) fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// Cuts the list to what it would be now, and gives its length.
    ///
    /// # Errors
    /// Damage in what settles ties.
    pub(crate) fn settle(&mut self) -> Result<usize, SegmentError> {
        self.cut()?;
        Ok(self.kept.len().min(self.k))
    }

    /// Forgets every candidate.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.last = None;
    }

    /// How many are kept.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// The key of the k-th best so far, once there are k: no row below it gets in.
    pub(crate) fn threshold(&self) -> Option<f64> {
        let own = self.last.as_ref().map(|last| last.key);
        let Some(shared) = self.shared.map(SharedFloor::key) else {
            return own;
        };
        let shared = Some(shared).filter(|key| *key > f64::NEG_INFINITY);
        match (own, shared) {
            (Some(own), Some(shared)) => Some(own.max(shared)),
            (own, shared) => own.or(shared),
        }
    }

    fn set_last(&mut self) {
        self.last = self.kept.last().copied();
        if let (Some(shared), Some(last)) = (self.shared, &self.last) {
            shared.raise(last.key);
        }
    }

    /// True if a row with this key could still get in, whatever its time and names.
    pub(crate) fn could_enter(&self, key: f64) -> bool {
        self.k > 0 && self.last.as_ref().is_none_or(|last| key >= last.key)
    }

    /// As [`TopK::could_enter`], with the time known.
    pub(crate) fn could_enter_at(&self, key: f64, time_us: i64) -> bool {
        self.k > 0
            && self.shared.is_none_or(|shared| key >= shared.key())
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
                self.set_last();
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
            self.set_last();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_rise_with_numbers_and_come_back() {
        let keys = [
            f64::NEG_INFINITY,
            -7.5,
            -0.0,
            0.0,
            1e-300,
            3.0,
            f64::INFINITY,
        ];
        assert!(keys.map(rising).is_sorted());
        assert_eq!(
            keys.map(|key| falling(rising(key)).to_bits()),
            keys.map(f64::to_bits)
        );
        let floor = SharedFloor::new();
        floor.raise(2.0);
        floor.raise(-3.0);
        assert_eq!(floor.key(), 2.0);
    }
}
