//! How does a request get its clauses?

use chronolith_segments::Refused;

use super::{CLAUSES_MAX, Clause, SyntaxError, TextQuery};
use crate::query::request::Request;

impl Request {
    /// Adds the clauses of a line such as `+must -not "exact phrase" pre* fuzz~ word^2.5`; the
    /// table is at [`TextQuery`].
    ///
    /// # Errors
    /// [`SyntaxError`] with the column at fault.
    pub fn query_text(mut self, text: &str) -> Result<Self, SyntaxError> {
        let clauses = TextQuery::parse(text)?.into_clauses();
        self.clauses.extend(clauses);
        Ok(self)
    }

    /// Adds a clause. There may be [`CLAUSES_MAX`].
    ///
    /// ```
    /// use chronolith::{Batch, Options, Record, Request, Scope, ScopeSelector, Setup, Store};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), Options::create(Setup::default()))?;
    /// let scope = Scope::parse("user/ana")?;
    /// let mut batch = Batch::new();
    /// for (id, text) in [
    ///     ("a", "the staging proxy listens on 8443"),
    ///     ("b", "the old staging proxy listened on 80"),
    ///     ("c", "a proxy for staging"),
    ///     ("d", "the deployment moved"),
    /// ] {
    ///     batch.upsert(Record::new(scope.clone(), id, 0, text));
    /// }
    /// store.write(batch)?;
    /// let ask = || Request::within(ScopeSelector::Subtree(scope.clone()));
    /// let ids = |request: Request| -> Result<String, chronolith::Error> {
    ///     let hits = store.retrieve(&request)?.hits;
    ///     Ok(hits.iter().map(|hit| hit.id.as_str()).collect())
    /// };
    /// assert_eq!(ids(ask().text("proxy").exclude("old"))?, "ca");
    /// assert_eq!(ids(ask().phrase("staging proxy"))?, "ab");
    /// assert_eq!(ids(ask().text("staging port").require("8443"))?, "a");
    /// assert_eq!(ids(ask().prefix("deplo"))?, "d");
    /// // Compared with words as they are indexed: `staging` is `stage`.
    /// assert_eq!(ids(ask().fuzzy("stoge", 1))?, "cab");
    /// # store.close()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn clause(mut self, clause: Clause) -> Self {
        self.clauses.push(clause);
        self
    }

    /// Only rows that hold all of these words, which score as the text's do.
    #[must_use]
    pub fn require(self, words: impl Into<String>) -> Self {
        self.clause(Clause::Require {
            words: words.into(),
            weight: 1.0,
        })
    }

    /// Only rows that hold none of these words.
    #[must_use]
    pub fn exclude(self, words: impl Into<String>) -> Self {
        self.clause(Clause::Exclude {
            words: words.into(),
        })
    }

    /// Only rows whose text has these words one after the other; they score as the text's do.
    /// Texts are read only of rows that score enough, and of [`PHRASE_CHECKS_MAX`] at most:
    /// past them the answer is marked [`Exactness::BudgetCut`] with the best score that was not
    /// verified.
    ///
    /// [`PHRASE_CHECKS_MAX`]: crate::PHRASE_CHECKS_MAX
    /// [`Exactness::BudgetCut`]: crate::Exactness::BudgetCut
    #[must_use]
    pub fn phrase(self, words: impl Into<String>) -> Self {
        self.clause(Clause::Phrase {
            words: words.into(),
            weight: 1.0,
        })
    }

    /// Rows with a word that begins so score by the best such word. More than
    /// [`EXPANSIONS_MAX`] different ones in the requested scopes are refused.
    ///
    /// [`EXPANSIONS_MAX`]: crate::EXPANSIONS_MAX
    #[must_use]
    pub fn prefix(self, start: impl Into<String>) -> Self {
        self.clause(Clause::Prefix {
            start: start.into(),
            weight: 1.0,
        })
    }

    /// Rows with a word at most `distance` changes away, 1 or 2, score by the best such word.
    /// More than [`EXPANSIONS_MAX`] different ones in the requested scopes are refused.
    ///
    /// [`EXPANSIONS_MAX`]: crate::EXPANSIONS_MAX
    #[must_use]
    pub fn fuzzy(self, word: impl Into<String>, distance: u8) -> Self {
        self.clause(Clause::Fuzzy {
            word: word.into(),
            distance,
            weight: 1.0,
        })
    }

    /// Rows that have `token` among their [`impacts`] get `weight` times its weight there, in a
    /// sum with what words give. Neither idf nor length counts: the model that made the weights
    /// knows both.
    ///
    /// ```
    /// use chronolith::{Batch, Options, Record, Request, Scope, ScopeSelector, Setup, Store};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), Options::create(Setup::default()))?;
    /// let scope = Scope::parse("user/ana")?;
    /// let mut record = Record::new(scope.clone(), "a", 0, "listens on 8443");
    /// record.impacts = vec![("port".into(), 1.5), ("listen".into(), 0.75)];
    /// let mut batch = Batch::new();
    /// batch.upsert(record);
    /// store.write(batch)?;
    ///
    /// let request = Request::within(ScopeSelector::Subtree(scope)).impact("port", 2.0);
    /// assert_eq!(store.retrieve(&request)?.hits[0].score, 3.0);
    /// # store.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`impacts`]: crate::Record::impacts
    #[must_use]
    pub fn impact(self, token: impl Into<String>, weight: f64) -> Self {
        self.clause(Clause::Impact {
            token: token.into(),
            weight,
        })
    }

    /// Words that count `weight` times, above 0 and at most [`WEIGHT_MAX`].
    ///
    /// [`WEIGHT_MAX`]: crate::WEIGHT_MAX
    #[must_use]
    pub fn weighted(self, words: impl Into<String>, weight: f64) -> Self {
        self.clause(Clause::Words {
            words: words.into(),
            weight,
        })
    }

    /// Checks every clause.
    ///
    /// # Errors
    /// [`Refused`] naming the first at fault.
    pub(crate) fn check_clauses(&self) -> Result<(), Refused> {
        if self.clauses.len() > CLAUSES_MAX {
            let message = format!("are {}; at most {CLAUSES_MAX}", self.clauses.len());
            return Err(Refused::new("clauses", message));
        }
        self.clauses.iter().try_for_each(Clause::check)
    }

    /// True where rows can score by words.
    pub(crate) fn has_words(&self) -> bool {
        self.text.is_some() || self.clauses.iter().any(Clause::scores)
    }
}
