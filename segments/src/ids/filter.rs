//! Can a segment tell at once that it does not hold an id?
//!
//! A split-block Bloom filter: 32 bytes a block, one bit in each of its eight words, about
//! ten bits an id; about one absent id in a hundred passes.
//! Source: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters" (2007).

use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::{Put, Take};

const BLOCK_BYTES: usize = 32;
const HEADER_BYTES: u64 = 8;
const BITS_PER_ID: u64 = 10;
/// Odd multipliers that pick one bit a word; any eight will do, these are Parquet's.
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Hash of an id inside a scope.
pub(crate) fn id_hash(scope: usize, id: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(id.as_bytes(), scope as u64)
}

/// Encodes the filter of `count` hashes.
pub(crate) fn encode_filter(count: u32, hashes: impl Iterator<Item = u64>) -> Vec<u8> {
    let blocks = (u64::from(count) * BITS_PER_ID)
        .div_ceil(BLOCK_BYTES as u64 * 8)
        .max(1);
    let blocks = u32::try_from(blocks).expect("rows fit 30 bits");
    let mut words = vec![[0_u32; 8]; blocks as usize];
    for hash in hashes {
        let block = &mut words[block_of(hash, blocks) as usize];
        for (word, bit) in block.iter_mut().zip(bits_of(hash)) {
            *word |= bit;
        }
    }
    let mut out = Vec::with_capacity(8 + words.len() * BLOCK_BYTES);
    out.put_u32(blocks);
    out.put_u32(0);
    words.iter().flatten().for_each(|word| out.put_u32(*word));
    out
}

fn block_of(hash: u64, blocks: u32) -> u32 {
    (((hash >> 32) * u64::from(blocks)) >> 32) as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half picks the bits, the high half the block"
)]
fn bits_of(hash: u64) -> [u32; 8] {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// The filter of a segment.
#[derive(Debug, Clone)]
pub(crate) struct IdFilter {
    section: Section,
    blocks: u32,
}

impl IdFilter {
    /// Opens the section.
    ///
    /// # Errors
    /// `Corrupt` where its length is not that of its blocks.
    pub(crate) fn open(section: &Section) -> Result<Self, SegmentError> {
        let header = section.get(0, 8)?;
        let blocks = Take::new(section, 0, &header).u32()?;
        if blocks == 0 || HEADER_BYTES + u64::from(blocks) * BLOCK_BYTES as u64 != section.len() {
            return Err(section.corrupt(
                0,
                format!("{blocks} filter blocks in {} bytes", section.len()),
            ));
        }
        Ok(Self {
            section: section.clone(),
            blocks,
        })
    }

    /// False only for ids that are not in the segment.
    ///
    /// # Errors
    /// Damage in the filter.
    pub(crate) fn may_hold(&self, hash: u64) -> Result<bool, SegmentError> {
        let at = HEADER_BYTES + u64::from(block_of(hash, self.blocks)) * BLOCK_BYTES as u64;
        let block = self.section.get(at, BLOCK_BYTES)?;
        let (words, _) = block.as_chunks();
        let mut bits = words.iter().zip(bits_of(hash));
        Ok(bits.all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_passes_and_few_others_do() {
        let hashes: Vec<u64> = (0..5000).map(|i| id_hash(3, &format!("id-{i}"))).collect();
        let bytes = encode_filter(5000, hashes.iter().copied());
        assert!(bytes.len() < 5000 * 11 / 8);
        let filter = IdFilter::open(&Section::in_memory("id_filter", bytes)).expect("whole");
        assert!(
            hashes
                .iter()
                .all(|hash| filter.may_hold(*hash).expect("intact"))
        );
        let others = (0..5000).filter(|i| {
            filter
                .may_hold(id_hash(4, &format!("id-{i}")))
                .expect("intact")
        });
        assert!(others.count() < 150);
    }
}
