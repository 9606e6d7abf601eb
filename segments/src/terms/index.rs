//! In which block may a key be, and how is that written?

use super::format::{BLOCK_TERMS, BUCKET_PLACES, Shape, place_of};

const PLACES: usize = BUCKET_PLACES as usize;
/// The lowest bit of each of eight bytes.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// The bytes of the hash index over keys with these hashes, in order of the keys.
pub(super) fn encode(shape: &Shape, hashes: &[u64]) -> Vec<u8> {
    let (width, bucket_bytes) = (shape.number_bytes(), shape.bucket_bytes());
    let mut bytes = vec![0; shape.buckets as usize * bucket_bytes];
    for (ordinal, hash) in (0_u32..).zip(hashes) {
        let (mut bucket, tag) = place_of(*hash, shape.buckets);
        let (at, place) = loop {
            let at = bucket as usize * bucket_bytes;
            let tags = &bytes[at..at + PLACES];
            if let Some(free) = tags.iter().position(|tag| *tag == 0) {
                break (at, free);
            }
            // There are more places than keys.
            bucket = (bucket + 1) % shape.buckets;
        };
        bytes[at + place] = tag;
        let at = at + PLACES + place * width;
        let block = ordinal / BLOCK_TERMS;
        bytes[at..at + width].copy_from_slice(&block.to_le_bytes()[..width]);
    }
    bytes
}

/// One bucket as a search sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket<'a> {
    bytes: &'a [u8],
    tags: [u64; 2],
    width: usize,
}

impl<'a> Bucket<'a> {
    /// `bytes` is one bucket long.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], width: usize) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Self {
            bytes,
            tags: [word(0), word(8)],
            width,
        }
    }

    /// True where a place is free, so that no later bucket holds a key of this one.
    #[inline]
    pub(super) fn ends_search(&self) -> bool {
        zero_bytes(self.tags[0]) | zero_bytes(self.tags[1]) != 0
    }

    /// The numbers of blocks at places with this tag.
    #[inline]
    pub(super) fn with_tag(self, tag: u8) -> impl Iterator<Item = u32> + use<'a> {
        let wanted = u64::from(tag) * ONES;
        let mut found = [0, 1].map(|half| zero_bytes(self.tags[half] ^ wanted));
        std::iter::from_fn(move || {
            let half = usize::from(found[0] == 0);
            let bits = found[half];
            if bits == 0 {
                return None;
            }
            found[half] = bits & (bits - 1);
            let place = half * 8 + bits.trailing_zeros() as usize / 8;
            let at = PLACES + place * self.width;
            let mut number = [0; 4];
            number[..self.width].copy_from_slice(&self.bytes[at..at + self.width]);
            Some(u32::from_le_bytes(number))
        })
    }
}

/// The high bit of each byte that is 0, and no other.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & !HIGHS) + !HIGHS) | word) & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn zero_bytes_are_found_as_by_looking(bytes in prop::array::uniform8(prop_oneof![
            Just(0_u8), Just(1), Just(0x80), Just(0x7f), any::<u8>(),
        ])) {
            let mut expected = [0; 8];
            for (mark, byte) in expected.iter_mut().zip(bytes) {
                *mark = if byte == 0 { 0x80 } else { 0 };
            }
            prop_assert_eq!(zero_bytes(u64::from_le_bytes(bytes)), u64::from_le_bytes(expected));
        }
    }
}
