//! The stages in order. Decisions go to the plan; doing is in the stages' own modules.

use chronolith_segments::analyze::Analyzer;
use chronolith_segments::{NumberedSpace, Refused, ScopeRanges, SpaceNumber, check_vector};
use chronolith_vfs::{Clock, Threads};
use hashbrown::HashMap;

use super::analyse::{self, QueryTerm, QueryTerms};
use super::bm25::Statistics;
use super::clauses::{ClauseRows, words_of};
use super::dense::{AskedDense, Dense, PlannedDense};
use super::fuse::{self, Fused};
use super::lookup::Found;
use super::order::{Candidate, TopK};
use super::prune::{self, Decision, Filters};
use super::recency::Aging;
use super::request::{Fusion, Mode, Recency, Request};
use super::response::{
    Exactness, Layout, Plan, PlannedClause, PlannedPartition, PlannedTerm, Response,
};
use super::sparse::{Pace, Scoring, Sparse};
use super::view::{Source, View};
use super::{latest, read};
use crate::error::Error;
use crate::spaces::Spaces;
use crate::tag_graph::{Closure, TagGraph};

/// What a request is asked of: one snapshot with the store's settings.
pub(crate) struct Asked<'a> {
    pub(crate) sources: &'a [Source],
    pub(crate) at_seq: u64,
    pub(crate) analyzer: &'a Analyzer,
    pub(crate) spaces: &'a Spaces,
    pub(crate) probe_rows_min: u64,
    pub(crate) fusion: Fusion,
    pub(crate) tag_graph: &'a TagGraph,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) threads: &'a dyn Threads,
}

/// A ranked row with everything its hit shows of its score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    pub(crate) candidate: Candidate,
    pub(crate) score: f64,
    pub(crate) bm25: Option<f64>,
    pub(crate) cosine: Option<f64>,
    pub(crate) parts: Option<(f64, f64)>,
}

/// The query after analysis: what its stages share.
struct Query<'a> {
    asked: &'a Asked<'a>,
    request: &'a Request,
    /// The query vector, and whose rows it is compared with.
    vector: Option<(&'a NumberedSpace, Vec<f32>)>,
    terms: QueryTerms,
    statistics: Statistics,
    aging: Aging,
}

/// Answers `request`.
pub(crate) fn run(asked: &Asked<'_>, request: &Request) -> Result<Response, Error> {
    let start_ns = asked.clock.monotonic_ns();
    let mut stages = Stages {
        clock: asked.clock,
        last_ns: start_ns,
        layout: Layout::default(),
    };
    let scopes = request.check()?;
    let vector = check_query_vector(asked, request)?;
    let (mode, reason) = choose_mode(request, vector.is_some())?;
    let scores = matches!(mode, Some(Mode::Sparse | Mode::Hybrid));
    let words = words_of(asked.analyzer, request, scores)?;
    let now_us = request.now_us.unwrap_or_else(|| asked.clock.now_us());

    let space = vector
        .as_ref()
        .map_or(SpaceNumber::MAIN, |(own, _)| own.number);
    let (mut views, skipped) = open_views(asked, &scopes, space)?;
    let filters = resolve_filters(asked, request, &scopes);
    let filtered = views.iter_mut().map(|view| prune::decide(view, &filters));
    let mut decisions: Vec<Decision> = filtered.collect::<Result<_, _>>()?;
    stages.done("prune");

    // Statistics come from every view, whatever was decided of it.
    let statistics = analyse::statistics(&views)?;
    let (terms, mut found) = analyse::weigh(&views, statistics, words, request, asked.analyzer)?;
    for (decision, (view, found)) in decisions.iter_mut().zip(views.iter().zip(&mut found)) {
        if *decision == Decision::Search {
            *decision = prune::decide_channels(view, mode, &terms, found);
        }
        // The sparse pass asks of few rows, and those in order: it needs no sets.
        if *decision == Decision::Search && mode != Some(Mode::Sparse) && !terms.filter.is_empty() {
            let rows = ClauseRows::read(&terms.filter, view, found)?;
            view.clause_rows.get_or_init(|| rows);
        }
    }
    stages.done("analyse");

    let aging = Aging::new(request.recency, now_us);
    let query = Query {
        asked,
        request,
        vector,
        terms,
        statistics,
        aging,
    };
    let fusion = (mode == Some(Mode::Hybrid)).then(|| request.fusion.unwrap_or(asked.fusion));
    let mut search = Search {
        chosen: chosen(&decisions),
        views: &views,
        found: &mut found,
        pace: Pace::new(asked.clock, start_ns, request.budget_us),
        unvisited: None,
        planned_dense: None,
        decisions,
        stages,
    };
    let (ranked, lists) = query.rank(&mut search, mode, fusion)?;
    let Search {
        decisions,
        unvisited,
        planned_dense,
        mut stages,
        ..
    } = search;
    let unverified = query.unverified(fusion);
    stages.layout.phrase_checks = query.terms.filter.phrases.checks();
    let unvisited = match (unvisited, unverified) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };

    let wanted = read::Wanted {
        asked,
        request,
        query: &query.terms,
        aging,
    };
    let (hits, text_tokens) = wanted.hits(&views, &ranked)?;
    stages.done("read");
    let mut layout = stages.layout;
    layout.partitions = planned_partitions(&views, &decisions, skipped);
    let plan = Plan {
        dense: planned_dense,
        ..plan(
            &query, mode, reason, statistics, &filters, fusion, lists, layout,
        )
    };
    let took_us = (asked.clock.monotonic_ns() - start_ns) / 1000;
    Ok(Response {
        hits,
        exactness: exactness(unvisited, plan.dense.as_ref()),
        missing: Vec::new(),
        now_us,
        seq: asked.at_seq,
        text_tokens,
        plan,
        took_us,
    })
}

/// The work on one query's views as it goes on.
struct Search<'s, 'v> {
    views: &'v [View],
    /// Views to look into.
    chosen: Vec<usize>,
    /// What each view knows of the terms; used up by the sparse pass.
    found: &'s mut [Found<'v>],
    pace: Pace<'v>,
    /// Where a budget cut the work: no row that was not looked at has a larger score.
    unvisited: Option<f64>,
    /// What the dense pass decided, where there was one.
    planned_dense: Option<PlannedDense>,
    decisions: Vec<Decision>,
    stages: Stages<'v>,
}

/// How exact the answer is, by what was not looked at.
fn exactness(unvisited: Option<f64>, dense: Option<&PlannedDense>) -> Exactness {
    let bound = dense.and_then(|dense| dense.bound);
    match (unvisited, bound) {
        (Some(unvisited_upper_bound), _) => Exactness::BudgetCut {
            unvisited_upper_bound,
        },
        (None, Some(bound)) => Exactness::Approximate { bound },
        (None, None) => Exactness::Exact,
    }
}

/// Indexes of the views to search.
fn chosen(decisions: &[Decision]) -> Vec<usize> {
    let all = decisions.iter().enumerate();
    all.filter(|(_, decision)| **decision == Decision::Search)
        .map(|(index, _)| index)
        .collect()
}

struct Stages<'a> {
    clock: &'a dyn Clock,
    last_ns: u64,
    layout: Layout,
}

impl Stages<'_> {
    fn done(&mut self, stage: &'static str) {
        let now_ns = self.clock.monotonic_ns();
        self.layout
            .stages_us
            .push((stage, now_ns.saturating_sub(self.last_ns) / 1000));
        self.last_ns = now_ns;
    }
}

/// Checks the query vector against the space that is asked, and whose it is.
fn check_query_vector<'a>(
    asked: &Asked<'a>,
    request: &Request,
) -> Result<Option<(&'a NumberedSpace, Vec<f32>)>, Refused> {
    let set = asked.spaces.set();
    let Some(vector) = &request.vector else {
        return match &request.space {
            Some(name) => Err(Refused::new(
                "space",
                format!("is named {name:?}, and no vector is given"),
            )),
            None => Ok(None),
        };
    };
    if set.spaces.is_empty() {
        return Err(Refused::new(
            "vector",
            "is given, but this store keeps no vectors",
        ));
    }
    let own = set.meant(request.space.as_deref())?;
    own.check_model(request.model.as_deref())?;
    Ok(Some((own, check_vector(&own.space, vector)?)))
}

/// `None` = the latest rows.
fn choose_mode(
    request: &Request,
    has_vector: bool,
) -> Result<(Option<Mode>, &'static str), Refused> {
    match (request.mode, request.has_words(), has_vector) {
        (Mode::Dense | Mode::Hybrid, _, false) => {
            Err(Refused::new("vector", "is missing; this mode needs one"))
        }
        (Mode::Sparse | Mode::Hybrid, false, _) => {
            Err(Refused::new("text", "is missing; this mode needs one"))
        }
        (Mode::Auto, false, false) => Ok((None, "neither text nor vector: rows by event time")),
        (Mode::Auto, true, true) => Ok((Some(Mode::Hybrid), "text and vector are given")),
        (Mode::Auto, true, false) => Ok((Some(Mode::Sparse), "no vector is given")),
        (Mode::Auto, false, true) => Ok((Some(Mode::Dense), "no text is given")),
        (mode, ..) => Ok((Some(mode), "asked for")),
    }
}

type Skipped = Vec<PlannedPartition>;

fn open_views(
    asked: &Asked<'_>,
    scopes: &ScopeRanges,
    space: SpaceNumber,
) -> Result<(Vec<View>, Skipped), Error> {
    let (mut views, mut skipped) = (Vec::new(), Vec::new());
    for source in asked.sources {
        match View::new(source, scopes, asked.at_seq, space)? {
            Some(view) => views.push(view),
            None => skipped.push(planned(source, Decision::NoScope)),
        }
    }
    Ok((views, skipped))
}

fn planned(source: &Source, decision: Decision) -> PlannedPartition {
    PlannedPartition {
        name: source.name.clone(),
        rows: source.partition.zone().rows,
        decision,
    }
}

fn planned_partitions(
    views: &[View],
    decisions: &[Decision],
    mut skipped: Skipped,
) -> Vec<PlannedPartition> {
    let decided = views.iter().zip(decisions);
    skipped.extend(decided.map(|(view, decision)| planned(&view.source, *decision)));
    skipped.sort_by(|a, b| a.name.cmp(&b.name));
    skipped
}

/// Edges of scopes that the request does not see are left out: they cannot match a row of it,
/// and their names are nobody's business there.
fn resolve_filters(asked: &Asked<'_>, request: &Request, scopes: &ScopeRanges) -> Filters {
    let holds = |closure: &Closure| {
        let within = closure.within.as_ref();
        within.is_none_or(|within| within.intersects(scopes))
    };
    let groups = request.tags.iter();
    let tags = groups
        .map(|group| {
            group
                .iter()
                .flat_map(|tag| asked.tag_graph.closures(tag))
                .filter(holds)
                .collect()
        })
        .collect();
    Filters {
        time_us: (request.since_us, request.until_us),
        tags,
        min_source: request.min_source,
    }
}

type Lists = Option<(usize, usize)>;

impl Query<'_> {
    fn rank<'v>(
        &self,
        search: &mut Search<'_, 'v>,
        mode: Option<Mode>,
        fusion: Option<Fusion>,
    ) -> Result<(Vec<Ranked>, Lists), Error> {
        let k = self.request.k;
        match (mode, fusion) {
            (None, _) => Ok((self.latest(search)?, None)),
            (Some(Mode::Dense), _) => Ok((self.rank_dense(search)?, None)),
            (Some(_), Some(fusion)) => self.rank_hybrid(search, fusion),
            (Some(_), None) => {
                let rows = self.sparse(search, k, self.aging)?;
                let ranked = rows.into_iter().map(|row| self.show_sparse(row));
                Ok((ranked.collect(), None))
            }
        }
    }

    fn latest(&self, search: &mut Search<'_, '_>) -> Result<Vec<Ranked>, Error> {
        let (k, distinct) = (self.request.k, self.request.distinct);
        let mut top = TopK::new(search.views, k, distinct);
        for index in &search.chosen {
            latest::collect_view(&search.views[*index], *index, k, distinct, &mut top)?;
        }
        search.stages.done("latest");
        let rows = top.finish()?;
        let ranked = rows.into_iter().map(|candidate| Ranked {
            score: 0.0,
            ..Ranked::of(candidate)
        });
        Ok(ranked.collect())
    }

    fn sparse<'v>(
        &self,
        search: &mut Search<'_, 'v>,
        k: usize,
        aging: Aging,
    ) -> Result<Vec<Candidate>, Error> {
        let mut top = TopK::new(search.views, k, self.request.distinct);
        let sparse = Sparse {
            query: &self.terms,
            aging,
            scoring: self.request.scoring,
            threads: (self.request.threads, self.asked.threads),
        };
        let outcome = sparse.search(
            search.views,
            &search.chosen,
            search.found,
            &mut top,
            &mut search.pace,
        )?;
        search.stages.layout.sparse = outcome.counters;
        if self.vector.is_none() {
            for index in outcome.left {
                search.decisions[index] = match outcome.unvisited {
                    Some(_) => Decision::Budget,
                    None => Decision::Bound,
                };
            }
        }
        search.unvisited = outcome.unvisited;
        search.stages.done("sparse");
        Ok(top.finish()?)
    }

    fn dense(&self, search: &mut Search<'_, '_>, k: usize) -> Result<Vec<Candidate>, Error> {
        let mut top = TopK::new(search.views, k, self.request.distinct);
        if let Some((own, vector)) = &self.vector
            && let Some(coder) = self.asked.spaces.coder(own.number)
        {
            let dense = Dense {
                own,
                coder,
                vector,
                phrases: &self.terms.filter.phrases,
                asked: AskedDense {
                    exhaustive: self.request.scoring == Scoring::Exhaustive,
                    candidates: self.request.candidates,
                    probe_rows_min: self.asked.probe_rows_min,
                },
                population: self.statistics.rows,
            };
            let counters = &mut search.stages.layout.dense;
            let planned = dense.search(search.views, &search.chosen, &mut top, counters)?;
            search.planned_dense = Some(planned);
        }
        search.stages.done("dense");
        Ok(top.finish()?)
    }

    fn show_sparse(&self, candidate: Candidate) -> Ranked {
        Ranked {
            score: self.aging.shown(candidate.base, candidate.time_us),
            bm25: Some(candidate.base),
            ..Ranked::of(candidate)
        }
    }

    /// No fused score is larger.
    fn fused_max(&self, fusion: Fusion) -> f64 {
        self.aging.shown_bound(fuse::score_max(fusion), i64::MAX)
    }

    /// No row whose phrases were not verified has a larger score; `None` where all were.
    fn unverified(&self, fusion: Option<Fusion>) -> Option<f64> {
        let score = self.terms.filter.phrases.unverified()?;
        Some(match fusion {
            Some(fusion) => self.fused_max(fusion),
            // The dense pass knows the score before age alone.
            None if self.vector.is_some() => self.aging.shown_bound(score, i64::MAX),
            None => score,
        })
    }

    /// The clauses with what they became; only where the request explains.
    fn planned_clauses(&self) -> Vec<PlannedClause> {
        if !self.request.explain {
            return Vec::new();
        }
        let clauses = self.request.clauses.iter().enumerate();
        let planned = clauses.map(|(place, clause)| {
            let group = self.terms.groups.iter().find(|group| group.clause == place);
            let terms = self.terms.by_clause[place].iter();
            PlannedClause {
                kind: clause.kind(),
                text: clause.text().to_owned(),
                weight: clause.weight(),
                terms: terms.map(|term| analyse::term_name(term)).collect(),
                expansions: group.map_or_else(Vec::new, |group| {
                    group.members.iter().map(planned_term).collect()
                }),
            }
        });
        planned.collect()
    }

    /// Decay and boost re-rank the best C; without them the best k are the answer.
    fn rank_dense(&self, search: &mut Search<'_, '_>) -> Result<Vec<Ranked>, Error> {
        let k = self.request.k;
        if !self.aging.is_on() {
            let rows = self.dense(search, k)?;
            return Ok(rows.into_iter().map(Ranked::of_cosine).collect());
        }
        let rows = self.dense(search, fuse::list_length(k))?;
        let ranked = rows.into_iter().map(Ranked::of_cosine).collect();
        self.re_rank(search.views, ranked)
    }

    fn rank_hybrid(
        &self,
        search: &mut Search<'_, '_>,
        fusion: Fusion,
    ) -> Result<(Vec<Ranked>, Lists), Error> {
        let length = fuse::list_length(self.request.k);
        let sparse = self.sparse(search, length, Aging::off())?;
        let dense = self.dense(search, length)?;
        // A cut list leaves every fused score open, up to the largest there is.
        search.unvisited = search.unvisited.map(|_| self.fused_max(fusion));
        let fused = fuse::fuse(&sparse, &dense, fusion);
        let fused = fused.into_iter().map(Ranked::of_fused).collect();
        let ranked = self.re_rank(search.views, fused)?;
        search.stages.done("fuse");
        Ok((ranked, Some((sparse.len(), dense.len()))))
    }

    /// Orders by the aged score; `score` holds the base before and the shown score after.
    fn re_rank(&self, views: &[View], ranked: Vec<Ranked>) -> Result<Vec<Ranked>, Error> {
        let mut top = TopK::new(views, self.request.k, self.request.distinct);
        let base = |ranked: &Ranked| {
            if self.aging.is_on() {
                ranked.score.max(0.0)
            } else {
                ranked.score
            }
        };
        for ranked in &ranked {
            let key = self.aging.key(base(ranked), ranked.candidate.time_us);
            top.offer(Candidate {
                key,
                ..ranked.candidate
            })?;
        }
        let order = top.finish()?;
        let places: HashMap<(usize, u32), &Ranked> = ranked
            .iter()
            .map(|r| ((r.candidate.view, r.candidate.row), r))
            .collect();
        let chosen = order
            .iter()
            .filter_map(|row| places.get(&(row.view, row.row)));
        Ok(chosen
            .map(|r| Ranked {
                score: self.aging.shown(base(r), r.candidate.time_us),
                ..**r
            })
            .collect())
    }
}

impl Ranked {
    fn of(candidate: Candidate) -> Self {
        Self {
            candidate,
            score: candidate.key,
            bm25: None,
            cosine: None,
            parts: None,
        }
    }

    fn of_cosine(candidate: Candidate) -> Self {
        Self {
            cosine: Some(candidate.key),
            ..Self::of(candidate)
        }
    }

    fn of_fused(fused: Fused) -> Self {
        let Fused {
            candidate,
            sparse,
            dense,
            score,
            parts,
        } = fused;
        Self {
            candidate,
            score,
            bm25: sparse,
            cosine: dense,
            parts: Some(parts),
        }
    }
}

fn planned_term(term: &QueryTerm) -> PlannedTerm {
    PlannedTerm {
        term: term.name(),
        weight: term.weight,
        df: term.df,
        idf: term.idf,
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "gathers what every stage decided, once"
)]
fn plan(
    query: &Query<'_>,
    mode: Option<Mode>,
    reason: &'static str,
    statistics: Statistics,
    filters: &Filters,
    fusion: Option<Fusion>,
    lists: Lists,
    layout: Layout,
) -> Plan {
    let explain = query.request.explain;
    Plan {
        mode,
        reason,
        analyzer: query.asked.analyzer.id(),
        // Content is shown only where it was asked for.
        terms: if explain {
            query.terms.terms.iter().map(planned_term).collect()
        } else {
            Vec::new()
        },
        clauses: query.planned_clauses(),
        term_count: query.terms.count,
        statistics,
        tags: if explain {
            filters.tag_names()
        } else {
            Vec::new()
        },
        fusion,
        lists,
        space: query.vector.as_ref().map(|(own, _)| own.name.clone()),
        dense: None,
        recency: if query.aging.is_on() {
            query.request.recency
        } else {
            Recency::Off
        },
        layout,
    }
}
