//! One question, in a form that a model can read: the engine's request is closed.

use chronolith::{Clause, Fusion, Mode, Recency, Request, ScopeSelector, SourceClass, TokenBudget};

/// A retrieval with every field open.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// At least one.
    pub scopes: Vec<ScopeSelector>,
    /// Query words.
    pub text: Option<String>,
    /// Beside the words.
    pub clauses: Vec<Clause>,
    /// Query vector.
    pub vector: Option<Vec<f32>>,
    /// How many hits.
    pub k: usize,
    /// Which channels.
    pub mode: Mode,
    /// Inclusive.
    pub since_us: Option<i64>,
    /// Exclusive.
    pub until_us: Option<i64>,
    /// Conjunction of disjunctions.
    pub tags: Vec<Vec<String>>,
    /// Weakest class that passes.
    pub min_source: Option<SourceClass>,
    /// How age counts.
    pub recency: Recency,
    /// Ages count from here.
    pub now_us: i64,
    /// `None` = the store's.
    pub fusion: Option<Fusion>,
    /// One hit a source.
    pub distinct: bool,
    /// Neighbours before and after.
    pub context: (usize, usize),
    /// Bound on text.
    pub budget: Option<TokenBudget>,
    /// No text at all.
    pub ids_only: bool,
    /// Term by term.
    pub explain: bool,
}

impl Ask {
    /// Ten latest rows of a scope, as of `now_us`.
    pub fn within(scope: ScopeSelector, now_us: i64) -> Self {
        Self {
            scopes: vec![scope],
            text: None,
            clauses: Vec::new(),
            vector: None,
            k: 10,
            mode: Mode::Auto,
            since_us: None,
            until_us: None,
            tags: Vec::new(),
            min_source: None,
            recency: Recency::Off,
            now_us,
            fusion: None,
            distinct: false,
            context: (0, 0),
            budget: None,
            ids_only: false,
            explain: false,
        }
    }

    /// The engine's request.
    ///
    /// # Panics
    /// Without a scope.
    pub fn request(&self) -> Request {
        let mut scopes = self.scopes.iter().cloned();
        let first = scopes.next().expect("an ask names at least one scope");
        let mut request = Request::within(first)
            .k(self.k)
            .mode(self.mode)
            .recency(self.recency)
            .now_us(self.now_us)
            .distinct(self.distinct)
            .context(self.context.0, self.context.1);
        for scope in scopes {
            request = request.and_within(scope);
        }
        for group in &self.tags {
            request = request.any_of(group.iter().cloned());
        }
        if let Some(text) = &self.text {
            request = request.text(text);
        }
        for clause in &self.clauses {
            request = request.clause(clause.clone());
        }
        if let Some(vector) = &self.vector {
            request = request.vector(vector.clone());
        }
        if let Some(since_us) = self.since_us {
            request = request.since_us(since_us);
        }
        if let Some(until_us) = self.until_us {
            request = request.until_us(until_us);
        }
        if let Some(class) = self.min_source {
            request = request.min_source(class);
        }
        if let Some(fusion) = self.fusion {
            request = request.fusion(fusion);
        }
        if let Some(budget) = self.budget {
            request = request.budget(budget);
        }
        if self.ids_only {
            request = request.ids_only();
        }
        if self.explain {
            request = request.explain();
        }
        request
    }
}
