//! What stands for a run in the end, and how many runs does a search need?
//!
//! Vectors of the scope are asked for as if they were questions, a little off: a question is
//! never what it finds. For each of its nearest vectors it is noted how many rows come before
//! it where runs are looked at by their centroids, best first.

use chronolith_segments::{Clustering, ProbeShares, SHARE_ALL};

use super::assign::products;
use super::random::Random;
use super::train::Means;
use super::{Result, Work, index, u32_of};

/// Vectors that are asked for.
const QUESTIONS: u32 = 128;
/// Nearest vectors of each that count.
const NEAREST: usize = 10;
/// Length of what is added to a vector to make a question of it, of its own length. Questions
/// to real embeddings lie further away from what they find than what they find from each
/// other.
const OFF: f32 = 1.0;
/// Percent of the measured share that is looked at: the questions that will come are others,
/// and on real sets (MiniLM, 3,000 to 11,000 vectors) the bare share fell up to 0.05 short.
const HEADROOM: u64 = 150;

/// The runs with their centroids; `runs` are those of all vectors of `work`.
pub(super) fn settle(
    work: &Work<'_>,
    runs: Vec<u32>,
    count: u32,
    random: &mut Random,
) -> Result<Clustering> {
    let dim = work.dim();
    let mut means = Means::new(count, dim);
    let mut questions = Questions::new(work, random)?;
    work.each_block(|at, block| {
        for (run, vector) in runs[index(at)..].iter().zip(block.chunks_exact(dim)) {
            means.add(*run, vector);
        }
        questions.see(at, block);
    })?;
    let centroids = means.finish();
    let shares = questions.shares(&runs, &means.counts, &centroids);
    Ok(Clustering {
        runs,
        centroids,
        shares,
    })
}

/// Questions and the nearest vectors so far.
struct Questions {
    dim: usize,
    /// Places of the vectors that the questions were made of: those do not count.
    places: Vec<u32>,
    /// `[n, dim]`.
    vectors: Vec<f32>,
    /// Of each question: score and place, best first.
    nearest: Vec<Vec<(f32, u32)>>,
    scratch: Vec<f32>,
}

impl Questions {
    fn new(work: &Work<'_>, random: &mut Random) -> Result<Self> {
        let places = random.spread(work.count(), QUESTIONS);
        let mut vectors = work.gather(&places)?;
        for vector in vectors.chunks_exact_mut(work.dim()) {
            let off: Vec<f32> = vector.iter().map(|_| random.normal()).collect();
            let factor = OFF * length(vector) / length(&off).max(f32::MIN_POSITIVE);
            for (x, off) in vector.iter_mut().zip(off) {
                *x += off * factor;
            }
        }
        Ok(Self {
            dim: work.dim(),
            nearest: vec![Vec::with_capacity(NEAREST + 1); places.len()],
            places,
            vectors,
            scratch: Vec::new(),
        })
    }

    /// Sees the vectors from place `at` on.
    fn see(&mut self, at: u32, block: &[f32]) {
        products(&self.vectors, block, self.dim, &mut self.scratch);
        for (place, scores) in (at..).zip(self.scratch.chunks_exact(self.places.len())) {
            for (question, score) in scores.iter().enumerate() {
                let nearest = &mut self.nearest[question];
                let full = nearest.len() == NEAREST;
                let beaten = nearest.last().is_some_and(|last| *score <= last.0);
                if (full && beaten) || self.places[question] == place {
                    continue;
                }
                let before = nearest.partition_point(|other| other.0 >= *score);
                nearest.insert(before, (*score, place));
                nearest.truncate(NEAREST);
            }
        }
    }

    /// How much of the scope has to be looked at; sizes and centroids by run.
    fn shares(mut self, runs: &[u32], sizes: &[u32], centroids: &[f32]) -> ProbeShares {
        let rows = u32_of(runs.len());
        products(centroids, &self.vectors, self.dim, &mut self.scratch);
        let mut reached = Vec::new();
        for (scores, nearest) in self.scratch.chunks_exact(sizes.len()).zip(&self.nearest) {
            let rows_upto = rows_upto(scores, sizes);
            let runs_of = nearest.iter().map(|(_, place)| runs[index(*place)]);
            reached.extend(runs_of.map(|run| rows_upto[index(run)]));
        }
        reached.sort_unstable();
        ProbeShares {
            share_95: share(&reached, 95, rows),
            share_99: share(&reached, 99, rows),
        }
    }
}

/// Of each run: rows that are looked at until it is done, the best run first.
fn rows_upto(scores: &[f32], sizes: &[u32]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let (mut upto, mut rows) = (vec![0; sizes.len()], 0);
    for run in order {
        rows += sizes[run];
        upto[run] = rows;
    }
    upto
}

/// What part of `rows` reaches `percent` of the ascending `reached` with headroom, millionths.
fn share(reached: &[u32], percent: usize, rows: u32) -> u32 {
    let needed = (reached.len() * percent).div_ceil(100);
    let Some(upto) = needed.checked_sub(1).map(|last| reached[last]) else {
        return SHARE_ALL;
    };
    let wanted = u64::from(upto) * u64::from(SHARE_ALL) * HEADROOM / 100;
    let share = wanted.div_ceil(u64::from(rows.max(1)));
    u32::try_from(share).map_or(SHARE_ALL, |share| share.clamp(1, SHARE_ALL))
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}
