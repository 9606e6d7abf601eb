//! Which rows of a scope have vectors that look alike? Sampled k-means, made once a merge.
//!
//! ```text
//!   policy ---> how many runs   (a pure function, with its reason)
//!   train  ---> centroids from a sample, parents' centroids first
//!   assign ---> each vector to its nearest centroid: one product of matrices a block
//!   sizes  ---> large runs cut, small ones given to their neighbours
//!   settle ---> centroids as means of all their vectors; how much a search has to look at
//! ```
//!
//! The products come from faer and differ in their last bits between machines: what is found
//! here is stored and never computed again. Everything else follows from the vectors, their
//! order and a fixed seed. Only vectors of one scope ever meet.
//!
//! Cost: one product with all centroids a vector, half as much again for training, and one
//! more pass; see [`RunPolicy::rows_aimed`] for why that stays below 20 µs a vector.

mod assign;
mod policy;
mod random;
mod settle;
mod sizes;
mod train;

use chronolith_segments::{ClusterRows, Clustering, SegmentError, VectorRows};

pub use policy::{RunPlan, RunPolicy, RunReason, plan_runs};

use random::Random;

type Result<T> = std::result::Result<T, SegmentError>;

/// Vectors that are read and multiplied at a time: about 10 ms of work with many centroids,
/// and a product that fits the caches.
const BLOCK: u32 = 512;

/// Groups the vectors of scopes for merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusterer {
    policy: RunPolicy,
    seed: u64,
}

impl Clusterer {
    /// One that goes by `policy`; equal seeds and vectors give equal runs on one machine.
    pub const fn new(policy: RunPolicy, seed: u64) -> Self {
        Self { policy, seed }
    }
}

impl ClusterRows for Clusterer {
    fn wants(&self, vectors: u32) -> bool {
        plan_runs(vectors, &self.policy).runs > 0
    }

    fn cluster(
        &self,
        vectors: &dyn VectorRows,
        parents: &[f32],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Clustering>> {
        let runs = plan_runs(vectors.count(), &self.policy).runs;
        if runs == 0 {
            return Ok(None);
        }
        let work = Work {
            vectors,
            places: None,
            goes_on,
        };
        let mut random = Random::new(self.seed);
        let centroids = train::train(&work, runs, parents, &mut random)?;
        let assigned = assign::assign_all(&work, &centroids)?;
        let sizes = sizes::Sizes {
            policy: &self.policy,
            work: &work,
        };
        let Some((runs, count)) = sizes.even_out(assigned, centroids, &mut random)? else {
            return Ok(None);
        };
        settle::settle(&work, runs, count, &mut random).map(Some)
    }
}

/// Some of a scope's vectors, and whether to go on.
#[derive(Clone, Copy)]
struct Work<'w> {
    vectors: &'w dyn VectorRows,
    /// Their places among the scope's; `None` = all.
    places: Option<&'w [u32]>,
    goes_on: &'w dyn Fn() -> bool,
}

impl Work<'_> {
    fn count(&self) -> u32 {
        match self.places {
            Some(places) => u32_of(places.len()),
            None => self.vectors.count(),
        }
    }

    fn dim(&self) -> usize {
        self.vectors.dim()
    }

    /// Replaces `block` by the vectors at `at..at + len`, one after the other.
    fn read(&self, at: u32, len: u32, block: &mut Vec<f32>) -> Result<()> {
        if !(self.goes_on)() {
            return Err(SegmentError::Stopped);
        }
        let dim = self.dim();
        block.resize(index(len) * dim, 0.0);
        for (place, vector) in (at..at + len).zip(block.chunks_exact_mut(dim)) {
            self.vectors.read_into(self.place(place), vector)?;
        }
        Ok(())
    }

    /// Place among all of the scope's vectors.
    fn place(&self, at: u32) -> u32 {
        self.places.map_or(at, |places| places[index(at)])
    }

    /// The vectors at `places`, one after the other.
    fn gather(&self, places: &[u32]) -> Result<Vec<f32>> {
        let dim = self.dim();
        let mut gathered = vec![0.0; places.len() * dim];
        for (place, vector) in places.iter().zip(gathered.chunks_exact_mut(dim)) {
            self.vectors.read_into(self.place(*place), vector)?;
        }
        Ok(gathered)
    }

    /// Calls `visit` with the first place and the vectors of each block.
    fn each_block(&self, mut visit: impl FnMut(u32, &[f32])) -> Result<()> {
        let (mut block, mut at) = (Vec::new(), 0);
        while at < self.count() {
            let len = BLOCK.min(self.count() - at);
            self.read(at, len, &mut block)?;
            visit(at, &block);
            at += len;
        }
        Ok(())
    }
}

/// A count as an index; the machine has at least 32 bits.
fn index(count: u32) -> usize {
    count as usize
}

/// How many there are of what each row has at most one.
fn u32_of(len: usize) -> u32 {
    u32::try_from(len).expect("at most one a row")
}

#[cfg(test)]
mod tests;
