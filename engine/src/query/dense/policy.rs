//! Are whole vectors compared or codes, and how many candidates does a list need? Pure, and
//! with the reason.
//!
//! Decided by counts of rows alone, never by where they lie: an answer does not change with
//! the layout.

use std::iter::Sum;

use super::share::Target;

/// Rows that are scored by their vectors rather than by codes: about the cost of candidates
/// and scan together.
const EXACT_ROWS_MAX: u64 = 2000;
/// Most candidates that a request may ask for.
pub const CANDIDATES_MAX: usize = 1 << 20;
/// Candidates of a short list in a scope of few rows, and how many more they are with each
/// doubling above [`SCOPE_ROWS`]: the more rows, the more of them have estimates near the edge.
const CANDIDATES_MIN: u64 = 280;
const CANDIDATES_MORE: u64 = 40;
const SCOPE_ROWS: u64 = 1 << 13;
/// Candidates for each row of a longer list.
const CANDIDATES_PER_ROW: u64 = 8;
/// Share of the best rows that a list by codes may miss, as measured on the evaluation sets.
const MISSED_SHARE: f64 = 0.005;

/// How the dense channel found its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DenseWay {
    /// The vector of every row that passes the filters was scored.
    Vectors,
    /// The code of every row that passes was compared, and the best by estimate were scored, the
    /// best first, until no other was likely to be among the best.
    Codes {
        /// How many of the best were scored at most; equal estimates at the edge come on top.
        candidates: usize,
    },
    /// As by codes, of the rows in the runs whose centroids are nearest alone: so many rows pass
    /// that the others are left out.
    Runs {
        /// As by codes.
        candidates: usize,
    },
}

/// What was decided for the dense channel.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PlannedDense {
    /// The way.
    pub way: DenseWay,
    /// Why.
    pub reason: &'static str,
    /// Share of the best rows that may be missing; `None` = exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

impl PlannedDense {
    /// What became of a search by codes that looked at a part of the rows.
    pub(super) fn probed(self, candidates: usize, target: Target) -> Self {
        Self {
            way: DenseWay::Runs { candidates },
            reason: "very many rows pass the filters, and the best lie in few runs",
            bound: self.bound.map(|bound| bound + target.missed_share()),
        }
    }
}

/// What the request says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Asked {
    /// Every vector is to be scored.
    pub(crate) exhaustive: bool,
    /// Candidates, where the request names them.
    pub(crate) candidates: Option<usize>,
    /// Rows up to which all are looked at.
    pub(crate) probe_rows_min: u64,
}

/// Live rows with a vector that pass every filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    Exactly(u64),
    /// More than [`rows_max`] of the request.
    Many,
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::Exactly(0), |sum, count| match (sum, count) {
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a + b),
            _ => Self::Many,
        })
    }
}

/// What the decision is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) asked: Asked,
    /// Rows of the list that is wanted.
    pub(crate) list: usize,
    /// Live rows of the requested scopes, before any filter.
    pub(crate) population: u64,
    pub(crate) rows: Count,
    /// Texts decide which rows count: a candidate may fail there.
    pub(crate) has_phrases: bool,
    /// Every partition has codes of this store.
    pub(crate) has_codes: bool,
}

/// Decides.
pub(crate) fn choose(facts: &Facts) -> PlannedDense {
    let vectors = |reason| PlannedDense {
        way: DenseWay::Vectors,
        reason,
        bound: None,
    };
    let candidates = candidates(facts.asked, facts.list, facts.population);
    if facts.asked.exhaustive {
        return vectors("every vector was asked for");
    }
    if !facts.has_codes {
        return vectors("a partition has no codes");
    }
    if facts.has_phrases {
        return vectors("phrases decide which rows count");
    }
    let Count::Exactly(rows) = facts.rows else {
        return by_codes(candidates);
    };
    if facts.asked.candidates.is_none() && rows <= EXACT_ROWS_MAX {
        return vectors("few rows pass the filters");
    }
    if rows <= candidates as u64 {
        return vectors("every row would be a candidate");
    }
    by_codes(candidates)
}

fn by_codes(candidates: usize) -> PlannedDense {
    PlannedDense {
        way: DenseWay::Codes { candidates },
        reason: "many rows pass the filters",
        bound: Some(MISSED_SHARE),
    }
}

/// Rows above which their exact number decides nothing any more.
pub(crate) fn rows_max(asked: Asked, list: usize, population: u64) -> u64 {
    let candidates = candidates(asked, list, population) as u64;
    match asked.candidates {
        Some(_) => candidates,
        None => candidates.max(EXACT_ROWS_MAX),
    }
}

/// Candidates that a list of `list` rows needs, so that no more than [`MISSED_SHARE`] of it is
/// missing on any evaluation set. By the rows of the scopes and not by those that pass the
/// filters: these are not counted to the end.
fn candidates(asked: Asked, list: usize, population: u64) -> usize {
    if let Some(candidates) = asked.candidates {
        return candidates;
    }
    let doublings = u64::from((population / SCOPE_ROWS).max(1).ilog2());
    let short = CANDIDATES_MIN + CANDIDATES_MORE * doublings;
    let long = (list as u64).saturating_mul(CANDIDATES_PER_ROW);
    usize::try_from(short.max(long)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(rows: Count) -> Facts {
        Facts {
            asked: Asked::default(),
            list: 10,
            population: 9000,
            rows,
            has_phrases: false,
            has_codes: true,
        }
    }

    #[test]
    fn few_rows_are_scored_and_many_are_estimated_first() {
        let way = |facts: Facts| choose(&facts).way;
        let codes = DenseWay::Codes { candidates: 280 };
        assert_eq!(way(facts(Count::Exactly(2000))), DenseWay::Vectors);
        assert_eq!(way(facts(Count::Exactly(2001))), codes);
        assert_eq!(way(facts(Count::Many)), codes);
        let long = Facts {
            list: 1000,
            ..facts(Count::Many)
        };
        assert_eq!(way(long), DenseWay::Codes { candidates: 8000 });
        let all = Facts {
            list: 1000,
            ..facts(Count::Exactly(5000))
        };
        assert_eq!(choose(&all).reason, "every row would be a candidate");
    }

    #[test]
    fn what_codes_cannot_answer_is_scored() {
        let many = facts(Count::Many);
        let exhaustive = Asked {
            exhaustive: true,
            candidates: Some(5),
            probe_rows_min: 0,
        };
        for facts in [
            Facts {
                asked: exhaustive,
                ..many
            },
            Facts {
                has_codes: false,
                ..many
            },
            Facts {
                has_phrases: true,
                ..many
            },
        ] {
            let planned = choose(&facts);
            assert_eq!((planned.way, planned.bound), (DenseWay::Vectors, None));
        }
    }

    #[test]
    fn a_request_may_name_its_candidates() {
        let asked = Asked {
            exhaustive: false,
            candidates: Some(7),
            probe_rows_min: 0,
        };
        let facts = Facts {
            asked,
            ..facts(Count::Exactly(8))
        };
        assert_eq!(choose(&facts).way, DenseWay::Codes { candidates: 7 });
    }

    #[test]
    fn more_rows_and_longer_lists_take_more_candidates() {
        let of = |list, population| candidates(Asked::default(), list, population);
        assert_eq!(
            [0, 9000, 100_000, 1_000_000].map(|n| of(10, n)),
            [280, 280, 400, 520]
        );
        assert_eq!([of(100, 9000), of(1000, 9000)], [800, 8000]);
        let limit = |list| rows_max(Asked::default(), list, 9000);
        assert_eq!([limit(10), limit(1000)], [2000, 8000]);
    }

    #[test]
    fn counts_add_up_as_long_as_they_are_known() {
        let sum = |counts: &[Count]| counts.iter().copied().sum::<Count>();
        assert_eq!(sum(&[]), Count::Exactly(0));
        assert_eq!(
            sum(&[Count::Exactly(2), Count::Exactly(5)]),
            Count::Exactly(7)
        );
        assert_eq!(sum(&[Count::Exactly(2), Count::Many]), Count::Many);
    }
}
