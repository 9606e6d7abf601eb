//! Bytes of a segment's tags.
//!
//! A tag's ordinal is its place among the segment's tag names, ascending by bytes.
//!
//! ```text
//! section tags      | FST: name -> ordinal | trailer 16 |
//! section tag_sets  | set of tag 0 | ... | set of the untagged rows | end of each set, 8 | trailer 16 |
//! section row_tags  | ordinals, packed | counts, packed | directory 12 per 64 rows | trailer 16 |
//! ```
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | FST (`tantivy_fst` version 2) | rest of the section | - | the section's checksums; every node by `automaton`, ordinals by `FstDictionary` |
//! | `tags` trailer: tags; zeros | 4 + 12 | equals the FST's count | `Tags::open` |
//! | set: roaring, portable format, optimised | - | rows of the segment | `Tags::set`: containers counted first, parsed with validation, no byte left, largest row |
//! | end of a set, from the section's start | 8 | ascending, the last = start of the ends | `Tags::set` |
//! | `tag_sets` trailer: tags, rows; zeros | 4 + 4 + 8 | as in `tags`, the segment | `Tags::open` |
//! | ordinals of all rows' tags, each row's ascending, `ordinal width` bits, lowest first | ceil(entries x width / 8) | below tags | `RowTags::ordinals` |
//! | counts: tags of each of 64 rows, the block's width in bits, lowest first | 8 x width | 0 past the last row | `RowTags::ordinals` |
//! | directory: entries of all rows before | 4 | up to entries | `RowTags::ordinals` |
//! | directory: offset of the block's counts | 4 | inside the counts | `RowTags::ordinals` |
//! | directory: width of the block's counts; zeros | 1 + 3 | 0 to 32 | `RowTags::ordinals` |
//! | `row_tags` trailer: rows, entries, bytes of counts | 4 + 4 + 4 | parts add up to the section | `RowTags::open` |
//! | `row_tags` trailer: ordinal width; zeros | 1 + 3 | bits of the largest ordinal | `RowTags::open` |

/// Bytes of each section's trailer.
pub(super) const TRAILER_BYTES: usize = 16;
/// Bytes of a set's end.
pub(super) const END_BYTES: usize = 8;
/// Rows of a directory entry.
pub(super) const BLOCK_ROWS: u32 = 64;
/// Bytes of a directory entry.
pub(super) const ENTRY_BYTES: usize = 12;
/// Bytes of a block's counts for each bit of their width.
pub(super) const BYTES_A_BIT: u32 = 8;
/// Widest packed value, bits.
pub(super) const WIDTH_MAX: u8 = 32;

const _: () = assert!(4 + 12 == TRAILER_BYTES);
const _: () = assert!(4 + 4 + 4 + 1 + 3 == TRAILER_BYTES && 4 + 4 + 1 + 3 == ENTRY_BYTES);
const _: () = assert!(BLOCK_ROWS / 8 == BYTES_A_BIT);

/// A trailer of three numbers and a byte, zero where a section has fewer.
pub(super) fn trailer(numbers: [u32; 3], byte: u8) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes[12] = byte;
    bytes
}

/// Bits that hold every value up to `max`.
#[expect(clippy::cast_possible_truncation, reason = "at most 32")]
pub(super) fn width_of(max: u32) -> u8 {
    (u32::BITS - max.leading_zeros()) as u8
}

/// Bytes of `count` values of `width` bits. At most 2^32 values of 32 bits: no overflow.
pub(super) fn packed_bytes(count: u64, width: u8) -> u64 {
    (count * u64::from(width)).div_ceil(8)
}

/// Appends values of at most `width` bits, lowest first.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lowest byte is cut out"
)]
pub(super) fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0);
    for value in values {
        debug_assert!(width_of(*value) <= width);
        bits |= u64::from(*value) << held;
        held += u32::from(width);
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
}

/// Value `index` of values of `width` bits that start at bit `first` of `bytes`; bits past the
/// end read as 0.
#[expect(clippy::cast_possible_truncation, reason = "masked to at most 32 bits")]
pub(super) fn unpack(bytes: &[u8], first: usize, width: u8, index: usize) -> u32 {
    debug_assert!(width <= WIDTH_MAX);
    let bit = first + index * usize::from(width);
    let taken = bytes.get(bit / 8..).unwrap_or(&[]).iter().take(5).rev();
    let word = taken.fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    (word >> (bit % 8) & ((1 << width) - 1)) as u32
}
