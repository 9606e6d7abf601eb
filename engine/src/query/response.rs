//! What comes back: hits with their signals, how exact they are, and the plan that made them.

use chronolith_segments::{Scope, SourceClass};
use serde::{Serialize, Serializer};

use super::bm25::Statistics;
use super::dense::{DenseCounters, PlannedDense};
use super::pack::Carried;
use super::prune::Decision;
use super::request::{Fusion, Mode, Recency};
use super::snippet::Snippet;
use super::sparse::SparseCounters;
use super::view::PartitionName;

/// How exact an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exactness {
    /// Equal to scoring every row: ids, order, ties and score bits.
    Exact,
    /// In scope and filtered, but a better row may be missing within the bound.
    Approximate {
        /// Share of the best rows that may be missing.
        bound: f64,
    },
    /// Stopped by a budget.
    BudgetCut {
        /// No row that was not looked at scores above this.
        unvisited_upper_bound: f64,
    },
    /// Exact over the partitions that are whole; see [`Response::missing`]. Only where the
    /// request asked for it.
    Partial {
        /// How many partitions were left out.
        missing: u32,
    },
}

/// A partition that is damaged and was left out of a partial answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingPartition {
    /// Its file inside the store.
    pub file: String,
    /// What is wrong with it.
    pub error: String,
}

/// What a hit's score was made of; absent where the channel did not see the row.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Signals {
    /// BM25 under the scope's statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bm25: Option<f64>,
    /// Dot product with the stored vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// The sparse channel's share before weighting (convex) or its summand (RRF).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<f64>,
    /// The dense channel's share before weighting (convex) or its summand (RRF).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense: Option<f64>,
    /// exp(-age / tau), where recency is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recency: Option<f64>,
}

/// One term's part in a hit's BM25 score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermPart {
    /// The analysed term.
    pub term: String,
    /// Its frequency in the row.
    pub freq: u32,
    /// What it contributes.
    pub score: f64,
    /// The prefix or fuzzy word that stands for it, where it is here for that: the best of the
    /// terms that the row holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
}

/// Why a hit has its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HitExplanation {
    /// Terms that the row holds, by contribution.
    pub terms: Vec<TermPart>,
    /// Exact length of the row in counted tokens.
    pub length: u32,
    /// Where the row lies; layout-dependent.
    pub partition: PartitionName,
}

/// A row of context: next to a hit in its scope's timeline, no hit itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextRow {
    /// Record id.
    pub id: String,
    /// Event time, µs.
    #[serde(rename = "ts_us")]
    pub event_time_us: i64,
    /// Full text; empty in an answer without text.
    pub text: String,
    /// Who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
}

/// One record that matters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Record id, unique within its scope.
    pub id: String,
    /// The record's scope.
    #[serde(serialize_with = "scope_path")]
    pub scope: Scope,
    /// Event time, µs.
    #[serde(rename = "ts_us")]
    pub event_time_us: i64,
    /// The score that ranks. Scores of different modes are never compared.
    pub score: f64,
    /// How far it can be trusted.
    pub source_class: Option<SourceClass>,
    /// In [0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f32>,
    /// The document it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Tag names, ascending.
    pub tags: Vec<String>,
    /// What the hit carries after packing.
    pub carried: Carried,
    /// The full text, the summary in its place, or nothing.
    pub text: Option<String>,
    /// The best stretch of the full text, where the request asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
    /// Who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// JSON object as text, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub attributes: String,
    /// What the score was made of.
    pub signals: Signals,
    /// Rows before the hit, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<ContextRow>,
    /// Rows after the hit, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ContextRow>,
    /// Term by term, where the request asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<HitExplanation>,
}

fn scope_path<S: Serializer>(scope: &Scope, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&scope.path())
}

/// A query term under the statistics of the requested scopes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedTerm {
    /// The analysed term.
    pub term: String,
    /// Occurrences in the query.
    pub weight: f64,
    /// Live rows of the requested scopes that hold it.
    pub df: u64,
    /// Its inverse document frequency.
    pub idf: f64,
}

/// A clause of the query and what it became.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedClause {
    /// Name of its kind, as [`Clause::kind`] says it.
    ///
    /// [`Clause::kind`]: super::Clause::kind
    pub kind: &'static str,
    /// As it was given.
    pub text: String,
    /// What its score is multiplied by; 0 where it has none.
    pub weight: f64,
    /// Its terms, ascending; none of a prefix or fuzzy word.
    pub terms: Vec<String>,
    /// The terms that a prefix or fuzzy word stands for, ascending. Only the best of those that
    /// a row holds counts for it.
    pub expansions: Vec<PlannedTerm>,
}

/// What became of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPartition {
    /// Which one.
    pub name: PartitionName,
    /// Rows it holds in all.
    pub rows: u32,
    /// Searched, or why not.
    pub decision: Decision,
}

/// Layout-dependent counters and timings: no part of the answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Layout {
    /// Every partition of the snapshot.
    pub partitions: Vec<PlannedPartition>,
    /// What the sparse pass did.
    pub sparse: SparseCounters,
    /// What the dense pass did.
    pub dense: DenseCounters,
    /// Texts that were read to verify phrases.
    pub phrase_checks: u32,
    /// Stage and microseconds, in order.
    pub stages_us: Vec<(&'static str, u64)>,
}

/// Every decision of a retrieval, for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The channel or channels that answered; `None` = the latest rows.
    pub mode: Option<Mode>,
    /// Why this mode.
    pub reason: &'static str,
    /// Name and version of the analyzer.
    pub analyzer: String,
    /// Terms of the query, in full where `explain` was asked for, else empty.
    pub terms: Vec<PlannedTerm>,
    /// Clauses of the query with what they became, where `explain` was asked for, else empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<PlannedClause>,
    /// How many distinct terms the query has, those that filter or are one of several included.
    pub term_count: usize,
    /// The population that df, N and lengths come from.
    pub statistics: Statistics,
    /// Tag filters with their closures: a conjunction of disjunctions. Only with `explain`.
    pub tags: Vec<Vec<String>>,
    /// How the lists were fused, in hybrid mode.
    pub fusion: Option<Fusion>,
    /// Lengths of the sparse and the dense list that were fused.
    pub lists: Option<(usize, usize)>,
    /// Name of the vector space whose vectors were compared, where a vector was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// How the dense channel found its rows, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dense: Option<PlannedDense>,
    /// How age entered.
    pub recency: Recency,
    /// What depends on the layout.
    pub layout: Layout,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Best first in the total order.
    pub hits: Vec<Hit>,
    /// How exact they are.
    pub exactness: Exactness,
    /// What a partial answer had to leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPartition>,
    /// The instant that ages were counted from, µs.
    pub now_us: i64,
    /// The snapshot's commit seq.
    pub seq: u64,
    /// Tokens of all text that the hits carry, by the store's counter.
    pub text_tokens: u64,
    /// How the answer came about.
    pub plan: Plan,
    /// Wall time, µs.
    pub took_us: u64,
}
