//! How similar are a query and a stored vector, to the bit?
//!
//! The dot product is *defined* by one order of operations, so that a score does not depend on
//! the machine, on the number of threads or on where a row lies:
//!
//! ```text
//! lane[0..16] = +0.0
//! lane[i % 16] += query[i] * stored[i]      for i ascending; product and sum each rounded
//! 16 lanes -> 8 -> 4 -> 2 -> 1              lane[j] += lane[j + half]
//! NaN -> the one NaN `f32::NAN`
//! ```
//!
//! Two forms compute it: [`scalar`] on every machine, `avx2` where the processor has AVX2 and
//! F16C. No form may fuse product and sum.

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the kernels are this crate's one home of unsafe code"
)]
mod avx2;
#[expect(
    unsafe_code,
    reason = "the kernels are this crate's one home of unsafe code"
)]
mod codes;
#[expect(
    unsafe_code,
    reason = "the kernels are this crate's one home of unsafe code"
)]
mod mask;
#[expect(
    unsafe_code,
    reason = "the kernels are this crate's one home of unsafe code"
)]
mod rotate;
mod scalar;

pub(crate) use codes::{CodeKernel, Planes};

/// Bits in which the code `query` and each of `codes`, one after the other, differ: the
/// plainest measure of two codes.
///
/// # Panics
/// If `query` is not whole words of 64 bits, or `codes` are not as many as `distances`.
pub fn code_distances(query: &[u8], codes: &[u8], distances: &mut [u32]) {
    CodeKernel::best().distances(query, codes, distances);
}
pub(crate) use mask::{MASK_LANES, at_least};
pub(crate) use rotate::turn;

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use crate::prepared::VectorFormat;

/// Lanes of the defined order: one AVX-512 register, two AVX2 ones.
const LANES: usize = 16;

/// Dot product of a query and one stored vector, in the one defined order.
///
/// * `query`: `[dim]` f32.
/// * `stored`: `[dim]` components as `format` says, little-endian, any alignment.
///
/// NaN only where a component is not finite or a sum overflows; then always `f32::NAN`.
/// No allocation.
///
/// # Panics
/// If `stored` is not `query.len()` components long: both lengths come from the store's
/// vector space, which every vector was checked against.
pub fn dot(query: &[f32], stored: &[u8], format: VectorFormat) -> f32 {
    assert_eq!(
        stored.len(),
        query.len() * format.bytes(),
        "stored vector of another dimension"
    );
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return canonical(avx2.dot(query, stored, format));
    }
    canonical(scalar::dot(query, stored, format))
}

/// Dot products of a query and vectors that lie one after the other, appended to `scores`.
///
/// `stored`: `[n, dim]` components, row-major. Same bits as [`dot`] for each, faster: the
/// sums of four vectors are in flight at once.
///
/// # Panics
/// If `query` is empty or `stored` is not a whole number of vectors.
pub fn dot_many(query: &[f32], stored: &[u8], format: VectorFormat, scores: &mut Vec<f32>) {
    let vector_bytes = query.len() * format.bytes();
    assert!(
        vector_bytes > 0 && stored.len().is_multiple_of(vector_bytes),
        "stored vectors of another dimension"
    );
    let group_bytes = 4 * vector_bytes;
    let groups = stored.chunks_exact(group_bytes);
    let rest = groups.remainder();
    for group in groups {
        let (a, b) = group.split_at(2 * vector_bytes);
        let (a, b) = (a.split_at(vector_bytes), b.split_at(vector_bytes));
        scores.extend_from_slice(&dot_four(query, [a.0, a.1, b.0, b.1], format));
    }
    scores.extend(
        rest.chunks_exact(vector_bytes)
            .map(|one| dot(query, one, format)),
    );
}

/// Dot products of a query and four vectors, wherever they lie. Same bits as [`dot`].
///
/// # Panics
/// As [`dot`].
pub(crate) fn dot_four(query: &[f32], stored: [&[u8]; 4], format: VectorFormat) -> [f32; 4] {
    for one in stored {
        assert_eq!(
            one.len(),
            query.len() * format.bytes(),
            "stored vector of another dimension"
        );
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return avx2.dot_four(query, stored, format).map(canonical);
    }
    stored.map(|one| canonical(scalar::dot(query, one, format)))
}

/// The components of a stored vector as f32; exact, since f32 holds every f16.
///
/// # Panics
/// If `stored` is not a whole number of components.
pub fn widen(stored: &[u8], format: VectorFormat) -> Vec<f32> {
    let mut wide = Vec::new();
    widen_into(stored, format, &mut wide);
    wide
}

/// As [`widen`], in place of what `wide` holds.
///
/// # Panics
/// As [`widen`].
pub(crate) fn widen_into(stored: &[u8], format: VectorFormat, wide: &mut Vec<f32>) {
    assert!(
        stored.len().is_multiple_of(format.bytes()),
        "stored vector ends inside a component"
    );
    wide.clear();
    match format {
        VectorFormat::F16 => {
            let components = stored.as_chunks().0.iter();
            wide.extend(components.map(|b| f16::from_le_bytes(*b).to_f32()));
        }
        VectorFormat::F32 => {
            let components = stored.as_chunks().0.iter();
            wide.extend(components.map(|b| f32::from_le_bytes(*b)));
        }
    }
}

/// As [`widen`] into `to`, without an allocation.
///
/// # Panics
/// If `to` is not as long as the vector.
pub(crate) fn widen_slice(stored: &[u8], format: VectorFormat, to: &mut [f32]) {
    /// Components whose bits are put in order at a time.
    const CHUNK: usize = 64;
    assert_eq!(
        stored.len(),
        to.len() * format.bytes(),
        "stored vector of another dimension"
    );
    match format {
        VectorFormat::F16 => {
            let mut bits = [0; CHUNK];
            for (stored, to) in stored.chunks(2 * CHUNK).zip(to.chunks_mut(CHUNK)) {
                let bits = &mut bits[..to.len()];
                for (bits, bytes) in bits.iter_mut().zip(stored.as_chunks().0) {
                    *bits = u16::from_le_bytes(*bytes);
                }
                bits.reinterpret_cast::<f16>().convert_to_f32_slice(to);
            }
        }
        VectorFormat::F32 => {
            for (to, bytes) in to.iter_mut().zip(stored.as_chunks().0) {
                *to = f32::from_le_bytes(*bytes);
            }
        }
    }
}

/// NaNs carry bits that depend on operand order; the answer must not.
fn canonical(score: f32) -> f32 {
    if score.is_nan() { f32::NAN } else { score }
}

#[cfg(test)]
mod tests;
