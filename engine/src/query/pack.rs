//! Which hits carry text when the budget does not hold all of it? Pure: costs in, choices out.
//!
//! Packing never changes hits, only which of them carry text. A hit that does not fit falls
//! back to its summary, else to no text.

use super::request::{PackPolicy, TokenBudget};

/// What a hit carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carried {
    /// The full text.
    Text,
    /// The summary in its place.
    Summary,
    /// Neither.
    Nothing,
}

/// What packing must know of a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) score: f64,
    pub(crate) text_tokens: u32,
    /// 0 = no summary.
    pub(crate) summary_tokens: u32,
}

/// Chooses for hits in rank order. The chosen costs and the overhead never pass the budget.
pub(crate) fn pack(costs: &[Cost], budget: TokenBudget) -> Vec<Carried> {
    let mut left = budget.tokens.saturating_sub(budget.overhead_tokens);
    let mut chosen = vec![Carried::Nothing; costs.len()];
    let mut order: Vec<usize> = (0..costs.len()).collect();
    if budget.policy == PackPolicy::Density {
        let density = |i: usize| costs[i].score / f64::from(costs[i].text_tokens.max(1));
        order.sort_by(|a, b| density(*b).total_cmp(&density(*a)).then(a.cmp(b)));
    }
    for i in order {
        let text = u64::from(costs[i].text_tokens);
        if text <= left {
            left -= text;
            chosen[i] = Carried::Text;
            continue;
        }
        let summary = u64::from(costs[i].summary_tokens);
        if summary > 0 && summary <= left {
            left -= summary;
            chosen[i] = Carried::Summary;
        }
        if budget.policy == PackPolicy::RankPrefix {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(score: f64, text_tokens: u32, summary_tokens: u32) -> Cost {
        Cost {
            score,
            text_tokens,
            summary_tokens,
        }
    }

    fn budget(tokens: u64, policy: PackPolicy) -> TokenBudget {
        TokenBudget {
            tokens,
            overhead_tokens: 2,
            policy,
        }
    }

    use Carried::{Nothing, Summary, Text};

    #[test]
    fn prefix_stops_at_the_first_that_does_not_fit_and_skip_goes_on() {
        let costs = [cost(3.0, 4, 0), cost(2.0, 9, 0), cost(1.0, 2, 0)];
        assert_eq!(
            pack(&costs, budget(10, PackPolicy::RankPrefix)),
            [Text, Nothing, Nothing]
        );
        assert_eq!(
            pack(&costs, budget(10, PackPolicy::RankSkip)),
            [Text, Nothing, Text]
        );
    }

    #[test]
    fn what_does_not_fit_falls_back_to_its_summary() {
        let costs = [cost(3.0, 40, 3), cost(2.0, 5, 0)];
        assert_eq!(
            pack(&costs, budget(10, PackPolicy::RankSkip)),
            [Summary, Text]
        );
    }

    #[test]
    fn density_takes_the_best_score_per_token_first() {
        let costs = [cost(3.0, 8, 0), cost(2.0, 2, 0), cost(1.9, 2, 0)];
        assert_eq!(
            pack(&costs, budget(8, PackPolicy::Density)),
            [Nothing, Text, Text]
        );
    }

    #[test]
    fn an_overhead_above_the_budget_leaves_nothing() {
        assert_eq!(
            pack(&[cost(1.0, 1, 0)], budget(1, PackPolicy::RankSkip)),
            [Nothing]
        );
    }
}
