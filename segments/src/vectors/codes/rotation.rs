//! How is a vector turned so that no direction is special? By sign flips and Hadamard
//! transforms: n log n steps, a few KiB of state, and the same bits on every machine.
//!
//! ```text
//! d     = dimension rounded up to a multiple of 64; the rest is 0
//! block = the largest power of two that is at most d
//! x    *= 2^e, so that the largest component is about 1           exact; undone in the factor
//! four times, by turns over the first and the last block of x:
//!     flip the signs that the seed says, over all of x
//!     fast Walsh-Hadamard transform of the block, then times 1 / sqrt(block)
//! ```
//!
//! Every step is one rounded f32 operation in one fixed order, sums never fused with products.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::kernels::vectors::turn;

/// Turns of flips and transform.
pub(super) const ROUNDS: usize = 4;
/// Components are padded to a multiple of this: whole words of bits.
const PAD: usize = 64;

/// The dimension of a rotated vector.
pub(crate) fn padded_dim(dim: u32) -> usize {
    (dim as usize).next_multiple_of(PAD)
}

/// A rotation of one dimension and seed.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    padded: usize,
    block: usize,
    scale: f32,
    /// `[ROUNDS, padded]`: bit 31 or nothing.
    flips: Box<[u32]>,
}

impl Rotation {
    pub(super) fn new(dim: u32, seed: u64) -> Self {
        let padded = padded_dim(dim);
        // At least 64, so there is a power of two.
        let block = 1_usize << padded.ilog2();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a power of two of at most DIM_MAX is exact"
        )]
        let scale = 1.0 / (block as f32).sqrt();
        let words = (ROUNDS * padded / PAD) as u64;
        let signs = (0..words).map(|word| xxh3_64_with_seed(&word.to_le_bytes(), seed));
        let flips = signs.flat_map(|bits| (0..PAD).map(move |at| flip(bits, at)));
        Self {
            padded,
            block,
            scale,
            flips: flips.collect(),
        }
    }

    /// Components of a rotated vector.
    pub(super) fn padded(&self) -> usize {
        self.padded
    }

    /// Replaces `rotated` by `vector`, scaled by a power of two and rotated; gives the binary
    /// exponent that takes a length in `rotated` back to one of `vector`.
    ///
    /// # Panics
    /// If `vector` is longer than the dimension.
    pub(super) fn rotate(&self, vector: &[f32], rotated: &mut Vec<f32>) -> i32 {
        assert!(vector.len() <= self.padded, "a vector of another dimension");
        let exponent = exponent_of(vector);
        let scale = power_of_two(-exponent);
        rotated.clear();
        rotated.extend(vector.iter().map(|x| x * scale));
        rotated.resize(self.padded, 0.0);
        let last = self.padded - self.block;
        for (round, flips) in self.flips.chunks_exact(self.padded).enumerate() {
            let start = if round % 2 == 0 { 0 } else { last };
            turn(rotated, flips, start..start + self.block, self.scale);
        }
        exponent
    }
}

fn flip(bits: u64, at: usize) -> u32 {
    u32::from(bits >> at & 1 == 1) << 31
}

/// The exponent of the largest component, within what a power of two in f32 can undo.
fn exponent_of(vector: &[f32]) -> i32 {
    const MANTISSA_BITS: u32 = 23;
    let largest = vector.iter().fold(0_u32, |largest, x| {
        largest.max(x.to_bits() & (u32::MAX >> 1))
    });
    // At most 255.
    let biased = (largest >> MANTISSA_BITS).cast_signed();
    (biased - 127).clamp(-126, 126)
}

/// 2^`exponent`, for exponents that [`exponent_of`] gives.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent + 127).cast_unsigned() << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_products_stay() {
        for dim in [1, 63, 64, 65, 384, 768, 1000, 1024] {
            let rotation = Rotation::new(dim, 7);
            let value = |i: u32, k: f32| (i as f32 * k).sin();
            let a: Vec<f32> = (0..dim).map(|i| value(i, 0.7) + 0.1).collect();
            let b: Vec<f32> = (0..dim).map(|i| value(i, 1.3) - 0.2).collect();
            let (mut ra, mut rb) = (Vec::new(), Vec::new());
            let scale = rotation.rotate(&a, &mut ra) + rotation.rotate(&b, &mut rb);
            let dot = |x: &[f32], y: &[f32]| -> f64 {
                let products = x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y));
                products.sum()
            };
            let (before, after) = (dot(&a, &b), dot(&ra, &rb) * f64::from(scale).exp2());
            let size = (dot(&a, &a) * dot(&b, &b)).sqrt();
            assert!(
                (before - after).abs() < 1e-5 * size,
                "{dim}: {before} {after}"
            );
        }
    }

    #[test]
    fn one_component_is_spread_over_all() {
        for (dim, at) in [(384, 0), (384, 200), (384, 383), (64, 5), (1000, 999)] {
            let mut vector = vec![0.0; dim as usize];
            vector[at] = 3.0;
            let mut rotated = Vec::new();
            Rotation::new(dim, 1).rotate(&vector, &mut rotated);
            let largest = rotated.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
            let mean = 1.5 / (rotated.len() as f32).sqrt();
            assert!(largest < 6.0 * mean, "{dim} {at}: {largest} of {mean}");
        }
    }

    #[test]
    fn no_vector_leaves_the_range_of_f32() {
        let rotation = Rotation::new(384, 9);
        for x in [f32::MAX, f32::MIN, 1e-20, 1e-45, f32::MIN_POSITIVE, 0.0] {
            let mut rotated = Vec::new();
            let exponent = rotation.rotate(&[x; 384], &mut rotated);
            assert!(rotated.iter().all(|y| y.is_finite() && y.abs() < 100.0));
            assert!((-126..=126).contains(&exponent));
        }
    }
}
