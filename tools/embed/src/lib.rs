//! Turns a text into a vector of 256 numbers with a table that ships in the binary, so that
//! a first run is semantic without a download, a service or a key.
//!
//! ```text
//! text ──words──► lower case, no accents, punctuation apart
//!      ──pieces─► ids of the BERT uncased vocabulary, longest match first
//!      ──rows───► sum of table[id] * scale[id], brought to unit length
//! ```
//!
//! [`Embedder::builtin`] is the one most callers want; [`Embedder::embed`] fills a vector.
//! A text with no piece (empty, blank, only accents) has no vector.
//!
//! The same text gives the same bits on every machine: fixed order of summation, plain
//! IEEE f32 operations, Unicode tables of our own. [`ID`] names model and rules together;
//! a store keeps it beside its vectors, and anything that changes a vector changes it.
//!
//! What this crate does not do: files, threads, other models. A word is what its pieces say,
//! whatever stands around it; a real sentence model given by the caller does better.
//!
//! * `words`: where a word starts and ends · `vocabulary`: its pieces
//! * `npy`: the table's bytes · `embedder`: the vector · `unicode`: character classes
//!
//! The table is derived from sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): see
//! `model/NOTICE`.

mod embedder;
mod error;
mod npy;
mod unicode;
mod vocabulary;
mod words;

pub use embedder::{DIM, Embedder, ID};
pub use error::ModelError;
