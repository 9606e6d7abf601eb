//! How fast is Chronolith beside the engines that a user would pick instead?
//!
//! ```text
//!  search (parent)                                   one child for each engine and job
//!    corpus -> build, unless the store is there  -->  build: records in, figures to build.json
//!           -> measure                           -->  measure: warm-up, passes, hits, counters
//!           -> open, warm and cold               -->  open: first hit
//!    oracle: exact answers for a sample of the queries
//!    summary -> table, JSON, SVG
//! ```
//!
//! * [`corpus`]: records and queries of the shared generator. [`clock`]: what is measured.
//! * [`searcher`]: each engine as its own manual shows it. [`work`]: what a child does.
//! * [`oracle`]: Chronolith's answers, checked. [`summary`], [`table`], [`plot`]: what is shown.
//! * [`vectors`]: the same manner for search by vector, with engines of its own.
//! * [`commits`]: durable commits of one record, and groups of them.
//!
//! A child has one engine in it and nothing else, so that its memory and its processor time
//! are that engine's.

mod clock;
mod commits;
mod committer;
mod corpus;
mod oracle;
mod plot;
mod search;
mod searcher;
mod summary;
mod table;
mod vectors;
mod work;

pub use self::commits::{Commits, run as commits};
pub use self::search::{Search, run as search};
pub use self::vectors::{Vectors, Work as VectorsWork, run as vectors, work as vectors_work};
pub use self::work::{Work, run as work};
