//! How do packed values become a byte each, eight at a time?
//!
//! Values of `width` bits lie one behind the other, lowest bit first, so eight of them fill
//! `width` whole bytes. Where none is wider than a byte they fit one word, and three steps move
//! them apart: halves, quarters, eighths. Wider ones are cut from a word four at a time.

/// Widest value that is read: four of them fit a word behind a part of a byte.
pub(crate) const WIDTH_MAX: u32 = 14;
/// Bytes that must follow the values: words are read whole.
pub(crate) const PAD_BYTES: usize = 8;

/// Fills `out` with one byte a value: the value plus `least`, or 255 where that is more.
///
/// * `bits`: the values from their first bit on, and [`PAD_BYTES`] more.
/// * `width`: 1 to [`WIDTH_MAX`].
///
/// # Panics
/// For a wider value, or too few bits.
pub(crate) fn unpack(bits: &[u8], width: u32, least: u64, out: &mut [u8]) {
    assert!((1..=WIDTH_MAX).contains(&width));
    assert!(bits.len() >= (out.len() * width as usize).div_ceil(8) + PAD_BYTES);
    let fits = least.saturating_add(low(width)) <= u64::from(u8::MAX);
    let done = match fits {
        true => narrow(bits, width, least, out),
        false => wide(bits, width, least, out),
    };
    naive(bits, width, least, done, out);
}

/// The plain form, from value `first` on: the twin of the others, and what fills their ends.
fn naive(bits: &[u8], width: u32, least: u64, first: usize, out: &mut [u8]) {
    for (at, byte) in out.iter_mut().enumerate().skip(first) {
        let bit = at * width as usize;
        let value = (word(bits, bit / 8) >> (bit % 8)) & low(width);
        *byte = capped(value.saturating_add(least));
    }
}

/// All eights of values that are a byte at most with `least`; says how many values that were.
fn narrow(bits: &[u8], width: u32, least: u64, out: &mut [u8]) -> usize {
    let halves = low(4 * width);
    let quarters = low(2 * width) * 0x0000_0001_0000_0001;
    let eighths = low(width) * 0x0001_0001_0001_0001;
    let least = least * 0x0101_0101_0101_0101;
    let (eights, _) = out.as_chunks_mut::<8>();
    for (at, eight) in eights.iter_mut().enumerate() {
        let all = word(bits, at * width as usize);
        let all = all & halves | (all >> (4 * width) & halves) << 32;
        let all = all & quarters | (all >> (2 * width) & quarters) << 16;
        let all = all & eighths | (all >> width & eighths) << 8;
        *eight = (all + least).to_le_bytes();
    }
    out.len() / 8 * 8
}

/// As [`narrow`], of values up to [`WIDTH_MAX`] bits.
fn wide(bits: &[u8], width: u32, least: u64, out: &mut [u8]) -> usize {
    let (mask, step) = (low(width), width as usize);
    let (eights, _) = out.as_chunks_mut::<8>();
    for (at, eight) in eights.iter_mut().enumerate() {
        let (first, second) = (at * step, at * step * 8 + 4 * step);
        let words = [word(bits, first), word(bits, second / 8) >> (second % 8)];
        for (place, byte) in eight.iter_mut().enumerate() {
            let value = words[place / 4] >> (place % 4 * step) & mask;
            *byte = capped(value.saturating_add(least));
        }
    }
    out.len() / 8 * 8
}

/// The lowest `width` bits, of at most 64.
fn low(width: u32) -> u64 {
    u64::MAX >> (u64::BITS - width)
}

#[inline]
fn word(bits: &[u8], at: usize) -> u64 {
    let bytes = bits[at..].first_chunk();
    u64::from_le_bytes(*bytes.expect("the length was checked"))
}

#[inline]
fn capped(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_form_reads_what_the_plain_one_reads(
            width in 1..=WIDTH_MAX,
            least in prop_oneof![0..300_u64, Just(u64::MAX), any::<u64>()],
            count in 0..100_usize,
            seed in prop::collection::vec(any::<u8>(), 100 * 14 / 8 + 1 + PAD_BYTES),
        ) {
            let bits = &seed[..(count * width as usize).div_ceil(8) + PAD_BYTES];
            let (mut plain, mut read) = (vec![0; count], vec![1; count]);
            naive(bits, width, least, 0, &mut plain);
            unpack(bits, width, least, &mut read);
            prop_assert_eq!(&read, &plain);
            let done = wide(bits, width, least, &mut read);
            prop_assert_eq!(&read[..done], &plain[..done]);
        }
    }

    #[test]
    #[should_panic(expected = "bits.len()")]
    fn too_few_bits_are_refused() {
        unpack(&[0; 8], 3, 0, &mut [0; 3]);
    }
}
