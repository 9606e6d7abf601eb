//! Bytes of the term dictionary, section `terms`.
//!
//! ```text
//! +----------------------+----------------+------------+
//! | FST: term -> ordinal | entry 12 a term | trailer 16 |
//! +----------------------+----------------+------------+
//! ```
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | FST (`tantivy_fst` version 2) | see trailer | - | the section's checksums; every node by `automaton`, ordinals by `FstDictionary` |
//! | entry: rows that hold the term | 4 | 1 to the segment's rows | `PostingLists::open` |
//! | entry, 1 row: the row, its frequency | 4 + 4 | below rows; 1 or more | `List::tail` |
//! | entry, 2 to 127 rows: offset in `postings`, then length | 5 + 3 | inside the section | `PostingLists::open`, `Section::get` |
//! | entry, 128 rows or more: offset in `postings_skip` | 8 | inside the section | `Section::get` |
//! | trailer: terms | 4 | equals the FST's count | `Terms::open` |
//! | trailer: zeros | 4 | 0 | `Terms::open` |
//! | trailer: bytes of the FST | 8 | with entries and trailer = the section | `Terms::open` |

use crate::error::SegmentError;
use crate::postings::{ListPlace, u32_at};

/// Bytes of a term's entry.
pub(super) const ENTRY_BYTES: usize = 12;
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 16;
/// Least rows of a term whose list is cut into blocks.
const LONG_DF_MIN: u32 = 128;
/// Bits of a short list's offset; above them is its length.
const OFFSET_BITS: u32 = 40;

const _: () = assert!(4 + 8 == ENTRY_BYTES && 4 + 4 + 8 == TRAILER_BYTES);
// A file is no longer than an offset can say.
const _: () = assert!(crate::format::FILE_BYTES_MAX <= 1 << OFFSET_BITS);

/// Writes an entry.
pub(super) fn encode(df: u32, place: ListPlace) -> Result<[u8; ENTRY_BYTES], SegmentError> {
    let word = match place {
        ListPlace::One { row, freq } => u64::from(row) | u64::from(freq) << 32,
        ListPlace::Short { offset, bytes } => {
            if offset >= 1 << OFFSET_BITS || bytes >= 1 << (64 - OFFSET_BITS) {
                return Err(SegmentError::Limit(format!(
                    "{bytes} bytes of postings at {offset}"
                )));
            }
            offset | u64::from(bytes) << OFFSET_BITS
        }
        ListPlace::Long { skip_offset } => skip_offset,
    };
    let mut entry = [0; ENTRY_BYTES];
    entry[..4].copy_from_slice(&df.to_le_bytes());
    entry[4..].copy_from_slice(&word.to_le_bytes());
    Ok(entry)
}

/// Reads an entry; whether it fits the segment is checked when the list is opened.
pub(super) fn decode(entry: &[u8]) -> (u32, ListPlace) {
    let df = u32_at(entry, 0);
    let (low, high) = (u32_at(entry, 4), u32_at(entry, 8));
    let word = u64::from(low) | u64::from(high) << 32;
    let place = match df {
        0..2 => ListPlace::One {
            row: low,
            freq: high,
        },
        2..LONG_DF_MIN => ListPlace::Short {
            offset: word & ((1 << OFFSET_BITS) - 1),
            bytes: high >> (OFFSET_BITS - 32),
        },
        LONG_DF_MIN.. => ListPlace::Long { skip_offset: word },
    };
    (df, place)
}

/// Writes the trailer.
pub(super) fn trailer(terms: u32, fst_bytes: u64) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..4].copy_from_slice(&terms.to_le_bytes());
    bytes[8..].copy_from_slice(&fst_bytes.to_le_bytes());
    bytes
}
