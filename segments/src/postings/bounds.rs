//! What bounds the score of some postings, whatever the statistics will be?
//!
//! A term's part of a BM25 score grows with its frequency in a row and falls with the row's
//! length, and nothing else of the row goes into it. So (frequency, length) pairs bound it for
//! every k1, b, average length and idf: those that no posting beats in both, or pairs above
//! them. No score is ever stored.
//!
//! Which pairs are joined when there are too many is chosen for a usual k1 and b; the choice
//! costs tightness only.

use chronolith_vfs::planted::{self, Bug};

use super::format::BytePair;
use crate::read::TermBounds;

/// Frequencies that are told apart; all above count as the largest of them.
const FREQS_MAX: usize = 64;

/// Largest frequency and least length, each cut to a byte; zeros for no postings.
pub(super) fn byte_pair(pairs: impl Iterator<Item = (u32, u32)>) -> BytePair {
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    let joined = pairs.reduce(join);
    joined.map_or([0, 0], |(freq, length)| [byte(freq), byte(length)])
}

/// The pair above both.
fn join(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    let length = match planted::is_on(Bug::BoundFromLongest) {
        true => a.1.max(b.1),
        false => a.1.min(b.1),
    };
    (a.0.max(b.0), length)
}

/// The pairs that no other one beats in both, ascending by frequency and by length.
#[derive(Debug)]
pub(super) struct Front(Vec<(u32, u32)>);

impl Front {
    /// The front of at least one posting.
    pub(super) fn of(pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        // By frequency - 1: the pair above all postings of it.
        let mut by_freq: [Option<(u32, u32)>; FREQS_MAX] = [None; FREQS_MAX];
        for pair in pairs {
            let slot =
                usize::try_from(pair.0 - 1).map_or(FREQS_MAX - 1, |at| at.min(FREQS_MAX - 1));
            by_freq[slot] = Some(by_freq[slot].map_or(pair, |held| join(held, pair)));
        }
        let mut front: Vec<(u32, u32)> = Vec::new();
        for pair in by_freq.into_iter().flatten() {
            // The later one has the higher frequency.
            while front.last().is_some_and(|last| last.1 >= pair.1) {
                front.pop();
            }
            front.push(pair);
        }
        Self(front)
    }

    /// At most as many pairs as a header holds, above all of the front; zeros after them.
    pub(super) fn pairs(mut self) -> [(u16, u16); TermBounds::PAIRS_MAX] {
        while self.0.len() > TermBounds::PAIRS_MAX {
            let costs = self.0.windows(2).map(|two| cost(two[0], two[1]));
            let (at, _) = costs
                .enumerate()
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .expect("there are more than four pairs");
            let next = self.0.remove(at + 1);
            self.0[at] = join(self.0[at], next);
        }
        let cut = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
        let mut pairs = [(0, 0); TermBounds::PAIRS_MAX];
        for (place, (freq, length)) in pairs.iter_mut().zip(self.0) {
            *place = (cut(freq), cut(length));
        }
        pairs
    }
}

/// What the bound grows by where two neighbours of a front are joined.
fn cost(a: (u32, u32), b: (u32, u32)) -> f64 {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    const AVERAGE: f64 = 32.0;
    let part = |(freq, length): (u32, u32)| {
        let freq = f64::from(freq);
        freq / (freq + K1 * (1.0 - B + B * f64::from(length) / AVERAGE))
    };
    part(join(a, b)) - part(a).max(part(b))
}
