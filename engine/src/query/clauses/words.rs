//! Which terms do text and clauses name, and what is each there for?

use chronolith_segments::analyze::{Analyzer, TERM_BYTES_MAX};
use chronolith_segments::{Refused, impact_term};

use super::Clause;
use crate::query::request::{Request, TERMS_MAX};

/// The words of a request as terms: what the store's analyzer can say, before any partition
/// is asked.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Terms that score one by one, ascending, with their weights.
    pub(crate) scored: Vec<(Vec<u8>, f64)>,
    /// Terms that a row must hold, ascending.
    pub(crate) required: Vec<Vec<u8>>,
    /// A row that holds all terms of one of these is out.
    pub(crate) excluded: Vec<Vec<Vec<u8>>>,
    /// Tokens that must follow each other in the text; two or more each.
    pub(crate) phrases: Vec<Vec<String>>,
    /// What stands for terms that only the partitions know.
    pub(crate) patterns: Vec<Pattern>,
    /// What each clause became, for the plan; nothing for patterns.
    pub(crate) by_clause: Vec<Vec<Vec<u8>>>,
}

/// A clause that stands for terms of the requested scopes.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Its place among the request's clauses.
    pub(crate) clause: usize,
    /// Folded as terms are.
    pub(crate) folded: String,
    /// `None` = a prefix.
    pub(crate) distance: Option<u8>,
    pub(crate) weight: f64,
}

/// Analyses text and clauses of a request that passed its check. Without `scores` only what
/// filters is kept.
///
/// # Errors
/// [`Refused`] where a clause has no term that could be looked for.
pub(crate) fn words_of(
    analyzer: &Analyzer,
    request: &Request,
    scores: bool,
) -> Result<Words, Refused> {
    let mut words = Words::default();
    if let Some(text) = request.text.as_ref().filter(|_| scores) {
        words.score(analyzer.analyze_query(text), 1.0);
    }
    for (place, clause) in request.clauses.iter().enumerate() {
        let terms = words.add(analyzer, clause, place, scores)?;
        words.by_clause.push(terms);
    }
    if !request.clauses.is_empty() {
        words.merge();
    }
    if words.scored.len() > TERMS_MAX {
        return Err(too_many(words.scored.len()));
    }
    Ok(words)
}

/// The refusal of a query with too many terms.
pub(crate) fn too_many(count: usize) -> Refused {
    Refused::new(
        "text",
        format!("has {count} distinct terms, those of its clauses included; at most {TERMS_MAX}"),
    )
}

impl Words {
    fn score(&mut self, terms: Vec<(Vec<u8>, u32)>, weight: f64) {
        let terms = terms.into_iter();
        self.scored
            .extend(terms.map(|(term, count)| (term, weight * f64::from(count))));
    }

    /// Adds up what several clauses say of one term, in the order of the clauses.
    fn merge(&mut self) {
        self.scored.sort_by(|a, b| a.0.cmp(&b.0));
        self.scored.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 += later.1;
            }
            is_same
        });
        self.required.sort_unstable();
        self.required.dedup();
    }

    /// Takes a clause; returns its terms.
    fn add(
        &mut self,
        analyzer: &Analyzer,
        clause: &Clause,
        place: usize,
        scores: bool,
    ) -> Result<Vec<Vec<u8>>, Refused> {
        let no_word = || {
            let message = "has no word that could be looked for";
            Refused::new(clause.kind(), message)
        };
        if let Clause::Prefix { start: text, .. } | Clause::Fuzzy { word: text, .. } = clause {
            let folded = folded(analyzer, text, clause.kind())?;
            if scores {
                self.patterns.push(Pattern {
                    clause: place,
                    folded,
                    distance: match clause {
                        Clause::Fuzzy { distance, .. } => Some(*distance),
                        _ => None,
                    },
                    weight: clause.weight(),
                });
            }
            return Ok(Vec::new());
        }
        if let Clause::Impact { token, weight } = clause {
            let term = impact_term(token);
            if scores {
                self.scored.push((term.clone(), *weight));
            }
            return Ok(vec![term]);
        }
        let counted = analyzer.analyze_query(clause.text());
        let terms: Vec<Vec<u8>> = counted.iter().map(|(term, _)| term.clone()).collect();
        if terms.is_empty() && clause.filters() {
            return Err(no_word());
        }
        match clause {
            Clause::Exclude { words } => {
                let each = words.split_whitespace();
                let each = each.map(|word| analyzer.analyze_query(word).into_iter());
                let each = each.map(|terms| terms.map(|(term, _)| term).collect::<Vec<_>>());
                self.excluded.extend(each.filter(|terms| !terms.is_empty()));
            }
            Clause::Require { .. } => self.required.extend(terms.iter().cloned()),
            Clause::Phrase { words, .. } => self.add_phrase(analyzer, words),
            _ => {}
        }
        if scores && clause.scores() {
            self.score(counted, clause.weight());
        }
        Ok(terms)
    }

    /// The terms must be in the row, and, where there are several tokens, one after the other
    /// in the text.
    fn add_phrase(&mut self, analyzer: &Analyzer, words: &str) {
        let tokens = analyzer.tokens(words);
        let tokens: Vec<String> = tokens.iter().map(|(term, _)| term.to_owned()).collect();
        let terms = tokens.iter().map(|token| token.as_bytes().to_vec());
        self.required.extend(terms);
        if tokens.len() > 1 {
            self.phrases.push(tokens);
        }
    }
}

/// A pattern as terms are spelt.
fn folded(analyzer: &Analyzer, text: &str, kind: &'static str) -> Result<String, Refused> {
    let folded = analyzer.fold(text);
    // The fold may make a space of a sign; no term holds one, nor any control character.
    if folded.is_empty() || folded.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Refused::new(kind, "has no word that could be looked for"));
    }
    if folded.len() > TERM_BYTES_MAX {
        let message = format!("is longer than the {TERM_BYTES_MAX} bytes of a term");
        return Err(Refused::new(kind, message));
    }
    Ok(folded)
}
