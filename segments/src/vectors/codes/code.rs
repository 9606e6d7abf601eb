//! What are the code and the factor of one vector?
//!
//! Bit i of the code is set where component i of the rotated vector o' is not below 0. The
//! factor is |o|^2 / sum |o'_i|: with it `factor * sum of (+1 or -1) q'_i` is an unbiased
//! estimate of the product of o and q (equations 6 and 12 of the paper, in which the two
//! square roots of the dimension cancel).

use super::rotation::Rotation;
use super::{CodeQuery, padded_dim};
use crate::kernels::vectors::widen_into;
use crate::prepared::{VectorFormat, VectorSpace};

/// Lanes of the sums: as those of the dot product, so that one order serves every machine.
const LANES: usize = 16;

/// Makes codes of vectors and of queries for one space and seed.
#[derive(Debug, Clone)]
pub struct Coder {
    rotation: Rotation,
    seed: u64,
    format: VectorFormat,
    dim: usize,
}

/// Buffers of a coder, to be used again.
#[derive(Debug, Default)]
pub(crate) struct CodeScratch {
    wide: Vec<f32>,
    rotated: Vec<f32>,
}

impl Coder {
    /// For vectors of `space` in the store whose codes have this seed, see
    /// [`code_seed`](crate::code_seed).
    pub fn new(space: &VectorSpace, seed: u64) -> Self {
        Self {
            rotation: Rotation::new(space.dim, seed),
            seed,
            format: space.format,
            dim: space.dim as usize,
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of one code: a bit a component, padded to whole words of 64.
    pub fn code_bytes(&self) -> usize {
        self.rotation.padded() / 8
    }

    /// Appends the code of a stored vector to `code`; gives its factor. Not-a-number
    /// components, which no writer lets in, give the factor 0.
    ///
    /// # Panics
    /// If `stored` is not a vector of the space.
    pub fn encode(&self, stored: &[u8], code: &mut Vec<u8>) -> f32 {
        self.encode_with(stored, code, &mut CodeScratch::default())
    }

    pub(crate) fn encode_with(
        &self,
        stored: &[u8],
        code: &mut Vec<u8>,
        scratch: &mut CodeScratch,
    ) -> f32 {
        let vector_bytes = self.dim * self.format.bytes();
        assert_eq!(stored.len(), vector_bytes, "stored vector of another space");
        widen_into(stored, self.format, &mut scratch.wide);
        let exponent = self.rotation.rotate(&scratch.wide, &mut scratch.rotated);
        for eight in scratch.rotated.as_chunks::<8>().0 {
            let bits = (0..8).map(|at| u8::from(eight[at] >= 0.0) << at);
            code.push(bits.sum());
        }
        factor_of(&scratch.rotated, exponent)
    }

    /// The query in the form that codes are compared with.
    ///
    /// # Panics
    /// If the query is not of the space's dimension.
    pub fn query(&self, query: &[f32]) -> CodeQuery {
        assert_eq!(query.len(), self.dim, "a query of another dimension");
        let mut rotated = Vec::new();
        let exponent = self.rotation.rotate(query, &mut rotated);
        CodeQuery::new(&rotated, exponent, self.seed)
    }
}

/// |o|^2 / sum |o'|, for a rotated vector that was scaled by 2^-`exponent`.
fn factor_of(rotated: &[f32], exponent: i32) -> f32 {
    let (squares, sum) = (sum_of_squares(rotated), sum_of(rotated, f32::abs));
    if !squares.is_finite() || sum <= 0.0 {
        return 0.0;
    }
    // f64: the scaling back is exact, and rounds once, to f32.
    let factor = f64::from(squares / sum) * power_of_two(exponent);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to f32 is meant; too large a factor is cut to the largest"
    )]
    let factor = factor.min(f64::from(f32::MAX)) as f32;
    factor
}

/// Whole lanes, each summed in order, then folded: see [`LANES`].
fn sum_of(rotated: &[f32], part: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for chunk in rotated.as_chunks::<LANES>().0 {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += part(*x);
        }
    }
    reduce(lanes)
}

/// Sum of the squares of a rotated vector's components.
pub(super) fn sum_of_squares(rotated: &[f32]) -> f32 {
    sum_of(rotated, |x| x * x)
}

/// Product of a rotated vector and whole numbers, in the order of [`sum_of`].
pub(super) fn sum_of_products(rotated: &[f32], levels: &[i8]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let chunks = rotated.as_chunks::<LANES>().0;
    for (chunk, levels) in chunks.iter().zip(levels.as_chunks::<LANES>().0) {
        for ((lane, x), level) in lanes.iter_mut().zip(chunk).zip(levels) {
            *lane += x * f32::from(*level);
        }
    }
    reduce(lanes)
}

/// 2^`exponent`, for the exponents of a rotation.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).cast_unsigned()) << 52)
}

fn reduce(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for at in 0..half {
            lanes[at] += lanes[at + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// How far a vector's estimate may lie from the exact product, with the probability that
/// `epsilon` stands for: at 1.9 about 1 in 100 of all vectors lie further off.
///
/// * `norm`, `query_norm`: lengths of the vector and of the query; 1 in a normalised space.
/// * `factor`: of the vector's code, as stored.
/// * `dim`: of the space.
///
/// Theorem 3.2 of the paper, and the rounding of the query, whose steps add in quadrature.
/// Not finite where the factor is not one that [`Coder::encode`] gives.
pub fn error_bound(norm: f64, factor: f32, query_norm: f64, dim: u32, epsilon: f64) -> f64 {
    let Ok(padded) = u32::try_from(padded_dim(dim)) else {
        return f64::INFINITY;
    };
    let padded = f64::from(padded);
    // What the code keeps of the direction: the cosine of vector and code.
    let kept = norm / (f64::from(factor) * padded.sqrt());
    let lost = ((1.0 - kept * kept) / (kept * kept)).max(0.0).sqrt();
    let of_code = lost * epsilon / (padded - 1.0).sqrt();
    // See `query`: mean square of what rounding takes from a component, in units of its own.
    const ROUNDED_OFF: f64 = 0.0374;
    let of_query = epsilon * (ROUNDED_OFF / padded).sqrt() / kept;
    norm * query_norm * of_code.hypot(of_query)
}
