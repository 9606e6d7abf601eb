//! What do clauses mean? By their definitions, term by term and row by row.

use std::collections::{BTreeMap, BTreeSet};

use chronolith::{Clause, EXPANSIONS_MAX};
use chronolith_segments::analyze::Analyzer;

use super::Row;
use crate::generate::Ask;

/// The words of an ask as terms.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    /// Terms that score one by one, with their weights.
    pub(super) scored: BTreeMap<Vec<u8>, f64>,
    /// Text, weight and terms of what scores as its best.
    pub(super) groups: Vec<(String, f64, Vec<Vec<u8>>)>,
    required: BTreeSet<Vec<u8>>,
    excluded: Vec<BTreeSet<Vec<u8>>>,
    phrases: Vec<Vec<String>>,
}

impl Clauses {
    /// Reads text and clauses; `scores`: whether words score at all in this mode.
    ///
    /// # Errors
    /// The field that the store must refuse.
    pub(super) fn new(
        analyzer: &Analyzer,
        ask: &Ask,
        population: &[&Row],
        scores: bool,
    ) -> Result<Self, &'static str> {
        let mut clauses = Self::default();
        if let Some(text) = &ask.text {
            clauses.score(analyzer, text, 1.0);
        }
        let mut patterns = Vec::new();
        for clause in &ask.clauses {
            match clause {
                Clause::Words { words, weight } => clauses.score(analyzer, words, *weight),
                Clause::Require { words, weight } => {
                    let terms = terms(analyzer, words);
                    if terms.is_empty() {
                        return Err("require");
                    }
                    clauses.required.extend(terms);
                    clauses.score(analyzer, words, *weight);
                }
                Clause::Exclude { words } => {
                    let each = words.split_whitespace().map(|word| terms(analyzer, word));
                    let each: Vec<_> = each.filter(|terms| !terms.is_empty()).collect();
                    if each.is_empty() {
                        return Err("exclude");
                    }
                    clauses.excluded.extend(each);
                }
                Clause::Phrase { words, weight } => {
                    let tokens = tokens(analyzer, words);
                    if tokens.is_empty() {
                        return Err("phrase");
                    }
                    let terms = tokens.iter().map(|token| token.clone().into_bytes());
                    clauses.required.extend(terms);
                    if tokens.len() > 1 {
                        clauses.phrases.push(tokens);
                    }
                    clauses.score(analyzer, words, *weight);
                }
                Clause::Prefix { start: text, .. } | Clause::Fuzzy { word: text, .. } => {
                    let folded = analyzer.fold(text);
                    if folded.is_empty() {
                        return Err(clause.kind());
                    }
                    patterns.push((clause, folded));
                }
                Clause::Impact { token, weight } => {
                    let term = [&[0xff], token.as_bytes()].concat();
                    *clauses.scored.entry(term).or_default() += weight;
                }
                other => panic!("the model knows no {other:?}"),
            }
        }
        if !scores {
            clauses.scored.clear();
            return Ok(clauses);
        }
        let terms = population.iter().flat_map(|row| row.terms.keys());
        let all: BTreeSet<&Vec<u8>> = terms.filter(|term| term[0] != 0xff).collect();
        for (clause, folded) in patterns {
            let matching = all.iter().filter(|term| matches(clause, &folded, term));
            let members: Vec<Vec<u8>> = matching.map(|term| (*term).clone()).collect();
            if members.len() > EXPANSIONS_MAX {
                return Err(clause.kind());
            }
            let text = clause.text().to_owned();
            clauses.groups.push((text, clause.weight(), members));
        }
        Ok(clauses)
    }

    fn score(&mut self, analyzer: &Analyzer, words: &str, weight: f64) {
        for (term, count) in analyzer.analyze_query(words) {
            *self.scored.entry(term).or_default() += weight * f64::from(count);
        }
    }

    /// True where the row has what is required, and nothing that is excluded.
    pub(super) fn admit(&self, analyzer: &Analyzer, row: &Row) -> bool {
        let holds = |term: &Vec<u8>| row.terms.contains_key(term);
        let text = tokens(analyzer, &row.record.text);
        let stands = |phrase: &Vec<String>| text.windows(phrase.len()).any(|part| part == phrase);
        self.required.iter().all(holds)
            && !self.excluded.iter().any(|terms| terms.iter().all(holds))
            && self.phrases.iter().all(stands)
    }
}

fn terms(analyzer: &Analyzer, words: &str) -> BTreeSet<Vec<u8>> {
    let terms = analyzer.analyze_query(words).into_iter();
    terms.map(|(term, _)| term).collect()
}

fn tokens(analyzer: &Analyzer, text: &str) -> Vec<String> {
    let tokens = analyzer.tokens(text);
    tokens.iter().map(|(term, _)| term.to_owned()).collect()
}

fn matches(clause: &Clause, folded: &str, term: &[u8]) -> bool {
    match clause {
        Clause::Fuzzy { distance, .. } => {
            let term = std::str::from_utf8(term).expect("terms of the model are text");
            changes(folded, term) <= usize::from(*distance)
        }
        _ => term.starts_with(folded.as_bytes()),
    }
}

/// The Levenshtein distance over characters.
fn changes(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let above = row.clone();
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let exchanged = above[j] + usize::from(x != *y);
            row[j + 1] = exchanged.min(above[j + 1] + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
