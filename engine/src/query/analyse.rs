//! Which terms does the query have, and what is each worth in the requested scopes?

use chronolith_segments::Refused;
use chronolith_segments::analyze::Analyzer;
use chronolith_vfs::planted::{self, Bug};

use super::bm25::{Statistics, TermScorer, idf};
use super::lookup::Found;
use super::request::TERMS_MAX;
use super::view::View;
use crate::error::Error;

/// One distinct term of a query.
#[derive(Debug, Clone)]
pub(crate) struct QueryTerm {
    pub(crate) term: Vec<u8>,
    /// Occurrences in the query.
    pub(crate) weight: f64,
    /// Live rows of the requested scopes that hold it.
    pub(crate) df: u64,
    pub(crate) idf: f64,
    pub(crate) scorer: TermScorer,
}

/// Terms with their weights, ascending by bytes; duplicates merged after analysis.
pub(crate) fn terms_of(analyzer: &Analyzer, text: &str) -> Result<Vec<(Vec<u8>, u32)>, Refused> {
    let terms = analyzer.analyze_query(text);
    if terms.len() > TERMS_MAX {
        let message = format!("has {} distinct terms; at most {TERMS_MAX}", terms.len());
        return Err(Refused::new("text", message));
    }
    Ok(terms)
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

/// Looks the terms up in all views and gives each its document frequency and scorer; terms
/// that occur nowhere are kept with df 0 for the plan and score nothing.
pub(crate) fn weigh<'v>(
    views: &'v [View],
    statistics: Statistics,
    terms: Vec<(Vec<u8>, u32)>,
) -> Result<(Vec<QueryTerm>, Vec<Found<'v>>), Error> {
    let mut frequencies = vec![0; terms.len()];
    let mut found = Vec::with_capacity(views.len());
    for (index, view) in views.iter().enumerate() {
        let mut part = vec![0; terms.len()];
        let names = terms.iter().map(|(term, _)| term.as_slice());
        found.push(Found::new(view, names, &mut part)?);
        if index > 0 && planted::is_on(Bug::IdfOfOneSegment) {
            continue;
        }
        for (sum, part) in frequencies.iter_mut().zip(part) {
            *sum += part;
        }
    }
    let average_length = statistics.average_length();
    let weighed = terms
        .into_iter()
        .zip(frequencies)
        .map(|((term, occurrences), df)| {
            let idf = idf(statistics.rows, df);
            let weight = f64::from(occurrences);
            QueryTerm {
                scorer: TermScorer::new(idf, weight, average_length),
                term,
                weight,
                df,
                idf,
            }
        });
    Ok((weighed.collect(), found))
}
