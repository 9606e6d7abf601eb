//! Which terms does a segment hold, and where are their postings?

mod automaton;
mod dictionary;
mod format;
mod reader;
mod writer;

pub(crate) use dictionary::{Dictionary, FstBuilder, FstDictionary, Keys};
pub(crate) use reader::{TermInfo, Terms};
pub(crate) use writer::{TermsBytes, TermsWriter};

#[cfg(test)]
mod tests;
