//! The definition of distance and product, in plain Rust: the fallback and the oracle.

use super::Planes;

/// See [`super::CodeKernel::products`].
#[inline]
pub(super) fn products<'a>(
    planes: &Planes,
    code_at: impl Fn(usize) -> &'a [u8],
    products: &mut [i32],
) {
    for (at, product) in products.iter_mut().enumerate() {
        let code = code_at(at);
        assert_eq!(code.len(), planes.words() * 8, "a code of another length");
        *product = planes.product(distance_to_planes(planes, code, 0));
    }
}

/// Sum of 2^k times the distance to plane k, from word `first` of the planes on.
#[inline]
pub(super) fn distance_to_planes(planes: &Planes, code: &[u8], first: usize) -> i32 {
    let mut sum = 0;
    for plane in 0..planes.planes {
        let plane_bytes = &planes.plane(plane)[first * 8..];
        sum += distance_of(&plane_bytes[..code.len()], code) << plane;
    }
    sum.cast_signed()
}

/// See [`super::CodeKernel::distances`]; lengths were checked there.
pub(super) fn distances(query: &[u8], codes: &[u8], distances: &mut [u32]) {
    for (code, distance) in codes.chunks(query.len().max(1)).zip(distances) {
        *distance = distance_of(query, code);
    }
}

/// Bits in which two codes differ.
#[inline]
pub(super) fn distance_of(query: &[u8], code: &[u8]) -> u32 {
    let words = query.as_chunks::<8>().0.iter().zip(code.as_chunks::<8>().0);
    let differing =
        words.map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones());
    differing.sum()
}
