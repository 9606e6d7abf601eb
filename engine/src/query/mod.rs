//! How is a request answered? The stages in order, over one snapshot.
//!
//! ```text
//! request -> check -> views -> statistics, terms -> prune -> sparse -> dense -> fuse
//!                                                                         |
//!                                   response <- pack <- read <- context <-+
//! ```
//!
//! Every stage is a module that knows nothing of the others; [`run`] strings them together.
//! Only what is returned has its text read.

mod analyse;
mod bm25;
mod clauses;
mod context;
mod dense;
mod explain;
mod fuse;
mod latest;
mod lookup;
mod order;
mod pack;
mod prune;
mod read;
mod recency;
mod request;
mod response;
mod run;
mod snippet;
mod sparse;
mod view;

pub use bm25::Statistics;
pub use clauses::{
    CLAUSES_MAX, Clause, DISTANCE_MAX, EXPANSIONS_MAX, PHRASE_CHECKS_MAX, SyntaxError,
    SyntaxProblem, TextQuery, WEIGHT_MAX,
};
pub use dense::{CANDIDATES_MAX, DenseCounters, DenseWay, PROBE_ROWS_MIN, PlannedDense};
pub use pack::Carried;
pub use prune::Decision;
pub use request::{
    BETA_SUM_MAX, CONTEXT_MAX, DENSE_WEIGHT_DEFAULT, Fusion, K_MAX, Mode, PackPolicy, Recency,
    Request, SCOPES_MAX, SNIPPET_CHARS_MAX, TAG_FILTERS_MAX, TAU_DEFAULT_US, TERMS_MAX,
    TEXT_BYTES_MAX, THREADS_MAX, TokenBudget,
};
pub use response::{
    ContextRow, Exactness, Hit, HitExplanation, Layout, MissingPartition, Plan, PlannedClause,
    PlannedPartition, PlannedTerm, Response, Signals, TermPart,
};
pub use snippet::Snippet;
pub use sparse::SparseCounters;
pub use view::PartitionName;

pub(crate) use run::{Asked, run};
pub(crate) use view::Source;
