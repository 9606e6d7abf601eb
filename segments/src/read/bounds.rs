//! What bounds the postings of a term, whatever the statistics?

/// Pairs of (frequency, length) that bound a term's postings, whatever the statistics: every
/// posting has at most the frequency and at least the length of one of them. The Pareto front
/// of the real pairs, or something above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermBounds {
    pairs: [(u32, u32); Self::PAIRS_MAX],
    count: u8,
}

impl TermBounds {
    /// Most pairs.
    pub const PAIRS_MAX: usize = 4;

    /// True of any postings.
    pub const UNKNOWN: Self = Self::one(u32::MAX, 0);

    /// True of no postings at all.
    pub const NONE: Self = Self::one(0, u32::MAX);

    /// One pair.
    pub const fn one(freq: u32, length: u32) -> Self {
        let mut pairs = [(0, 0); Self::PAIRS_MAX];
        pairs[0] = (freq, length);
        Self { pairs, count: 1 }
    }

    /// The pairs, at least one.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs[..usize::from(self.count)]
    }

    /// True where a posting of this frequency and length is under one of the pairs.
    pub fn covers(&self, freq: u32, length: u32) -> bool {
        let under = |pair: &(u32, u32)| freq <= pair.0 && length >= pair.1;
        self.pairs().iter().any(under)
    }

    /// Widens the bounds to what is under this pair too. Where there is no place for it, the
    /// pair with the nearest length is widened.
    pub fn add(&mut self, freq: u32, length: u32) {
        if self.covers(freq, length) {
            return;
        }
        let mut kept = 0_u8;
        for at in 0..usize::from(self.count) {
            let pair = self.pairs[at];
            if pair.0 > freq || pair.1 < length {
                self.pairs[usize::from(kept)] = pair;
                kept += 1;
            }
        }
        if usize::from(kept) < Self::PAIRS_MAX {
            self.pairs[usize::from(kept)] = (freq, length);
            self.count = kept + 1;
            return;
        }
        let by_length = |at: &usize| self.pairs[*at].1.abs_diff(length);
        let nearest = (0..Self::PAIRS_MAX).min_by_key(by_length).unwrap_or(0);
        let pair = self.pairs[nearest];
        self.count = kept - 1;
        self.pairs[nearest] = self.pairs[usize::from(self.count)];
        // Now there is a place.
        self.add(pair.0.max(freq), pair.1.min(length));
    }
}
