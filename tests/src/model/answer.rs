//! The whole answer to an ask, and how it differs from a response.

use std::collections::BTreeSet;

use chronolith::{
    Carried, Clause, ContextRow, Error, Exactness, Hit, HitExplanation, Mode, PackPolicy,
    PartitionName, Response, TermPart,
};
use chronolith_segments::{check_vector, dot};

use super::clauses::Clauses;
use super::rank::{Ranked, aged, best, concerns, fuse, list_length};
use super::text::{Weighted, Weights, shown};
use super::{Model, Row};
use crate::generate::Ask;

/// What a retrieval must return.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Tokens of all text that the hits carry.
    pub text_tokens: u64,
    /// Live rows and tokens of the requested scopes.
    pub population: (u64, u64),
    /// Term, weight, df and idf, where the ask says explain.
    pub terms: Vec<(String, f64, u64, f64)>,
    /// Terms that each prefix and fuzzy word stands for, with their df, where the ask says
    /// explain.
    pub expansions: Vec<Vec<(String, u64)>>,
    /// Every tag that stands for a group, where the ask says explain.
    pub tags: Vec<Vec<String>>,
    /// Lengths of the two lists of a hybrid answer.
    pub lists: Option<(usize, usize)>,
}

impl Model {
    /// Answers, or names the field at fault.
    ///
    /// # Errors
    /// The field that the store must refuse.
    ///
    /// # Panics
    /// If a vector of the test does not fit.
    pub fn answer(&self, ask: &Ask) -> Result<Answer, &'static str> {
        if let (Some(since), Some(until)) = (ask.since_us, ask.until_us)
            && since > until
        {
            return Err("until");
        }
        let mode = match (ask.mode, has_words(ask), &ask.vector) {
            (Mode::Dense | Mode::Hybrid, _, None) => return Err("vector"),
            (Mode::Sparse | Mode::Hybrid, false, _) => return Err("text"),
            (Mode::Auto, false, None) => None,
            (Mode::Auto, true, Some(_)) => Some(Mode::Hybrid),
            (Mode::Auto, true, None) => Some(Mode::Sparse),
            (Mode::Auto, false, Some(_)) => Some(Mode::Dense),
            (mode, ..) => Some(mode),
        };
        let population = self.population(ask);
        let scores = matches!(mode, Some(Mode::Sparse | Mode::Hybrid));
        let clauses = Clauses::new(&self.analyzer, ask, &population, scores)?;
        let weights = Weights::new(&population, &clauses);
        let passes = |row: &&Row| self.passes(ask, row) && clauses.admit(&self.analyzer, row);
        let rows: Vec<&Row> = population.iter().copied().filter(passes).collect();
        let (ranked, lists) = self.rank(ask, mode, &rows, &weights);
        let (hits, text_tokens) = self.hits(ask, &ranked, &weights);
        let tokens = population.iter().map(|row| u64::from(row.length)).sum();
        Ok(Answer {
            hits,
            text_tokens,
            population: (population.len() as u64, tokens),
            terms: if ask.explain {
                let terms = weights.terms.iter();
                let named = terms.map(|(term, weight, df, idf)| {
                    let term = name(term);
                    (term, *weight, *df, *idf)
                });
                named.collect()
            } else {
                Vec::new()
            },
            expansions: if ask.explain {
                let groups = weights.groups.iter();
                groups.map(|(_, members)| named(members)).collect()
            } else {
                Vec::new()
            },
            tags: if ask.explain {
                self.closures(ask)
            } else {
                Vec::new()
            },
            lists,
        })
    }

    fn rank<'a>(
        &self,
        ask: &Ask,
        mode: Option<Mode>,
        rows: &[&'a Row],
        weights: &Weights,
    ) -> (Vec<Ranked<'a>>, Option<(usize, usize)>) {
        let (k, distinct) = (ask.k, ask.distinct);
        match mode {
            None => {
                let latest = rows.iter().map(|row| {
                    let mut ranked = aged(Ranked::new(row, 0.0), 0.0, ask);
                    (ranked.key, ranked.score) = (0.0, 0.0);
                    ranked
                });
                (best(latest.collect(), k, distinct), None)
            }
            Some(Mode::Sparse) => {
                let scored = sparse(rows, weights).into_iter().map(|mut ranked| {
                    ranked.signals.bm25 = Some(ranked.key);
                    let base = ranked.key;
                    aged(ranked, base, ask)
                });
                (best(scored.collect(), k, distinct), None)
            }
            Some(Mode::Dense) => {
                let plain = matches!(ask.recency, chronolith::Recency::Off);
                let length = if plain { k } else { list_length(k) };
                let list = best(self.dense(ask, rows), length, distinct);
                let scored = list.into_iter().map(|mut ranked| {
                    ranked.signals.cosine = Some(ranked.key);
                    let base = ranked.key;
                    aged(ranked, base, ask)
                });
                (best(scored.collect(), k, distinct), None)
            }
            Some(Mode::Hybrid | Mode::Auto) => {
                let length = list_length(k);
                let sparse = best(sparse(rows, weights), length, distinct);
                let dense = best(self.dense(ask, rows), length, distinct);
                let fused = fuse(&sparse, &dense, ask.fusion.unwrap_or(self.fusion));
                let scored = fused.into_iter().map(|(row, base)| aged(row, base, ask));
                let lists = Some((sparse.len(), dense.len()));
                (best(scored.collect(), k, distinct), lists)
            }
        }
    }

    /// Every row that has a vector, by its similarity.
    fn dense<'a>(&self, ask: &Ask, rows: &[&'a Row]) -> Vec<Ranked<'a>> {
        let (Some(space), Some(vector)) = (&self.space, &ask.vector) else {
            return Vec::new();
        };
        let query = check_vector(space, vector).expect("a query vector of the test fits");
        let with_vector = rows.iter().filter_map(|row| {
            let stored = row.vector.as_ref()?;
            // -0 and +0 are one score.
            Some(Ranked::new(
                row,
                f64::from(dot(&query, stored, space.format)) + 0.0,
            ))
        });
        with_vector.collect()
    }

    fn closures(&self, ask: &Ask) -> Vec<Vec<String>> {
        let names = |group: &Vec<String>| {
            let mut names: BTreeSet<String> = group.iter().cloned().collect();
            let scopes = self.edges.iter().map(|edge| &edge.scope);
            for scope in scopes.filter(|scope| concerns(&ask.scopes, scope)) {
                names.extend(group.iter().flat_map(|tag| self.below(tag, scope, 4)));
            }
            names.into_iter().collect()
        };
        ask.tags.iter().map(names).collect()
    }

    fn hits(&self, ask: &Ask, ranked: &[Ranked<'_>], weights: &Weights) -> (Vec<Hit>, u64) {
        let carried = self.pack(ask, ranked);
        let mut text_tokens = 0;
        let mut hits = Vec::new();
        for (ranked, carried) in ranked.iter().zip(carried) {
            text_tokens += self.cost(ranked.row, carried);
            hits.push(self.hit(ask, ranked, carried, weights));
        }
        (hits, text_tokens)
    }

    fn cost(&self, row: &Row, carried: Carried) -> u64 {
        let text = match carried {
            Carried::Text => Some(&row.record.text),
            Carried::Summary => row.record.summary.as_ref(),
            Carried::Nothing => None,
        };
        text.map_or(0, |text| u64::from(self.counter.cost(text)))
    }

    /// Which hits carry what.
    fn pack(&self, ask: &Ask, ranked: &[Ranked<'_>]) -> Vec<Carried> {
        if ask.ids_only {
            return vec![Carried::Nothing; ranked.len()];
        }
        let Some(budget) = ask.budget else {
            return vec![Carried::Text; ranked.len()];
        };
        let mut left = budget.tokens.saturating_sub(budget.overhead_tokens);
        let mut order: Vec<usize> = (0..ranked.len()).collect();
        if budget.policy == PackPolicy::Density {
            let density = |i: &usize| {
                let tokens = self.counter.cost(&ranked[*i].row.record.text);
                ranked[*i].score / f64::from(tokens.max(1))
            };
            order.sort_by(|a, b| density(b).total_cmp(&density(a)).then(a.cmp(b)));
        }
        let mut carried = vec![Carried::Nothing; ranked.len()];
        for i in order {
            let full = self.cost(ranked[i].row, Carried::Text);
            let short = self.cost(ranked[i].row, Carried::Summary);
            if full <= left {
                left -= full;
                carried[i] = Carried::Text;
                continue;
            }
            if short > 0 && short <= left {
                left -= short;
                carried[i] = Carried::Summary;
            }
            if budget.policy == PackPolicy::RankPrefix {
                break;
            }
        }
        carried
    }

    fn hit(&self, ask: &Ask, ranked: &Ranked<'_>, carried: Carried, weights: &Weights) -> Hit {
        let record = &ranked.row.record;
        let read = carried != Carried::Nothing;
        let (before, after) = self.around(ranked.row, ask.context);
        let context = |row: &&Row| ContextRow {
            id: row.record.id.clone(),
            event_time_us: row.record.event_time_us,
            text: if ask.ids_only {
                String::new()
            } else {
                row.record.text.clone()
            },
            speaker: row.record.speaker.clone().filter(|_| !ask.ids_only),
        };
        Hit {
            id: record.id.clone(),
            scope: record.scope.clone(),
            event_time_us: record.event_time_us,
            score: ranked.score,
            source_class: record.source_class,
            importance: record.importance,
            source_id: record.source_id.clone(),
            tags: record.tags.clone(),
            carried,
            text: match carried {
                Carried::Text => Some(record.text.clone()),
                Carried::Summary => record.summary.clone(),
                Carried::Nothing => None,
            },
            snippet: None,
            speaker: record.speaker.clone().filter(|_| read),
            source: record.source.clone().filter(|_| read),
            attributes: if read {
                record.attributes.clone()
            } else {
                String::new()
            },
            signals: ranked.signals,
            before: before.iter().map(context).collect(),
            after: after.iter().map(context).collect(),
            explanation: ask.explain.then(|| explanation(ranked.row, weights)),
        }
    }
}

/// Every row that holds a term.
fn sparse<'a>(rows: &[&'a Row], weights: &Weights) -> Vec<Ranked<'a>> {
    let scored = rows.iter().copied();
    let scored = scored.filter_map(|row| Some(Ranked::new(row, weights.score(row)?)));
    scored.collect()
}

/// True where the ask has words that score.
fn has_words(ask: &Ask) -> bool {
    let scores = |clause: &Clause| !matches!(clause, Clause::Exclude { .. });
    ask.text.is_some() || ask.clauses.iter().any(scores)
}

fn name(term: &[u8]) -> String {
    match term.strip_prefix(&[0xff]) {
        Some(token) => format!("impact {}", String::from_utf8_lossy(token)),
        None => String::from_utf8_lossy(term).into_owned(),
    }
}

fn named(members: &[Weighted]) -> Vec<(String, u64)> {
    let name = |(term, _, df, _): &Weighted| (name(term), *df);
    members.iter().map(name).collect()
}

fn explanation(row: &Row, weights: &Weights) -> HitExplanation {
    let part = |term: &Weighted, stands_for: Option<&String>| {
        let freq = row.terms.get(&term.0)?;
        Some(TermPart {
            term: name(&term.0),
            freq: *freq,
            score: shown(weights.part(term, row)),
            stands_for: stands_for.cloned(),
        })
    };
    let one_by_one = weights.terms.iter().filter_map(|term| part(term, None));
    let mut terms: Vec<TermPart> = one_by_one.collect();
    for (text, members) in &weights.groups {
        let mut parts = members.iter().filter_map(|term| part(term, Some(text)));
        if let Some(first) = parts.next() {
            terms.push(parts.fold(
                first,
                |best, part| {
                    if part.score > best.score { part } else { best }
                },
            ));
        }
    }
    terms.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.term.cmp(&b.term))
    });
    HitExplanation {
        terms,
        length: row.length,
        partition: PartitionName::Memtable(0),
    }
}

/// What a response says beyond its layout.
fn answer_of(response: Response) -> Answer {
    let mut hits = response.hits;
    for explanation in hits.iter_mut().filter_map(|hit| hit.explanation.as_mut()) {
        explanation.partition = PartitionName::Memtable(0);
    }
    let statistics = response.plan.statistics;
    let terms = response.plan.terms.into_iter();
    Answer {
        hits,
        text_tokens: response.text_tokens,
        population: (statistics.rows, statistics.length_sum),
        terms: terms.map(|t| (t.term, t.weight, t.df, t.idf)).collect(),
        expansions: response
            .plan
            .clauses
            .into_iter()
            .filter(|clause| matches!(clause.kind, "prefix" | "fuzzy"))
            .filter(|_| matches!(response.plan.mode, Some(Mode::Sparse | Mode::Hybrid)))
            .map(|clause| clause.expansions.into_iter())
            .map(|terms| terms.map(|t| (t.term, t.df)).collect())
            .collect(),
        tags: response.plan.tags,
        lists: response.plan.lists,
    }
}

/// How a response differs from what it must be; `None` = not at all. Floats are compared by
/// their bits: equal texts of [`Debug`] mean equal bits.
pub fn difference(
    expected: &Result<Answer, &'static str>,
    found: Result<Response, Error>,
) -> Option<String> {
    let (expected, found) = match (expected, found) {
        (Err(field), Err(Error::Refused(refused))) if refused.field == *field => return None,
        (Ok(expected), Ok(found)) => (expected, found),
        (expected, found) => {
            let expected = expected.as_ref().map(|answer| answer.hits.len());
            let found = found.map(|response| response.hits.len());
            return Some(format!("expected {expected:?}, found {found:?}"));
        }
    };
    if found.exactness != Exactness::Exact {
        return Some(format!("not exact: {:?}", found.exactness));
    }
    let found = answer_of(found);
    let pairs = expected.hits.iter().zip(&found.hits).enumerate();
    for (place, (expected, found)) in pairs {
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        if expected != found {
            return Some(format!(
                "hit {place}:\n expected {expected}\n found    {found}"
            ));
        }
    }
    if expected.hits.len() != found.hits.len() {
        let (expected, found) = (expected.hits.len(), found.hits.len());
        return Some(format!("expected {expected} hits, found {found}"));
    }
    let rest = |answer: &Answer| {
        format!(
            "tokens {} population {:?} terms {:?} expansions {:?} tags {:?} lists {:?}",
            answer.text_tokens,
            answer.population,
            answer.terms,
            answer.expansions,
            answer.tags,
            answer.lists
        )
    };
    let (expected, found) = (rest(expected), rest(&found));
    (expected != found).then(|| format!("\n expected {expected}\n found    {found}"))
}
