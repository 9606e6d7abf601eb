//! Which rows carry a tag, and which tags does a row carry?

mod format;
mod reader;
mod row_tags;
mod writer;

pub(crate) use reader::{Tags, TagsWalk};
pub(crate) use writer::TagsWriter;

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests have few rows")]
mod tests;
