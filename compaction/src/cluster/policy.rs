//! Which scopes get runs, and how many?

use std::fmt::{self, Display, Formatter};

/// How large runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPolicy {
    /// Fewest vectors of a run: looking at a run has a price of its own, and a centroid and an
    /// entry are stored for it.
    pub rows_min: u32,
    /// Most vectors of a run, as far as they can be told apart.
    pub rows_max: u32,
}

impl Default for RunPolicy {
    fn default() -> Self {
        Self {
            rows_min: 256,
            rows_max: 2048,
        }
    }
}

impl RunPolicy {
    /// Vectors that a run of a scope with so many aims at: about the square root, where
    /// looking at all centroids costs as much as looking at some runs. At least twice the
    /// minimum, so that uneven runs still reach it; at most half the maximum, likewise.
    ///
    /// The number of runs times the dimension is the price of a vector's assignment: a million
    /// vectors in a thousand runs of 384 dimensions take 0.8 MFLOP each, which is 8 µs or so.
    /// It does not grow past [`RunPolicy::RUNS_MAX`] runs: of more vectors the runs get larger
    /// than the maximum and are cut, which costs a product with a few centroids.
    pub fn rows_aimed(&self, vectors: u32) -> u32 {
        let least = self.rows_min.max(1).saturating_mul(2);
        let most = (self.rows_max / 2).max(least);
        vectors
            .isqrt()
            .clamp(least, most)
            .max(vectors.div_ceil(Self::RUNS_MAX))
    }

    /// Most runs of a scope that one merge aims at; more come of cutting large ones.
    pub const RUNS_MAX: u32 = 1024;
}

/// How many runs a scope gets; 0 = none: its rows are looked at one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlan {
    /// Runs to aim at.
    pub runs: u32,
    /// Why.
    pub reason: RunReason,
}

/// Why a scope gets the runs it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunReason {
    /// Two runs need so many vectors, and it has fewer.
    TooFew {
        /// Vectors of two smallest runs.
        needed: u32,
    },
    /// Runs of about so many vectors.
    Aimed {
        /// Vectors a run.
        rows: u32,
    },
}

impl Display for RunReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { needed } => {
                write!(f, "fewer than the {needed} vectors that two runs need")
            }
            Self::Aimed { rows } => write!(f, "runs of about {rows} vectors"),
        }
    }
}

/// How many runs a scope with so many vectors in one segment gets.
pub fn plan_runs(vectors: u32, policy: &RunPolicy) -> RunPlan {
    let needed = policy.rows_min.max(1).saturating_mul(2);
    if vectors < needed {
        return RunPlan {
            runs: 0,
            reason: RunReason::TooFew { needed },
        };
    }
    let rows = policy.rows_aimed(vectors);
    RunPlan {
        runs: (vectors / rows).max(2),
        reason: RunReason::Aimed { rows },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_from_the_count_of_vectors() {
        let plan = |vectors| {
            let RunPlan { runs, reason } = plan_runs(vectors, &RunPolicy::default());
            (runs, reason.to_string())
        };
        let few = "fewer than the 512 vectors that two runs need";
        assert_eq!(plan(0), (0, few.to_owned()));
        assert_eq!(plan(511), (0, few.to_owned()));
        assert_eq!(plan(512), (2, "runs of about 512 vectors".to_owned()));
        assert_eq!(plan(10_000).0, 19);
        assert_eq!(plan(100_000).0, 195);
        assert_eq!(
            plan(1_000_000),
            (1000, "runs of about 1000 vectors".to_owned())
        );
        assert_eq!(
            plan(4_000_000),
            (1023, "runs of about 3907 vectors".to_owned())
        );
    }

    #[test]
    fn odd_policies_are_no_trouble() {
        for (rows_min, rows_max) in [(0, 0), (1, 1), (1, 2), (5, 3), (u32::MAX, u32::MAX)] {
            let policy = RunPolicy { rows_min, rows_max };
            for vectors in [0, 1, 2, 3, 100, u32::MAX] {
                let runs = plan_runs(vectors, &policy).runs;
                assert!(
                    runs <= vectors && runs <= RunPolicy::RUNS_MAX,
                    "{runs} of {vectors}"
                );
            }
        }
    }
}
