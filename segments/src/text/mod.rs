//! Where is the text of a row, and how is it made small?
//!
//! Rows stand in blocks that are compressed each for itself; a row never spans two. Two such
//! pairs of sections exist: distilled (summaries) and detailed (text and all that is read
//! only for rows that are returned).
//!
//! ```text
//! block, raw:   (length varint, row)*        row: see `rows`
//! section:      block block block ...        kept raw where compression does not pay
//! index:        first rows | offsets, end | raw lengths       three packed columns
//! ```
//!
//! | field | range | verified by |
//! |---|---|---|
//! | first rows | ascending from 0 | bisection stays inside; the row is looked for in its block |
//! | offsets | ascending, inside the section | [`TextBlocks::row`] |
//! | raw length | up to 2 MiB, before anything is allocated; that of the decompressed block | [`TextBlocks::row`] |
//!
//! A compression dictionary belongs to one segment, is trained on its rows alone and goes
//! with it: what is erased from the rows must not live on in the dictionary.

mod dictionary;
mod reader;
mod rows;
mod walk;
mod writer;

pub(crate) use dictionary::{SAMPLE_BYTES, SAMPLES_BYTES, TextDictionary, train};
pub(crate) use reader::TextBlocks;
pub(crate) use rows::{
    Detailed, check_detailed, check_distilled, decode_detailed, decode_distilled, encode_detailed,
    encode_distilled,
};
pub(crate) use walk::TextWalk;
pub(crate) use writer::TextWriter;

/// Largest raw block: one row of the longest text, attributes, names and impacts.
const RAW_BYTES_MAX: usize = 2 << 20;

const _: () = {
    use crate::impacts::{IMPACT_TOKEN_BYTES_MAX, IMPACTS_MAX};
    use crate::limits::{ATTRIBUTES_BYTES_MAX, NAME_BYTES_MAX, SUMMARY_BYTES_MAX, TEXT_BYTES_MAX};
    // A token's length and its weight are varints of at most three bytes.
    const IMPACTS_BYTES_MAX: usize = IMPACTS_MAX * (IMPACT_TOKEN_BYTES_MAX + 6);
    assert!(
        TEXT_BYTES_MAX + ATTRIBUTES_BYTES_MAX + 2 * NAME_BYTES_MAX + IMPACTS_BYTES_MAX + 64
            <= RAW_BYTES_MAX
    );
    assert!(SUMMARY_BYTES_MAX + 64 <= RAW_BYTES_MAX);
};
