//! What is a query to the codes?
//!
//! Its rotated components, which are about normal, are rounded to the nearest of 2^[`PLANES`]
//! levels: odd multiples of half a step, where the step is that of the best even quantiser of
//! a normal distribution (Max 1960, table 2). What remains is an integer, the product of levels
//! and signs, which takes XOR and a count of bits a plane, and is the same on every machine.
//!
//! The rounding adds to the variance of an estimate 0.037 of the query's, where the code's own
//! is 0.57: that is why the planes are no more.

use super::code::{power_of_two, sum_of_products, sum_of_squares};
use crate::kernels::vectors::{CodeKernel, Planes};

/// Codes of a step of a scan: what is between kernel and estimates stays in the first cache.
const BLOCK: usize = 1024;
/// Planes of bits of a query.
const PLANES: usize = 3;
/// Levels of a component.
const PLACES: f32 = 8.0;
const _: () = assert!(1 << PLANES == 8, "as many as the planes tell apart");
/// Step of the quantiser, in standard deviations.
const STEP: f32 = 0.586;

/// 2^23: f32 has no halves from there on.
const TO_WHOLE: f32 = 8_388_608.0;

/// A query as the codes of one store are compared with it. Made by [`super::Coder::query`].
#[derive(Debug, Clone)]
pub struct CodeQuery {
    planes: Planes,
    kernel: CodeKernel,
    /// Times a sum of levels and signs it is a product with the query.
    scale: f64,
    seed: u64,
}

impl CodeQuery {
    /// `rotated`: whole words of 64 components; `exponent`: what its rotation gave.
    pub(super) fn new(rotated: &[f32], exponent: i32, seed: u64) -> Self {
        let step = STEP * deviation(rotated);
        // Without branches or calls, so that whole registers are rounded at once.
        let per_step = if step > 0.0 { 1.0 / step } else { 0.0 };
        let places = rotated.iter().map(|x| {
            let place = (x * per_step).clamp(-PLACES / 2.0 + 0.25, PLACES / 2.0 - 0.25);
            // The sum's last bits are the nearest whole number, 0 to 7.
            (place + (PLACES - 1.0) / 2.0 + TO_WHOLE).to_bits() & ((1 << PLANES) - 1)
        });
        let levels: Vec<i8> = places.map(level_of).collect();
        Self {
            planes: Planes::new(&levels, PLANES),
            kernel: CodeKernel::best(),
            scale: scale(rotated, &levels) * power_of_two(exponent),
            seed,
        }
    }

    /// Seed of the rotation.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of the codes that it can be compared with.
    pub fn code_bytes(&self) -> usize {
        self.planes.words() * 8
    }

    /// An estimate as a product of query and vector; estimates themselves only have an order.
    /// That of a vector much like the query comes out up to 4 % too large, from the rounding.
    pub fn product(&self, estimate: f32) -> f64 {
        f64::from(estimate) * self.scale
    }

    /// Replaces `estimates` by those of codes that lie one after the other, each with its
    /// factor.
    ///
    /// * `codes`: `[n, code_bytes]`; `factors`: `[n]` f32, little-endian.
    ///
    /// # Panics
    /// If the lengths do not fit each other.
    pub fn estimate_many(&self, codes: &[u8], factors: &[u8], estimates: &mut Vec<f32>) {
        let (bytes, factors) = (self.code_bytes(), factors.as_chunks::<4>().0);
        assert_eq!(codes.len(), factors.len() * bytes, "a code a factor");
        self.estimate(
            factors,
            |at| &codes[at * bytes..(at + 1) * bytes],
            estimates,
        );
    }

    /// As [`CodeQuery::estimate_many`], of codes that lie anywhere: `code_at(i)` is the one
    /// that goes with factor i.
    ///
    /// # Panics
    /// If a code is not of the query's length.
    pub fn estimate<'a>(
        &self,
        factors: &[[u8; 4]],
        code_at: impl Fn(usize) -> &'a [u8],
        estimates: &mut Vec<f32>,
    ) {
        let mut products = [0_i32; BLOCK];
        estimates.clear();
        for (block, factors) in factors.chunks(BLOCK).enumerate() {
            let products = &mut products[..factors.len()];
            let code_at = |at: usize| code_at(block * BLOCK + at);
            self.kernel.products(&self.planes, code_at, products);
            estimates.extend(products.iter().zip(factors).map(|(product, factor)| {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "at most 15 * DIM_MAX, which f32 holds exactly"
                )]
                let product = *product as f32;
                product * f32::from_le_bytes(*factor)
            }));
        }
    }
}

/// The level at a place of 0 to 7.
fn level_of(place: u32) -> i8 {
    #[expect(clippy::cast_possible_truncation, reason = "three bits")]
    let place = place as i8;
    2 * place - 7
}

/// By which levels become components, so that the query's product with itself is right: levels
/// alone are too near to 0, by what rounding takes from their squares.
fn scale(rotated: &[f32], levels: &[i8]) -> f64 {
    let product = sum_of_products(rotated, levels);
    if product > 0.0 {
        f64::from(sum_of_squares(rotated)) / f64::from(product)
    } else {
        0.0
    }
}

/// Root of the mean square.
fn deviation(rotated: &[f32]) -> f32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "at most DIM_MAX, which f32 holds exactly"
    )]
    let n = rotated.len() as f32;
    (sum_of_squares(rotated) / n).sqrt()
}
