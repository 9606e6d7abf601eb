//! Where does randomness come from? From the seed on the command line, and from nowhere else.

/// splitmix64: small, and good enough to choose bits and cut points.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// A sequence of its own for every seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = (bound as u64).max(1);
        usize::try_from(self.bits() % bound).unwrap_or(0)
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// `count` lower-case letters.
    pub fn letters(&mut self, count: usize) -> String {
        (0..count)
            .map(|_| char::from(b'a' + u8::try_from(self.below(26)).unwrap_or(0)))
            .collect()
    }
}
