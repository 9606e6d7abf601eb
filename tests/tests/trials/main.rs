//! Sequences that broke public engines of this kind: each ends here with the right answer or a
//! named error, and nothing is lost. Every test names its origin.
//!
//! Read-only opens that write (kuzudb/kuzu/issues/2276) are in the `process` suite; damaged
//! structures that panic (cberner/redb/issues/1333) in `corruption`.

mod crashes;
mod house;
mod input;
mod rankings;
mod space;
