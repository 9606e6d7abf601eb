//! Runs of made-up vectors: what they promise, and a plain twin of the assignment.

use proptest::prelude::*;

use chronolith_segments::{ProbeShares, SHARE_ALL};

use super::assign::{Centroids, assign_all};
use super::*;

/// Vectors in memory.
struct Vectors {
    dim: usize,
    values: Vec<f32>,
}

impl VectorRows for Vectors {
    fn count(&self) -> u32 {
        u32_of(self.values.len() / self.dim)
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn read_into(&self, at: u32, vector: &mut [f32]) -> Result<()> {
        vector.copy_from_slice(&self.values[index(at) * self.dim..][..self.dim]);
        Ok(())
    }
}

impl Vectors {
    /// `count` vectors round `centres` random ones, `apart` times their own spread from each
    /// other.
    fn round(centres: u32, count: u32, dim: usize, apart: f32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let centre: Vec<f32> = (0..index(centres) * dim)
            .map(|_| random.normal() * apart)
            .collect();
        let mut values = Vec::with_capacity(index(count) * dim);
        for at in 0..count {
            let centre = &centre[index(at % centres) * dim..][..dim];
            values.extend(centre.iter().map(|x| x + random.normal()));
        }
        Self { dim, values }
    }

    fn vector(&self, at: u32) -> &[f32] {
        &self.values[index(at) * self.dim..][..self.dim]
    }
}

const POLICY: RunPolicy = RunPolicy {
    rows_min: 8,
    rows_max: 64,
};

fn cluster(vectors: &Vectors, policy: RunPolicy, parents: &[f32]) -> Option<Clustering> {
    let clusterer = Clusterer::new(policy, 7);
    let found = clusterer.cluster(vectors, parents, &|| true);
    found.expect("nothing is damaged and nobody stops it")
}

fn sizes(found: &Clustering) -> Vec<u32> {
    let runs = found.runs.iter().max().map_or(0, |run| run + 1);
    let mut sizes = vec![0; index(runs)];
    for run in &found.runs {
        sizes[index(*run)] += 1;
    }
    sizes
}

/// What every clustering promises.
fn check(vectors: &Vectors, policy: RunPolicy, found: &Clustering) {
    assert_eq!(found.runs.len(), index(vectors.count()));
    let sizes = sizes(found);
    assert!(sizes.len() >= 2, "one run is none");
    assert!(
        sizes.iter().all(|size| *size >= policy.rows_min),
        "{sizes:?}"
    );
    assert_eq!(found.centroids.len(), sizes.len() * vectors.dim);
    assert!(found.centroids.iter().all(|x| x.is_finite()));
    let ProbeShares { share_95, share_99 } = found.shares;
    assert!(0 < share_95 && share_95 <= share_99 && share_99 <= SHARE_ALL);
}

/// Plain loops in f64.
fn naive_score(vector: &[f32], centroid: &[f32]) -> f64 {
    let pairs = vector.iter().zip(centroid);
    let apart = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    -apart.sum::<f64>() / 2.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_vector_goes_to_the_centroid_that_a_plain_loop_finds(
        (dim, count, runs) in (1_usize..40, 1_u32..700, 1_u32..30), seed in any::<u64>(),
    ) {
        let vectors = Vectors::round(3, count, dim, 2.0, seed);
        let centroids = Vectors::round(runs, runs, dim, 2.0, !seed);
        let work = Work { vectors: &vectors, places: None, goes_on: &|| true };
        let found = assign_all(&work, &Centroids::new(dim, centroids.values.clone()));
        let found = found.expect("in memory");
        prop_assert_eq!(found.len(), index(count));
        for (at, run) in (0..count).zip(found) {
            let score = |run: u32| naive_score(vectors.vector(at), centroids.vector(run));
            let best = (0..runs).map(score).fold(f64::NEG_INFINITY, f64::max);
            // f32 rounds: two that are as near to it may stand for each other.
            let slack = 1e-4 * (1.0 + naive_score(vectors.vector(at), &vec![0.0; dim]).abs());
            prop_assert!(score(run) >= best - slack, "{} of {best}", score(run));
        }
    }

    #[test]
    fn runs_keep_their_promises_whatever_the_vectors(
        (dim, count, centres) in (1_usize..20, 16_u32..900, 1_u32..40),
        apart in 0.0_f32..10.0,
        seed in any::<u64>(),
    ) {
        let vectors = Vectors::round(centres, count, dim, apart, seed);
        if let Some(found) = cluster(&vectors, POLICY, &[]) {
            check(&vectors, POLICY, &found);
        }
    }
}

#[test]
fn equal_vectors_and_seeds_give_equal_runs() {
    let vectors = Vectors::round(10, 2000, 16, 3.0, 7);
    let first = cluster(&vectors, POLICY, &[]).expect("runs");
    assert_eq!(cluster(&vectors, POLICY, &[]), Some(first));
}

#[test]
fn vectors_of_one_kind_share_their_runs() {
    let vectors = Vectors::round(10, 2000, 16, 8.0, 7);
    let found = cluster(&vectors, POLICY, &[]).expect("runs");
    check(&vectors, POLICY, &found);
    // By run the kinds of its vectors: a place's kind is its remainder.
    let runs = sizes(&found).len();
    let mut kinds = vec![[0_u32; 10]; runs];
    for (at, run) in found.runs.iter().enumerate() {
        kinds[index(*run)][at % 10] += 1;
    }
    let most: u32 = kinds
        .iter()
        .map(|kinds| kinds.iter().max().expect("ten"))
        .sum();
    assert!(most >= 1900, "{most} of 2000 lie with their kind");
    assert!(found.shares.share_99 < 500_000, "{:?}", found.shares);
}

#[test]
fn large_runs_are_cut_and_none_is_small() {
    // Nine of ten vectors round one centre.
    let mut vectors = Vectors::round(1, 1800, 8, 5.0, 1);
    vectors
        .values
        .extend(Vectors::round(20, 200, 8, 5.0, 2).values);
    let found = cluster(&vectors, POLICY, &[]).expect("runs");
    check(&vectors, POLICY, &found);
    let largest = sizes(&found).into_iter().max().expect("runs");
    assert!(largest <= 2 * POLICY.rows_max, "{:?}", sizes(&found));
}

#[test]
fn what_cannot_be_told_apart_has_no_runs() {
    for value in [0.0, 1e-30, 1.0, -3.4e38] {
        let vectors = Vectors {
            dim: 4,
            values: vec![value; 4000],
        };
        assert_eq!(cluster(&vectors, POLICY, &[]), None, "all {value}");
    }
}

#[test]
fn a_few_zero_vectors_among_many_are_vectors_like_others() {
    let mut vectors = Vectors::round(5, 1900, 8, 5.0, 3);
    vectors.values.extend(vec![0.0; 100 * 8]);
    let found = cluster(&vectors, POLICY, &[]).expect("runs");
    check(&vectors, POLICY, &found);
    let zeros = &found.runs[1900..];
    assert!(
        zeros.iter().all(|run| *run == zeros[0]),
        "equal ones stay together"
    );
}

#[test]
fn lengths_beyond_f32_leave_finite_centroids() {
    let mut vectors = Vectors::round(4, 600, 4, 5.0, 4);
    for (at, value) in vectors.values.iter_mut().enumerate() {
        if at % 12 < 4 {
            *value = if at % 2 == 0 { 3e38 } else { -3e38 };
        }
    }
    if let Some(found) = cluster(&vectors, POLICY, &[]) {
        check(&vectors, POLICY, &found);
    }
}

#[test]
fn less_than_two_smallest_runs_are_none() {
    let few = Vectors::round(2, 15, 4, 9.0, 5);
    assert_eq!(cluster(&few, POLICY, &[]), None);
    assert!(!Clusterer::new(POLICY, 0).wants(15));
    let enough = Vectors::round(2, 16, 4, 9.0, 5);
    let found = cluster(&enough, POLICY, &[]).expect("two kinds of eight");
    assert_eq!(sizes(&found), [8, 8]);
}

#[test]
fn parents_are_a_start_and_leave_no_trace_where_nothing_is_near() {
    let vectors = Vectors::round(10, 2000, 16, 3.0, 7);
    let first = cluster(&vectors, POLICY, &[]).expect("runs");
    let again = cluster(&vectors, POLICY, &first.centroids).expect("runs");
    check(&vectors, POLICY, &again);
    // A centroid is the mean of its vectors, wherever it came from.
    let far = vec![1e6; 40 * 16];
    let found = cluster(&vectors, POLICY, &far).expect("runs");
    check(&vectors, POLICY, &found);
    assert!(found.centroids.iter().all(|x| x.abs() < 1e3));
}

#[test]
fn every_step_can_be_stopped() {
    let vectors = Vectors::round(4, 1500, 8, 4.0, 6);
    let asked = std::cell::Cell::new(0);
    let whole = Clusterer::new(POLICY, 7).cluster(&vectors, &[], &|| {
        asked.set(asked.get() + 1);
        true
    });
    assert!(whole.expect("in memory").is_some());
    assert!(asked.get() > 10, "{} times", asked.get());
    for stop_at in 0..asked.get() {
        let left = std::cell::Cell::new(stop_at);
        let stopped = Clusterer::new(POLICY, 7).cluster(&vectors, &[], &|| {
            let goes_on = left.get() > 0;
            left.set(left.get() - i32::from(goes_on));
            goes_on
        });
        assert!(
            matches!(stopped, Err(SegmentError::Stopped)),
            "at {stop_at}"
        );
    }
}
