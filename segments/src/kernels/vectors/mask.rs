//! Which of a few numbers reach a threshold? As bits, since most reach it nowhere.

/// Numbers that are looked at together, at most.
pub(crate) const MASK_LANES: usize = 32;

/// Bit i is set where number i of `lanes`, at most [`MASK_LANES`], is at least `threshold`; NaN
/// is not.
#[inline]
pub(crate) fn at_least(lanes: &[f32], threshold: f32) -> u32 {
    debug_assert!(lanes.len() <= MASK_LANES);
    let (whole, rest) = lanes.as_chunks::<4>();
    let mut mask = 0;
    for (at, four) in whole.iter().enumerate() {
        mask |= four_at_least(four, threshold) << (4 * at);
    }
    for (at, lane) in rest.iter().enumerate() {
        mask |= u32::from(*lane >= threshold) << (4 * whole.len() + at);
    }
    mask
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn four_at_least(four: &[f32; 4], threshold: f32) -> u32 {
    // SAFETY: every x86-64 processor has SSE.
    unsafe { four_at_least_sse(four, threshold) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse")]
#[inline]
fn four_at_least_sse(four: &[f32; 4], threshold: f32) -> u32 {
    use std::arch::x86_64::{_mm_cmpge_ps, _mm_loadu_ps, _mm_movemask_ps, _mm_set1_ps};
    // SAFETY: a live borrow of 16 bytes; the load takes 16, unaligned.
    let four = unsafe { _mm_loadu_ps(four.as_ptr()) };
    let reached = _mm_cmpge_ps(four, _mm_set1_ps(threshold));
    _mm_movemask_ps(reached).cast_unsigned()
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn four_at_least(four: &[f32; 4], threshold: f32) -> u32 {
    let bits = (0..4).map(|at| u32::from(four[at] >= threshold) << at);
    bits.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_comparisons_lane_by_lane() {
        let special = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            0.0,
            1.5,
            -1.5,
        ];
        for n in 0..=MASK_LANES {
            let lanes: Vec<f32> = (0..n).map(|i| special[i * 5 % 7]).collect();
            for threshold in special {
                let mask = u64::from(at_least(&lanes, threshold));
                for (at, lane) in lanes.iter().enumerate() {
                    assert_eq!(
                        mask >> at & 1 == 1,
                        *lane >= threshold,
                        "{lane} {threshold}"
                    );
                }
                assert_eq!(mask >> n, 0);
            }
        }
    }
}
