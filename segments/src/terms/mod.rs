//! Which terms does a segment hold, and where are their postings?

mod automaton;
mod blocks;
mod dictionary;
mod format;
mod index;
mod reader;
mod walk;
mod writer;

pub(crate) use dictionary::{FstBuilder, FstDictionary, Keys};
pub(crate) use reader::Terms;
pub(crate) use writer::{TermsBytes, TermsWriter};

#[cfg(test)]
mod tests;
