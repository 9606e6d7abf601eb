//! Bytes of posting lists.
//!
//! A list of one posting has no bytes here: its row and frequency are in the term's entry
//! (`terms::format`). A list of less than 128 postings stands in `postings` as `short` says. A
//! longer one is cut into blocks of 128:
//!
//! ```text
//! section postings       | block 0 | block 1 | ... | tail: df % 128         |
//!                          ^data_offset                        data_bytes long
//! section postings_skip  | header 32 | entry 12 of block 0 | entry 12 of block 1 | ...
//! ```
//!
//! The tail has no entry. The rank of posting `j` of block `b` is `128 * b + j`.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | block: 128 gaps to the row before, minus 1 (`BitPacker4x`, strictly sorted) | 16 x row width | - | `List::block_rows`: rows ascend and end at the entry's last row |
//! | block: 128 frequencies minus 1 (`BitPacker4x`) | 16 x frequency width | - | every value is allowed |
//! | tail, short list: see `short` | up to 10 a posting | - | `short`: rows ascend, no byte is left |
//! | header: offset of block 0 in `postings` | 5 | inside the section | [`Section::get`], with each block |
//! | header: zero | 1 | 0 | `Header::decode` |
//! | header: bounds of the tail, as in an entry; zeros where it is empty | 2 | - | scrub |
//! | header: bytes of blocks and tail | 4 | - | `List::block`, `List::tail` |
//! | header: postings | 4 | 128 to the segment's rows | `PostingLists::open` |
//! | header: up to 4 bounds of the list, each a frequency and a length; zeros after them | 4 x (2 + 2) | a frequency of 1 or more | `Header::decode`; scrub |
//! | entry: last row of the block | 4 | below the segment's rows, ascending | `List::block_rows` |
//! | entry: offset of the block from block 0 | 4 | up to data bytes | `List::block` |
//! | entry: row width, bits | 1 | 0 to 32 | `List::block` |
//! | entry: frequency width, bits; 0 = all are 1 | 1 | 0 to 32 | `List::block` |
//! | entry: bounds of the block: largest frequency, least length | 1 + 1 | - | scrub |
//!
//! Bounds stay above the truth: a frequency whose bits are all set says "any", a length whose
//! bits are all set "that or more".
//!
//! [`Section::get`]: crate::format::Section::get

use crate::read::TermBounds;

/// Postings of a block.
pub(crate) const BLOCK_LEN: usize = 128;
/// The same, as a rank.
pub(crate) const BLOCK_RANKS: u32 = 128;
/// Bytes of 128 values of one bit.
pub(crate) const BYTES_A_BIT: u32 = 16;
/// Widest value of a block, bits.
pub(crate) const WIDTH_MAX: u8 = 32;

/// Bytes of a long list's header.
pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes of a block's entry.
pub(crate) const ENTRY_BYTES: usize = 12;

/// Where the bounds start in a header.
const PAIRS_AT: usize = 16;
/// Largest frequency of a term's only row that its entry holds.
pub(crate) const ONE_FREQ_MAX: u32 = 255;

const _: () = assert!(5 + 1 + 2 + 4 + 4 == PAIRS_AT);
const _: () = assert!(PAIRS_AT + TermBounds::PAIRS_MAX * (2 + 2) == HEADER_BYTES);
const _: () = assert!(4 + 4 + 1 + 1 + 1 + 1 == ENTRY_BYTES);
const _: () = assert!(crate::format::FILE_BYTES_MAX <= 1 << (8 * 5));
const _: () = assert!(BLOCK_LEN == BLOCK_RANKS as usize && BLOCK_LEN / 8 == BYTES_A_BIT as usize);

/// Where a term's postings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPlace {
    /// The only posting.
    One {
        /// Its row.
        row: u32,
        /// Its frequency.
        freq: u32,
    },
    /// 2 to 127 postings; see `short`.
    Short {
        /// Offset in section `postings`.
        offset: u64,
        /// Length.
        bytes: u32,
    },
    /// 128 postings or more.
    Long {
        /// Offset of the header in section `postings_skip`.
        skip_offset: u64,
    },
}

/// What the dictionary knows of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermInfo {
    /// Rows of the segment that hold the term.
    pub(crate) df: u32,
    /// What bounds its postings. The length of a term's only row is exact from 1 to 254.
    pub(crate) bounds: TermBounds,
    /// Where its postings are.
    pub(crate) place: ListPlace,
}

/// Largest frequency and least length of some postings, as a block's entry has them.
pub(crate) type BytePair = [u8; 2];

/// What such a pair says.
#[inline]
pub(crate) fn widen([freq, length]: BytePair) -> (u32, u32) {
    let freq = match freq {
        u8::MAX => u32::MAX,
        freq => u32::from(freq),
    };
    (freq, u32::from(length))
}

/// What the skip data says of a whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) offset: u64,
    pub(super) bytes: u32,
    pub(super) df: u32,
    pub(super) tail: BytePair,
    pub(super) pairs: [(u16, u16); TermBounds::PAIRS_MAX],
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..5].copy_from_slice(&self.offset.to_le_bytes()[..5]);
        bytes[6..8].copy_from_slice(&self.tail);
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.df.to_le_bytes());
        let (places, _) = bytes[PAIRS_AT..].as_chunks_mut::<4>();
        for (place, (freq, length)) in places.iter_mut().zip(self.pairs) {
            place[..2].copy_from_slice(&freq.to_le_bytes());
            place[2..].copy_from_slice(&length.to_le_bytes());
        }
        bytes
    }

    /// `None` where a byte is set that must be zero, or a bound is none.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let offset = u64::from(u32_at(bytes, 0)) | u64::from(bytes[4]) << 32;
        let mut pairs = [(0, 0); TermBounds::PAIRS_MAX];
        let (places, _) = bytes[PAIRS_AT..].as_chunks::<4>();
        for (pair, [a, b, c, d]) in pairs.iter_mut().zip(places) {
            *pair = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
        }
        // Pairs, at least one, then zeros.
        let used = pairs.iter().take_while(|pair| pair.0 > 0).count();
        let sound = bytes[5] == 0 && used > 0 && pairs[used..].iter().all(|pair| *pair == (0, 0));
        sound.then_some(Self {
            offset,
            bytes: u32_at(bytes, 8),
            df: u32_at(bytes, 12),
            tail: [bytes[6], bytes[7]],
            pairs,
        })
    }

    /// What bounds the list.
    pub(super) fn bounds(&self) -> TermBounds {
        let mut bounds = TermBounds::NONE;
        for (freq, length) in self.pairs {
            let freq = match freq {
                0 => break,
                u16::MAX => u32::MAX,
                freq => u32::from(freq),
            };
            bounds.add(freq, u32::from(length));
        }
        bounds
    }
}

/// What the skip data says of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) last_row: u32,
    pub(super) offset: u32,
    pub(super) row_width: u8,
    pub(super) freq_width: u8,
    pub(super) bounds: BytePair,
}

impl Entry {
    pub(super) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0..4].copy_from_slice(&self.last_row.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8] = self.row_width;
        bytes[9] = self.freq_width;
        bytes[10..12].copy_from_slice(&self.bounds);
        bytes
    }

    #[inline]
    pub(super) fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            last_row: u32_at(bytes, 0),
            offset: u32_at(bytes, 4),
            row_width: bytes[8],
            freq_width: bytes[9],
            bounds: [bytes[10], bytes[11]],
        }
    }

    /// Bytes of the block's rows. Widths are at most 255: no overflow.
    pub(super) fn row_bytes(&self) -> u32 {
        u32::from(self.row_width) * BYTES_A_BIT
    }

    /// Bytes of the block.
    pub(super) fn block_bytes(&self) -> u32 {
        self.row_bytes() + u32::from(self.freq_width) * BYTES_A_BIT
    }
}

/// Four bytes of a fixed-width field. The caller asked for the field's whole structure, so
/// `bytes` reaches past `at + 4`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at..].first_chunk();
    u32::from_le_bytes(*four.expect("a whole field was asked for"))
}

/// A place in a block, or the count of its postings, as a rank.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "at most 128")]
pub(super) fn rank_of(place: usize) -> u32 {
    debug_assert!(place <= BLOCK_LEN);
    place as u32
}
