//! The definition of the dot product, in plain Rust: the fallback and the oracle.

use half::f16;

use super::LANES;
use crate::prepared::VectorFormat;

/// See [`super::dot`]; lengths were checked there.
pub(super) fn dot(query: &[f32], stored: &[u8], format: VectorFormat) -> f32 {
    match format {
        VectorFormat::F16 => dot_of::<2>(query, stored, |bytes| f16::from_le_bytes(bytes).to_f32()),
        VectorFormat::F32 => dot_of::<4>(query, stored, f32::from_le_bytes),
    }
}

fn dot_of<const N: usize>(query: &[f32], stored: &[u8], read: impl Fn([u8; N]) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let components = stored.as_chunks::<N>().0;
    for (query, stored) in query.chunks(LANES).zip(components.chunks(LANES)) {
        for ((lane, q), s) in lanes.iter_mut().zip(query).zip(stored) {
            *lane += *q * read(*s);
        }
    }
    reduce(&mut lanes)
}

fn reduce(lanes: &mut [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for j in 0..half {
            lanes[j] += lanes[j + half];
        }
        half /= 2;
    }
    lanes[0]
}
