//! What must a store answer? The reference model: maps, and brute force over every live record.
//!
//! Written from SEMANTICS, not from the engine. It shares with the engine only the analyzer
//! (what a term is), the storing of a vector and the dot product of stored vectors.
//!
//! * [`Model`]: the live records and tag edges after a prefix of the commits.
//! * [`Answer`]: what a retrieval must return; [`difference`] compares.

mod answer;
mod clauses;
mod rank;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chronolith::{Fusion, Record, Scope, Setup, TagEdge, TokenCounter, VectorSpace};
use chronolith_segments::analyze::{Analyzed, Analyzer};
use chronolith_segments::{prepare_vector, widen};

pub use answer::{Answer, difference};

use crate::generate::Op;

/// One live record.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Tags sorted and without duplicates; the vector as stored, widened.
    pub record: Record,
    /// The vector's bytes as stored.
    pub vector: Option<Vec<u8>>,
    /// Terms and frequencies; tokens of impacts behind 0xff, in steps of 1/256.
    pub terms: BTreeMap<Vec<u8>, u32>,
    /// Counted tokens.
    pub length: u32,
    /// Of the operation that wrote it.
    pub seq: u64,
    /// When it became known, µs.
    pub commit_time_us: i64,
}

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken.
    Accept,
    /// Refused: the id of this operation is taken.
    Exists(usize),
    /// Refused: a link that closes a cycle.
    Cycle,
    /// A link between scopes where no scope sees the whole cycle: either answer is right.
    Either,
}

/// Live records by (scope key, id), and tag edges. A clone is a snapshot.
#[derive(Debug, Clone)]
pub struct Model {
    rows: BTreeMap<(Vec<u8>, String), Arc<Row>>,
    edges: BTreeSet<TagEdge>,
    space: Option<VectorSpace>,
    analyzer: Arc<Analyzer>,
    counter: TokenCounter,
    fusion: Fusion,
}

impl Model {
    /// The empty model of a store.
    ///
    /// # Panics
    /// If the setup's analyzer is none.
    pub fn new(setup: &Setup) -> Self {
        let analyzer = Analyzer::new(setup.analyzer, setup.language, setup.index);
        Self {
            rows: BTreeMap::new(),
            edges: BTreeSet::new(),
            space: setup.vectors.clone(),
            analyzer: Arc::new(analyzer.expect("an analyzer of the test")),
            counter: setup.token_counter,
            fusion: Fusion::Convex {
                dense_weight: setup.dense_weight,
            },
        }
    }

    /// Live records, scope ascending, id ascending.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().map(|row| &**row)
    }

    /// Number of live records.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without live records.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The live record of this (scope, id).
    pub fn get(&self, scope: &Scope, id: &str) -> Option<&Row> {
        let row = self.rows.get(&(scope.key().to_vec(), id.to_owned()));
        row.map(|row| &**row)
    }

    /// What the store must say to a batch.
    pub fn judge(&self, ops: &[Op]) -> Verdict {
        let mut touched: BTreeMap<(Vec<u8>, String), bool> = BTreeMap::new();
        for (index, op) in ops.iter().enumerate() {
            match op {
                Op::Upsert(record) => {
                    touched.insert(key(&record.scope, &record.id), true);
                }
                Op::Insert(record) => {
                    let key = key(&record.scope, &record.id);
                    let taken = touched.get(&key).copied();
                    if taken.unwrap_or_else(|| self.rows.contains_key(&key)) {
                        return Verdict::Exists(index);
                    }
                    touched.insert(key, true);
                }
                Op::Forget(scope, id) => {
                    touched.insert(key(scope, id), false);
                }
                Op::Link(edge) => match self.judge_link(edge) {
                    Verdict::Accept => {}
                    other => return other,
                },
                Op::Add(_) | Op::Unlink(_) => {}
            }
        }
        Verdict::Accept
    }

    /// Cycles count along a line of scopes: those that one scope sees together.
    fn judge_link(&self, edge: &TagEdge) -> Verdict {
        if edge.parent == edge.child {
            return Verdict::Cycle;
        }
        let mut viewers: BTreeSet<&Scope> = self.edges.iter().map(|e| &e.scope).collect();
        viewers.insert(&edge.scope);
        let closes = |viewer: &&Scope| {
            is_within(viewer, &edge.scope)
                && self
                    .below(&edge.child, viewer, usize::MAX)
                    .contains(&edge.parent)
        };
        if viewers.iter().any(closes) {
            return Verdict::Cycle;
        }
        let related = self.edges.iter().filter(|other| {
            is_within(&other.scope, &edge.scope) || is_within(&edge.scope, &other.scope)
        });
        let pairs: Vec<(&str, &str)> = related.map(|e| (&*e.parent, &*e.child)).collect();
        if reach(&edge.child, &pairs, usize::MAX).contains(&edge.parent) {
            return Verdict::Either;
        }
        Verdict::Accept
    }

    /// Applies an accepted batch; returns how many records it replaced or removed.
    ///
    /// # Panics
    /// If `new_ids` are too few.
    pub fn apply(
        &mut self,
        ops: &[Op],
        first_seq: u64,
        commit_time_us: i64,
        new_ids: &[String],
    ) -> u64 {
        let mut new_ids = new_ids.iter();
        let mut removed = 0;
        for (seq, op) in (first_seq..).zip(ops) {
            match op {
                Op::Upsert(record) | Op::Insert(record) => {
                    removed += self.put(record.clone(), seq, commit_time_us);
                }
                Op::Add(record) => {
                    let mut record = record.clone();
                    record
                        .id
                        .clone_from(new_ids.next().expect("an id for each add"));
                    removed += self.put(record, seq, commit_time_us);
                }
                Op::Forget(scope, id) => {
                    removed += u64::from(self.rows.remove(&key(scope, id)).is_some());
                }
                Op::Link(edge) => {
                    self.edges.insert(edge.clone());
                }
                Op::Unlink(edge) => {
                    self.edges.remove(edge);
                }
            }
        }
        removed
    }

    fn put(&mut self, mut record: Record, seq: u64, commit_time_us: i64) -> u64 {
        record.tags.sort();
        record.tags.dedup();
        let stored = record.vector.take().map(|vector| {
            let space = self.space.as_ref().expect("vectors need a space");
            prepare_vector(space, &vector).expect("a vector of the test fits")
        });
        if let (Some(bytes), Some(space)) = (&stored, &self.space) {
            record.vector = Some(widen(bytes, space.format));
        }
        let mut analyzed = Analyzed::new();
        self.analyzer.analyze(&record.text, &mut analyzed);
        let terms = analyzed.terms();
        let mut terms: BTreeMap<Vec<u8>, u32> =
            terms.map(|(term, freq)| (term.to_vec(), freq)).collect();
        record.impacts.sort_by(|a, b| a.0.cmp(&b.0));
        for (token, weight) in &mut record.impacts {
            let steps = (*weight * 256.0).round().max(1.0);
            *weight = steps / 256.0;
            terms.insert([&[0xff], token.as_bytes()].concat(), steps_of(steps));
        }
        let row = Row {
            terms,
            length: analyzed.length(),
            vector: stored,
            seq,
            commit_time_us,
            record,
        };
        let key = key(&row.record.scope, &row.record.id);
        u64::from(self.rows.insert(key, Arc::new(row)).is_some())
    }

    /// `tag` and what lies below it for a row of `scope`.
    fn below(&self, tag: &str, scope: &Scope, depth_max: usize) -> BTreeSet<String> {
        let seen = self
            .edges
            .iter()
            .filter(|edge| is_within(scope, &edge.scope));
        let pairs: Vec<(&str, &str)> = seen.map(|e| (&*e.parent, &*e.child)).collect();
        reach(tag, &pairs, depth_max)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and small"
)]
fn steps_of(steps: f32) -> u32 {
    steps as u32
}

fn key(scope: &Scope, id: &str) -> (Vec<u8>, String) {
    (scope.key().to_vec(), id.to_owned())
}

/// True if `scope` is `above` or below it.
fn is_within(scope: &Scope, above: &Scope) -> bool {
    let (path, above) = (scope.path(), above.path());
    path == above || path.starts_with(&format!("{above}/"))
}

fn reach(tag: &str, pairs: &[(&str, &str)], depth_max: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::from([tag.to_owned()]);
    for _ in 0..depth_max {
        let step = pairs.iter().filter(|(parent, _)| found.contains(*parent));
        let next: BTreeSet<String> = step.map(|(_, child)| (*child).to_owned()).collect();
        let before = found.len();
        found.extend(next);
        if found.len() == before {
            break;
        }
    }
    found
}
