//! Where do the centroids of a sample lie? Lloyd's algorithm, a few rounds of it.

use super::assign::Centroids;
use super::random::Random;
use super::{Result, Work, index};

/// Vectors of the sample a centroid: more of them move centroids little.
const SAMPLE_OF_A_RUN: u32 = 32;
/// Rounds from vectors, and from parents' centroids, which are nearly there.
const ROUNDS: u32 = 6;
const ROUNDS_FROM_PARENTS: u32 = 3;
/// Vectors that are multiplied at a time.
const BLOCK: usize = super::BLOCK as usize;

/// `runs` centroids of the vectors of `work`, which are as many or more.
///
/// * `parents`: `[n, dim]`; an even choice of them is the start, vectors fill up.
pub(super) fn train(
    work: &Work<'_>,
    runs: u32,
    parents: &[f32],
    random: &mut Random,
) -> Result<Centroids> {
    let dim = work.dim();
    let places = random.spread(work.count(), runs.saturating_mul(SAMPLE_OF_A_RUN));
    let sample = work.gather(&places)?;
    let taken = u32::try_from(parents.len() / dim)
        .unwrap_or(u32::MAX)
        .min(runs);
    let mut start = Vec::with_capacity(index(runs) * dim);
    for parent in random.spread(
        u32::try_from(parents.len() / dim).unwrap_or(u32::MAX),
        taken,
    ) {
        start.extend_from_slice(vector(parents, dim, parent));
    }
    let samples = u32::try_from(places.len()).expect("a sample of the rows");
    for place in random.spread(samples, runs - taken) {
        start.extend_from_slice(vector(&sample, dim, place));
    }
    let rounds = match taken * 2 >= runs {
        true => ROUNDS_FROM_PARENTS,
        false => ROUNDS,
    };
    let mut centroids = Centroids::new(dim, start);
    for _ in 0..rounds {
        centroids = moved(work, &sample, &centroids, random)?;
    }
    Ok(centroids)
}

/// One round: each centroid becomes the mean of the vectors that are nearest to it.
fn moved(
    work: &Work<'_>,
    sample: &[f32],
    centroids: &Centroids,
    random: &mut Random,
) -> Result<Centroids> {
    let dim = work.dim();
    let mut means = Means::new(centroids.count(), dim);
    let (mut scratch, mut nearest) = (Vec::new(), Vec::new());
    for block in sample.chunks(BLOCK * dim) {
        if !(work.goes_on)() {
            return Err(chronolith_segments::SegmentError::Stopped);
        }
        centroids.nearest(block, &mut scratch, &mut nearest);
        for (run, vector) in nearest.iter().zip(block.chunks_exact(dim)) {
            means.add(*run, vector);
        }
    }
    let mut values = means.finish();
    // A centroid without a vector starts again at one of the sample: it is cut off a run that
    // has many, as most of the sample lies in those.
    let samples = u32::try_from(sample.len() / dim).expect("a sample of the rows");
    for (run, count) in (0_u32..).zip(&means.counts) {
        if *count == 0 {
            let from = vector(sample, dim, random.below(samples));
            values[index(run) * dim..][..dim].copy_from_slice(from);
        }
    }
    Ok(Centroids::new(dim, values))
}

fn vector(vectors: &[f32], dim: usize, at: u32) -> &[f32] {
    &vectors[index(at) * dim..][..dim]
}

/// Means of vectors by run. Summed in f64: f32 can neither overflow it nor drown in it.
#[derive(Debug)]
pub(super) struct Means {
    dim: usize,
    sums: Vec<f64>,
    pub(super) counts: Vec<u32>,
}

impl Means {
    pub(super) fn new(runs: u32, dim: usize) -> Self {
        Self {
            dim,
            sums: vec![0.0; index(runs) * dim],
            counts: vec![0; index(runs)],
        }
    }

    pub(super) fn add(&mut self, run: u32, vector: &[f32]) {
        let sums = &mut self.sums[index(run) * self.dim..][..self.dim];
        for (sum, x) in sums.iter_mut().zip(vector) {
            *sum += f64::from(*x);
        }
        self.counts[index(run)] += 1;
    }

    /// `[runs, dim]`; zeros where a run has no vector.
    pub(super) fn finish(&self) -> Vec<f32> {
        let sums = self.sums.chunks_exact(self.dim).zip(&self.counts);
        sums.flat_map(|(sums, count)| {
            let count = f64::from((*count).max(1));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a mean of f32 lies among them"
            )]
            let mean = move |sum: &f64| (sum / count) as f32;
            sums.iter().map(mean)
        })
        .collect()
    }
}
