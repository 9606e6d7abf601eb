//! How good is an answer against judgements? The definitions that the reference figures use.

use std::collections::BTreeMap;

/// Judged records of one query and their grades, all above 0.
pub(crate) type Judgements = BTreeMap<String, u32>;

/// The figures of one query, or their means over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub(crate) struct Quality {
    #[serde(rename = "hit@1")]
    pub(crate) hit_1: f64,
    #[serde(rename = "hit@5")]
    pub(crate) hit_5: f64,
    #[serde(rename = "hit@10")]
    pub(crate) hit_10: f64,
    #[serde(rename = "recall@1")]
    pub(crate) recall_1: f64,
    #[serde(rename = "recall@5")]
    pub(crate) recall_5: f64,
    #[serde(rename = "recall@10")]
    pub(crate) recall_10: f64,
    #[serde(rename = "mrr@10")]
    pub(crate) mrr_10: f64,
    #[serde(rename = "ndcg@10")]
    pub(crate) ndcg_10: f64,
}

impl Quality {
    /// Judges the ids of one answer, best first.
    ///
    /// Recall@k = judged-relevant among the first k / judged-relevant of the query; hit@k = 1
    /// if any; MRR of the first relevant; nDCG as trec_eval's ndcg_cut: gain = grade,
    /// discount = log2(rank + 1), the ideal from all judgements.
    pub(crate) fn of(ids: &[&str], judged: &Judgements) -> Self {
        let found = |k: usize| {
            let relevant = ids.iter().take(k).filter(|id| judged.contains_key(**id));
            ratio(relevant.count(), 1)
        };
        let recall = |k: usize| found(k) / ratio(judged.len().max(1), 1);
        let hit = |k: usize| if found(k) > 0.0 { 1.0 } else { 0.0 };
        let first = ids.iter().take(10).position(|id| judged.contains_key(*id));
        Self {
            hit_1: hit(1),
            hit_5: hit(5),
            hit_10: hit(10),
            recall_1: recall(1),
            recall_5: recall(5),
            recall_10: recall(10),
            mrr_10: first.map_or(0.0, |at| ratio(1, at + 1)),
            ndcg_10: ndcg_10(ids, judged),
        }
    }

    /// Adds another query's figures.
    pub(crate) fn add(&mut self, other: &Self) {
        self.each(other, |a, b| a + b);
    }

    /// The means of sums over `count` queries; zeros for none.
    pub(crate) fn mean(mut self, count: usize) -> Self {
        let sums = self;
        self.each(&sums, |a, _| a / ratio(count.max(1), 1));
        self
    }

    fn each(&mut self, other: &Self, f: impl Fn(f64, f64) -> f64) {
        self.hit_1 = f(self.hit_1, other.hit_1);
        self.hit_5 = f(self.hit_5, other.hit_5);
        self.hit_10 = f(self.hit_10, other.hit_10);
        self.recall_1 = f(self.recall_1, other.recall_1);
        self.recall_5 = f(self.recall_5, other.recall_5);
        self.recall_10 = f(self.recall_10, other.recall_10);
        self.mrr_10 = f(self.mrr_10, other.mrr_10);
        self.ndcg_10 = f(self.ndcg_10, other.ndcg_10);
    }
}

fn ndcg_10(ids: &[&str], judged: &Judgements) -> f64 {
    let gain = |(at, grade): (usize, u32)| f64::from(grade) / ratio(at + 2, 1).log2();
    let got = ids
        .iter()
        .take(10)
        .map(|id| judged.get(*id).copied().unwrap_or(0));
    let mut ideal: Vec<u32> = judged.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best: f64 = ideal.into_iter().take(10).enumerate().map(gain).sum();
    match best > 0.0 {
        true => got.enumerate().map(gain).sum::<f64>() / best,
        false => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

/// Latencies by nearest rank, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p95: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Latency {
    pub(crate) fn of(mut took_us: Vec<u64>) -> Self {
        took_us.sort_unstable();
        let rank = |percent: usize| {
            let at = (took_us.len() * percent).div_ceil(100).max(1) - 1;
            took_us.get(at).copied().unwrap_or(0)
        };
        Self {
            p50: rank(50),
            p95: rank(95),
            p99: rank(99),
            max: rank(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_their_definitions() {
        let judged = Judgements::from([("a".into(), 2), ("b".into(), 1), ("c".into(), 1)]);
        let quality = Quality::of(&["x", "a", "y", "z", "w", "b"], &judged);
        assert_eq!((quality.hit_1, quality.hit_5), (0.0, 1.0));
        assert_eq!(quality.recall_5, 1.0 / 3.0);
        assert_eq!(quality.recall_10, 2.0 / 3.0);
        assert_eq!(quality.mrr_10, 0.5);
        let dcg = 2.0 / 3f64.log2() + 1.0 / 7f64.log2();
        let ideal = 2.0 + 1.0 / 3f64.log2() + 1.0 / 2.0;
        assert!((quality.ndcg_10 - dcg / ideal).abs() < 1e-12);
        let mut sum = quality;
        sum.add(&Quality::default());
        assert_eq!(sum.mean(2).mrr_10, 0.25);
    }

    #[test]
    fn latencies_are_nearest_ranks() {
        let latency = Latency::of((1..=200).collect());
        assert_eq!(
            latency,
            Latency {
                p50: 100,
                p95: 190,
                p99: 198,
                max: 200
            }
        );
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
