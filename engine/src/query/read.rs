//! Ranked rows to hits: the only place where a query reads names, tags and text.

use chronolith_segments::{Scope, SegmentError, SourceClass, Stored, TimeOrder};

use super::analyse::{QueryTerm, QueryTerms};
use super::bm25::shown;
use super::context::{Neighbour, neighbours};
use super::pack::{Carried, Cost, pack};
use super::recency::Aging;
use super::request::Request;
use super::response::{ContextRow, Hit, HitExplanation, Signals, TermPart};
use super::run::{Asked, Ranked};
use super::snippet::{Snippet, Snippets};
use super::view::View;
use crate::error::Error;

/// What the request wants to see of its hits.
pub(crate) struct Wanted<'a> {
    pub(crate) asked: &'a Asked<'a>,
    pub(crate) request: &'a Request,
    pub(crate) query: &'a QueryTerms,
    pub(crate) aging: Aging,
}

impl Wanted<'_> {
    /// The hits with as much text as the budget allows, and the tokens of that text.
    pub(crate) fn hits(&self, views: &[View], ranked: &[Ranked]) -> Result<(Vec<Hit>, u64), Error> {
        let (carried, text_tokens) = self.choose_text(views, ranked)?;
        let snippets = self.request.snippet_chars;
        let snippets = snippets.map(|chars| Snippets::new(self.asked.analyzer, self.query, chars));
        let hits = ranked
            .iter()
            .zip(carried)
            .map(|(ranked, carried)| self.hit(views, ranked, carried, snippets.as_ref()));
        Ok((hits.collect::<Result<_, _>>()?, text_tokens))
    }

    fn choose_text(&self, views: &[View], ranked: &[Ranked]) -> Result<(Vec<Carried>, u64), Error> {
        if self.request.ids_only {
            return Ok((vec![Carried::Nothing; ranked.len()], 0));
        }
        let mut costs = Vec::with_capacity(ranked.len());
        for ranked in ranked {
            let fields = views[ranked.candidate.view]
                .partition()
                .fields(ranked.candidate.row)?;
            let (text_tokens, summary_tokens) = (fields.text_tokens, fields.summary_tokens);
            costs.push(Cost {
                score: ranked.score,
                text_tokens,
                summary_tokens,
            });
        }
        let carried = match self.request.budget {
            Some(budget) => pack(&costs, budget),
            None => vec![Carried::Text; costs.len()],
        };
        let spent = |(cost, carried): (&Cost, &Carried)| match carried {
            Carried::Text => u64::from(cost.text_tokens),
            Carried::Summary => u64::from(cost.summary_tokens),
            Carried::Nothing => 0,
        };
        let text_tokens = costs.iter().zip(&carried).map(spent).sum();
        Ok((carried, text_tokens))
    }

    /// What the hit carries of its stored parts, and its snippet.
    fn stored(
        &self,
        view: &View,
        row: u32,
        carried: Carried,
        snippets: Option<&Snippets<'_>>,
    ) -> Result<(Stored, Option<Snippet>), Error> {
        if carried == Carried::Nothing && snippets.is_none() {
            return Ok((Stored::default(), None));
        }
        let stored = view.partition().stored(row)?;
        let snippet = snippets.map(|snippets| snippets.cut(&stored.text));
        match carried {
            Carried::Nothing => Ok((Stored::default(), snippet)),
            Carried::Text | Carried::Summary => Ok((stored, snippet)),
        }
    }

    fn hit(
        &self,
        views: &[View],
        ranked: &Ranked,
        carried: Carried,
        snippets: Option<&Snippets<'_>>,
    ) -> Result<Hit, Error> {
        let (view, row) = (&views[ranked.candidate.view], ranked.candidate.row);
        let partition = view.partition();
        let (stored, snippet) = self.stored(view, row, carried, snippets)?;
        let text = match carried {
            Carried::Text => Some(stored.text),
            Carried::Summary => stored.summary,
            Carried::Nothing => None,
        };
        let scope = self.scope(view, row)?;
        let (before, after) = self.contexts(view, row, &scope)?;
        let importance = partition.importance(row)?;
        Ok(Hit {
            id: partition.id(row)?.into_owned(),
            event_time_us: partition.event_time_us(row)?,
            score: ranked.score,
            source_class: SourceClass::from_column(partition.source_class(row)?),
            importance: Some(importance).filter(|value| !value.is_nan()),
            source_id: partition.source_id(row)?.map(std::borrow::Cow::into_owned),
            tags: partition.tags(row)?,
            carried,
            text,
            snippet,
            speaker: stored.speaker,
            source: stored.source,
            attributes: stored.attributes,
            signals: self.signals(ranked),
            before,
            after,
            explanation: self.explanation(view, row)?,
            scope,
        })
    }

    fn scope(&self, view: &View, row: u32) -> Result<Scope, Error> {
        let key = view.partition().scope_key(row)?;
        Scope::from_key(&key).ok_or_else(|| {
            Error::Internal(format!(
                "{} has a row whose scope key is none",
                view.source.name
            ))
        })
    }

    fn signals(&self, ranked: &Ranked) -> Signals {
        Signals {
            bm25: ranked.bm25,
            cosine: ranked.cosine,
            sparse: ranked.parts.map(|parts| parts.0),
            dense: ranked.parts.map(|parts| parts.1),
            recency: self.aging.signal(ranked.candidate.time_us),
        }
    }

    fn explanation(&self, view: &View, row: u32) -> Result<Option<HitExplanation>, Error> {
        if !self.request.explain {
            return Ok(None);
        }
        let partition = view.partition();
        let length = partition.length(row)?;
        let part = |term: &QueryTerm, stands_for: Option<&str>| -> Result<_, SegmentError> {
            let freq = super::sparse::freq_in(view, row, &term.term)?;
            Ok((freq > 0).then(|| TermPart {
                term: term.name(),
                freq,
                score: shown(term.scorer.score(freq, length)),
                stands_for: stands_for.map(str::to_owned),
            }))
        };
        let mut terms = Vec::new();
        for term in &self.query.terms {
            terms.extend(part(term, None)?);
        }
        for group in &self.query.groups {
            let clause = self.request.clauses[group.clause].text();
            let mut best: Option<TermPart> = None;
            for term in &group.members {
                let part = part(term, Some(clause))?;
                best = match (best, part) {
                    (Some(best), Some(part)) if part.score > best.score => Some(part),
                    (best, part) => best.or(part),
                };
            }
            terms.extend(best);
        }
        terms.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.term.cmp(&b.term))
        });
        Ok(Some(HitExplanation {
            terms,
            length,
            partition: view.source.name.clone(),
        }))
    }

    /// The rows before and after one, as many as were asked for.
    fn contexts(
        &self,
        view: &View,
        row: u32,
        scope: &Scope,
    ) -> Result<(Vec<ContextRow>, Vec<ContextRow>), Error> {
        let (before, after) = self.request.context;
        if before == 0 && after == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let fields = view.partition().fields(row)?;
        let at = (fields.event_time_us, fields.commit_seq);
        let before = self.context(scope, at, TimeOrder::NewestFirst, before)?;
        let after = self.context(scope, at, TimeOrder::OldestFirst, after)?;
        Ok((before, after))
    }

    fn context(
        &self,
        scope: &Scope,
        at: (i64, u64),
        side: TimeOrder,
        count: usize,
    ) -> Result<Vec<ContextRow>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let rows = neighbours(
            self.asked.sources,
            scope,
            at,
            side,
            count,
            self.asked.at_seq,
        )?;
        rows.into_iter().map(|row| self.context_row(row)).collect()
    }

    fn context_row(&self, neighbour: Neighbour) -> Result<ContextRow, Error> {
        let partition = &*self.asked.sources[neighbour.source].partition;
        let stored = if self.request.ids_only {
            Stored::default()
        } else {
            partition.stored(neighbour.row)?
        };
        Ok(ContextRow {
            id: partition.id(neighbour.row)?.into_owned(),
            event_time_us: neighbour.time_us,
            text: stored.text,
            speaker: stored.speaker,
        })
    }
}
