//! Bytes of posting lists.
//!
//! A list of one posting has no bytes here: its row and frequency are in the term's entry
//! (`terms::format`). A list of less than 128 postings is a run of varints in `postings`. A
//! longer one is cut into blocks of 128:
//!
//! ```text
//! section postings       | block 0 | block 1 | ... | tail: df % 128 varints |
//!                          ^data_offset                        data_bytes long
//! section postings_skip  | header 16 | entry 12 of block 0 | entry 12 of block 1 | ...
//! ```
//!
//! The tail has no entry. The rank of posting `j` of block `b` is `128 * b + j`.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | block: 128 gaps to the row before, minus 1 (`BitPacker4x`, strictly sorted) | 16 x row width | - | `List::block_rows`: rows ascend and end at the entry's last row |
//! | block: 128 frequencies minus 1 (`BitPacker4x`) | 16 x frequency width | - | every value is allowed |
//! | tail, short list: see `short` | up to 10 a posting | - | `short::decode`: rows ascend, no byte is left |
//! | header: offset of block 0 in `postings` | 8 | inside the section | [`Section::get`], with each block |
//! | header: bytes of blocks and tail | 4 | - | `List::block`, `List::tail` |
//! | header: flags; bit 0 = block bounds in section `postings_bounds` | 1 | 0 in format 0 | `PostingLists::open` |
//! | header: zeros | 3 | 0 | `PostingLists::open` |
//! | entry: last row of the block | 4 | below the segment's rows, ascending | `List::block_rows` |
//! | entry: offset of the block from block 0 | 4 | up to data bytes | `List::block` |
//! | entry: row width, bits | 1 | 0 to 32 | `List::block` |
//! | entry: frequency width, bits; 0 = all are 1 | 1 | 0 to 32 | `List::block` |
//! | entry: number of bounds | 2 | 0 in format 0 | `List::block` |
//!
//! [`Section::get`]: crate::format::Section::get

/// Postings of a block.
pub(crate) const BLOCK_LEN: usize = 128;
/// The same, as a rank.
pub(crate) const BLOCK_RANKS: u32 = 128;
/// Bytes of 128 values of one bit.
pub(crate) const BYTES_A_BIT: u32 = 16;
/// Widest value of a block, bits.
pub(crate) const WIDTH_MAX: u8 = 32;

/// Bytes of a long list's header.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of a block's entry.
pub(crate) const ENTRY_BYTES: usize = 12;

const _: () = assert!(8 + 4 + 1 + 3 == HEADER_BYTES);
const _: () = assert!(4 + 4 + 1 + 1 + 2 == ENTRY_BYTES);
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
    /// 2 to 127 postings as varints.
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

/// What the skip data says of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) last_row: u32,
    pub(super) offset: u32,
    pub(super) row_width: u8,
    pub(super) freq_width: u8,
    pub(super) bounds: u16,
}

impl Entry {
    pub(super) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0..4].copy_from_slice(&self.last_row.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8] = self.row_width;
        bytes[9] = self.freq_width;
        bytes[10..12].copy_from_slice(&self.bounds.to_le_bytes());
        bytes
    }

    /// `bytes` is one entry long.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        Self {
            last_row: u32_at(bytes, 0),
            offset: u32_at(bytes, 4),
            row_width: bytes[8],
            freq_width: bytes[9],
            bounds: u16::from_le_bytes([bytes[10], bytes[11]]),
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
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
