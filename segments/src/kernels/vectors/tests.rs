use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The definition once more, written from the documentation alone.
fn naive(query: &[f32], stored: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for i in 0..query.len() {
        let product = query[i] * stored[i];
        lanes[i % 16] += product;
    }
    for half in [8, 4, 2, 1] {
        for j in 0..half {
            lanes[j] += lanes[j + half];
        }
    }
    lanes[0]
}

fn encode(stored: &[f32], format: VectorFormat) -> Vec<u8> {
    match format {
        VectorFormat::F16 => stored
            .iter()
            .flat_map(|x| f16::from_f32(*x).to_le_bytes())
            .collect(),
        VectorFormat::F32 => stored.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// Any bits: denormals, zeros of both signs, huge values, infinities and NaN come up.
fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -1.0_f32..1.0,
        2 => any::<u32>().prop_map(f32::from_bits),
        1 => (0_u32..0x0080_0000, any::<bool>()).prop_map(|(m, s)| f32::from_bits(m | u32::from(s) << 31)),
        1 => prop_oneof![Just(0.0_f32), Just(-0.0), Just(6.0e-8), Just(-65504.0), Just(f32::MAX)],
    ]
}

fn check_bits(query: &[f32], stored: &[f32]) {
    for format in [VectorFormat::F16, VectorFormat::F32] {
        let bytes = encode(stored, format);
        let expected = naive(query, &widen(&bytes, format));
        let expected = if expected.is_nan() {
            f32::NAN
        } else {
            expected
        }
        .to_bits();
        assert_eq!(
            canonical(scalar::dot(query, &bytes, format)).to_bits(),
            expected,
            "scalar"
        );
        assert_eq!(dot(query, &bytes, format).to_bits(), expected, "dispatched");
        let four = dot_four(query, [&bytes; 4], format).map(f32::to_bits);
        assert_eq!(four, [expected; 4], "four at once");
    }
}

proptest! {
    #[test]
    fn every_form_gives_the_bits_of_the_definition(pairs in vec((any_f32(), any_f32()), 1..150)) {
        let (query, stored): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        check_bits(&query, &stored);
    }

    #[test]
    fn many_equal_one_by_one(dim in 1_usize..40, n in 0_usize..11, seed in any::<u32>()) {
        let value = |i: usize| ((i as f32) * 0.37 + seed as f32 * 1e-9).sin();
        let query: Vec<f32> = (0..dim).map(value).collect();
        let stored: Vec<f32> = (dim..dim + n * dim).map(value).collect();
        for format in [VectorFormat::F16, VectorFormat::F32] {
            let bytes = encode(&stored, format);
            let mut scores = vec![9.0];
            dot_many(&query, &bytes, format, &mut scores);
            let one_by_one = bytes.chunks(dim * format.bytes()).map(|one| dot(&query, one, format));
            let expected: Vec<f32> = std::iter::once(9.0).chain(one_by_one).collect();
            prop_assert_eq!(scores, expected);
        }
    }
}

#[test]
fn all_halves_widen_to_the_value_that_hardware_uses() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for (bits, wide) in (0..=u16::MAX).zip(widen(&bytes, VectorFormat::F16)) {
        let by_kernel = dot(&[1.0], &bits.to_le_bytes(), VectorFormat::F16);
        // The kernel's sum starts at +0.0, so it has no -0.0; NaN is the one NaN.
        let expected = if wide.is_nan() { f32::NAN } else { wide + 0.0 };
        assert_eq!(by_kernel.to_bits(), expected.to_bits(), "{bits:04x}");
    }
}

#[test]
fn the_order_of_operations_is_fixed() {
    // A sum in plain order or with fused steps would differ in the last bits.
    let query: Vec<f32> = (0..384_u16).map(|i| (f32::from(i) * 0.7).sin()).collect();
    let stored: Vec<f32> = (0..384_u16).map(|i| (f32::from(i) * 1.3).cos()).collect();
    let plain: f32 = query.iter().zip(&stored).map(|(a, b)| a * b).sum();
    let ours = dot(
        &query,
        &encode(&stored, VectorFormat::F32),
        VectorFormat::F32,
    );
    assert_eq!(ours.to_bits(), naive(&query, &stored).to_bits());
    assert_ne!(ours.to_bits(), plain.to_bits());
    assert!((ours - plain).abs() < 1e-4);
}

#[test]
#[should_panic(expected = "another dimension")]
fn a_vector_of_another_dimension_is_a_bug() {
    dot(&[1.0, 2.0], &[0; 2], VectorFormat::F16);
}
