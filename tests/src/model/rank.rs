//! Which rows come back, in which order? Filters, the total order, fusion and age.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use chronolith::{Fusion, Recency, Scope, ScopeSelector, Signals};

use super::{Model, Row, is_within};
use crate::generate::Ask;

/// A row with its score and what it is made of.
#[derive(Debug, Clone)]
pub(super) struct Ranked<'a> {
    pub(super) row: &'a Row,
    /// What rows are ordered by.
    pub(super) key: f64,
    pub(super) score: f64,
    pub(super) signals: Signals,
}

impl<'a> Ranked<'a> {
    pub(super) fn new(row: &'a Row, key: f64) -> Self {
        Self {
            row,
            key,
            score: key,
            signals: Signals::default(),
        }
    }
}

/// Score descending, event time descending, scope ascending, id ascending, seq descending.
fn total_order(a: &Ranked<'_>, b: &Ranked<'_>) -> Ordering {
    let (ra, rb) = (&a.row.record, &b.row.record);
    b.key
        .total_cmp(&a.key)
        .then(rb.event_time_us.cmp(&ra.event_time_us))
        .then_with(|| ra.scope.key().cmp(rb.scope.key()))
        .then_with(|| ra.id.cmp(&rb.id))
        .then(b.row.seq.cmp(&a.row.seq))
}

/// The best `count` rows, or the best of each of `count` sources.
pub(super) fn best<'a>(mut rows: Vec<Ranked<'a>>, count: usize, distinct: bool) -> Vec<Ranked<'a>> {
    rows.sort_by(total_order);
    let mut sources = BTreeSet::new();
    if distinct {
        rows.retain(|ranked| match &ranked.row.record.source_id {
            Some(source) => sources.insert(source.clone()),
            None => true,
        });
    }
    rows.truncate(count);
    rows
}

/// exp(-age / tau) and age / tau; the future is as young as now.
#[expect(clippy::cast_precision_loss, reason = "as SEMANTICS: f64 ages")]
fn age(now_us: i64, time_us: i64, tau_us: i64) -> (f64, f64) {
    let age_us = (i128::from(now_us) - i128::from(time_us)).max(0);
    let ages = age_us as f64 / tau_us as f64;
    (libm::exp(-ages), ages)
}

/// Sets key, shown score and signal of a base score.
pub(super) fn aged<'a>(mut ranked: Ranked<'a>, base: f64, ask: &Ask) -> Ranked<'a> {
    let time_us = ranked.row.record.event_time_us;
    match ask.recency {
        Recency::Off => {
            ranked.key = base;
            ranked.score = base;
        }
        Recency::Decay { tau_us } => {
            let (decay, ages) = age(ask.now_us, time_us, tau_us);
            let base = base.max(0.0);
            ranked.key = libm::log(base) - ages;
            ranked.score = base * decay;
            ranked.signals.recency = Some(decay);
        }
        Recency::Boost { beta, tau_us } => {
            let (young, _) = age(ask.now_us, time_us, tau_us);
            ranked.key = base.max(0.0) * (1.0 + beta * young);
            ranked.score = ranked.key;
            ranked.signals.recency = Some(young);
        }
    }
    ranked
}

/// Where a list of the hybrid mode ends.
pub(super) fn list_length(k: usize) -> usize {
    if k <= 50 {
        return 100;
    }
    let mut length = 1;
    while length < 2 * k {
        length *= 2;
    }
    length
}

/// Fuses the best of both channels, each best first.
#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
pub(super) fn fuse<'a>(
    sparse: &[Ranked<'a>],
    dense: &[Ranked<'a>],
    fusion: Fusion,
) -> Vec<(Ranked<'a>, f64)> {
    let mut rows: Vec<&'a Row> = sparse.iter().chain(dense).map(|r| r.row).collect();
    rows.sort_by_key(|row| row.seq);
    rows.dedup_by_key(|row| row.seq);
    let place = |list: &[Ranked<'a>], row: &Row| list.iter().position(|r| r.row.seq == row.seq);
    let rrf = |weight: f64, rank: usize| weight / (60.0 + (rank + 1) as f64);
    let mut fused = Vec::new();
    for row in rows {
        let (s, d) = (place(sparse, row), place(dense, row));
        let (s_part, d_part, score);
        match fusion {
            Fusion::Convex { dense_weight } => {
                s_part = s.map_or(0.0, |i| sparse[i].key / sparse[0].key);
                d_part = d.map_or(0.0, |i| {
                    let (first, last) = (dense[0].key, dense[dense.len() - 1].key);
                    if first == last {
                        1.0
                    } else {
                        (dense[i].key - last) / (first - last)
                    }
                });
                score = (1.0 - dense_weight) * s_part + dense_weight * d_part;
            }
            Fusion::Rrf {
                sparse_weight,
                dense_weight,
            } => {
                s_part = s.map_or(0.0, |i| rrf(sparse_weight, i));
                d_part = d.map_or(0.0, |i| rrf(dense_weight, i));
                score = s_part + d_part;
            }
        }
        let mut ranked = Ranked::new(row, score);
        ranked.signals.bm25 = s.map(|i| sparse[i].key);
        ranked.signals.cosine = d.map(|i| dense[i].key);
        ranked.signals.sparse = Some(s_part);
        ranked.signals.dense = Some(d_part);
        fused.push((ranked, score));
    }
    fused
}

/// True if the selector reaches the scope. By paths, not by keys.
fn reaches(selector: &ScopeSelector, scope: &Scope) -> bool {
    match selector {
        ScopeSelector::Root => true,
        ScopeSelector::Exact(exact) => exact.path() == scope.path(),
        ScopeSelector::Subtree(top) => is_within(scope, top),
        ScopeSelector::SubtreeAndUp(top) => is_within(scope, top) || is_within(top, scope),
    }
}

/// True if an edge of `scope` can matter to a row that the selectors reach.
pub(super) fn concerns(selectors: &[ScopeSelector], scope: &Scope) -> bool {
    selectors.iter().any(|selector| match selector {
        ScopeSelector::Root => true,
        ScopeSelector::Exact(exact) => is_within(exact, scope),
        ScopeSelector::Subtree(top) => is_within(top, scope) || is_within(scope, top),
        ScopeSelector::SubtreeAndUp(top) => is_within(top, scope) || is_within(scope, top),
    })
}

impl Model {
    /// Live rows of the requested scopes, before every filter.
    pub(super) fn population(&self, ask: &Ask) -> Vec<&Row> {
        let inside = |row: &&Row| ask.scopes.iter().any(|s| reaches(s, &row.record.scope));
        self.rows().filter(inside).collect()
    }

    /// True if the row passes every filter.
    pub(super) fn passes(&self, ask: &Ask, row: &Row) -> bool {
        let record = &row.record;
        let in_time = ask
            .since_us
            .is_none_or(|since| record.event_time_us >= since)
            && ask
                .until_us
                .is_none_or(|until| record.event_time_us < until);
        let in_class = ask
            .min_source
            .is_none_or(|floor| record.source_class.is_some_and(|class| class >= floor));
        let tagged = |group: &Vec<String>| {
            let below = group
                .iter()
                .flat_map(|tag| self.below(tag, &record.scope, 4));
            let below: BTreeSet<String> = below.collect();
            record.tags.iter().any(|tag| below.contains(tag))
        };
        in_time && in_class && ask.tags.iter().all(tagged)
    }

    /// Rows of the same scope before and after, in the order of (event time, seq).
    pub(super) fn around(&self, row: &Row, count: (usize, usize)) -> (Vec<&Row>, Vec<&Row>) {
        let at = (row.record.event_time_us, row.seq);
        let mut line: Vec<&Row> = self
            .rows()
            .filter(|other| other.record.scope == row.record.scope)
            .collect();
        line.sort_by_key(|other| (other.record.event_time_us, other.seq));
        let place = |other: &&Row| (other.record.event_time_us, other.seq);
        let before: Vec<&Row> = line.iter().filter(|o| place(o) < at).copied().collect();
        let after: Vec<&Row> = line.iter().filter(|o| place(o) > at).copied().collect();
        let from = before.len().saturating_sub(count.0);
        let until = after.len().min(count.1);
        (before[from..].to_vec(), after[..until].to_vec())
    }
}
