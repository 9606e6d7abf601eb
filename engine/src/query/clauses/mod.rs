//! What may a query say beside plain words? Clauses: required and excluded words, phrases,
//! prefixes, fuzzy words, weights.
//!
//! ```text
//! Clause (built, or parsed by `syntax`) -> words: terms, filters, patterns
//!                                            |         |        |
//!                                            |         |        v
//!                                            |         |     expand: pattern -> group of terms
//!                                            v         v        v
//!                                        scored     filter,  scored as their maximum
//!                                                   phrase
//! ```
//!
//! No clause changes the population, a document frequency or a length: clauses choose among
//! rows and terms, they do not change what a term is worth.
//!
//! * `build`: clauses of a request, call by call.
//! * `syntax`: clauses written as one line of text.
//! * `words`: clauses to terms by the store's analyzer.
//! * `expand`, `fuzzy`: which terms of the requested scopes a prefix or a fuzzy word stands for.
//! * `filter`: which rows hold what is required and lack what is excluded.
//! * `phrase`: which texts hold the words one after the other.

mod build;
mod expand;
mod filter;
mod fuzzy;
mod phrase;
mod syntax;
mod words;

pub use syntax::{SyntaxError, SyntaxProblem, TextQuery};

pub(crate) use expand::expand;
pub(crate) use filter::{ClauseFilter, ClauseRows, RunFilter};
pub(crate) use phrase::{Phrases, Verdict};
pub(crate) use words::{Pattern, Words, too_many, words_of};

use chronolith_segments::{Refused, check_impact_token};

/// Most clauses of a request.
pub const CLAUSES_MAX: usize = 256;
/// Most terms of the requested scopes that a prefix or a fuzzy word may stand for.
pub const EXPANSIONS_MAX: usize = 64;
/// Largest weight of a clause.
pub const WEIGHT_MAX: f64 = 100.0;
/// Largest distance of a fuzzy word, in characters.
pub const DISTANCE_MAX: u8 = 2;
/// Most texts that are read to verify the phrases of one request.
pub const PHRASE_CHECKS_MAX: u32 = 10_000;

/// One part of a query with a rule of its own.
///
/// Weights are above 0 and at most [`WEIGHT_MAX`]; 1 is that of plain words. Terms that come
/// from several clauses or from the text add their weights up.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Clause {
    /// Words that score when they are there.
    Words {
        /// Any text.
        words: String,
        /// Multiplies what they score.
        weight: f64,
    },
    /// Words that must all be in the row; they score too. A word that has several terms, such
    /// as `read_file`, must be there with all of them.
    Require {
        /// At least one word.
        words: String,
        /// Multiplies what they score.
        weight: f64,
    },
    /// Words none of which may be in the row. A word of several terms is there if all of them
    /// are.
    Exclude {
        /// At least one word.
        words: String,
    },
    /// Words that must stand one after the other in the row's text; they score one by one. Of
    /// a single word only that it is in the row is required.
    Phrase {
        /// At least one word.
        words: String,
        /// Multiplies what they score.
        weight: f64,
    },
    /// Every term that begins so, scored as the best of them. Compared with terms as they are
    /// indexed, which is after stemming: a short beginning finds more than a long one.
    Prefix {
        /// The beginning, without white space.
        start: String,
        /// Multiplies what the best scores.
        weight: f64,
    },
    /// Every term that becomes the word by at most `distance` characters put in, taken out or
    /// exchanged, the first one too: a slip there is as likely as anywhere. Scored as the best
    /// of them.
    Fuzzy {
        /// The word, without white space.
        word: String,
        /// 1 or 2.
        distance: u8,
        /// Multiplies what the best scores.
        weight: f64,
    },
    /// A token with the weight that a learned-sparse model gives it in the question. A row with
    /// the token among its [`impacts`] gets the product of both weights.
    ///
    /// [`impacts`]: crate::Record::impacts
    Impact {
        /// As records spell it.
        token: String,
        /// Above 0.
        weight: f64,
    },
}

impl Clause {
    /// The name of its kind, as errors and plans say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Words { .. } => "words",
            Self::Require { .. } => "require",
            Self::Exclude { .. } => "exclude",
            Self::Phrase { .. } => "phrase",
            Self::Prefix { .. } => "prefix",
            Self::Fuzzy { .. } => "fuzzy",
            Self::Impact { .. } => "impact",
        }
    }

    /// What it says, as it was given.
    pub fn text(&self) -> &str {
        match self {
            Self::Words { words, .. }
            | Self::Require { words, .. }
            | Self::Exclude { words }
            | Self::Phrase { words, .. } => words,
            Self::Prefix { start, .. } => start,
            Self::Fuzzy { word, .. } => word,
            Self::Impact { token, .. } => token,
        }
    }

    /// What its score is multiplied by; 0 where it has none.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Words { weight, .. }
            | Self::Require { weight, .. }
            | Self::Phrase { weight, .. }
            | Self::Prefix { weight, .. }
            | Self::Fuzzy { weight, .. }
            | Self::Impact { weight, .. } => *weight,
            Self::Exclude { .. } => 0.0,
        }
    }

    /// True where a row gains by it.
    pub(crate) fn scores(&self) -> bool {
        !matches!(self, Self::Exclude { .. })
    }

    /// True where a row without it is out.
    pub(crate) fn filters(&self) -> bool {
        matches!(
            self,
            Self::Require { .. } | Self::Exclude { .. } | Self::Phrase { .. }
        )
    }

    /// Checks what needs no analyzer.
    ///
    /// # Errors
    /// [`Refused`] with the clause's kind as its field.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        let refuse = |message: String| Err(Refused::new(self.kind(), message));
        let weight = self.weight();
        if self.scores() && !(weight > 0.0 && weight <= WEIGHT_MAX) {
            return refuse(format!(
                "has the weight {weight}; it must be above 0 and at most {WEIGHT_MAX}"
            ));
        }
        if let Self::Impact { token, .. } = self {
            check_impact_token(token).map_err(|refused| Refused {
                field: "impact",
                ..refused
            })?;
        }
        if let Self::Fuzzy { distance, .. } = self
            && !(1..=DISTANCE_MAX).contains(distance)
        {
            return refuse(format!(
                "allows {distance} changes; it must be 1 to {DISTANCE_MAX}"
            ));
        }
        let is_pattern = matches!(self, Self::Prefix { .. } | Self::Fuzzy { .. });
        if is_pattern
            && self
                .text()
                .chars()
                .any(|c| c.is_whitespace() || c.is_control())
        {
            return refuse("holds white space or a control character; name one word".into());
        }
        Ok(())
    }
}
