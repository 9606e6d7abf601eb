//! What may be asked: the request, its builder and its limits.

use chronolith_segments::{Refused, ScopeRanges, ScopeSelector, SourceClass};

use super::clauses::Clause;
use super::dense::CANDIDATES_MAX;
use super::sparse::Scoring;

/// Most hits a request may ask for.
pub const K_MAX: usize = 10_000;
/// Longest query text, the texts of its clauses included, bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Most distinct terms of a query after analysis, those that its clauses stand for included.
pub const TERMS_MAX: usize = 1024;
/// Most scope selectors of a request.
pub const SCOPES_MAX: usize = 1024;
/// Most tag groups of a request, and most tags of one group.
pub const TAG_FILTERS_MAX: usize = 64;
/// Most rows of context on each side of a hit.
pub const CONTEXT_MAX: usize = 1000;
/// Longest snippet, characters.
pub const SNIPPET_CHARS_MAX: usize = 10_000;
/// Most threads of one request.
pub const THREADS_MAX: usize = 64;
/// Age constant where a boost does not name one: 30 days, µs.
pub const TAU_DEFAULT_US: i64 = 30 * 86_400 * 1_000_000;
/// Largest sum of all boosts.
pub const BETA_SUM_MAX: f64 = 0.5;
/// Share of dense in the convex combination where neither store nor request says.
pub const DENSE_WEIGHT_DEFAULT: f64 = 0.4;

/// Which channels answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Hybrid where a vector is given, else sparse: the router comes later.
    #[default]
    Auto,
    /// BM25 alone.
    Sparse,
    /// Search by vector alone.
    Dense,
    /// Both, fused.
    Hybrid,
}

/// How sparse and dense scores become one.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Fusion {
    /// (1 - w) * bm25 / best bm25 + w * min-max cosine.
    Convex {
        /// Share of dense, in [0, 1].
        dense_weight: f64,
    },
    /// Sum of weight / (60 + rank), rank from 1.
    Rrf {
        /// Weight of the sparse list.
        sparse_weight: f64,
        /// Weight of the dense list.
        dense_weight: f64,
    },
}

impl Default for Fusion {
    fn default() -> Self {
        Self::Convex {
            dense_weight: DENSE_WEIGHT_DEFAULT,
        }
    }
}

/// How age enters the score.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Recency {
    /// Not at all.
    #[default]
    Off,
    /// Multiplies by exp(-age / tau).
    Decay {
        /// Age constant, µs, above 0.
        tau_us: i64,
    },
    /// Multiplies by 1 + beta * exp(-age / tau): a capped signal.
    Boost {
        /// At most 0.5.
        beta: f64,
        /// Age constant, µs, above 0.
        tau_us: i64,
    },
}

/// Which hits carry text when the budget does not hold all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackPolicy {
    /// In rank order, until one does not fit.
    #[default]
    RankPrefix,
    /// In rank order, passing over those that do not fit.
    RankSkip,
    /// By score per token, greedily; ties by rank.
    Density,
}

/// How many tokens of text the answer may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct TokenBudget {
    /// The whole budget, by the store's token counter.
    pub tokens: u64,
    /// What the caller spends himself (prompt, separators); taken off first.
    pub overhead_tokens: u64,
    /// Which hits get the rest.
    pub policy: PackPolicy,
}

/// One retrieval: built with [`Request::within`] and the setters, checked when it runs.
///
/// ```
/// use chronolith::{Recency, Request, ScopeSelector};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let request = Request::within(ScopeSelector::parse("user/ana")?)
///     .text("which port does the staging proxy use")
///     .since_us(1_700_000_000_000_000)
///     .tag("deploy")
///     .k(5)
///     .recency(Recency::Decay { tau_us: 30 * 86_400 * 1_000_000 });
/// # let _ = request;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub(crate) scopes: Vec<ScopeSelector>,
    pub(crate) text: Option<String>,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) space: Option<String>,
    pub(crate) k: usize,
    pub(crate) mode: Mode,
    pub(crate) since_us: Option<i64>,
    pub(crate) until_us: Option<i64>,
    pub(crate) tags: Vec<Vec<String>>,
    pub(crate) min_source: Option<SourceClass>,
    pub(crate) recency: Recency,
    pub(crate) now_us: Option<i64>,
    pub(crate) fusion: Option<Fusion>,
    pub(crate) distinct: bool,
    pub(crate) context: (usize, usize),
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) ids_only: bool,
    pub(crate) snippet_chars: Option<usize>,
    pub(crate) explain: bool,
    pub(crate) partial: bool,
    pub(crate) model: Option<String>,
    pub(crate) budget_us: Option<u64>,
    pub(crate) threads: usize,
    pub(crate) scoring: Scoring,
    pub(crate) candidates: Option<usize>,
}

impl Request {
    /// A request for ten hits inside `scope`. Without text and vector it returns the latest
    /// rows.
    pub fn within(scope: ScopeSelector) -> Self {
        Self {
            scopes: vec![scope],
            text: None,
            clauses: Vec::new(),
            vector: None,
            space: None,
            k: 10,
            mode: Mode::Auto,
            since_us: None,
            until_us: None,
            tags: Vec::new(),
            min_source: None,
            recency: Recency::Off,
            now_us: None,
            fusion: None,
            distinct: false,
            context: (0, 0),
            budget: None,
            ids_only: false,
            snippet_chars: None,
            explain: false,
            partial: false,
            model: None,
            budget_us: None,
            threads: 1,
            scoring: Scoring::Pruned,
            candidates: None,
        }
    }

    /// Adds a scope; the request sees the union.
    #[must_use]
    pub fn and_within(mut self, scope: ScopeSelector) -> Self {
        self.scopes.push(scope);
        self
    }

    /// The query in words. Every sign is text; see [`Request::query_text`] for one where signs
    /// mean something.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The query as a vector of the store's default vector space.
    #[must_use]
    pub fn vector(mut self, vector: Vec<f32>) -> Self {
        self.space = None;
        self.vector = Some(vector);
        self
    }

    /// The query as a vector of the named vector space: compared with the vectors that records
    /// have in it, and with no others.
    #[must_use]
    pub fn vector_in(mut self, space: impl Into<String>, vector: Vec<f32>) -> Self {
        self.space = Some(space.into());
        self.vector = Some(vector);
        self
    }

    /// Names the embedder that made the query vector; another one than the space's is refused,
    /// also where the dimension is the same.
    #[must_use]
    pub fn vector_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How many hits, 0 to [`K_MAX`].
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// Which channels answer.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Only rows at or after this event time, µs.
    #[must_use]
    pub fn since_us(mut self, since_us: i64) -> Self {
        self.since_us = Some(since_us);
        self
    }

    /// Only rows before this event time, µs.
    #[must_use]
    pub fn until_us(mut self, until_us: i64) -> Self {
        self.until_us = Some(until_us);
        self
    }

    /// Only rows with this tag or one below it; repeated calls all must hold.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(vec![tag.into()]);
        self
    }

    /// Only rows with at least one of these tags or one below them.
    #[must_use]
    pub fn any_of<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags.push(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Only rows of this source class or a stronger one.
    #[must_use]
    pub fn min_source(mut self, class: SourceClass) -> Self {
        self.min_source = Some(class);
        self
    }

    /// How age enters the score.
    #[must_use]
    pub fn recency(mut self, recency: Recency) -> Self {
        self.recency = recency;
        self
    }

    /// The instant that ages are counted from, µs; the clock's reading unless given.
    #[must_use]
    pub fn now_us(mut self, now_us: i64) -> Self {
        self.now_us = Some(now_us);
        self
    }

    /// How sparse and dense scores become one.
    #[must_use]
    pub fn fusion(mut self, fusion: Fusion) -> Self {
        self.fusion = Some(fusion);
        self
    }

    /// At most one hit a source id.
    #[must_use]
    pub fn distinct(mut self, distinct: bool) -> Self {
        self.distinct = distinct;
        self
    }

    /// Also returns the rows before and after each hit in its scope's timeline.
    #[must_use]
    pub fn context(mut self, before: usize, after: usize) -> Self {
        self.context = (before, after);
        self
    }

    /// Bounds the text that comes back; hits themselves do not change.
    #[must_use]
    pub fn budget(mut self, budget: TokenBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Returns hits without text: no text block is read.
    #[must_use]
    pub fn ids_only(mut self) -> Self {
        self.ids_only = true;
        self
    }

    /// Returns with each hit the stretch of its text with most of the question in it, at most
    /// `chars_max` characters (1 to [`SNIPPET_CHARS_MAX`]). Reads the text of every hit, also of
    /// those that carry none; a token budget does not count it.
    #[must_use]
    pub fn snippets(mut self, chars_max: usize) -> Self {
        self.snippet_chars = Some(chars_max);
        self
    }

    /// Returns each hit's score term by term.
    #[must_use]
    pub fn explain(mut self) -> Self {
        self.explain = true;
        self
    }

    /// Answers from what is healthy where a segment is damaged. Without it damage in what the
    /// request needs is an error; with it the answer is marked [`Exactness::Partial`] and names
    /// each segment that it left out, whose rows are in no hit, count or statistic.
    ///
    /// [`Exactness::Partial`]: super::Exactness::Partial
    #[must_use]
    pub fn partial(mut self) -> Self {
        self.partial = true;
        self
    }

    /// How long the search may take, µs. Where it is spent the answer is the best of what was
    /// looked at, marked [`Exactness::BudgetCut`] with the largest score that a row not looked
    /// at could have. Partitions with the best prospects come first, so a larger budget never
    /// gives a worse answer. Looked at between windows of rows; a search by vector is not cut.
    ///
    /// [`Exactness::BudgetCut`]: super::Exactness::BudgetCut
    #[must_use]
    pub fn budget_us(mut self, budget_us: u64) -> Self {
        self.budget_us = Some(budget_us);
        self
    }

    /// On how many threads the search by words may work, the caller's among them; 1 where not
    /// set, at most [`THREADS_MAX`]. Threads take whole partitions, and the answer is the same
    /// with any number. A thread costs some ten microseconds to start: worth it for questions
    /// that take many times that, not for look-ups in one scope.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Scores every posting of every term, and the vector of every row, instead of those that
    /// can matter. An answer by words is the same, to the last bit; one by vector is
    /// [`Exactness::Exact`], also where many rows pass the filters. For those who want to see
    /// that, or to measure what is saved.
    ///
    /// [`Exactness::Exact`]: super::Exactness::Exact
    #[must_use]
    pub fn exhaustive(mut self) -> Self {
        self.scoring = Scoring::Exhaustive;
        self
    }

    /// How many rows a search by vector scores after it has compared the codes of all that pass
    /// the filters: more find more of the best rows, at about 0.1 us each. Where it is not set
    /// the store chooses, for 99.5 % of them; see [`DenseWay`](super::DenseWay).
    #[must_use]
    pub fn candidates(mut self, candidates: usize) -> Self {
        self.candidates = Some(candidates);
        self
    }

    /// Checks every limit.
    ///
    /// # Errors
    /// [`Refused`] naming the first field at fault.
    pub(crate) fn check(&self) -> Result<ScopeRanges, Refused> {
        let refuse = |field, message: String| Err(Refused::new(field, message));
        if self.k > K_MAX {
            return refuse("k", format!("is {}; at most {K_MAX}", self.k));
        }
        let clauses = self.clauses.iter().map(|clause| clause.text().len());
        let bytes = clauses.sum::<usize>() + self.text.as_ref().map_or(0, String::len);
        if bytes > TEXT_BYTES_MAX {
            return refuse(
                "text",
                format!("is longer than {TEXT_BYTES_MAX} bytes, its clauses included"),
            );
        }
        if let Some(chars) = self.snippet_chars
            && !(1..=SNIPPET_CHARS_MAX).contains(&chars)
        {
            return refuse(
                "snippets",
                format!("asks for {chars} characters; 1 to {SNIPPET_CHARS_MAX}"),
            );
        }
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return refuse(
                "threads",
                format!("is {}; from 1 to {THREADS_MAX}", self.threads),
            );
        }
        if let Some(candidates) = self.candidates
            && !(1..=CANDIDATES_MAX).contains(&candidates)
        {
            let message = format!("is {candidates}; from 1 to {CANDIDATES_MAX}");
            return refuse("candidates", message);
        }
        if self.scopes.len() > SCOPES_MAX {
            return refuse(
                "scope",
                format!("names {} scopes; at most {SCOPES_MAX}", self.scopes.len()),
            );
        }
        if let (Some(since), Some(until)) = (self.since_us, self.until_us)
            && since > until
        {
            return refuse("until", "lies before since".into());
        }
        if self.context.0 > CONTEXT_MAX || self.context.1 > CONTEXT_MAX {
            return refuse(
                "context",
                format!("asks for more than {CONTEXT_MAX} rows on a side"),
            );
        }
        self.check_clauses()?;
        self.check_tags()?;
        self.check_weights()?;
        ScopeRanges::new(&self.scopes)
    }

    fn check_tags(&self) -> Result<(), Refused> {
        if self.tags.len() > TAG_FILTERS_MAX {
            return Err(Refused::new(
                "tags",
                format!("has {} filters; at most {TAG_FILTERS_MAX}", self.tags.len()),
            ));
        }
        for group in &self.tags {
            if group.is_empty() || group.iter().any(String::is_empty) {
                return Err(Refused::new("tags", "holds an empty filter"));
            }
            if group.len() > TAG_FILTERS_MAX {
                return Err(Refused::new(
                    "tags",
                    format!("has a filter of more than {TAG_FILTERS_MAX} tags"),
                ));
            }
        }
        Ok(())
    }

    fn check_weights(&self) -> Result<(), Refused> {
        match self.fusion {
            Some(Fusion::Convex { dense_weight }) if !(0.0..=1.0).contains(&dense_weight) => {
                return Err(Refused::new("dense_weight", "must be a number from 0 to 1"));
            }
            Some(Fusion::Rrf {
                sparse_weight,
                dense_weight,
            }) => {
                let valid = |weight: f64| weight.is_finite() && weight >= 0.0;
                let sum = sparse_weight + dense_weight;
                if !valid(sparse_weight) || !valid(dense_weight) || !valid(sum) || sum == 0.0 {
                    let message = "needs finite weights of at least 0, not both 0";
                    return Err(Refused::new("dense_weight", message));
                }
            }
            _ => {}
        }
        match self.recency {
            Recency::Decay { tau_us } | Recency::Boost { tau_us, .. } if tau_us <= 0 => {
                Err(Refused::new("recency", "needs an age constant above 0"))
            }
            Recency::Boost { beta, .. } if !(0.0..=BETA_SUM_MAX).contains(&beta) => {
                Err(Refused::new(
                    "recency",
                    format!("has a boost outside 0 to {BETA_SUM_MAX}"),
                ))
            }
            _ => Ok(()),
        }
    }
}
