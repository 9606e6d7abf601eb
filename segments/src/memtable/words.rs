//! Where do a memtable's integers live? In chunks of atomic words that never move.
//!
//! One writer fills words and then publishes them by a `Release` store elsewhere (a list's
//! count, a table's slot, the row count); readers start from that store with `Acquire`. So
//! plain words are read and written `Relaxed`: the publishing store orders them.
//!
//! Chunk k holds 2^(k + [`BASE_BITS`]) words, so a tiny memtable takes little and a large one
//! has few chunks; a word's place is a leading-zeros count.

use super::sync::{AtomicU32, OnceLock, Ordering, zeroed_words};

/// log2 of the words in the first chunk: 1 KiB. Models use two words, to cross chunks early.
const BASE_BITS: u32 = if cfg!(all(loom, test)) { 1 } else { 8 };
/// Together 2^36 words less the base: more than any row or address can name.
const CHUNKS: usize = if cfg!(all(loom, test)) { 6 } else { 28 };

/// A growing array of words with stable places.
#[derive(Debug)]
pub(super) struct Words {
    chunks: [OnceLock<Box<[AtomicU32]>>; CHUNKS],
}

/// Chunk and offset of element `index` where chunk k holds 2^(k + `base_bits`) elements.
#[inline]
pub(super) fn place(index: u64, base_bits: u32) -> (usize, usize) {
    let shifted = index + (1 << base_bits);
    let bit = 63 - shifted.leading_zeros();
    let offset = shifted - (1 << bit);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an offset inside a chunk in memory"
    )]
    let offset = offset as usize;
    ((bit - base_bits) as usize, offset)
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// The word at `index`, which the writer made room for before it was published.
    #[inline]
    fn word(&self, index: u64) -> &AtomicU32 {
        let (chunk, offset) = place(index, BASE_BITS);
        let chunk = self.chunks[chunk]
            .get()
            .expect("room is made before an index is published");
        &chunk[offset]
    }

    /// The `n` words from `index` on, where all of them lie in one chunk; most do.
    #[inline]
    pub(super) fn together(&self, index: u64, n: usize) -> Option<&[AtomicU32]> {
        let (chunk, offset) = place(index, BASE_BITS);
        self.chunks[chunk]
            .get()?
            .get(offset..offset.checked_add(n)?)
    }

    /// Makes room for words below `end`. Writer only.
    pub(super) fn reserve(&self, end: u64) {
        let Some(last) = end.checked_sub(1) else {
            return;
        };
        for chunk in (0..=place(last, BASE_BITS).0).rev() {
            if self.chunks[chunk].get().is_some() {
                return;
            }
            self.chunks[chunk].get_or_init(|| zeroed_words(1 << (BASE_BITS as usize + chunk)));
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> u32 {
        self.word(index).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn set(&self, index: u64, value: u32) {
        self.word(index).store(value, Ordering::Relaxed);
    }

    /// Reads what [`Words::publish`] wrote, and all that was written before it.
    #[inline]
    pub(super) fn observe(&self, index: u64) -> u32 {
        self.word(index).load(Ordering::Acquire)
    }

    /// Writes a word that makes everything written before it visible.
    #[inline]
    pub(super) fn publish(&self, index: u64, value: u32) {
        self.word(index).store(value, Ordering::Release);
    }

    pub(super) fn get_u64(&self, index: u64) -> u64 {
        join(self.get(index), self.get(index + 1))
    }

    pub(super) fn set_u64(&self, index: u64, value: u64) {
        let [low, high] = split(value);
        self.set(index, low);
        self.set(index + 1, high);
    }
}

/// Low and high word of `value`.
pub(super) fn split(value: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    let low = value as u32;
    let high = (value >> 32) as u32;
    [low, high]
}

/// The inverse of [`split`].
pub(super) fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Words handed out from the front; an address is the index of the first one and is never 0.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) words: Words,
    used: AtomicU32,
}

impl Arena {
    pub(super) fn new() -> Self {
        Self {
            words: Words::new(),
            used: AtomicU32::new(1),
        }
    }

    /// `n` zero words. Writer only.
    pub(super) fn alloc(&self, n: u32) -> u32 {
        let address = self.used.load(Ordering::Relaxed);
        let end = address
            .checked_add(n)
            .expect("a memtable is sealed long before 16 GiB");
        self.words.reserve(u64::from(end));
        self.used.store(end, Ordering::Relaxed);
        address
    }

    /// Bytes handed out.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.used.load(Ordering::Relaxed)) * 4
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_one_place_and_chunks_are_full() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index, BASE_BITS), expected, "{index}");
            expected.1 += 1;
            if expected.1 == 1 << (BASE_BITS as usize + expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(
            place(u64::from(u32::MAX) * 13, BASE_BITS).0 < CHUNKS,
            "columns of any row fit"
        );
    }

    #[test]
    fn words_keep_their_values_while_the_arena_grows() {
        let arena = Arena::new();
        let places: Vec<u32> = (0..3000).map(|n| arena.alloc(n % 5 + 2)).collect();
        for (n, at) in places.iter().enumerate() {
            arena.words.set_u64(u64::from(*at), u64::MAX - n as u64);
        }
        for (n, at) in places.iter().enumerate() {
            assert_eq!(arena.words.get_u64(u64::from(*at)), u64::MAX - n as u64);
        }
    }
}
