//! How do two ranked lists become one, with the channels kept apart?
//!
//! The hybrid answer is defined over S and D, the best C rows of each channel under the same
//! filters. Convex: s' = bm25 / best bm25 (absent 0), d' = (cos - cos_last) / (cos_first -
//! cos_last) over D (1 where they are equal, absent 0), fused = (1 - w) s' + w d'. RRF: sum of
//! weight / (60 + rank), rank from 1, over the same lists. (Bruch et al., arXiv 2210.11934.)

use super::order::Candidate;
use super::request::Fusion;

/// Constant of reciprocal rank fusion.
const RRF_K: f64 = 60.0;

/// Length of each channel's list for `k` hits.
pub(crate) fn list_length(k: usize) -> usize {
    if k <= 50 {
        100
    } else {
        (2 * k).next_power_of_two()
    }
}

/// A row of either list with all its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fused {
    pub(crate) candidate: Candidate,
    /// BM25 score, where the row is in the sparse list.
    pub(crate) sparse: Option<f64>,
    /// Similarity, where the row is in the dense list.
    pub(crate) dense: Option<f64>,
    /// The fused score.
    pub(crate) score: f64,
    /// Normalised shares, or the two RRF summands.
    pub(crate) parts: (f64, f64),
}

/// Fuses two lists, each best first, its `key` the channel's score. Order of the result is by
/// (view, row); the caller ranks it.
pub(crate) fn fuse(sparse: &[Candidate], dense: &[Candidate], fusion: Fusion) -> Vec<Fused> {
    let mut rows: Vec<Fused> = Vec::with_capacity(sparse.len() + dense.len());
    let empty = |candidate: &Candidate| Fused {
        candidate: *candidate,
        sparse: None,
        dense: None,
        score: 0.0,
        parts: (0.0, 0.0),
    };
    for (rank, candidate) in sparse.iter().enumerate() {
        let part = sparse_part(sparse, rank, fusion);
        rows.push(Fused {
            sparse: Some(candidate.key),
            parts: (part, 0.0),
            ..empty(candidate)
        });
    }
    for (rank, candidate) in dense.iter().enumerate() {
        let part = dense_part(dense, rank, fusion);
        rows.push(Fused {
            dense: Some(candidate.key),
            parts: (0.0, part),
            ..empty(candidate)
        });
    }
    rows.sort_by_key(|fused| (fused.candidate.view, fused.candidate.row));
    rows.dedup_by(|later, first| {
        let same = (later.candidate.view, later.candidate.row)
            == (first.candidate.view, first.candidate.row);
        if same {
            first.sparse = first.sparse.or(later.sparse);
            first.dense = first.dense.or(later.dense);
            first.parts = (first.parts.0 + later.parts.0, first.parts.1 + later.parts.1);
        }
        same
    });
    for fused in &mut rows {
        fused.score = combine(fused.parts, fusion);
        fused.candidate.key = fused.score;
    }
    rows
}

#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn sparse_part(list: &[Candidate], rank: usize, fusion: Fusion) -> f64 {
    match fusion {
        Fusion::Convex { .. } => list[rank].key / list[0].key,
        Fusion::Rrf { sparse_weight, .. } => sparse_weight / (RRF_K + (rank + 1) as f64),
    }
}

#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn dense_part(list: &[Candidate], rank: usize, fusion: Fusion) -> f64 {
    match fusion {
        Fusion::Convex { .. } => {
            let (first, last) = (list[0].key, list[list.len() - 1].key);
            if first > last {
                (list[rank].key - last) / (first - last)
            } else {
                1.0
            }
        }
        Fusion::Rrf { dense_weight, .. } => dense_weight / (RRF_K + (rank + 1) as f64),
    }
}

fn combine((sparse, dense): (f64, f64), fusion: Fusion) -> f64 {
    match fusion {
        Fusion::Convex { dense_weight } => (1.0 - dense_weight) * sparse + dense_weight * dense,
        Fusion::Rrf { .. } => sparse + dense,
    }
}

/// No fused score is larger.
pub(crate) fn score_max(fusion: Fusion) -> f64 {
    match fusion {
        Fusion::Convex { .. } => 1.0,
        Fusion::Rrf {
            sparse_weight,
            dense_weight,
        } => (sparse_weight + dense_weight) / (RRF_K + 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keys: &[(u32, f64)]) -> Vec<Candidate> {
        keys.iter()
            .map(|(row, key)| Candidate {
                key: *key,
                base: *key,
                time_us: 0,
                view: 0,
                row: *row,
            })
            .collect()
    }

    #[test]
    fn convex_normalises_each_channel_over_its_own_list() {
        let fused = fuse(
            &list(&[(1, 8.0), (2, 4.0)]),
            &list(&[(2, 0.9), (3, 0.5), (4, 0.1)]),
            Fusion::Convex { dense_weight: 0.25 },
        );
        let scores: Vec<(u32, f64)> = fused.iter().map(|f| (f.candidate.row, f.score)).collect();
        assert_eq!(
            scores,
            [(1, 0.75), (2, 0.75 * 0.5 + 0.25), (3, 0.25 * 0.5), (4, 0.0)]
        );
    }

    #[test]
    fn equal_similarities_are_all_one() {
        let fused = fuse(
            &[],
            &list(&[(1, 0.3), (2, 0.3)]),
            Fusion::Convex { dense_weight: 1.0 },
        );
        assert!(fused.iter().all(|f| f.score == 1.0));
    }

    #[test]
    fn rrf_counts_ranks_from_one() {
        let fusion = Fusion::Rrf {
            sparse_weight: 1.0,
            dense_weight: 1.0,
        };
        let fused = fuse(&list(&[(1, 3.0)]), &list(&[(2, 0.5), (1, 0.4)]), fusion);
        assert_eq!(fused[0].score, 1.0 / 61.0 + 1.0 / 62.0);
        assert_eq!(fused[1].score, 1.0 / 61.0);
    }

    #[test]
    fn lists_are_a_hundred_long_or_a_power_of_two() {
        assert_eq!(
            [1, 50, 51, 64, 65].map(list_length),
            [100, 100, 128, 128, 256]
        );
    }
}
