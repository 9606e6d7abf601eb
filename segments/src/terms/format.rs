//! Bytes of the term dictionary, section `terms`.
//!
//! ```text
//! +---------------------+------------------------+-------------------+------------+
//! | hash index: buckets | blocks of 16 terms:    | where each block  | trailer 32 |
//! | of 16 places        | entries, keys          | starts, 4 each    |            |
//! +---------------------+------------------------+-------------------+------------+
//! ```
//!
//! Terms ascend by their bytes. A look-up hashes the term, finds the number of its block in one
//! bucket (mostly) and compares keys in that block; prefixes and merges walk the blocks.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | bucket: a tag for each of 16 places | 1 | 0 = free, else bits of the hash | a tag that lies costs a look into a block |
//! | bucket: block for each of 16 places | 1 to 4, by the count of blocks | below the count | `Terms::block`; `Terms::get` compares the keys there |
//! | block: offset in `postings` of its first short list | 5 | inside the section | `Section::get`, with the list |
//! | block: an entry for each term | 5 | see below | see below |
//! | block: keys, each a head, the rest of the two lengths, the bytes after the shared ones | - | up to 1,024 bytes, ascending | `Keys::step`, `TermWalk` |
//! | key's head: low half = bytes shared with the key before, high half = bytes that follow; 15 = more as a varint | 1 | shared up to the key before | `Keys::step` |
//! | start of each block, then the end of the last, from the first block's start | 4 | ascending | `Terms::open` |
//! | trailer: terms; buckets; bytes of the blocks | 4 + 4 + 4 | add up to the section; more places than terms | `Shape::of` |
//! | trailer: zeros; seed of the hash; zeros | 4 + 8 + 8 | 0; any; 0 | `Shape::of` |
//!
//! An entry's bits, lowest first:
//!
//! | class | fields | verified by |
//! |---|---|---|
//! | 0, one row: 2 bits | its frequency 8, its length 8 (255 = that or more), the row 22; in a segment of more than 2^22 rows no length, and the row 30 | `PostingsCursor::open`; scrub |
//! | 1, short list: 2 bits | rows 7, bytes 11; largest frequency 8 and least length 8 (255 = that or more) | `PostingLists::open_short`; scrub |
//! | 2, long list: 2 bits | offset in `postings_skip` / 4, 38 | `PostingLists::open_long` |
//!
//! Short lists of a block's terms lie one after the other, so that their offsets are sums. A
//! list is long from 128 rows on; a single row with a frequency above 255 is a short list.
//!
//! The hash is XXH3-64 of the key with the trailer's seed: its upper 32 bits, times the
//! buckets and over 2^32, are the bucket, its lowest 8 bits (1 for 0) the tag. A key that finds
//! its bucket full stands in the next one that is not, after the last the first; so a bucket
//! with a free place ends a search.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::postings::{Added, ONE_FREQ_MAX};
use crate::read::TermBounds;

/// Terms of a block.
pub(super) const BLOCK_TERMS: u32 = 16;
/// Bytes of a term's entry.
pub(super) const ENTRY_BYTES: usize = 5;
/// Bytes of a block's offset in `postings`.
pub(super) const BASE_BYTES: usize = 5;
/// Bytes of a block's start.
pub(super) const START_BYTES: usize = 4;
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 32;
/// Places of a bucket.
pub(super) const BUCKET_PLACES: u32 = 16;
/// A bucket's share of places that a writer fills, in eighths.
const LOAD_EIGHTHS: u64 = 7;
/// Largest length that a key's head holds; one more says that a varint follows.
pub(super) const HEAD_MAX: usize = 14;
/// Longest key, bytes.
pub(super) const KEY_BYTES_MAX: usize = 1024;

const CLASS_BITS: u32 = 2;
/// Bits of a row in a segment with few rows, whose lengths stand beside them, and with many.
const ROW_BITS: u32 = 22;
const ROW_BITS_WIDE: u32 = 30;
const FREQ_BITS: u32 = 8;
const LENGTH_BITS: u32 = 8;
const DF_BITS: u32 = 7;
const BYTES_BITS: u32 = 11;
const SKIP_UNIT: u64 = 4;
const SKIP_BITS: u32 = 38;

const ENTRY_BITS: u32 = 40;
const _: () = assert!(ENTRY_BITS as usize == 8 * ENTRY_BYTES);
const _: () = assert!(CLASS_BITS + FREQ_BITS + LENGTH_BITS + ROW_BITS == ENTRY_BITS);
const _: () = assert!(CLASS_BITS + FREQ_BITS + ROW_BITS_WIDE == ENTRY_BITS);
const _: () = assert!(CLASS_BITS + DF_BITS + BYTES_BITS + 8 + 8 <= ENTRY_BITS);
const _: () = assert!(CLASS_BITS + SKIP_BITS == ENTRY_BITS);
const _: () = assert!(ONE_FREQ_MAX < 1 << FREQ_BITS);
const _: () = assert!(crate::limits::ROWS_MAX <= 1 << ROW_BITS_WIDE);
const _: () = assert!(crate::format::FILE_BYTES_MAX <= 1 << (8 * BASE_BYTES));
const _: () = assert!(4 + 4 + 4 + 4 + 8 + 8 == TRAILER_BYTES);

// The length is a byte of the fields.
const _: () = assert!(FREQ_BITS == 8 && LENGTH_BITS == 8);

/// True for a segment whose entries have no place for lengths.
pub(super) fn is_wide(rows: usize) -> bool {
    rows > 1 << ROW_BITS
}

/// A term's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// The only posting, and the length of its row as far as that is known: up to 255, which
    /// stands for longer ones too; 0 where it is not.
    One { row: u32, freq: u32, length: u8 },
    /// Less than 128 postings; `bounds` = largest frequency, least length, both up to 255.
    Short {
        df: u32,
        bytes: u32,
        bounds: [u8; 2],
    },
    /// A list of blocks.
    Long { skip_offset: u64 },
}

impl Entry {
    /// The entry of a list that was just written; `None` where it passes a limit.
    pub(super) fn of(added: &Added) -> Option<Self> {
        match *added {
            Added::One { row, freq, length } => Some(Self::One {
                row,
                freq,
                length: u8::try_from(length).unwrap_or(u8::MAX),
            }),
            Added::Short { df, bytes, bounds } => (df < 1 << DF_BITS && bytes < 1 << BYTES_BITS)
                .then_some(Self::Short { df, bytes, bounds }),
            Added::Long { skip_offset } => (skip_offset.is_multiple_of(SKIP_UNIT)
                && skip_offset / SKIP_UNIT < 1 << SKIP_BITS)
                .then_some(Self::Long { skip_offset }),
        }
    }

    pub(super) fn encode(self, wide: bool) -> [u8; ENTRY_BYTES] {
        let bits = match self {
            Self::One { row, freq, .. } if wide => {
                (u64::from(freq) | u64::from(row) << FREQ_BITS) << CLASS_BITS
            }
            Self::One { row, freq, length } => {
                let row = u64::from(row) << (FREQ_BITS + LENGTH_BITS);
                (u64::from(freq) | u64::from(length) << FREQ_BITS | row) << CLASS_BITS
            }
            Self::Short { df, bytes, bounds } => {
                let [freq, length] = bounds.map(u64::from);
                let fields = u64::from(df)
                    | u64::from(bytes) << DF_BITS
                    | (freq | length << 8) << (DF_BITS + BYTES_BITS);
                1 | fields << CLASS_BITS
            }
            Self::Long { skip_offset } => 2 | (skip_offset / SKIP_UNIT) << CLASS_BITS,
        };
        let mut bytes = [0; ENTRY_BYTES];
        bytes.copy_from_slice(&bits.to_le_bytes()[..ENTRY_BYTES]);
        bytes
    }

    /// Reads an entry; whether it fits the segment is checked when its list is opened. `None`
    /// for a class that there is not.
    #[inline]
    pub(super) fn decode(bytes: &[u8; ENTRY_BYTES], wide: bool) -> Option<Self> {
        let bits = u40(bytes);
        let fields = bits >> CLASS_BITS;
        let cut = |from: u32, width: u32| {
            let field = fields >> from & ((1 << width) - 1);
            u32::try_from(field).expect("at most 30 bits")
        };
        match bits & ((1 << CLASS_BITS) - 1) {
            0 if wide => Some(Self::One {
                row: cut(FREQ_BITS, ROW_BITS_WIDE),
                freq: cut(0, FREQ_BITS),
                length: 0,
            }),
            0 => Some(Self::One {
                row: cut(FREQ_BITS + LENGTH_BITS, ROW_BITS),
                freq: cut(0, FREQ_BITS),
                length: fields.to_le_bytes()[1],
            }),
            1 => Some(Self::Short {
                df: cut(0, DF_BITS),
                bytes: cut(DF_BITS, BYTES_BITS),
                bounds: [bytes[2] >> 4 | bytes[3] << 4, bytes[3] >> 4 | bytes[4] << 4],
            }),
            2 => Some(Self::Long {
                skip_offset: fields * SKIP_UNIT,
            }),
            _ => None,
        }
    }

    /// Bytes in `postings` between the block's offset and its next short list.
    #[inline]
    pub(super) fn short_bytes(bytes: &[u8; ENTRY_BYTES]) -> u64 {
        let bits = u40(bytes);
        let is_short = u64::from(bits & ((1 << CLASS_BITS) - 1) == 1);
        (bits >> (CLASS_BITS + DF_BITS) & ((1 << BYTES_BITS) - 1)) * is_short
    }
}

// The two bytes of the bounds start inside a byte.
const _: () = assert!((CLASS_BITS + DF_BITS + BYTES_BITS) == 2 * 8 + 4);

/// Five bytes as a number.
#[inline]
pub(super) fn u40(bytes: &[u8; ENTRY_BYTES]) -> u64 {
    let mut word = [0; 8];
    word[..ENTRY_BYTES].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// What a short list's two bytes say of its postings.
pub(super) fn short_bounds(bounds: [u8; 2]) -> TermBounds {
    let [freq, length] = bounds;
    let freq = match freq {
        u8::MAX => u32::MAX,
        freq => u32::from(freq),
    };
    TermBounds::one(freq, u32::from(length))
}

/// Where the parts of the section are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) terms: u32,
    pub(super) buckets: u32,
    pub(super) blocks_bytes: u32,
    pub(super) seed: u64,
}

impl Shape {
    /// Buckets for so many terms: at most seven eighths full, and never without a free place.
    pub(super) fn buckets_for(terms: u32) -> u32 {
        let places = u64::from(terms) * 8 / LOAD_EIGHTHS + 1;
        let buckets = places.div_ceil(u64::from(BUCKET_PLACES));
        u32::try_from(buckets).expect("less than a bucket a term")
    }

    /// What the trailer of a section of `section_bytes` says; `None` where the parts do not
    /// add up.
    pub(super) fn of(trailer: &[u8; TRAILER_BYTES], section_bytes: u64) -> Option<Self> {
        let word = |at: usize| {
            let bytes = [0, 1, 2, 3].map(|i| trailer[at + i]);
            u32::from_le_bytes(bytes)
        };
        let shape = Self {
            terms: word(0),
            buckets: word(4),
            blocks_bytes: word(8),
            seed: u64::from(word(16)) | u64::from(word(20)) << 32,
        };
        let places = u64::from(shape.buckets) * u64::from(BUCKET_PLACES);
        let sound = shape.encode() == *trailer
            && places > u64::from(shape.terms)
            && shape.section_bytes() == section_bytes;
        sound.then_some(shape)
    }

    pub(super) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[0..4].copy_from_slice(&self.terms.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.buckets.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.blocks_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seed.to_le_bytes());
        bytes
    }

    /// Bytes of a block's number in the hash index.
    #[inline]
    pub(super) fn number_bytes(&self) -> usize {
        match self.blocks() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            0x1_0001..=0x100_0000 => 3,
            _ => 4,
        }
    }

    #[inline]
    pub(super) fn bucket_bytes(&self) -> usize {
        BUCKET_PLACES as usize * (1 + self.number_bytes())
    }

    #[inline]
    pub(super) fn blocks(&self) -> u32 {
        self.terms.div_ceil(BLOCK_TERMS)
    }

    /// Terms of a block, whose number is below the count of blocks.
    #[inline]
    pub(super) fn terms_of(&self, block: u32) -> u32 {
        (self.terms - block * BLOCK_TERMS).min(BLOCK_TERMS)
    }

    /// Where the blocks start. All of these are sums of products of 32 bits and a few: no
    /// overflow.
    #[inline]
    pub(super) fn blocks_at(&self) -> u64 {
        u64::from(self.buckets) * self.bucket_bytes() as u64
    }

    /// Where the starts of the blocks start.
    #[inline]
    pub(super) fn starts_at(&self) -> u64 {
        self.blocks_at() + u64::from(self.blocks_bytes)
    }

    fn section_bytes(&self) -> u64 {
        let starts = (u64::from(self.blocks()) + 1) * START_BYTES as u64;
        self.starts_at() + starts + TRAILER_BYTES as u64
    }
}

/// The hash of a key.
#[inline]
pub(super) fn hash_of(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// Bucket and tag of a hash.
#[inline]
pub(super) fn place_of(hash: u64, buckets: u32) -> (u32, u8) {
    let bucket = ((hash >> 32) * u64::from(buckets)) >> 32;
    let bucket = u32::try_from(bucket).expect("below the buckets");
    (bucket, hash.to_le_bytes()[0].max(1))
}
