use proptest::prelude::*;

use super::*;
use crate::error::SegmentError;
use crate::format::{Section, VecSink};
use crate::prepared::{VectorFormat, VectorSpace, prepare_vector};
use crate::vectors::widen;

fn space(dim: u32, format: VectorFormat) -> VectorSpace {
    VectorSpace {
        model: "test".into(),
        dim,
        format,
        normalised: false,
    }
}

/// Numbers that look like chance, about normal, a function of `seed`.
fn noise(n: usize, seed: u64) -> Vec<f32> {
    let at = |i: usize, k: u64| {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(&(i as u64 * 8 + k).to_le_bytes(), seed);
        (hash >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
    };
    (0..n).map(|i| (0..4).map(|k| at(i, k)).sum()).collect()
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector
        .iter()
        .map(|x| f64::from(*x) * f64::from(*x))
        .sum::<f64>()
        .sqrt();
    vector
        .iter_mut()
        .for_each(|x| *x = (f64::from(*x) / norm) as f32);
    vector
}

fn stored(space: &VectorSpace, vector: &[f32]) -> Vec<u8> {
    prepare_vector(space, vector).expect("fits")
}

fn estimate(coder: &Coder, query: &[f32], stored: &[u8]) -> f64 {
    let mut code = Vec::new();
    let factor = coder.encode(stored, &mut code);
    let (query, mut estimates) = (coder.query(query), Vec::new());
    query.estimate_many(&code, &factor.to_le_bytes(), &mut estimates);
    query.product(estimates[0])
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum()
}

#[test]
fn a_code_never_changes() {
    // What stands in files: another value here is another METHOD.
    let space = space(70, VectorFormat::F32);
    let coder = Coder::new(&space, code_seed(b"sixteen byte id."));
    let vector: Vec<f32> = (0..70_u8).map(|i| f32::from(i) - 30.5).collect();
    let mut code = Vec::new();
    let factor = coder.encode(&stored(&space, &vector), &mut code);
    let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (coder.seed(), hex.as_str(), factor.to_bits()),
        (GOLDEN_SEED, GOLDEN_CODE, GOLDEN_FACTOR)
    );
}

const GOLDEN_SEED: u64 = 12_261_685_660_476_747_594;
const GOLDEN_CODE: &str = "b9cd7f46c0e44324eef8fabf77d746d7";
const GOLDEN_FACTOR: u32 = 1_101_073_603;

#[test]
fn estimates_lie_within_the_bound_as_often_as_it_says() {
    for (dim, format) in [
        (384, VectorFormat::F16),
        (100, VectorFormat::F32),
        (768, VectorFormat::F16),
    ] {
        let space = space(dim, format);
        let coder = Coder::new(&space, 5);
        let (mut outside, mut errors, n) = (0, 0.0, 400);
        for seed in 0..n {
            let near = noise(dim as usize, seed);
            let query = unit(noise(dim as usize, seed + 10_000));
            // From unlike to much alike.
            let mix = seed as f32 / n as f32;
            let vector = near
                .iter()
                .zip(&query)
                .map(|(a, b)| a * 0.05 + b * mix)
                .collect();
            let bytes = stored(&space, &unit(vector));
            let exact = dot(&query, &widen(&bytes, format));
            let found = estimate(&coder, &query, &bytes);
            let mut code = Vec::new();
            let factor = coder.encode(&bytes, &mut code);
            let bound = error_bound(1.0, factor, 1.0, dim, 1.9);
            assert!(bound > 0.0 && bound < 0.3, "{dim}: {bound}");
            outside += u32::from((found - exact).abs() > bound);
            errors += found - exact;
        }
        assert!(outside < 16, "{dim}: {outside} of {n} outside");
        // No lean to one side, but for what [`CodeQuery::product`] says of near vectors.
        assert!(
            (errors / n as f64).abs() < 0.02,
            "{dim}: {}",
            errors / n as f64
        );
    }
}

#[test]
fn a_few_hundred_candidates_hold_the_nearest() {
    let space = space(384, VectorFormat::F16);
    let coder = Coder::new(&space, 3);
    let centres: Vec<Vec<f32>> = (0..20).map(|c| unit(noise(384, 900 + c))).collect();
    let near = |seed: u64| -> Vec<f32> {
        let own = unit(noise(384, seed));
        let centre = &centres[seed as usize % centres.len()];
        unit(
            own.iter()
                .zip(centre)
                .map(|(a, b)| a * 0.6 + b * 0.8)
                .collect(),
        )
    };
    let vectors: Vec<Vec<u8>> = (0..4000).map(|seed| stored(&space, &near(seed))).collect();
    let (mut codes, mut factors) = (Vec::new(), Vec::new());
    for vector in &vectors {
        let factor = coder.encode(vector, &mut codes);
        factors.extend_from_slice(&factor.to_le_bytes());
    }
    let (mut found, mut wanted) = (0, 0);
    for seed in 0..20 {
        let query = near(50_000 + seed);
        let mut exact: Vec<(f64, u32)> = vectors
            .iter()
            .zip(0..)
            .map(|(vector, row)| (dot(&query, &widen(vector, space.format)), row))
            .collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut estimates = Vec::new();
        coder
            .query(&query)
            .estimate_many(&codes, &factors, &mut estimates);
        let mut nearest = Nearest::new(200);
        nearest
            .offer_all(0, &estimates, |at| Ok::<_, ()>(Some(at as u32)))
            .expect("no error");
        let rows: Vec<u32> = nearest.into_rows().iter().map(|one| one.row).collect();
        wanted += 10;
        found += exact[..10]
            .iter()
            .filter(|(_, row)| rows.binary_search(row).is_ok())
            .count();
    }
    assert!(found * 1000 >= wanted * 990, "{found} of {wanted}");
}

#[test]
fn vectors_at_the_ends_of_the_range_have_finite_codes() {
    let query = unit(noise(384, 1));
    for format in [VectorFormat::F16, VectorFormat::F32] {
        let (space, size) = (space(384, format), 384 * format.bytes());
        let coder = Coder::new(&space, 5);
        let fill = |x: f32| -> Vec<u8> {
            match format {
                VectorFormat::F16 => half::f16::from_f32(x).to_le_bytes().repeat(384),
                VectorFormat::F32 => x.to_le_bytes().repeat(384),
            }
        };
        for x in [
            0.0,
            -0.0,
            1.0,
            -1.0,
            1e-20,
            1e-45,
            6e-8,
            65504.0,
            f32::MAX,
            f32::MIN,
        ] {
            let bytes = fill(x);
            let mut code = Vec::new();
            let factor = coder.encode(&bytes, &mut code);
            assert_eq!(code.len(), 48);
            assert!(factor.is_finite() || (x.abs() > 65504.0 && format == VectorFormat::F16));
            assert!(factor >= 0.0, "{x}: {factor}");
            let found = estimate(&coder, &query, &bytes);
            assert!(!found.is_nan(), "{x}");
        }
        // What no writer lets in must not stop a reader.
        for byte in [0xff, 0x7f, 0x7c] {
            let mut code = Vec::new();
            let factor = coder.encode(&vec![byte; size], &mut code);
            assert!(factor.is_finite() && factor >= 0.0);
        }
        // All alike: all estimates equal, so all are candidates.
        let (mut codes, mut factors, mut estimates) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..50 {
            let factor = coder.encode(&fill(0.5), &mut codes);
            factors.extend_from_slice(&factor.to_le_bytes());
        }
        coder
            .query(&query)
            .estimate_many(&codes, &factors, &mut estimates);
        let mut nearest = Nearest::new(3);
        nearest
            .offer_all(0, &estimates, |at| Ok::<_, ()>(Some(at as u32)))
            .expect("no error");
        assert_eq!(nearest.into_rows().len(), 50);
    }
}

#[test]
fn a_power_of_two_changes_the_factor_alone() {
    let space = space(384, VectorFormat::F32);
    let coder = Coder::new(&space, 5);
    let (vector, mut code) = (noise(384, 2), Vec::new());
    let factor = coder.encode(&stored(&space, &vector), &mut code);
    for scale in [0.25, 1024.0, 2.0_f32.powi(60), 2.0_f32.powi(-30)] {
        let scaled: Vec<f32> = vector.iter().map(|x| x * scale).collect();
        let mut other = Vec::new();
        let other_factor = coder.encode(&stored(&space, &scaled), &mut other);
        assert_eq!((other, other_factor), (code.clone(), factor * scale));
    }
}

const DIM: u32 = 65;

fn written(n: usize) -> (Vec<u8>, Coder) {
    let space = space(DIM, VectorFormat::F32);
    let coder = Coder::new(&space, 77);
    let mut writer = CodesWriter::new(&space, 77);
    let mut sink = VecSink::default();
    for row in 0..n {
        let mut code = Vec::new();
        let factor = coder.encode(&stored(&space, &noise(65, row as u64)), &mut code);
        writer.push(&mut sink, &code, factor).expect("in memory");
    }
    writer.finish(&mut sink).expect("in memory");
    (sink.bytes, coder)
}

fn open(bytes: Vec<u8>, dim: u32, count: usize, seed: u64) -> Result<Codes, SegmentError> {
    let section = Section::in_memory("vector_codes", bytes);
    Codes::open(section, &space(dim, VectorFormat::F32), count as u32, seed)
}

#[test]
fn scans_give_each_code_its_own_estimate() {
    let n = 9000;
    let (bytes, coder) = written(n);
    let codes = open(bytes, DIM, n, 77).expect("intact");
    let query = coder.query(&noise(65, 1 << 40));
    let one = |at: u32| {
        let ((code, factor), mut estimates) = (codes.get(at).expect("intact"), Vec::new());
        query.estimate_many(&code, &factor.to_le_bytes(), &mut estimates);
        (at, estimates[0])
    };
    for range in [0..9000, 4095..4097, 17..17, 8999..9000] {
        let mut found = Vec::new();
        let mut each = |first: u32, estimates: &[f32]| {
            found.extend((first..).zip(estimates.iter().copied()));
            Ok(())
        };
        codes
            .scan(&query, range.clone(), &mut each)
            .expect("intact");
        assert_eq!(found, range.map(one).collect::<Vec<_>>());
    }
    for step in [1, 3, 50, 1500] {
        let listed: Vec<u32> = (0..9000).step_by(step).collect();
        let mut found = Vec::new();
        let mut each = |places: &[u32], estimates: &[f32]| {
            found.extend(places.iter().copied().zip(estimates.iter().copied()));
            Ok(())
        };
        codes
            .scan_listed(&query, &listed, &mut each)
            .expect("intact");
        assert_eq!(found, listed.into_iter().map(one).collect::<Vec<_>>());
    }
    assert!(codes.get(9000).is_err());
    assert!(codes.scan(&query, 8999..9001, &mut |_, _| Ok(())).is_err());
    assert!(
        codes
            .scan_listed(&query, &[4, 9000], &mut |_, _| Ok(()))
            .is_err()
    );
}

#[test]
fn codes_of_another_store_space_or_count_are_refused() {
    let (bytes, _) = written(5);
    assert!(open(bytes.clone(), DIM, 5, 77).is_ok());
    for (dim, count, seed) in [(64, 5, 77), (300, 5, 77), (DIM, 4, 77), (DIM, 5, 78)] {
        let error = open(bytes.clone(), dim, count, seed)
            .expect_err("another")
            .to_string();
        assert!(error.contains("section vector_codes"), "{error}");
    }
    assert!(open(bytes[1..].to_vec(), DIM, 5, 77).is_err());
    assert!(open(Vec::new(), DIM, 0, 77).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn forged_factors_are_harmless(forged in any::<[u32; 5]>(), kind in 0_usize..4) {
        let (mut bytes, coder) = written(5);
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0][kind].to_bits();
        for (at, bits) in forged.iter().enumerate() {
            let bits = if at % 2 == 0 { special } else { *bits };
            bytes[5 * 16 + at * 4..][..4].copy_from_slice(&bits.to_le_bytes());
        }
        let codes = open(bytes, DIM, 5, 77).expect("the trailer is whole");
        let mut nearest = Nearest::new(2);
        let query = coder.query(&noise(65, 9));
        codes.scan(&query, 0..5, &mut |first, estimates| {
            nearest.offer_all(0, estimates, |at| Ok(Some(first + at as u32)))
        }).expect("intact");
        prop_assert!(nearest.into_rows().iter().all(|one| !one.estimate.is_nan()));
    }
}
