//! `eval`: how good and how fast are the answers to judged queries?

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use chronolith::manifest::Settings;
use chronolith::{Mode, ReadOnlyStore, Request, Scope, ScopeSelector};
use serde::{Deserialize, Serialize};

use super::open_to_read;
use crate::cli::{Eval, TimeChoice};
use crate::failure::Failure;
use crate::metrics::{Judgements, Latency, Quality};
use crate::npy::Matrix;
use crate::{files, output, progress};

/// A line of `queries.jsonl`; other keys are passed over.
#[derive(Debug, Deserialize)]
struct QueryLine {
    id: String,
    text: String,
    scope: String,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    time_from: Option<i64>,
    #[serde(default)]
    time_to: Option<i64>,
}

/// The figures of a group of queries.
#[derive(Debug, Default, Serialize)]
struct Figures {
    queries: usize,
    judged: usize,
    #[serde(flatten)]
    quality: Quality,
    latency_us: Latency,
    skip_rate: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    mode: Mode,
    #[serde(flatten)]
    all: Figures,
    per_category: BTreeMap<String, Figures>,
}

/// Sums over a group of queries.
#[derive(Debug, Default)]
struct Group {
    queries: usize,
    quality: Quality,
    took_us: Vec<u64>,
    skipped: usize,
}

impl Group {
    fn add(&mut self, quality: &Quality, took_us: u64, skipped: bool) {
        self.quality.add(quality);
        self.took_us.push(took_us);
        self.skipped += usize::from(skipped);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of queries")]
    fn figures(self) -> Figures {
        let judged = self.took_us.len();
        Figures {
            queries: self.queries,
            judged,
            quality: self.quality.mean(judged),
            skip_rate: self.skipped as f64 / judged.max(1) as f64,
            latency_us: Latency::of(self.took_us),
        }
    }
}

pub(crate) fn run(args: &Eval) -> Result<(), Failure> {
    if args.time == TimeChoice::Boost {
        return Err(Failure::Failed(
            "--time boost is not available yet; use filter or ignore".into(),
        ));
    }
    let settings = files::settings(&args.store)?;
    let queries = read_queries(&args.queries)?;
    let qrels = read_qrels(&args.qrels)?;
    let vectors = open_vectors(args, &settings, queries.len())?;
    let store = open_to_read(&args.store)?;
    let asker = Asker {
        args,
        store,
        vectors,
        builtin: files::has_builtin(&settings),
    };
    let skip: BTreeSet<&str> = args.skip_category.iter().map(String::as_str).collect();
    let bar = progress::bar(queries.len() as u64, "asking");
    let (mut all, mut categories) = (Group::default(), BTreeMap::<String, Group>::new());
    for (row, query) in queries.iter().enumerate() {
        bar.inc(1);
        let category = query.category.as_deref().unwrap_or("");
        if skip.contains(category) {
            continue;
        }
        let group = categories.entry(category.to_owned()).or_default();
        group.queries += 1;
        all.queries += 1;
        let Some(judged) = qrels.get(&query.id) else {
            continue;
        };
        let (ids, took_us, skipped) = asker.ask(row as u64, query)?;
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let quality = Quality::of(&ids, judged);
        group.add(&quality, took_us, skipped);
        all.add(&quality, took_us, skipped);
    }
    bar.finish_and_clear();
    if all.took_us.is_empty() {
        return Err(Failure::Failed(
            "none of the queries has a judgement; check that ids in both files agree".into(),
        ));
    }
    let report = Report {
        mode: args.ranking.mode(),
        all: all.figures(),
        per_category: categories
            .into_iter()
            .map(|(name, group)| (name, group.figures()))
            .collect(),
    };
    match args.json {
        true => output::print_json(&report),
        false => print(&report),
    }
}

struct Asker<'a> {
    args: &'a Eval,
    store: ReadOnlyStore,
    vectors: Option<Matrix>,
    builtin: bool,
}

impl Asker<'_> {
    /// Ids best first, the engine's time, and whether the vectors were left alone.
    fn ask(&self, row: u64, query: &QueryLine) -> Result<(Vec<String>, u64, bool), Failure> {
        let scope = Scope::parse(&query.scope)
            .map_err(|refused| Failure::Failed(format!("query {}: {refused}", query.id)))?;
        let ranking = &self.args.ranking;
        let mut request = Request::within(ScopeSelector::Subtree(scope))
            .text(query.text.as_str())
            .k(self.args.k as usize)
            .mode(ranking.mode())
            .ids_only();
        if let Some(fusion) = ranking.fusion() {
            request = request.fusion(fusion);
        }
        if ranking.mode() != Mode::Sparse {
            let vector = match &self.vectors {
                Some(matrix) => Some(matrix.row(row)?),
                None if self.builtin => files::embed(&query.text),
                None => None,
            };
            if let Some(vector) = vector {
                request = request.vector(vector);
            }
        }
        if self.args.time == TimeChoice::Filter {
            if let Some(since_us) = query.time_from {
                request = request.since_us(since_us);
            }
            if let Some(until_us) = query.time_to {
                request = request.until_us(until_us);
            }
        }
        let response = self.store.retrieve(&request)?;
        let skipped = response.plan.mode == Some(Mode::Sparse);
        let ids = response.hits.into_iter().map(|hit| hit.id).collect();
        Ok((ids, response.took_us, skipped))
    }
}

fn open_vectors(
    args: &Eval,
    settings: &Settings,
    queries: usize,
) -> Result<Option<Matrix>, Failure> {
    let Some(path) = &args.vectors else {
        let needs = matches!(args.ranking.mode(), Mode::Dense | Mode::Hybrid);
        if needs && !files::has_builtin(settings) {
            return Err(Failure::Usage(
                "this mode needs the queries' vectors: pass --vectors QV.npy".into(),
            ));
        }
        return Ok(None);
    };
    let Some(space) = settings.default_space() else {
        return Err(Failure::Failed(
            "the store keeps no vectors; leave --vectors out".into(),
        ));
    };
    let matrix = Matrix::open(path)?;
    matrix.check_dim(space.dim)?;
    if matrix.rows != queries as u64 {
        return Err(Failure::Failed(format!(
            "{} has {} rows for {queries} queries; row i must belong to line i",
            path.display(),
            matrix.rows
        )));
    }
    Ok(Some(matrix))
}

fn read_queries(path: &Path) -> Result<Vec<QueryLine>, Failure> {
    let text = files::read_text(path)?;
    let parse = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            Failure::Failed(format!("{} line {}: {error}", path.display(), at + 1))
        })
    };
    text.lines().enumerate().map(parse).collect()
}

fn read_qrels(path: &Path) -> Result<BTreeMap<String, Judgements>, Failure> {
    let text = files::read_text(path)?;
    let mut qrels = BTreeMap::<String, Judgements>::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = || {
            Failure::Failed(format!(
                "{} line {}: expected query id, TAB, record id, TAB, a whole grade",
                path.display(),
                at + 1
            ))
        };
        let mut parts = line.split('\t');
        let (Some(query), Some(record), Some(grade), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let grade: u32 = grade.trim().parse().map_err(|_| wrong())?;
        // A pair of grade 0 says the same as an absent pair.
        if grade > 0 {
            qrels
                .entry(query.to_owned())
                .or_default()
                .insert(record.to_owned(), grade);
        }
    }
    Ok(qrels)
}

fn print(report: &Report) -> Result<(), Failure> {
    let mut table = output::table(&[
        "category", "judged", "R@1", "R@5", "R@10", "hit@10", "MRR@10", "nDCG@10", "p50 us",
    ]);
    let mut row = |name: &str, figures: &Figures| {
        let quality = &figures.quality;
        let shown = [
            quality.recall_1,
            quality.recall_5,
            quality.recall_10,
            quality.hit_10,
            quality.mrr_10,
            quality.ndcg_10,
        ];
        let mut cells = vec![output::clean(name), figures.judged.to_string()];
        cells.extend(shown.map(|value| format!("{value:.3}")));
        cells.push(figures.latency_us.p50.to_string());
        table.add_row(cells);
    };
    for (name, figures) in &report.per_category {
        if report.per_category.len() > 1 {
            row(if name.is_empty() { "-" } else { name }, figures);
        }
    }
    row("all", &report.all);
    let latency = report.all.latency_us;
    let mut out = output::for_people();
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "{} queries, {} judged; latency p50 {} p95 {} p99 {} max {} us; vectors skipped for {:.0}%",
        report.all.queries,
        report.all.judged,
        latency.p50,
        latency.p95,
        latency.p99,
        latency.max,
        report.all.skip_rate * 100.0
    )?;
    Ok(out.flush()?)
}
