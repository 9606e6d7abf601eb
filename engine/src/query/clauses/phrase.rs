//! Does a row's text hold the words one after the other?
//!
//! Postings keep no positions: that a row holds every word is asked of them first, then its
//! score must be good enough for the list, and only then its text is read and analysed again.
//! The number of texts is bounded; past it the answer says so, with the best score that was
//! not verified.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use chronolith_segments::SegmentError;
use chronolith_segments::analyze::Analyzer;

use super::PHRASE_CHECKS_MAX;
use crate::query::view::View;

/// What is known of a row's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It holds every phrase.
    Holds,
    /// It does not.
    Fails,
    /// It was not read: too many were before.
    Unknown,
}

/// The phrases of one request, with the count of texts read for them. Shared by its threads.
#[derive(Debug)]
pub(crate) struct Phrases {
    analyzer: Analyzer,
    /// Two tokens or more each.
    phrases: Vec<Vec<String>>,
    checks: AtomicU32,
    checks_max: u32,
    /// Bits of the largest score of a row that was not verified: bits of numbers that are not
    /// negative are ordered as they are. Meaningless unless `unknown`.
    unknown_score: AtomicU64,
    unknown: AtomicU32,
}

impl Phrases {
    pub(crate) fn new(analyzer: Analyzer, phrases: Vec<Vec<String>>) -> Self {
        Self {
            analyzer,
            phrases,
            checks: AtomicU32::new(0),
            checks_max: PHRASE_CHECKS_MAX,
            unknown_score: AtomicU64::new(0),
            unknown: AtomicU32::new(0),
        }
    }

    /// True where nothing is asked of texts.
    pub(crate) fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Reads the row's text, unless nothing is asked of it. `shown` is the row's score: where
    /// the verdict is `Unknown` it enters the bound of [`Phrases::unverified`].
    ///
    /// # Errors
    /// Damage in the text.
    pub(crate) fn judge(
        &self,
        view: &View,
        row: u32,
        shown: impl FnOnce() -> f64,
    ) -> Result<Verdict, SegmentError> {
        if self.phrases.is_empty() {
            return Ok(Verdict::Holds);
        }
        let count = |checks: u32| (checks < self.checks_max).then_some(checks + 1);
        let counted = self
            .checks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        if counted.is_err() {
            let bits = shown().max(0.0).to_bits();
            self.unknown_score.fetch_max(bits, Ordering::Relaxed);
            self.unknown.store(1, Ordering::Relaxed);
            return Ok(Verdict::Unknown);
        }
        let text = view.partition().stored(row)?.text;
        let holds = holds_all(&self.analyzer, &self.phrases, &text);
        Ok(if holds {
            Verdict::Holds
        } else {
            Verdict::Fails
        })
    }

    /// No row that was not verified has a larger score; `None` where all were.
    pub(crate) fn unverified(&self) -> Option<f64> {
        let any = self.unknown.load(Ordering::Relaxed) > 0;
        any.then(|| f64::from_bits(self.unknown_score.load(Ordering::Relaxed)))
    }

    /// Texts that were read.
    pub(crate) fn checks(&self) -> u32 {
        self.checks.load(Ordering::Relaxed)
    }
}

/// True where the text holds every phrase: its tokens, one after the other.
fn holds_all(analyzer: &Analyzer, phrases: &[Vec<String>], text: &str) -> bool {
    let tokens = analyzer.tokens(text);
    let tokens: Vec<&str> = tokens.iter().map(|(term, _)| term).collect();
    let holds = |phrase: &Vec<String>| tokens.windows(phrase.len()).any(|window| window == phrase);
    phrases.iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_must_follow_each_other() {
        let analyzer = Analyzer::default();
        let tokens = |text: &str| -> Vec<String> {
            let tokens = analyzer.tokens(text);
            tokens.iter().map(|(term, _)| term.to_owned()).collect()
        };
        let cases = [
            ("staging proxy", "The Staging Proxies listen", true),
            ("staging proxy", "staging, the proxy", false),
            ("staging proxy", "proxy staging", false),
            ("main rs", "see src/main.rs twice: src/main.rs", true),
            ("熊猫吃", "大熊猫吃竹", true),
            ("猫熊", "熊猫吃竹", false),
            ("a a", "a b a", false),
            ("a a", "b a a", true),
        ];
        for (phrase, text, expected) in cases {
            let holds = holds_all(&analyzer, &[tokens(phrase)], text);
            assert_eq!(holds, expected, "{phrase:?} in {text:?}");
        }
    }
}
