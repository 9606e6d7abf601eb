//! The dot product with AVX2 and F16C: lanes 0 to 7 and 8 to 15 in two registers a vector.
//!
//! The last, partial step is filled up with +0.0. That changes no bit: no lane ever holds
//! -0.0 (it starts at +0.0, and a sum of opposite or unlike-signed zeros is +0.0), and for
//! every other value x + (+0.0 * +0.0) is x.

use std::arch::x86_64::{
    __m128, __m256, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128, _mm_movehl_ps,
    _mm_shuffle_ps, _mm256_add_ps, _mm256_castps256_ps128, _mm256_cvtph_ps, _mm256_extractf128_ps,
    _mm256_loadu_ps, _mm256_mul_ps, _mm256_setzero_ps,
};

use super::LANES;
use crate::prepared::VectorFormat;

/// Proof that this processor has AVX2 and F16C: only [`Avx2::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the processor; std keeps the answer.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")).then_some(Self(()))
    }

    /// See [`super::dot`]; lengths were checked there.
    pub(super) fn dot(self, query: &[f32], stored: &[u8], format: VectorFormat) -> f32 {
        // SAFETY: `self` proves that the processor has AVX2 and F16C.
        let [score] = unsafe { dot_rows(query, [stored], format) };
        score
    }

    /// See [`super::dot_four`]; lengths were checked there.
    pub(super) fn dot_four(
        self,
        query: &[f32],
        stored: [&[u8]; 4],
        format: VectorFormat,
    ) -> [f32; 4] {
        // SAFETY: `self` proves that the processor has AVX2 and F16C.
        unsafe { dot_rows(query, stored, format) }
    }
}

#[target_feature(enable = "avx2,f16c")]
fn dot_rows<const N: usize>(query: &[f32], stored: [&[u8]; N], format: VectorFormat) -> [f32; N] {
    match format {
        VectorFormat::F16 => dot_steps::<N, 32, false>(query, stored),
        VectorFormat::F32 => dot_steps::<N, 64, true>(query, stored),
    }
}

/// `STEP`: bytes of 16 components. `WIDE`: components are f32, else f16.
#[target_feature(enable = "avx2,f16c")]
fn dot_steps<const N: usize, const STEP: usize, const WIDE: bool>(
    query: &[f32],
    stored: [&[u8]; N],
) -> [f32; N] {
    const { assert!(STEP == if WIDE { 4 * LANES } else { 2 * LANES }) };
    let (whole, query_rest) = query.as_chunks::<LANES>();
    let steps = stored.map(|one| one.as_chunks::<STEP>());
    // One bounds check a vector here, none in the loop.
    let steps_whole = steps.map(|(chunks, _)| &chunks[..whole.len()]);
    let mut lanes = [(_mm256_setzero_ps(), _mm256_setzero_ps()); N];
    for (i, query) in whole.iter().enumerate() {
        let query = load_query(query);
        for (lanes, chunks) in lanes.iter_mut().zip(steps_whole) {
            *lanes = add_products(*lanes, query, load::<STEP, WIDE>(&chunks[i]));
        }
    }
    if !query_rest.is_empty() {
        let mut padded = [0.0; LANES];
        padded[..query_rest.len()].copy_from_slice(query_rest);
        let query = load_query(&padded);
        for (lanes, (_, rest)) in lanes.iter_mut().zip(steps) {
            let mut padded = [0; STEP];
            padded[..rest.len()].copy_from_slice(rest);
            *lanes = add_products(*lanes, query, load::<STEP, WIDE>(&padded));
        }
    }
    lanes.map(|lanes| reduce(lanes))
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
fn load_query(query: &[f32; LANES]) -> (__m256, __m256) {
    let low = query.as_ptr();
    // SAFETY: `query` has 16 floats, so 8 are left after 8.
    let high = unsafe { low.add(8) };
    // SAFETY: `low` points at 16 floats of a live borrow; the load takes 8, unaligned.
    let low = unsafe { _mm256_loadu_ps(low) };
    // SAFETY: `high` points at the last 8 of those floats.
    let high = unsafe { _mm256_loadu_ps(high) };
    (low, high)
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
fn load<const STEP: usize, const WIDE: bool>(bytes: &[u8; STEP]) -> (__m256, __m256) {
    const { assert!(STEP == if WIDE { 64 } else { 32 }) };
    let low = bytes.as_ptr();
    // SAFETY: `bytes` has STEP bytes; half of them are left after the first half.
    let high = unsafe { low.add(STEP / 2) };
    if WIDE {
        // SAFETY: `low` points at 64 bytes of a live borrow; the load takes 32, unaligned, and
        // any bits are a float.
        let low = unsafe { _mm256_loadu_ps(low.cast()) };
        // SAFETY: `high` points at the last 32 of those bytes.
        let high = unsafe { _mm256_loadu_ps(high.cast()) };
        (low, high)
    } else {
        // SAFETY: `low` points at 32 bytes of a live borrow; the load takes 16, unaligned.
        let low = unsafe { _mm_loadu_si128(low.cast()) };
        // SAFETY: `high` points at the last 16 of those bytes.
        let high = unsafe { _mm_loadu_si128(high.cast()) };
        (_mm256_cvtph_ps(low), _mm256_cvtph_ps(high))
    }
}

/// Product, then sum: two roundings, never fused.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn add_products(
    lanes: (__m256, __m256),
    a: (__m256, __m256),
    b: (__m256, __m256),
) -> (__m256, __m256) {
    (
        _mm256_add_ps(lanes.0, _mm256_mul_ps(a.0, b.0)),
        _mm256_add_ps(lanes.1, _mm256_mul_ps(a.1, b.1)),
    )
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
fn reduce(lanes: (__m256, __m256)) -> f32 {
    let eight = _mm256_add_ps(lanes.0, lanes.1);
    let four: __m128 = _mm_add_ps(
        _mm256_castps256_ps128(eight),
        _mm256_extractf128_ps::<1>(eight),
    );
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}
