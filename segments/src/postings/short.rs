//! How are fewer than 128 postings written? (Most terms have one to three.)
//!
//! Fewer than 16 are varints. For each posting one: the gap (row - previous row - 1; the row
//! itself for the first) shifted left by one, plus 1 where the frequency is 1. Where it is not,
//! another varint follows: the frequency minus 2. A varint has seven bits a byte, lowest first;
//! a set high bit says that more follow.
//!
//! From 16 on a byte leads: 255 says that varints follow, where they take far less. Else it is
//! the width of the gaps, a byte for the width of the frequencies minus 1 follows, both 0 to
//! 32, then the gaps and then those frequencies, each lot lowest bits first and filled up to a
//! byte with zeros. (Fixed widths have no branch that depends on the data: a list is decoded
//! several times as fast.)

use super::format::BLOCK_LEN;

/// Fewer postings than this are always varints.
const PACKED_MIN: usize = 16;
/// Leads varints among lists that could be packed.
const VARINTS: u8 = u8::MAX;
/// Packed postings may take so many bytes more for each 16 of them: they are read faster.
const PACKED_WORTH: usize = 1;
/// Longest varint of a posting: a 33-bit value.
const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a run of postings that is not a block.
pub(super) const SHORT_BYTES_MAX: usize = 1 + (BLOCK_LEN - 1) * 2 * VARINT_BYTES_MAX;

/// Appends postings after row `before`: less than 128. Rows ascend, frequencies are 1 or more.
pub(super) fn encode(before: Option<u32>, rows: &[u32], freqs: &[u32], out: &mut Vec<u8>) {
    if rows.len() < PACKED_MIN {
        return push_varints(before, rows, freqs, out);
    }
    let start = out.len();
    out.push(VARINTS);
    push_varints(before, rows, freqs, out);
    let packed = Packed::of(before, rows, freqs);
    let worth = rows.len() * PACKED_WORTH / PACKED_MIN;
    if packed.bytes(rows.len()) <= out.len() - start + worth {
        out.truncate(start);
        packed.push(before, rows, freqs, out);
    }
}

fn push_varints(before: Option<u32>, rows: &[u32], freqs: &[u32], out: &mut Vec<u8>) {
    for (gap, freq) in gaps(before, rows).zip(freqs) {
        push_varint(u64::from(gap) << 1 | u64::from(*freq == 1), out);
        if *freq != 1 {
            push_varint(u64::from(*freq - 2), out);
        }
    }
}

/// Rows less the one before and 1.
fn gaps(before: Option<u32>, rows: &[u32]) -> impl Iterator<Item = u32> {
    let mut from = before.map_or(0, |row| row + 1);
    rows.iter().map(move |row| {
        let gap = row - from;
        from = row.saturating_add(1);
        gap
    })
}

/// Widths of packed gaps and frequencies, bits.
#[derive(Debug, Clone, Copy)]
struct Packed {
    gaps: u8,
    freqs: u8,
}

impl Packed {
    fn of(before: Option<u32>, rows: &[u32], freqs: &[u32]) -> Self {
        let width = |bits: u32| u8::try_from(32 - bits.leading_zeros()).expect("at most 32");
        Self {
            gaps: width(gaps(before, rows).fold(0, |bits, gap| bits | gap)),
            freqs: width(freqs.iter().fold(0, |bits, freq| bits | (freq - 1))),
        }
    }

    /// What leads packed postings says; `None` where it is none.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let ([gaps, freqs], rest) = bytes.split_first_chunk()?;
        let packed = Self {
            gaps: *gaps,
            freqs: *freqs,
        };
        (packed.gaps <= 32 && packed.freqs <= 32).then_some((packed, rest))
    }

    /// Bytes of the gaps, or the frequencies, of `len` postings.
    fn lot(width: u8, len: usize) -> usize {
        (len * usize::from(width)).div_ceil(8)
    }

    /// Bytes of `len` postings with what leads them.
    fn bytes(self, len: usize) -> usize {
        2 + Self::lot(self.gaps, len) + Self::lot(self.freqs, len)
    }

    fn push(self, before: Option<u32>, rows: &[u32], freqs: &[u32], out: &mut Vec<u8>) {
        out.extend([self.gaps, self.freqs]);
        pack(gaps(before, rows), self.gaps, out);
        pack(freqs.iter().map(|freq| freq - 1), self.freqs, out);
    }
}

fn pack(values: impl Iterator<Item = u32>, width: u8, out: &mut Vec<u8>) {
    let (mut held, mut held_bits) = (0_u64, 0);
    for value in values {
        held |= u64::from(value) << held_bits;
        held_bits += u32::from(width);
        while held_bits >= 8 {
            out.push(held.to_le_bytes()[0]);
            held >>= 8;
            held_bits -= 8;
        }
    }
    if held_bits > 0 {
        out.push(held.to_le_bytes()[0]);
    }
}

/// Most bytes of packed gaps, or frequencies.
const LOT_BYTES_MAX: usize = (BLOCK_LEN - 1) * 4;
/// Twice as much and more, in a power of two.
const ROOM_BYTES: usize = 1024;
const _: () = assert!(LOT_BYTES_MAX < ROOM_BYTES / 2);

/// Calls `each` with as many values of `width` bits, at most 32, as `out` has places: less than
/// 128. Bytes that are not there are zeros.
#[inline]
fn unpack(bytes: &[u8], width: u8, out: &mut [u32], mut each: impl FnMut(u32) -> u32) {
    let mask = u32::MAX.checked_shr(32 - u32::from(width)).unwrap_or(0);
    // Room enough that no word can lie outside, so that none is checked.
    let mut room = [0; ROOM_BYTES];
    room[..bytes.len()].copy_from_slice(bytes);
    let mut bit = 0;
    for value in out {
        let at = bit / 8 % (ROOM_BYTES / 2);
        let word = room[at..].first_chunk().expect("half of the room is left");
        *value = each(low_half(u64::from_le_bytes(*word) >> (bit % 8)) & mask);
        bit += usize::from(width);
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the half is cut out")]
fn low_half(word: u64) -> u32 {
    word as u32
}

/// Reads varints' postings one after the other.
#[derive(Debug, Clone, Copy)]
struct ShortReader {
    /// Offset of the next posting.
    at: usize,
    /// The row after the last one.
    from: u64,
}

impl ShortReader {
    /// At the first posting, which follows row `before`.
    fn new(before: Option<u32>) -> Self {
        Self {
            at: 0,
            from: before.map_or(0, |row| u64::from(row) + 1),
        }
    }

    /// The next posting of `bytes`; `None` where they hold none below `rows_end`.
    #[inline]
    fn next(&mut self, bytes: &[u8], rows_end: u32) -> Option<(u32, u32)> {
        let head = take_varint(bytes, &mut self.at)?;
        // Both terms are below 2^35: no overflow.
        let row = u32::try_from(self.from + (head >> 1))
            .ok()
            .filter(|row| *row < rows_end)?;
        let freq = match head & 1 {
            1 => 1,
            _ => u32::try_from(take_varint(bytes, &mut self.at)? + 2).ok()?,
        };
        self.from = u64::from(row) + 1;
        Some((row, freq))
    }
}

/// Fills `rows` and `freqs`, which say how many postings there are, from all of `bytes`; true
/// where every frequency is seen to be 1. `None` where the bytes are not that many postings
/// after `before` and below `rows_end`.
pub(super) fn decode(
    before: Option<u32>,
    bytes: &[u8],
    rows_end: u32,
    rows: &mut [u32],
    freqs: &mut [u32],
) -> Option<bool> {
    let bytes = match bytes {
        bytes if rows.len() < PACKED_MIN => bytes,
        [VARINTS, bytes @ ..] => bytes,
        bytes => return decode_packed(before, bytes, rows_end, rows, freqs),
    };
    let mut reader = ShortReader::new(before);
    for (row, freq) in rows.iter_mut().zip(freqs) {
        (*row, *freq) = reader.next(bytes, rows_end)?;
    }
    (reader.at == bytes.len()).then_some(false)
}

fn decode_packed(
    before: Option<u32>,
    bytes: &[u8],
    rows_end: u32,
    rows: &mut [u32],
    freqs: &mut [u32],
) -> Option<bool> {
    let (packed, lots) = Packed::read(bytes)?;
    if bytes.len() != packed.bytes(rows.len()) {
        return None;
    }
    let (gaps, counts) = lots.split_at(Packed::lot(packed.gaps, rows.len()));
    // 127 gaps of 32 bits: no overflow.
    let mut from = before.map_or(0, |row| u64::from(row) + 1);
    unpack(gaps, packed.gaps, rows, |gap| {
        from += u64::from(gap) + 1;
        low_half(from - 1)
    });
    if from > u64::from(rows_end) {
        return None;
    }
    if packed.freqs == 0 {
        freqs.fill(1);
        return Some(true);
    }
    let mut largest = 0;
    unpack(counts, packed.freqs, freqs, |count| {
        largest = largest.max(count);
        count.wrapping_add(1)
    });
    (largest < u32::MAX).then_some(false)
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits are cut out")]
fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// `None` at the end of the bytes and for more than five of them.
#[inline]
fn take_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    let mut value = u64::from(first & 0x7f);
    if first < 0x80 {
        return Some(value);
    }
    for i in 1..VARINT_BYTES_MAX {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(rows: &[u32], freqs: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(None, rows, freqs, &mut out);
        let (mut found, mut found_freqs) = (vec![0; rows.len()], vec![0; rows.len()]);
        let decoded = decode(None, &out, 1 << 30, &mut found, &mut found_freqs);
        assert!(decoded.is_some());
        assert_eq!((&*found, &*found_freqs), (rows, freqs));
        out
    }

    #[test]
    fn the_bytes_of_each_kind_are_these() {
        // Varints: gap * 2 + 1 where the frequency is 1; else gap * 2, frequency - 2.
        assert_eq!(bytes(&[3, 100, 101], &[1, 5, 1]), [7, 0xc0, 1, 3, 1]);
        // Packed: gaps of 2 bits, all frequencies 1.
        let rows: Vec<u32> = (0..16).map(|i| i * 4).collect();
        let packed = bytes(&rows, &[1; 16]);
        assert_eq!(packed, [2, 0, 0xfc, 0xff, 0xff, 0xff]);
        // Frequencies 1 and 2: one bit each behind the gaps.
        let freqs: Vec<u32> = (0..16).map(|i| 1 + i % 2).collect();
        let packed = bytes(&rows, &freqs);
        assert_eq!(packed, [2, 1, 0xfc, 0xff, 0xff, 0xff, 0xaa, 0xaa]);
        // One far row among near ones: varints, 255 first.
        let mut far: Vec<u32> = (0..15).collect();
        far.push(1 << 29);
        let varints = bytes(&far, &[1; 16]);
        assert_eq!(varints[..16], [vec![255], vec![1; 15]].concat());
        assert_eq!(varints[16..], [0xe3, 0xff, 0xff, 0xff, 3]);
        // The longest.
        let rows: Vec<u32> = (0..127).map(|i| i * 8).collect();
        assert_eq!(
            bytes(&rows, &[1; 127]).len(),
            2 + (127_usize * 3).div_ceil(8)
        );
    }

    #[test]
    fn packed_bytes_of_another_length_or_width_are_refused() {
        let rows: Vec<u32> = (0..16).map(|i| i * 4).collect();
        let whole = bytes(&rows, &[1; 16]);
        let (mut found, mut freqs) = ([0; 16], [0; 16]);
        let mut decodes =
            |bytes: &[u8], end| decode(None, bytes, end, &mut found, &mut freqs).is_some();
        assert!(decodes(&whole, 61));
        assert!(!decodes(&whole, 60), "the last row is 60");
        assert!(!decodes(&whole[..whole.len() - 1], 61));
        assert!(!decodes(&[&*whole, &[0]].concat(), 61));
        for (gaps, counts) in [(33, 0), (2, 33), (254, 0)] {
            let mut wide = whole.clone();
            (wide[0], wide[1]) = (gaps, counts);
            assert!(!decodes(&wide, 61));
        }
        assert!(!decodes(&[], 61));
    }
}
