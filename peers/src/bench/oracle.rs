//! Is Chronolith's answer the exact one? Computed here from the records, the slow way.
//!
//! The definition is written down again rather than called: BM25 with k1 = 1.2 and b = 0.75
//! under the statistics of the requested scope, each contribution rounded to 2^-20; ties by
//! time descending, scope, id.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, Kind, Query, Terms};
use super::searcher::K;
use crate::engine::Failure;

const K1: f64 = 1.2;
const B: f64 = 0.75;
const SCALE: f64 = 1_048_576.0;

/// Answers of one kind against the oracle.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Verified {
    /// The kind.
    pub kind: Kind,
    /// Answers that were compared.
    pub compared: usize,
    /// Answers with the same ids and times in the same order.
    pub equal: usize,
}

/// An answer: id and time of each hit.
pub type Answer = Vec<(String, i64)>;

/// The records, reduced to what a sample of queries needs.
struct Table {
    times_us: Vec<i64>,
    lengths: Vec<u32>,
    /// By row, an index into `names`.
    scopes: Vec<u32>,
    names: Vec<String>,
    /// By term: row and frequency, rows ascending.
    postings: BTreeMap<String, Vec<(u32, u32)>>,
}

/// Compares answers; `asked` holds kind, queries, and the answers to the first of them.
pub fn verify(
    corpus: &Corpus,
    asked: &[(Kind, Vec<Query>, Vec<Answer>)],
) -> Result<Vec<Verified>, Failure> {
    let mut wanted = BTreeMap::new();
    for (_, queries, answers) in asked {
        for query in queries.iter().take(answers.len()) {
            for (term, _) in &query.terms {
                wanted.insert(term.clone(), Vec::new());
            }
        }
    }
    let table = Table::read(corpus, wanted)?;
    let mut verified = Vec::new();
    for (kind, queries, answers) in asked {
        let mut equal = 0;
        for (query, answer) in queries.iter().zip(answers) {
            let exact = table.answer(query);
            if exact == *answer {
                equal += 1;
            } else {
                eprintln!(
                    "NOT EXACT: {} {:?} in {}: {answer:?} instead of {exact:?}",
                    kind.name(),
                    query.text,
                    query.scope
                );
            }
        }
        verified.push(Verified {
            kind: *kind,
            compared: answers.len(),
            equal,
        });
    }
    Ok(verified)
}

impl Table {
    fn read(corpus: &Corpus, postings: BTreeMap<String, Vec<(u32, u32)>>) -> Result<Self, Failure> {
        let mut table = Self {
            times_us: Vec::new(),
            lengths: Vec::new(),
            scopes: Vec::new(),
            names: Vec::new(),
            postings,
        };
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut terms = Terms::new();
        corpus.chunks(1000, &mut |records| {
            for record in records {
                let row = u32::try_from(table.times_us.len())?;
                if record.id != row.to_string() {
                    return Err(format!("record {} is not number {row}", record.id).into());
                }
                let postings = &mut table.postings;
                let length = terms.for_each(&record.text, &mut |term, freq| {
                    if let Some(list) = postings.get_mut(term) {
                        list.push((row, freq));
                    }
                });
                table.lengths.push(length);
                table.times_us.push(record.time_us);
                let next = u32::try_from(numbers.len())?;
                let number = *numbers.entry(record.scope.clone()).or_insert_with(|| {
                    table.names.push(record.scope.clone());
                    next
                });
                table.scopes.push(number);
            }
            Ok(())
        })?;
        Ok(table)
    }

    /// By name and row whether the scope `of` holds it: the scope itself and those below.
    fn inside(&self, of: &str) -> Vec<bool> {
        let below = format!("{}/", of.trim_end_matches('/'));
        let holds = |name: &String| of == "/" || name == of || name.starts_with(&below);
        self.names.iter().map(holds).collect()
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "counts below 2^53, scores below 2^63"
    )]
    fn answer(&self, query: &Query) -> Answer {
        let inside = self.inside(&query.scope);
        let holds = |row: usize| inside[self.scopes[row] as usize];
        let rows: Vec<usize> = (0..self.lengths.len()).filter(|row| holds(*row)).collect();
        let length_sum: u64 = rows.iter().map(|row| u64::from(self.lengths[*row])).sum();
        let n = rows.len() as f64;
        let average = if length_sum == 0 {
            1.0
        } else {
            length_sum as f64 / n
        };
        // By row; `None` where no term occurs. A sum may be 0.
        let mut sums: Vec<Option<i64>> = vec![None; self.lengths.len()];
        let no_postings = Vec::new();
        for (term, count) in &query.terms {
            let list = self.postings.get(term).unwrap_or(&no_postings);
            let list = list.iter().filter(|(row, _)| holds(*row as usize));
            let df = list.clone().count() as f64;
            let idf = libm::log(1.0 + (n - df + 0.5) / (df + 0.5));
            let scale = idf * f64::from(*count) * SCALE;
            for (row, freq) in list {
                let tf = f64::from(*freq);
                let length = f64::from(self.lengths[*row as usize]);
                let norm = K1 * (1.0 - B + B * length / average);
                let score = (scale * (tf * (K1 + 1.0) / (tf + norm))).round() as i64;
                *sums[*row as usize].get_or_insert(0) += score;
            }
        }
        self.best(query, &sums)
    }

    #[expect(clippy::cast_precision_loss, reason = "as the definition says")]
    fn best(&self, query: &Query, sums: &[Option<i64>]) -> Answer {
        let in_window = |time_us: i64| {
            query
                .window_us
                .is_none_or(|(from_us, to_us)| (from_us..to_us).contains(&time_us))
        };
        let key = |row: usize, sum: i64| {
            let base = sum as f64 / SCALE;
            match query.decay_us {
                None => base,
                Some((tau_us, now_us)) => {
                    let age_us = (now_us - self.times_us[row]).max(0);
                    libm::log(base) - age_us as f64 / tau_us as f64
                }
            }
        };
        let rows = sums.iter().enumerate();
        let rows = rows.filter_map(|(row, sum)| Some((row, (*sum)?)));
        let rows = rows.filter(|(row, _)| in_window(self.times_us[*row]));
        let mut keyed: Vec<(usize, f64)> = rows.map(|(row, sum)| (row, key(row, sum))).collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| {
            b.1.total_cmp(&a.1).then_with(|| self.tie(a.0, b.0))
        };
        if keyed.len() > K {
            keyed.select_nth_unstable_by(K, order);
            keyed.truncate(K);
        }
        keyed.sort_by(order);
        let hit = |(row, _): &(usize, f64)| (row.to_string(), self.times_us[*row]);
        keyed.iter().take(K).map(hit).collect()
    }

    fn tie(&self, a: usize, b: usize) -> Ordering {
        let path = |row: usize| self.names[self.scopes[row] as usize].split('/');
        self.times_us[b]
            .cmp(&self.times_us[a])
            .then_with(|| path(a).cmp(path(b)))
            .then_with(|| a.to_string().cmp(&b.to_string()))
    }
}
