//! Goal: what a person types ends as the help and the issue promise: output, exit code, and
//! what is in the store afterwards.
//!
//! Mechanism: the built binary over temporary directories. The shared data is looked for in
//! CHRONOLITH_DATA, else beside the workspace; without it those tests say `skipped:`.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and make files as a user would"
)]

mod backup;
mod bad_input;
mod basics;
mod damage;
mod quality;
mod quickstart;
mod repair;
mod round_trip;
mod spaces;
mod support;
mod syntax;
