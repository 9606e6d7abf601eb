//! One turn of a rotation: flips of signs and a Hadamard transform, in one order of operations.
//!
//! Sums and differences are rounded one by one and nothing is fused, so a wider register
//! changes no bit: the one body below is compiled for it too.

use std::ops::Range;

/// Flips signs of `values`, transforms those in `block` and scales them.
///
/// * `flips`: as long as `values`, bit 31 or nothing.
/// * `block`: a power of two of them, at least 8.
pub(crate) fn turn(values: &mut [f32], flips: &[u32], block: Range<usize>, scale: f32) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { turn_avx2(values, flips, block, scale) };
        return;
    }
    turn_body(values, flips, block, scale);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn turn_avx2(values: &mut [f32], flips: &[u32], block: Range<usize>, scale: f32) {
    turn_body(values, flips, block, scale);
}

#[inline(always)]
fn turn_body(values: &mut [f32], flips: &[u32], block: Range<usize>, scale: f32) {
    for (value, flip) in values.iter_mut().zip(flips) {
        *value = f32::from_bits(value.to_bits() ^ flip);
    }
    let block = &mut values[block];
    for eight in block.as_chunks_mut::<8>().0 {
        *eight = transform_eight(*eight);
    }
    let mut half = 8;
    while half < block.len() {
        for pair in block.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
    for value in block {
        *value *= scale;
    }
}

/// The first three steps, inside eight values.
#[inline(always)]
fn transform_eight(mut x: [f32; 8]) -> [f32; 8] {
    for half in [1, 2, 4] {
        let mut next = [0.0; 8];
        for at in 0..8 {
            // The lower of a pair gets the sum, the upper the difference.
            let (low, high) = (x[at & !half], x[at | half]);
            next[at] = if at & half == 0 {
                low + high
            } else {
                low - high
            };
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transform as it is defined: a sum over all with signs, exact on small integers.
    #[test]
    fn a_turn_is_the_transform_of_its_definition() {
        for size in [8_usize, 64, 256] {
            let values: Vec<f32> = (0..size + 64)
                .map(|i| ((i * 7919) % 31) as f32 - 15.0)
                .collect();
            let flips: Vec<u32> = (0..size + 64)
                .map(|i| u32::from(i % 3 == 0) << 31)
                .collect();
            let block = 64..64 + size;
            let flipped = |i: usize| {
                if i.is_multiple_of(3) {
                    -values[i]
                } else {
                    values[i]
                }
            };
            let mut turned = values.clone();
            turn(&mut turned, &flips, block.clone(), 0.5);
            let mut plain = values.clone();
            turn_body(&mut plain, &flips, block.clone(), 0.5);
            assert_eq!(turned, plain);
            for (at, found) in turned.iter().enumerate() {
                let expected = match at.checked_sub(64) {
                    None => flipped(at),
                    Some(row) => {
                        let sign = |i: usize| {
                            if (row & i).count_ones().is_multiple_of(2) {
                                1.0
                            } else {
                                -1.0
                            }
                        };
                        (0..size).map(|i| sign(i) * flipped(64 + i)).sum::<f32>() * 0.5
                    }
                };
                assert_eq!(*found, expected, "{size} {at}");
            }
        }
    }

    #[test]
    fn wide_registers_change_no_bit() {
        let values: Vec<f32> = (0..384_u16).map(|i| (f32::from(i) * 0.37).sin()).collect();
        let flips: Vec<u32> = (0..384).map(|i| u32::from(i % 5 < 2) << 31).collect();
        let (mut wide, mut plain) = (values.clone(), values);
        turn(&mut wide, &flips, 128..384, 1.0 / 16.0);
        turn_body(&mut plain, &flips, 128..384, 1.0 / 16.0);
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&wide), bits(&plain));
    }
}
