//! How are fewer than 128 postings written? (Most terms have one to three.)
//!
//! For each posting one varint: the gap (row - previous row - 1; the row itself for the first)
//! shifted left by one, plus 1 where the frequency is 1. Where it is not, another varint
//! follows: the frequency minus 2. A varint has seven bits a byte, lowest first; a set high
//! bit says that more follow.

use super::format::BLOCK_LEN;

/// Longest varint of a posting: a 33-bit value.
const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a run of postings that is not a block.
pub(super) const SHORT_BYTES_MAX: usize = (BLOCK_LEN - 1) * 2 * VARINT_BYTES_MAX;

/// Appends postings after row `before`. Rows ascend, frequencies are 1 or more.
pub(super) fn encode(before: Option<u32>, rows: &[u32], freqs: &[u32], out: &mut Vec<u8>) {
    let mut from = before.map_or(0, |row| u64::from(row) + 1);
    for (row, freq) in rows.iter().zip(freqs) {
        let gap = u64::from(*row) - from;
        push_varint(gap << 1 | u64::from(*freq == 1), out);
        if *freq != 1 {
            push_varint(u64::from(*freq - 2), out);
        }
        from = u64::from(*row) + 1;
    }
}

/// Reads postings one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortReader {
    /// Offset of the next posting.
    pub(super) at: usize,
    /// The row after the last one.
    from: u64,
}

impl ShortReader {
    /// At the first posting, which follows row `before`.
    pub(super) fn new(before: Option<u32>) -> Self {
        Self {
            at: 0,
            from: before.map_or(0, |row| u64::from(row) + 1),
        }
    }

    /// The next posting of `bytes`; `None` where they hold none below `rows_end`.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8], rows_end: u32) -> Option<(u32, u32)> {
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

/// Fills `rows` and `freqs`, which say how many postings there are, from all of `bytes`.
/// `None` where the bytes are not that many postings after `before` and below `rows_end`.
pub(super) fn decode(
    before: Option<u32>,
    bytes: &[u8],
    rows_end: u32,
    rows: &mut [u32],
    freqs: &mut [u32],
) -> Option<()> {
    let mut reader = ShortReader::new(before);
    for (row, freq) in rows.iter_mut().zip(freqs) {
        (*row, *freq) = reader.next(bytes, rows_end)?;
    }
    (reader.at == bytes.len()).then_some(())
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
