//! What do random operations and questions look like? Few words, ids, scopes and times, so
//! that ties, replacements and neighbours are the rule.
//!
//! * [`Rng`]: repeatable randomness.
//! * [`Op`]: one operation of a batch, for an engine and for a model alike.
//! * [`World`]: makes records, batches and asks.

mod ask;
mod op;
mod rng;
mod world;

pub use ask::Ask;
pub use op::{Op, batch_of};
pub use rng::Rng;
pub use world::{BASE_US, DIM, SCOPES, World, scope, setup};
