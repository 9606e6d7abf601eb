//! Which rows belong to which scope, and what do they sum to?
//!
//! Parsed into memory when a segment is opened: pruning and statistics read no section.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | count | u32 | that of the zone | [`ScopeDir::open`] |
//! | key: shared prefix, rest | varints + bytes | a scope's key, above the one before | [`ScopeDir::open`] |
//! | rows | varint | 1 or more; all together those of the zone | [`ScopeDir::open`] |
//! | length sum | varint | up to 2^32 - 1 a row; all together that of the footer | [`ScopeDir::open`], scrub |
//! | first event time - zone's first; span | varints | inside the zone | [`ScopeDir::open`], scrub |
//! | has a timeline of its own | u8 | 0, 1 | [`ScopeDir::open`] |

use std::ops::Range;

use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::{Put, Take, index};
use crate::limits::SCOPE_BYTES_MAX;
use crate::read::{Population, ScopeEntry, Zone};
use crate::scope::{KeyRange, Scope};

type Result<T> = std::result::Result<T, SegmentError>;

/// One scope as the writer knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScopeFacts {
    /// The key.
    pub(crate) key: Box<[u8]>,
    /// Its rows.
    pub(crate) rows: Range<u32>,
    /// Sum of their lengths.
    pub(crate) length_sum: u64,
    /// Smallest and largest event time, µs.
    pub(crate) event_time_us: (i64, i64),
    /// True where rows are not in order of event time.
    pub(crate) own_timeline: bool,
}

/// Encodes the section.
pub(crate) fn encode_scopes(scopes: &[ScopeFacts], zone: &Zone) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(zone.scopes);
    let (mut last_key, mut row): (&[u8], u32) = (&[], 0);
    for scope in scopes {
        assert!(
            *scope.key > *last_key && scope.rows.start == row && !scope.rows.is_empty(),
            "scopes ascend"
        );
        let shared = shared_prefix(last_key, &scope.key);
        out.put_varint(shared as u64);
        out.put_prefixed(&scope.key[shared..]);
        out.put_varint(u64::from(scope.rows.end - scope.rows.start));
        out.put_varint(scope.length_sum);
        out.put_varint(scope.event_time_us.0.abs_diff(zone.event_time_us.0));
        out.put_varint(scope.event_time_us.1.abs_diff(scope.event_time_us.0));
        out.put_u8(u8::from(scope.own_timeline));
        (last_key, row) = (&scope.key, scope.rows.end);
    }
    assert_eq!(row, zone.rows, "every row has a scope");
    out
}

/// Bytes that both start with.
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The scopes of a segment, ascending by key and by rows.
#[derive(Debug, Clone)]
pub(crate) struct ScopeDir {
    /// Keys, one after the other.
    keys: Vec<u8>,
    /// Where each key ends.
    key_ends: Vec<usize>,
    /// First row of each scope, then the count of rows.
    first_rows: Vec<u32>,
    /// Lengths before each scope, then of all.
    length_before: Vec<u64>,
    event_time_us: Vec<(i64, i64)>,
    /// Where the scope's part of the timeline starts; `u32::MAX` = rows are in time order.
    timeline_at: Vec<u32>,
    timeline_rows: u32,
}

impl ScopeDir {
    /// Parses the section.
    ///
    /// # Errors
    /// `Corrupt` naming the first field out of its range.
    pub(crate) fn open(section: &Section, zone: &Zone) -> Result<Self> {
        let bytes = section.all()?;
        let mut take = Take::new(section, 0, &bytes);
        let count = take.u32()?;
        // Every scope takes more than a byte, so this bounds the allocation too.
        if count != zone.scopes || index(count) > take.left() {
            return Err(take.corrupt(format!(
                "{count} scopes in {} bytes, the zone has {}",
                bytes.len(),
                zone.scopes
            )));
        }
        let mut dir = Self {
            keys: Vec::new(),
            key_ends: Vec::with_capacity(index(count)),
            first_rows: vec![0],
            length_before: vec![0],
            event_time_us: Vec::with_capacity(index(count)),
            timeline_at: Vec::with_capacity(index(count)),
            timeline_rows: 0,
        };
        let mut key = Vec::new();
        for _ in 0..count {
            dir.take_scope(&mut take, &mut key, zone)?;
        }
        take.end()?;
        if dir.rows() != zone.rows {
            return Err(take.corrupt(format!(
                "scopes of {} rows, the zone has {}",
                dir.rows(),
                zone.rows
            )));
        }
        Ok(dir)
    }

    fn take_scope(&mut self, take: &mut Take<'_>, key: &mut Vec<u8>, zone: &Zone) -> Result<()> {
        let before = key.clone();
        let shared = take.varint_max("shared prefix", key.len() as u64)?;
        key.truncate(usize::try_from(shared).unwrap_or(usize::MAX));
        key.extend_from_slice(take.prefixed("scope key", SCOPE_BYTES_MAX)?);
        if *key <= before || Scope::from_key(key).is_none() {
            return Err(take.corrupt("scope keys do not ascend, or one is none"));
        }
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        let start = self.rows();
        let rows = take.varint_max("rows of a scope", u64::from(zone.rows - start))?;
        let rows = u32::try_from(rows).unwrap_or(0);
        if rows == 0 {
            return Err(take.corrupt("a scope without rows"));
        }
        self.first_rows.push(start + rows);
        // So bounded, sums of populations do not overflow.
        let length_max = u64::from(rows) * u64::from(u32::MAX);
        let length = take.varint_max("length sum of a scope", length_max)?;
        let length_sum = self.length_sum().checked_add(length);
        let Some(length_sum) = length_sum else {
            return Err(take.corrupt("lengths overflow"));
        };
        self.length_before.push(length_sum);
        let first = zone.event_time_us.0.checked_add_unsigned(take.varint()?);
        let span = take.varint()?;
        let last = first.and_then(|first| first.checked_add_unsigned(span));
        match (first, last) {
            (Some(first), Some(last)) if last <= zone.event_time_us.1 => {
                self.event_time_us.push((first, last))
            }
            _ => return Err(take.corrupt("event times leave the zone")),
        }
        match take.u8()? {
            0 => self.timeline_at.push(u32::MAX),
            1 => {
                self.timeline_at.push(self.timeline_rows);
                self.timeline_rows += rows;
            }
            other => return Err(take.corrupt(format!("timeline flag is {other}, not 0 or 1"))),
        }
        Ok(())
    }

    /// Scopes.
    pub(crate) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// Rows of all scopes.
    pub(crate) fn rows(&self) -> u32 {
        self.first_rows.last().copied().unwrap_or(0)
    }

    /// Lengths of all rows.
    pub(crate) fn length_sum(&self) -> u64 {
        self.length_before.last().copied().unwrap_or(0)
    }

    /// Rows with an entry in the timeline of their scope.
    pub(crate) fn timeline_rows(&self) -> u32 {
        self.timeline_rows
    }

    /// Key of a scope.
    pub(crate) fn key(&self, scope: usize) -> &[u8] {
        let start = scope
            .checked_sub(1)
            .map_or(0, |before| self.key_ends[before]);
        &self.keys[start..self.key_ends[scope]]
    }

    /// Rows of a scope.
    pub(crate) fn rows_of(&self, scope: usize) -> Range<u32> {
        self.first_rows[scope]..self.first_rows[scope + 1]
    }

    /// Where the scope's part of the timeline starts, if it has one.
    pub(crate) fn timeline_at(&self, scope: usize) -> Option<u32> {
        Some(self.timeline_at[scope]).filter(|at| *at != u32::MAX)
    }

    /// The scope of a row, which is below the count of rows.
    pub(crate) fn of_row(&self, row: u32) -> usize {
        debug_assert!(row < self.rows());
        self.first_rows.partition_point(|first| *first <= row) - 1
    }

    /// The scopes that have rows in `rows`.
    pub(crate) fn of_rows(&self, rows: &Range<u32>) -> Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        self.of_row(rows.start)..self.of_row(rows.end - 1) + 1
    }

    /// The scope with this key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let scope = self.lower_bound(key);
        (scope < self.len() && self.key(scope) == key).then_some(scope)
    }

    /// Rows of all scopes in a range of keys.
    pub(crate) fn rows_in(&self, range: &KeyRange) -> Range<u32> {
        let start = self.lower_bound(&range.from);
        let end = range
            .to
            .as_ref()
            .map_or(self.len(), |to| self.lower_bound(to));
        self.first_rows[start]..self.first_rows[end.max(start)]
    }

    /// Rows and lengths of some scopes.
    pub(crate) fn population(&self, scopes: Range<usize>) -> Population {
        let rows = self.first_rows[scopes.end] - self.first_rows[scopes.start];
        let length_sum = self.length_before[scopes.end] - self.length_before[scopes.start];
        Population {
            rows: u64::from(rows),
            length_sum,
        }
    }

    /// What is known of one scope.
    pub(crate) fn entry(&self, scope: usize) -> ScopeEntry {
        ScopeEntry {
            key: self.key(scope).to_vec(),
            population: self.population(scope..scope + 1),
            event_time_us: self.event_time_us[scope],
        }
    }

    fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
