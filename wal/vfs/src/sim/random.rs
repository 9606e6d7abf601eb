//! Where does a simulation's randomness come from? From its seed, and from nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::traits::Entropy;

/// A stream of numbers that a seed and a purpose determine.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    seed: u64,
    drawn: u64,
}

impl Stream {
    /// Streams of one seed with different purposes are independent.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        Self {
            seed: xxh3_64_with_seed(&purpose.to_le_bytes(), seed),
            drawn: 0,
        }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        xxh3_64_with_seed(&self.drawn.to_le_bytes(), self.seed)
    }

    /// A number below `bound`; the bias of the remainder does not matter here.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let below = self.next() % (bound.max(1) as u64);
        usize::try_from(below).unwrap_or(0)
    }

    /// True half of the time.
    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// Entropy that repeats itself: equal seeds and equal calls give equal bytes.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededEntropy {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            drawn: AtomicU64::new(0),
        }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
            let bytes = xxh3_64_with_seed(&drawn.to_le_bytes(), self.seed).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
