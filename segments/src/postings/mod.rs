//! Which rows hold a term, how often, and how many of them lie in a row range?
//!
//! Good for reading a stretch of rows in order and for counting it: a count decodes at most
//! two blocks. Not made for single rows out of order.

mod add;
mod bounds;
mod cursor;
mod decoded;
mod format;
mod list;
mod long_cursor;
mod short;
mod short_cursor;
mod writer;

pub(crate) use cursor::PostingsCursor;
pub(crate) use format::{BLOCK_LEN, ListPlace, ONE_FREQ_MAX, TermInfo, u32_at};
pub(crate) use list::PostingLists;
pub(crate) use writer::{Added, PostingsWriter};

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "lists of tests are short"
)]
mod tests;
