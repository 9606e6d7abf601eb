//! Distance and product with AVX-512 and VPOPCNTDQ: an instruction counts the bits of eight
//! words at once.
//!
//! A code goes by eight words, the last ones under a mask, which reads nothing past the code.
//! Four codes are in flight, so that their sums are folded together.

use std::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _mm_add_epi64, _mm_cvtsi128_si64, _mm_prefetch,
    _mm_unpackhi_epi64, _mm256_add_epi64, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm512_add_epi64, _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_maskz_loadu_epi64,
    _mm512_popcnt_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::{AHEAD, PLANES_MAX, Planes};

/// Words of a register.
const WORDS: usize = 8;

/// Proof that this processor has AVX-512 F and VPOPCNTDQ: only [`Avx512::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Asks the processor; std keeps the answer.
    pub(super) fn detect() -> Option<Self> {
        let has =
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
        has.then_some(Self(()))
    }

    /// See [`super::CodeKernel::products`].
    #[inline]
    pub(super) fn products<'a>(
        self,
        planes: &Planes,
        code_at: impl Fn(usize) -> &'a [u8],
        products: &mut [i32],
    ) {
        // SAFETY: `self` proves that the processor has AVX-512 F and VPOPCNTDQ.
        unsafe { products_of(planes, code_at, products) };
    }

    /// See [`super::CodeKernel::distances`]; lengths were checked there.
    pub(super) fn distances(self, query: &[u8], codes: &[u8], distances: &mut [u32]) {
        // SAFETY: `self` proves that the processor has AVX-512 F and VPOPCNTDQ.
        unsafe { distances_of(query, codes, distances) };
    }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn products_of<'a>(planes: &Planes, code_at: impl Fn(usize) -> &'a [u8], products: &mut [i32]) {
    let bytes = planes.words() * 8;
    let code_at = |at: usize| {
        let code = code_at(at);
        assert_eq!(code.len(), bytes, "a code of another length");
        code
    };
    // Of planes that there are not, nothing is loaded, and nothing asked.
    let part = |first: usize| -> [__m512i; PLANES_MAX] {
        std::array::from_fn(|plane| load(planes.plane(plane).get(first..).unwrap_or(&[])))
    };
    let parts: Vec<[__m512i; PLANES_MAX]> = (0..bytes).step_by(WORDS * 8).map(part).collect();
    let n = products.len();
    for (group, out) in products.chunks_mut(4).enumerate() {
        let at = group * 4;
        let ahead = code_at((at + AHEAD).min(n - 1)).as_ptr();
        for line in (0..bytes * 4).step_by(64) {
            prefetch(ahead.wrapping_add(line));
        }
        // The last group asks for its last code again.
        let [a, b, c, d] =
            [0, 1, 2, 3].map(|lane| weigh(code_at((at + lane).min(n - 1)), &parts, planes.planes));
        for (out, sum) in out.iter_mut().zip(add_up(a, b, c, d)) {
            *out = planes.product(sum);
        }
    }
}

/// The weighted distance, in eight parts.
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
#[inline]
fn weigh(code: &[u8], parts: &[[__m512i; PLANES_MAX]], planes: usize) -> __m512i {
    let mut sum = _mm512_setzero_si512();
    for (words, part) in code.chunks(WORDS * 8).zip(parts) {
        let code = load(words);
        let mut of_part = _mm512_setzero_si512();
        // From the heaviest plane down: each step doubles what was summed so far.
        for plane in part[..planes].iter().rev() {
            let ones = _mm512_popcnt_epi64(_mm512_xor_si512(code, *plane));
            of_part = _mm512_add_epi64(_mm512_slli_epi64::<1>(of_part), ones);
        }
        sum = _mm512_add_epi64(sum, of_part);
    }
    sum
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn distances_of(query: &[u8], codes: &[u8], distances: &mut [u32]) {
    let n = distances.len();
    let code_at = |at: usize| &codes[at * query.len()..(at + 1) * query.len()];
    for (group, out) in distances.chunks_mut(4).enumerate() {
        let at = group * 4;
        let ahead = code_at((at + AHEAD).min(n - 1)).as_ptr();
        for line in (0..query.len() * 4).step_by(64) {
            prefetch(ahead.wrapping_add(line));
        }
        let [a, b, c, d] = [0, 1, 2, 3].map(|lane| {
            let code = code_at((at + lane).min(n - 1));
            let mut sum = _mm512_setzero_si512();
            for (code, query) in code.chunks(WORDS * 8).zip(query.chunks(WORDS * 8)) {
                let differing = _mm512_xor_si512(load(code), load(query));
                sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(differing));
            }
            sum
        });
        for (out, sum) in out.iter_mut().zip(add_up(a, b, c, d)) {
            *out = sum.cast_unsigned();
        }
    }
}

/// Adds the eight parts of each of four sums.
#[target_feature(enable = "avx512f")]
#[inline]
fn add_up(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [i32; 4] {
    let ab = _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let cd = _mm512_add_epi64(_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
    let [a, b] = fold(ab);
    let [c, d] = fold(cd);
    [a, b, c, d]
}

/// Sums of the even and of the odd lanes; each fits 32 bits, as a code has at most 2^12 bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn fold(pairs: __m512i) -> [i32; 2] {
    let four: __m256i = _mm256_add_epi64(
        _mm512_castsi512_si256(pairs),
        _mm512_extracti64x4_epi64::<1>(pairs),
    );
    let two = _mm_add_epi64(
        _mm256_castsi256_si128(four),
        _mm256_extracti128_si256::<1>(four),
    );
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most 8 times DIM_MAX, of either sign"
    )]
    let narrow = |wide: i64| wide as i32;
    [
        narrow(_mm_cvtsi128_si64(two)),
        narrow(_mm_cvtsi128_si64(_mm_unpackhi_epi64(two, two))),
    ]
}

/// Up to eight whole words; lanes behind them are 0 and are not read.
#[target_feature(enable = "avx512f")]
#[inline]
fn load(words: &[u8]) -> __m512i {
    let lanes = (words.len() / 8).min(WORDS);
    let mask = u8::MAX >> (WORDS - lanes).min(7);
    let mask = if lanes == 0 { 0 } else { mask };
    // SAFETY: the mask lets through as many words as the live borrow has whole ones; lanes
    // under a zero of the mask are not read and cannot fault.
    unsafe { _mm512_maskz_loadu_epi64(mask, words.as_ptr().cast()) }
}

#[inline]
fn prefetch(at: *const u8) {
    // SAFETY: a prefetch is a hint that never faults, whatever the address, and changes nothing
    // that the program sees.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}
