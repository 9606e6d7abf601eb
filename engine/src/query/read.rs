//! Ranked rows to hits: the only place where a query reads names, tags and text.

use chronolith_segments::{Scope, SourceClass, Stored, TimeOrder};

use super::analyse::QueryTerm;
use super::bm25::shown;
use super::context::{Neighbour, neighbours};
use super::pack::{Carried, Cost, pack};
use super::recency::Aging;
use super::request::Request;
use super::response::{ContextRow, Hit, HitExplanation, Signals, TermPart};
use super::run::{Asked, Ranked};
use super::view::View;
use crate::error::Error;

/// What the request wants to see of its hits.
pub(crate) struct Wanted<'a> {
    pub(crate) asked: &'a Asked<'a>,
    pub(crate) request: &'a Request,
    pub(crate) terms: &'a [QueryTerm],
    pub(crate) aging: Aging,
}

impl Wanted<'_> {
    /// The hits with as much text as the budget allows, and the tokens of that text.
    pub(crate) fn hits(&self, views: &[View], ranked: &[Ranked]) -> Result<(Vec<Hit>, u64), Error> {
        let (carried, text_tokens) = self.choose_text(views, ranked)?;
        let hits = ranked
            .iter()
            .zip(carried)
            .map(|(ranked, carried)| self.hit(views, ranked, carried));
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

    fn hit(&self, views: &[View], ranked: &Ranked, carried: Carried) -> Result<Hit, Error> {
        let (view, row) = (&views[ranked.candidate.view], ranked.candidate.row);
        let partition = view.partition();
        let fields = partition.fields(row)?;
        let stored = match carried {
            Carried::Nothing => Stored::default(),
            Carried::Text | Carried::Summary => partition.stored(row)?,
        };
        let text = match carried {
            Carried::Text => Some(stored.text),
            Carried::Summary => stored.summary,
            Carried::Nothing => None,
        };
        let scope = self.scope(view, row)?;
        let at = (fields.event_time_us, fields.commit_seq);
        Ok(Hit {
            id: partition.id(row)?.into_owned(),
            event_time_us: fields.event_time_us,
            score: ranked.score,
            source_class: SourceClass::from_column(fields.source_class),
            importance: Some(fields.importance).filter(|value| !value.is_nan()),
            source_id: partition.source_id(row)?.map(std::borrow::Cow::into_owned),
            tags: partition.tags(row)?,
            carried,
            text,
            speaker: stored.speaker,
            source: stored.source,
            attributes: stored.attributes,
            signals: self.signals(ranked),
            before: self.context(&scope, at, TimeOrder::NewestFirst, self.request.context.0)?,
            after: self.context(&scope, at, TimeOrder::OldestFirst, self.request.context.1)?,
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
        let mut terms = Vec::new();
        for term in self.terms {
            let freq = super::sparse::freq_in(view, row, &term.term)?;
            if freq > 0 {
                let score = shown(term.scorer.score(freq, length));
                terms.push(TermPart {
                    term: String::from_utf8_lossy(&term.term).into_owned(),
                    freq,
                    score,
                });
            }
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
