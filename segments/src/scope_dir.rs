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
    heads: Heads,
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
            heads: Heads::default(),
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
        dir.heads = Heads::of(&dir, 0..dir.len());
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
        let end = match &range.to {
            None => self.len(),
            Some(to) => self.end_from(start, to),
        };
        self.first_rows[start]..self.first_rows[end]
    }

    /// First scope from `start` on that is not below `key`. Most ranges are short.
    fn end_from(&self, start: usize, key: &[u8]) -> usize {
        let (mut low, mut step) = (start, 1);
        while low + step <= self.len() && *self.key(low + step - 1) < *key {
            low += step;
            step *= 2;
        }
        self.search(low..self.len().min(low + step), key)
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

    /// First scope whose key is not below `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let mut level = &self.heads;
        loop {
            let first = level.first;
            if level.heads.is_empty() {
                return first;
            }
            let prefix = &self.key(first)[..level.prefix];
            let Some(rest) = key.strip_prefix(prefix) else {
                // All keys of the level are on one side of it.
                let below = *key < *prefix;
                return if below {
                    first
                } else {
                    first + level.heads.len()
                };
            };
            let wanted = head(rest);
            let low = level.heads.partition_point(|head| *head < wanted);
            if level.heads.get(low) != Some(&wanted) {
                return first + low;
            }
            let nested = level
                .nested
                .binary_search_by_key(&(first + low), |nested| nested.first);
            match nested {
                Ok(at) => level = &level.nested[at],
                Err(_) => {
                    let equal = level.heads[low..]
                        .iter()
                        .take_while(|head| **head == wanted);
                    return self.search(first + low..first + low + equal.count(), key);
                }
            }
        }
    }

    /// First scope of `among` whose key is not below `key`, or the end.
    fn search(&self, among: Range<usize>, key: &[u8]) -> usize {
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low.midpoint(high);
            if *self.key(middle) < *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Most keys with one head that have no level of their own.
const EQUAL_MAX: usize = 8;

/// A level of a search among scopes: the eight bytes of each key after those that all of its
/// keys share, as [`head`] reads them. They order most keys without a look at one.
#[derive(Debug, Clone, Default)]
struct Heads {
    /// The first scope of the level.
    first: usize,
    /// Bytes that all keys start with.
    prefix: usize,
    /// One a scope.
    heads: Vec<u64>,
    /// A level for each run of more than [`EQUAL_MAX`] equal heads, ascending. Their keys
    /// share eight bytes more: at most 128 levels.
    nested: Vec<Self>,
}

impl Heads {
    fn of(dir: &ScopeDir, scopes: Range<usize>) -> Self {
        if scopes.is_empty() {
            return Self::default();
        }
        // Keys ascend: what the first and the last share, all do.
        let prefix = shared_prefix(dir.key(scopes.start), dir.key(scopes.end - 1));
        let heads = scopes.clone().map(|scope| head(&dir.key(scope)[prefix..]));
        let heads: Vec<u64> = heads.collect();
        let (mut nested, mut start) = (Vec::new(), scopes.start);
        for run in heads.chunk_by(|a, b| a == b) {
            let run = start..start + run.len();
            start = run.end;
            // A level that tells no two keys apart would have itself below it.
            if run.len() > EQUAL_MAX && run.len() < scopes.len() {
                nested.push(Self::of(dir, run));
            }
        }
        Self {
            first: scopes.start,
            prefix,
            heads,
            nested,
        }
    }
}

/// The first eight bytes, zeros where there are fewer, as a number that orders as they do.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(bytes.len());
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scope::ScopeSelector;

    fn zone(rows: u32, scopes: u32) -> Zone {
        Zone {
            rows,
            vectors: 0,
            scopes,
            event_time_us: (0, 0),
            commit_seq: (0, 0),
            source_class_max: 0,
        }
    }

    /// A directory of these scopes with one to three rows each.
    fn directory(paths: &[String]) -> (ScopeDir, Vec<(Scope, Range<u32>)>) {
        let mut scopes: Vec<Scope> = paths
            .iter()
            .filter_map(|path| Scope::parse(path).ok())
            .collect();
        scopes.sort_by(|a, b| a.key().cmp(b.key()));
        scopes.dedup();
        let (mut facts, mut row) = (Vec::new(), 0);
        for (at, scope) in (0..).zip(&scopes) {
            let rows = row..row + 1 + at % 3;
            row = rows.end;
            facts.push(ScopeFacts {
                key: scope.key().into(),
                rows,
                length_sum: 0,
                event_time_us: (0, 0),
                own_timeline: false,
            });
        }
        let zone = zone(row, u32::try_from(facts.len()).expect("few"));
        let section = Section::in_memory("scopes", encode_scopes(&facts, &zone));
        let rows = scopes
            .into_iter()
            .zip(facts.into_iter().map(|facts| facts.rows));
        (
            ScopeDir::open(&section, &zone).expect("sound"),
            rows.collect(),
        )
    }

    fn check(dir: &ScopeDir, scopes: &[(Scope, Range<u32>)], asked: &Scope) {
        let found = dir.find(asked.key());
        let expected = scopes.iter().position(|(scope, _)| scope == asked);
        assert_eq!(found, expected, "{}", asked.path());
        let selectors = [KeyRange::exact(asked), KeyRange::subtree(asked)];
        let all = KeyRange {
            from: Vec::new(),
            to: None,
        };
        for range in selectors.into_iter().chain([all]) {
            let inside = scopes
                .iter()
                .filter(|(scope, _)| range.contains(scope.key()));
            let rows: Vec<u32> = inside.flat_map(|(_, rows)| rows.clone()).collect();
            let found: Vec<u32> = dir.rows_in(&range).collect();
            assert_eq!(found, rows, "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn scopes_are_found_as_by_looking_at_all(
            paths in prop::collection::vec(
                prop_oneof!["[a-c]{1,3}(/[a-c]{1,2}){0,3}", "tenant-0001/[a-c]{9}[0-9]{1,3}", "same/same/[ab]{0,14}"],
                1..40,
            ),
            common in any::<bool>(),
            asked in prop::collection::vec("([a-d]{1,3}|tenant-0001|same|same/same)(/[a-c]{1,12}){0,2}", 0..20),
        ) {
            let below = |path: &String| if common { format!("all/of/them/{path}") } else { path.clone() };
            let paths: Vec<String> = paths.iter().map(below).collect();
            let (dir, scopes) = directory(&paths);
            prop_assume!(!scopes.is_empty());
            let more = asked.iter().map(below).chain(asked.iter().cloned());
            let asked = more.chain(paths.clone()).filter_map(|path| Scope::parse(&path).ok());
            for scope in asked {
                check(&dir, &scopes, &scope);
                for parent in std::iter::successors(scope.parent(), Scope::parent) {
                    check(&dir, &scopes, &parent);
                }
            }
        }
    }

    #[test]
    fn keys_with_equal_heads_are_told_apart() {
        let paths: Vec<String> = (0..200)
            .map(|i| format!("a/user-000000{i:04}"))
            .chain(["b".into()])
            .collect();
        let (dir, scopes) = directory(&paths);
        for path in &paths {
            check(&dir, &scopes, &Scope::parse(path).expect("a scope"));
        }
        let other = ScopeSelector::parse("a/user-0000000050x").expect("a selector");
        let ScopeSelector::Subtree(other) = other else {
            panic!("a subtree");
        };
        check(&dir, &scopes, &other);
    }
}
