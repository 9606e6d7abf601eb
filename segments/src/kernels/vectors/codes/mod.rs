//! How near is a query to codes of one bit a component, in integers?
//!
//! Two measures, each with one exact answer that every form gives:
//!
//! ```text
//! distance(a, b) = bits in which two codes differ
//! product(v, b)  = sum of (+1 where bit i of b is set, else -1) * v_i
//! ```
//!
//! The v_i are odd, from -(2^p - 1) to 2^p - 1, and lie in p planes of bits: v_i is the sum of
//! 2^k * (+1 where bit i of plane k is set, else -1). So the product is (2^p - 1) * d less
//! twice the sum of 2^k * distance(plane k, b): it takes XOR and a count of bits a plane.
//!
//! Forms: [`scalar`] on every machine, `avx2` (counts by half-byte table), `avx512` (counts by
//! instruction), `neon`. A scan chooses one once. A form that this project had no machine for
//! is taken only after it gave the scalar answers.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// Most planes of a query.
const PLANES_MAX: usize = 4;
/// Codes of a scan ahead of the one at work: what is asked of memory now is there then. Of 48
/// bytes each they are 2 KiB.
const AHEAD: usize = 42;

/// The components of a query as planes of bits.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    /// `[planes, 8 * words]`, each as the bytes of a code.
    bits: Box<[u8]>,
    words: usize,
    planes: usize,
}

impl Planes {
    /// `levels`: `[64 * words]`, odd, at most 2^`planes` - 1 either way.
    pub(crate) fn new(levels: &[i8], planes: usize) -> Self {
        assert!(levels.len().is_multiple_of(64), "whole words of levels");
        assert!((1..=PLANES_MAX).contains(&planes), "1 to 4 planes");
        let most = (1_i8 << planes) - 1;
        let words = levels.len() / 64;
        let mut bits = Vec::with_capacity(planes * words * 8);
        for plane in 0..planes {
            for levels in levels.as_chunks::<8>().0 {
                let mut byte = 0;
                for (at, level) in levels.iter().enumerate() {
                    debug_assert!(level % 2 != 0 && (-most..=most).contains(level));
                    // 0 to 2^planes - 1: exact, since the sum is even.
                    let place = ((level + most) >> 1).cast_unsigned();
                    byte |= (place >> plane & 1) << at;
                }
                bits.push(byte);
            }
        }
        Self {
            bits: bits.into(),
            words,
            planes,
        }
    }

    /// Words of 64 bits of a code.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The bytes of a plane; none of one that there is not.
    fn plane(&self, plane: usize) -> &[u8] {
        let bytes = self.words * 8;
        self.bits
            .get(plane * bytes..(plane + 1) * bytes)
            .unwrap_or(&[])
    }

    /// The product, from the weighted sum of distances to the planes.
    #[inline]
    fn product(&self, distance: i32) -> i32 {
        let most = (1_i32 << self.planes) - 1;
        // At most 15 * DIM_MAX.
        let levels = i32::try_from(self.words * 64).unwrap_or(i32::MAX);
        most * levels - 2 * distance
    }
}

/// A form of the kernels that this processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CodeKernel {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl CodeKernel {
    /// Every form that this processor has, the fastest first.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let fast = [
            avx512::Avx512::detect().map(Self::Avx512),
            avx2::Avx2::detect().map(Self::Avx2),
        ];
        #[cfg(target_arch = "aarch64")]
        let fast = [neon::Neon::detect().map(Self::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let fast: [Option<Self>; 0] = [];
        fast.into_iter().flatten().chain([Self::Scalar])
    }

    /// The form for a scan.
    pub(crate) fn best() -> Self {
        use std::sync::OnceLock;
        static BEST: OnceLock<CodeKernel> = OnceLock::new();
        let agrees = |kernel: &Self| kernel.agrees_with_scalar();
        *BEST.get_or_init(|| Self::all().find(agrees).unwrap_or(Self::Scalar))
    }

    /// True where the form gives the scalar answers for codes of several lengths.
    fn agrees_with_scalar(&self) -> bool {
        [1, 6, 9, 12, 16].into_iter().all(|words| {
            let noise = |at: usize| at.wrapping_mul(0x9E37_79B9).to_le_bytes()[2];
            let codes: Vec<u8> = (0..words * 8 * 11).map(noise).collect();
            let level = |at: usize| 2 * (noise(at + 7) & 7).cast_signed() - 7;
            let levels: Vec<i8> = (0..words * 64).map(level).collect();
            let planes = Planes::new(&levels, 3);
            let code_at = |at: usize| &codes[at * words * 8..][..words * 8];
            let (mut own, mut scalar) = ([0; 11], [0; 11]);
            self.products(&planes, code_at, &mut own);
            Self::Scalar.products(&planes, code_at, &mut scalar);
            let (mut far, mut scalar_far) = ([0; 11], [0; 11]);
            self.distances(&codes[..words * 8], &codes, &mut far);
            Self::Scalar.distances(&codes[..words * 8], &codes, &mut scalar_far);
            own == scalar && far == scalar_far
        })
    }

    /// Products of the query and the codes that `code_at` gives: `products[i]` is that of code
    /// i.
    ///
    /// # Panics
    /// If a code is not `planes.words()` words long.
    #[inline]
    pub(crate) fn products<'a>(
        self,
        planes: &Planes,
        code_at: impl Fn(usize) -> &'a [u8],
        products: &mut [i32],
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(form) => form.products(planes, code_at, products),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(form) => form.products(planes, code_at, products),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(form) => form.products(planes, code_at, products),
            Self::Scalar => scalar::products(planes, code_at, products),
        }
    }

    /// Bits in which `query` and each of the codes that lie one after the other differ.
    ///
    /// # Panics
    /// If `query` is not whole words, or `codes` are not as many codes as `distances`.
    pub(crate) fn distances(self, query: &[u8], codes: &[u8], distances: &mut [u32]) {
        assert!(query.len().is_multiple_of(8), "whole words of bits");
        assert_eq!(
            codes.len(),
            query.len() * distances.len(),
            "a code a distance"
        );
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(form) => form.distances(query, codes, distances),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(form) => form.distances(query, codes, distances),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => scalar::distances(query, codes, distances),
            Self::Scalar => scalar::distances(query, codes, distances),
        }
    }
}

#[cfg(test)]
mod tests;
