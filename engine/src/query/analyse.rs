//! Which terms does the query have, and what is each worth in the requested scopes?

use std::collections::BTreeMap;

use chronolith_segments::analyze::Analyzer;
use chronolith_segments::{Near, impact_token};
use chronolith_vfs::planted::{self, Bug};

use super::bm25::{Statistics, TermScorer, idf};
use super::clauses::{ClauseFilter, Phrases, Words, expand, too_many};
use super::lookup::Found;
use super::request::{Request, TERMS_MAX};
use super::view::View;
use crate::error::Error;

/// One distinct term of a query.
#[derive(Debug, Clone)]
pub(crate) struct QueryTerm {
    pub(crate) term: Vec<u8>,
    /// Its place among the terms that were looked up; see [`Found`].
    pub(crate) place: usize,
    /// Occurrences in the query, each with its clause's weight.
    pub(crate) weight: f64,
    /// Live rows of the requested scopes that hold it.
    pub(crate) df: u64,
    /// 1 of an impact.
    pub(crate) idf: f64,
    pub(crate) scorer: TermScorer,
}

/// Terms of which a row gets only the largest contribution: what a prefix or a fuzzy word
/// stands for.
#[derive(Debug)]
pub(crate) struct TermGroup {
    /// Place of its clause in the request.
    pub(crate) clause: usize,
    /// Ascending; each has a live row.
    pub(crate) members: Vec<QueryTerm>,
}

/// All that the sparse pass scores by.
#[derive(Debug)]
pub(crate) struct QueryTerms {
    /// Terms that score one by one, ascending; each stands at its own place.
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) groups: Vec<TermGroup>,
    pub(crate) filter: ClauseFilter,
    /// Terms of each clause, for the plan.
    pub(crate) by_clause: Vec<Vec<Vec<u8>>>,
    /// Distinct terms that were looked up.
    pub(crate) count: usize,
}

impl QueryTerm {
    /// The term as a person reads it.
    pub(crate) fn name(&self) -> String {
        term_name(&self.term)
    }
}

/// A term as a person reads it; a token of an impact with what it is.
pub(crate) fn term_name(term: &[u8]) -> String {
    match impact_token(term) {
        Some(token) => format!("impact {token}"),
        None => String::from_utf8_lossy(term).into_owned(),
    }
}

impl QueryTerms {
    /// The scorer of any word: all share one average length. That of an impact where there are
    /// no words.
    pub(crate) fn any_word(&self) -> TermScorer {
        let members = self.groups.iter().flat_map(|group| &group.members);
        let scorers = self.terms.iter().chain(members).map(|term| term.scorer);
        let words = scorers.clone().filter(|scorer| !scorer.is_linear());
        let any = words.chain(scorers).next();
        any.unwrap_or_else(|| TermScorer::of_impact(0.0))
    }

    /// True where a row of the view's runs holds a term that scores.
    pub(crate) fn any_scores(&self, found: &Found<'_>) -> bool {
        let members = self.groups.iter().flat_map(|group| &group.members);
        let mut scored = self.terms.iter().chain(members);
        scored.any(|term| found.entry(term.place).is_some())
    }
}

/// Live rows and lengths of the requested scopes over all views, pruned or not.
pub(crate) fn statistics(views: &[View]) -> Result<Statistics, Error> {
    let mut sum = Statistics::default();
    for view in views {
        let part = view.statistics()?;
        sum.rows += part.rows;
        sum.length_sum += part.length_sum;
    }
    Ok(sum)
}

/// The distinct terms of a query, each at a place of its own.
#[derive(Default)]
struct Places {
    names: Vec<Vec<u8>>,
    places: BTreeMap<Vec<u8>, usize>,
}

impl Places {
    fn of(&mut self, term: &[u8]) -> usize {
        if let Some(place) = self.places.get(term) {
            return *place;
        }
        self.names.push(term.to_vec());
        self.places.insert(term.to_vec(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn all(&mut self, terms: &[Vec<u8>]) -> Vec<usize> {
        terms.iter().map(|term| self.of(term)).collect()
    }
}

/// Expands what stands for several terms, looks all terms up in all views and gives each its
/// document frequency and scorer; terms that occur nowhere are kept with df 0 for the plan and
/// score nothing.
///
/// # Errors
/// Refused where a clause stands for too many terms, or all together are too many; damage.
pub(crate) fn weigh<'v>(
    views: &'v [View],
    statistics: Statistics,
    words: Words,
    request: &Request,
    analyzer: &Analyzer,
) -> Result<(QueryTerms, Vec<Found<'v>>), Error> {
    let (resolved, grouped, filter) = if request.clauses.is_empty() {
        (Vec::new(), Vec::new(), ClauseFilter::none(*analyzer))
    } else {
        resolve(views, &words, request, analyzer)?
    };
    let names: Vec<&[u8]> = match request.clauses.is_empty() {
        true => words.scored.iter().map(|(term, _)| &**term).collect(),
        false => resolved.iter().map(Vec::as_slice).collect(),
    };
    let (frequencies, found) = look_up(views, &names)?;
    let average_length = statistics.average_length();
    let weighed = |place: usize, weight: f64| {
        let df = frequencies[place];
        let is_impact = impact_token(names[place]).is_some();
        let idf = match is_impact {
            true => 1.0,
            false => idf(statistics.rows, df),
        };
        QueryTerm {
            scorer: match is_impact {
                true => TermScorer::of_impact(weight),
                false => TermScorer::new(idf, weight, average_length),
            },
            term: names[place].to_vec(),
            place,
            weight,
            df,
            idf,
        }
    };
    let scored = words.scored.iter().enumerate();
    let groups = grouped
        .into_iter()
        .map(|(clause, weight, places)| TermGroup {
            clause,
            members: places.into_iter().map(|at| weighed(at, weight)).collect(),
        });
    let terms = QueryTerms {
        terms: scored
            .map(|(at, (_, weight))| weighed(at, *weight))
            .collect(),
        groups: groups.collect(),
        filter,
        by_clause: words.by_clause,
        count: names.len(),
    };
    Ok((terms, found))
}

/// A clause with its weight and the places of the terms that it stands for.
type Grouped = (usize, f64, Vec<usize>);

/// The terms by their places, the clauses that stand for several, and what filters.
type Resolved = (Vec<Vec<u8>>, Vec<Grouped>, ClauseFilter);

/// Gives every term of text and clauses its place: those that score one by one come first.
fn resolve(
    views: &[View],
    words: &Words,
    request: &Request,
    analyzer: &Analyzer,
) -> Result<Resolved, Error> {
    let mut places = Places::default();
    for (term, _) in &words.scored {
        places.of(term);
    }
    let mut groups = Vec::with_capacity(words.patterns.len());
    for pattern in &words.patterns {
        let clause = &request.clauses[pattern.clause];
        let terms: Vec<Vec<u8>> = expand(views, pattern, clause)?.into_iter().collect();
        groups.push((pattern.clause, pattern.weight, places.all(&terms)));
    }
    let filter = ClauseFilter {
        required: places.all(&words.required),
        excluded: words.excluded.iter().map(|t| places.all(t)).collect(),
        phrases: Phrases::new(*analyzer, words.phrases.clone()),
    };
    if places.names.len() > TERMS_MAX {
        return Err(too_many(places.names.len()).into());
    }
    Ok((places.names, groups, filter))
}

fn look_up<'v>(views: &'v [View], names: &[&[u8]]) -> Result<(Vec<u64>, Vec<Found<'v>>), Error> {
    for near in [Near::Index, Near::Block] {
        for view in views {
            view.partition().bring_near(names, near);
        }
    }
    let mut frequencies = vec![0; names.len()];
    let mut found = Vec::with_capacity(views.len());
    for (index, view) in views.iter().enumerate() {
        let mut part = vec![0; names.len()];
        found.push(Found::new(view, names, &mut part)?);
        if index > 0 && planted::is_on(Bug::IdfOfOneSegment) {
            continue;
        }
        for (sum, part) in frequencies.iter_mut().zip(part) {
            *sum += part;
        }
    }
    Ok((frequencies, found))
}
