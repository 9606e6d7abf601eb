//! Distance and product with AVX2: bits are counted half a byte at a time, by a table that
//! lies in a register and already holds the plane's weight.
//!
//! A code of 48 bytes, 384 components, is one and a half registers: two of them are taken
//! together as three. Other lengths go by whole registers and the rest by words.

use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_add_epi32, _mm_loadu_si128, _mm_prefetch, _mm_storeu_si128,
    _mm256_add_epi8, _mm256_add_epi32, _mm256_and_si256, _mm256_blend_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_sad_epu8, _mm256_set_m128i, _mm256_set1_epi8, _mm256_setr_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_slli_epi64, _mm256_srli_epi16, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::{AHEAD, PLANES_MAX, Planes, scalar};

/// Bytes of a register.
const WIDE: usize = 32;
/// Bytes of a code of 384 components.
const CODE_384: usize = 48;

/// Proof that this processor has AVX2: only [`Avx2::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

/// The low and the high half-bytes of 32 bytes of each plane.
type Halves<const P: usize> = [[__m256i; 2]; P];

impl Avx2 {
    /// Asks the processor; std keeps the answer.
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
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
        match planes.planes {
            1 => self.products_by::<1>(planes, code_at, products),
            2 => self.products_by::<2>(planes, code_at, products),
            3 => self.products_by::<3>(planes, code_at, products),
            _ => self.products_by::<PLANES_MAX>(planes, code_at, products),
        }
    }

    /// `P`: planes that there are.
    #[inline]
    fn products_by<'a, const P: usize>(
        self,
        planes: &Planes,
        code_at: impl Fn(usize) -> &'a [u8],
        products: &mut [i32],
    ) {
        if planes.words() * 8 == CODE_384 {
            // SAFETY: `self` proves that the processor has AVX2 and POPCNT.
            unsafe { products_384::<P>(planes, code_at, products) };
        } else {
            // SAFETY: as above.
            unsafe { products_any::<P>(planes, code_at, products) };
        }
    }

    /// See [`super::CodeKernel::distances`]; lengths were checked there.
    pub(super) fn distances(self, query: &[u8], codes: &[u8], distances: &mut [u32]) {
        if query.len() == CODE_384 {
            // SAFETY: `self` proves that the processor has AVX2 and POPCNT.
            unsafe { distances_384(query, codes, distances) };
        } else {
            // SAFETY: as above.
            unsafe { distances_any(query, codes, distances) };
        }
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn products_384<'a, const P: usize>(
    planes: &Planes,
    code_at: impl Fn(usize) -> &'a [u8],
    products: &mut [i32],
) {
    let code_at = |at: usize| -> &'a [u8; CODE_384] {
        code_at(at)
            .try_into()
            .expect("a code of the query's length")
    };
    let three: [[__m256i; 3]; P] = std::array::from_fn(|plane| {
        let plane = planes
            .plane(plane)
            .first_chunk()
            .expect("planes of 48 bytes");
        pair(plane, plane)
    });
    let halves: [Halves<P>; 3] = std::array::from_fn(|part| three.map(|plane| halves(plane[part])));
    let tables = weighted_counts::<P>();
    let n = products.len();
    let (fours, rest) = products.as_chunks_mut::<4>();
    for (at, four) in fours.iter_mut().enumerate() {
        let at = at * 4;
        let ahead = code_at((at + AHEAD).min(n - 1)).as_ptr();
        for line in 0..3 {
            prefetch(ahead.wrapping_add(line * 64));
        }
        let (a, b) = sums(code_at(at), code_at(at + 1), &halves, &tables);
        let (c, d) = sums(code_at(at + 2), code_at(at + 3), &halves, &tables);
        *four = add_up(a, b, c, d).map(|distance| planes.product(distance));
    }
    let done = n - rest.len();
    for (at, product) in rest.iter_mut().enumerate() {
        let code = code_at(done + at);
        *product = planes.product(scalar::distance_to_planes(planes, code, 0));
    }
}

/// Two codes of 48 bytes as three registers: the first 32 bytes of one, the last 16 of both,
/// the first... of the other; the middle one has the tail of `a` low and the head of `b` high.
#[target_feature(enable = "avx2")]
#[inline]
fn pair(a: &[u8; CODE_384], b: &[u8; CODE_384]) -> [__m256i; 3] {
    let middle = _mm256_set_m128i(load_half(b, 0), load_half(a, WIDE));
    [load(a, 0), middle, load(b, CODE_384 - WIDE)]
}

/// Weighted distances, four parts of each: of code `a` and of code `b`.
#[target_feature(enable = "avx2")]
#[inline]
fn sums<const P: usize>(
    a: &[u8; CODE_384],
    b: &[u8; CODE_384],
    halves: &[Halves<P>; 3],
    tables: &[__m256i; P],
) -> (__m256i, __m256i) {
    let [first, middle, last] = pair(a, b);
    apart(
        weigh(first, &halves[0], tables),
        weigh(middle, &halves[1], tables),
        weigh(last, &halves[2], tables),
    )
}

/// Sums of bytes, below 128 each, that belong to two codes as [`pair`] lays them out.
#[target_feature(enable = "avx2")]
#[inline]
fn apart(first: __m256i, middle: __m256i, last: __m256i) -> (__m256i, __m256i) {
    let zero = _mm256_setzero_si256();
    let a = _mm256_add_epi8(first, _mm256_blend_epi32::<0b1111_0000>(middle, zero));
    let b = _mm256_add_epi8(last, _mm256_blend_epi32::<0b0000_1111>(middle, zero));
    (_mm256_sad_epu8(a, zero), _mm256_sad_epu8(b, zero))
}

/// The weighted distance of each byte, at most 8 * 15.
#[target_feature(enable = "avx2")]
#[inline]
fn weigh<const P: usize>(code: __m256i, halves: &Halves<P>, tables: &[__m256i; P]) -> __m256i {
    let mask = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(code, mask);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(code), mask);
    let mut sum = _mm256_setzero_si256();
    for (halves, table) in halves.iter().zip(tables) {
        let low = _mm256_shuffle_epi8(*table, _mm256_xor_si256(low, halves[0]));
        let high = _mm256_shuffle_epi8(*table, _mm256_xor_si256(high, halves[1]));
        sum = _mm256_add_epi8(sum, _mm256_add_epi8(low, high));
    }
    sum
}

/// Adds the four parts of each of four sums, whose parts are below 2^31.
#[target_feature(enable = "avx2")]
#[inline]
fn add_up(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> [i32; 4] {
    let ab = _mm256_or_si256(a, _mm256_slli_epi64::<32>(b));
    let cd = _mm256_or_si256(c, _mm256_slli_epi64::<32>(d));
    let two = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
    let four: __m128i = _mm_add_epi32(
        _mm256_castsi256_si128(two),
        _mm256_extracti128_si256::<1>(two),
    );
    let mut sums = [0; 4];
    // SAFETY: `sums` is 16 bytes, the store writes 16, unaligned.
    unsafe { _mm_storeu_si128(sums.as_mut_ptr().cast(), four) };
    sums
}

/// Codes of any length: whole registers, then words.
#[target_feature(enable = "avx2,popcnt")]
fn products_any<'a, const P: usize>(
    planes: &Planes,
    code_at: impl Fn(usize) -> &'a [u8],
    products: &mut [i32],
) {
    let wide = planes.words() * 8 / WIDE;
    let halves: Vec<Halves<P>> = (0..wide)
        .map(|part| {
            std::array::from_fn(|plane| halves(load_wide(&planes.plane(plane).as_chunks().0[part])))
        })
        .collect();
    let (tables, zero) = (weighted_counts::<P>(), _mm256_setzero_si256());
    let n = products.len();
    for (at, product) in products.iter_mut().enumerate() {
        let code = code_at(at);
        assert_eq!(code.len(), planes.words() * 8, "a code of another length");
        let ahead = code_at((at + AHEAD).min(n - 1));
        for line in (0..ahead.len()).step_by(64) {
            prefetch(ahead.as_ptr().wrapping_add(line));
        }
        let (whole, rest) = code.as_chunks::<WIDE>();
        let mut sum = zero;
        for (part, halves) in whole.iter().zip(&halves) {
            let bytes = weigh(load_wide(part), halves, &tables);
            sum = _mm256_add_epi32(sum, _mm256_sad_epu8(bytes, zero));
        }
        let [distance, ..] = add_up(sum, zero, zero, zero);
        let of_rest = scalar::distance_to_planes(planes, rest, whole.len() * WIDE / 8);
        *product = planes.product(distance + of_rest);
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn distances_384(query: &[u8], codes: &[u8], distances: &mut [u32]) {
    let query: &[u8; CODE_384] = query.try_into().expect("the caller looked");
    let codes = codes.as_chunks::<CODE_384>().0;
    let query_pair = pair(query, query);
    let (fours, rest) = codes.as_chunks::<4>();
    let (out, out_rest) = distances.as_chunks_mut::<4>();
    for (four, out) in fours.iter().zip(out) {
        let start = four[0].as_ptr().wrapping_add(AHEAD * CODE_384);
        for line in 0..3 {
            prefetch(start.wrapping_add(line * 64));
        }
        let (a, b) = differing(&four[0], &four[1], &query_pair);
        let (c, d) = differing(&four[2], &four[3], &query_pair);
        *out = add_up(a, b, c, d).map(i32::cast_unsigned);
    }
    for (code, distance) in rest.iter().zip(out_rest) {
        *distance = scalar::distance_of(query, code);
    }
}

/// Counts of differing bits, four parts of each.
#[target_feature(enable = "avx2")]
#[inline]
fn differing(a: &[u8; CODE_384], b: &[u8; CODE_384], query: &[__m256i; 3]) -> (__m256i, __m256i) {
    let [first, middle, last] = pair(a, b);
    let first = count(_mm256_xor_si256(first, query[0]));
    let middle = count(_mm256_xor_si256(middle, query[1]));
    let last = count(_mm256_xor_si256(last, query[2]));
    apart(first, middle, last)
}

#[target_feature(enable = "avx2,popcnt")]
fn distances_any(query: &[u8], codes: &[u8], distances: &mut [u32]) {
    // With the instruction that counts a word's bits.
    scalar::distances(query, codes, distances);
}

/// Set bits of each byte.
#[target_feature(enable = "avx2")]
#[inline]
fn count(bytes: __m256i) -> __m256i {
    let mask = _mm256_set1_epi8(0x0f);
    let table = counts(1);
    let low = _mm256_shuffle_epi8(table, _mm256_and_si256(bytes, mask));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask);
    _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high))
}

#[target_feature(enable = "avx2")]
#[inline]
fn weighted_counts<const P: usize>() -> [__m256i; P] {
    std::array::from_fn(|plane| counts(1 << plane))
}

/// `weight` times the count of bits, for each half byte.
#[target_feature(enable = "avx2")]
#[inline]
fn counts(weight: i8) -> __m256i {
    let [a, b, c, d] = [1, 2, 3, 4].map(|ones| ones * weight);
    _mm256_setr_epi8(
        0, a, a, b, a, b, b, c, a, b, b, c, b, c, c, d, //
        0, a, a, b, a, b, b, c, a, b, b, c, b, c, c, d,
    )
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(bytes: __m256i) -> [__m256i; 2] {
    let mask = _mm256_set1_epi8(0x0f);
    let high = _mm256_srli_epi16::<4>(bytes);
    [_mm256_and_si256(bytes, mask), _mm256_and_si256(high, mask)]
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(code: &[u8; CODE_384], at: usize) -> __m256i {
    let bytes = code[at..]
        .first_chunk()
        .expect("both places leave 32 bytes");
    load_wide(bytes)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_wide(bytes: &[u8; WIDE]) -> __m256i {
    // SAFETY: a live borrow of 32 bytes; the load takes 32, unaligned.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_half(code: &[u8; CODE_384], at: usize) -> __m128i {
    let bytes: &[u8; WIDE / 2] = code[at..]
        .first_chunk()
        .expect("both places leave 16 bytes");
    // SAFETY: a live borrow of 16 bytes; the load takes 16, unaligned.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
fn prefetch(at: *const u8) {
    // SAFETY: a prefetch is a hint that never faults, whatever the address, and changes nothing
    // that the program sees.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}
