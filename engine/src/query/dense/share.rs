//! How much of the rows in runs is looked at? Pure, and with the reason.

use chronolith_segments::{ProbeShares, SHARE_ALL};

/// Rows up to which all are looked at, unless the store says otherwise: the codes of fifty
/// thousand that lie in ranges are compared in about the time that choosing and jumping cost.
pub const PROBE_ROWS_MIN: u64 = 50_000;
/// Length of the list that shares are measured for, see [`chronolith_segments::ProbeShares`].
const MEASURED_LIST: f64 = 10.0;
/// Rows above which 95 % of the best rows are enough: the last few take most of the time there.
const FAR_TOO_MANY_ROWS: u64 = 500_000;
/// A centroid costs about as much as so many codes.
const CENTROID_CODES: u64 = 6;
/// Rows for each candidate: of fewer the candidates would be all there is.
const ROWS_PER_CANDIDATE: u64 = 4;

/// How many of the best rows are to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// 99 %.
    Most,
    /// 95 %.
    Many,
}

impl Target {
    /// Of so many selected rows.
    pub(super) fn of(rows: u64) -> Self {
        match rows <= FAR_TOO_MANY_ROWS {
            true => Self::Most,
            false => Self::Many,
        }
    }

    /// Share of the best rows that looking at the measured share of rows may miss.
    pub(super) fn missed_share(self) -> f64 {
        match self {
            Self::Most => 0.01,
            Self::Many => 0.05,
        }
    }

    /// The measured share, millionths.
    pub(super) fn share_of(self, shares: &ProbeShares) -> u32 {
        match self {
            Self::Most => shares.share_99,
            Self::Many => shares.share_95,
        }
    }
}

/// The rows of one scope of a partition that lie in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InRuns {
    /// All of them.
    pub(super) rows: u64,
    /// Those that the filters let through, as far as is known.
    pub(super) selected: u64,
    /// What was measured, millionths.
    pub(super) share: u32,
}

impl InRuns {
    /// How many of the selected rows have to be looked at for a list of this length out of `all`
    /// selected rows.
    ///
    /// The measured share finds the nearest ten of all rows here. A list of as many reaches less
    /// deep where the rows of other partitions compete, and deeper where filters leave few. What
    /// is needed changes far slower than the depth: ten times the rows took half the share on
    /// the evaluation corpus, about its third root. Deeper it is taken to grow with the square
    /// root, and less deep to fall with the fourth.
    pub(super) fn needed(&self, list: usize, all: u64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of rows are far below 2^53"
        )]
        let (rows, selected, all, list) = (
            self.rows as f64,
            self.selected as f64,
            all as f64,
            list as f64,
        );
        let depth = rows / all.max(1.0) * (list / MEASURED_LIST).max(1.0);
        let root = depth.sqrt();
        let factor = if depth < 1.0 { root.sqrt() } else { root };
        let share = f64::from(self.share) / f64::from(SHARE_ALL) * factor;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 up to a count of rows"
        )]
        let needed = (selected * share.min(1.0)).ceil() as u64;
        needed
    }
}

/// What the decision is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Selected rows over all partitions, each as often as it costs.
    pub(super) rows: u64,
    /// Rows up to which all are looked at.
    pub(super) rows_min: u64,
    /// Selected rows that lie in runs.
    pub(super) in_runs: u64,
    /// Their runs.
    pub(super) runs: u64,
    /// Rows in runs that have to be looked at.
    pub(super) needed: u64,
    /// Candidates that are wanted.
    pub(super) candidates: u64,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Every row is looked at, for this reason.
    All(&'static str),
    /// So many rows in runs at least, the best runs first.
    Rows(u64),
}

/// True where so few rows are selected that nobody needs to know their runs.
pub(super) fn are_few(rows: u64, rows_min: u64) -> bool {
    rows <= rows_min
}

/// Decides.
pub(super) fn choose(facts: &Facts) -> Share {
    if are_few(facts.rows, facts.rows_min) {
        return Share::All("many rows pass the filters");
    }
    if facts.in_runs == 0 {
        return Share::All("very many rows pass the filters, and none lies in a run");
    }
    let least = facts.candidates.saturating_mul(ROWS_PER_CANDIDATE);
    let needed = facts.needed.max(least);
    if needed + facts.runs * CENTROID_CODES >= facts.in_runs {
        return Share::All("very many rows pass the filters, and runs would leave out few");
    }
    Share::Rows(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        rows: 100_000,
        rows_min: PROBE_ROWS_MIN,
        in_runs: 90_000,
        runs: 180,
        needed: 9_000,
        candidates: 200,
    };

    #[test]
    fn very_many_rows_in_runs_are_looked_at_in_part() {
        assert_eq!(choose(&FACTS), Share::Rows(9_000));
        let few = Facts { needed: 1, ..FACTS };
        assert_eq!(choose(&few), Share::Rows(800), "candidates need rows");
    }

    #[test]
    fn all_rows_are_looked_at_where_that_costs_no_more() {
        let all = |facts: Facts| assert!(matches!(choose(&facts), Share::All(_)), "{facts:?}");
        all(Facts {
            rows: 50_000,
            ..FACTS
        });
        all(Facts {
            in_runs: 0,
            runs: 0,
            ..FACTS
        });
        all(Facts {
            needed: 89_000,
            ..FACTS
        });
        all(Facts {
            candidates: 30_000,
            ..FACTS
        });
    }

    #[test]
    fn of_a_million_rows_fewer_of_the_best_are_enough() {
        let shares = ProbeShares {
            share_95: 1,
            share_99: 2,
        };
        let target = |rows| {
            let target = Target::of(rows);
            (target.share_of(&shares), target.missed_share())
        };
        assert_eq!(target(500_000), (2, 0.01));
        assert_eq!(target(500_001), (1, 0.05));
    }

    #[test]
    fn deeper_lists_and_thinner_filters_need_more() {
        let in_runs = InRuns {
            rows: 100_000,
            selected: 100_000,
            share: 100_000,
        };
        let all = 100_000;
        assert_eq!(in_runs.needed(10, all), 10_000);
        assert_eq!(
            in_runs.needed(1, all),
            10_000,
            "a shorter list is not easier to find"
        );
        assert_eq!(in_runs.needed(40, all), 20_000);
        assert_eq!(
            in_runs.needed(100_000, all),
            100_000,
            "never more than there are"
        );
        let filtered = InRuns {
            selected: 25_000,
            ..in_runs
        };
        assert_eq!(
            filtered.needed(10, 25_000),
            5_000,
            "a fifth of them instead of a tenth"
        );
        assert_eq!(
            in_runs.needed(10, 1_600_000),
            5_000,
            "others have most of the best"
        );
        let none = InRuns {
            selected: 0,
            ..in_runs
        };
        assert_eq!(none.needed(10, 0), 0);
    }
}
