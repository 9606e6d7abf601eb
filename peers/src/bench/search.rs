//! How does a run of `search` go? For each corpus: stores, children, oracle, summary; then
//! everything is shown.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::corpus::{Changes, Corpus, DAY_US, Kind};
use super::oracle::{self, Verified};
use super::searcher::Subject;
use super::summary::{CorpusReport, Raw, corpus_report};
use super::work::{Built, Measured, Opened, child};
use super::{plot, table};
use crate::engine::Failure;

/// `search`: queries and stores side by side.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Folders made by bench/gen.py; several make a growth curve
    #[arg(long, required = true, value_delimiter = ',')]
    corpus: Vec<PathBuf>,
    /// Engines
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "chronolith,tantivy,tantivy-columns,tantivy-bare,sqlite"
    )]
    engines: Vec<String>,
    /// Kinds of queries
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fact,nl,time,scope"
    )]
    queries: Vec<Kind>,
    /// Passes over the queries after the warm-up
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// Chronolith's buckets: days (`30d`) or hours (`6h`)
    #[arg(long, default_value = "30d")]
    bucket: String,
    /// Compacts Chronolith by force at the end: one segment a bucket
    #[arg(long)]
    force: bool,
    /// Where stores are kept from run to run [default: bench-stores in the temporary directory]
    #[arg(long)]
    store: Option<PathBuf>,
    /// Builds the stores of these engines anew
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "chronolith")]
    fresh: Vec<String>,
    /// Answers of each kind that are compared with the oracle; 0 = none
    #[arg(long, default_value_t = 100)]
    verify: usize,
    /// Opens to the first hit, warm and cold each
    #[arg(long, default_value_t = 5)]
    opens: usize,
    /// Processor seconds for all passes of one kind; an engine that is slower is asked fewer queries
    #[arg(long, default_value_t = 60.0)]
    seconds_max: f64,
    #[command(flatten)]
    changes: Changes,
    /// Writes the report here
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes a plot here
    #[arg(long)]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report<'a> {
    bucket: &'a str,
    force: bool,
    passes: usize,
    changes: Changes,
    corpora: &'a [CorpusReport],
}

/// Runs everything; an answer that is not exact is an error.
pub fn run(search: &Search) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for dir in &search.corpus {
        let corpus = Corpus::open(dir)?;
        let report = run_corpus(search, corpus)?;
        table::print(&report);
        reports.push(report);
    }
    if reports.len() > 1 {
        table::print_growth(&reports);
    }
    table::print_legend(&reports);
    if let Some(path) = &search.json {
        let report = Report {
            bucket: &search.bucket,
            force: search.force,
            passes: search.passes,
            changes: search.changes,
            corpora: &reports,
        };
        fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &search.svg {
        plot::draw(path, &reports)?;
    }
    let unequal: usize = reports
        .iter()
        .flat_map(|report| &report.verified)
        .map(|verified| verified.compared - verified.equal)
        .sum();
    match unequal {
        0 => Ok(()),
        _ => Err(format!("{unequal} answers of chronolith are not exact").into()),
    }
}

/// `30d` or `6h` as µs.
fn bucket_us(text: &str) -> Result<i64, Failure> {
    let wrong = || format!("--bucket {text}: write days or hours, as 30d or 6h");
    let (count, unit_us) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => (days, DAY_US),
        (_, Some(hours)) => (hours, DAY_US / 24),
        _ => return Err(wrong().into()),
    };
    let count: i64 = count.parse().map_err(|_| wrong())?;
    count.checked_mul(unit_us).ok_or_else(|| wrong().into())
}

fn run_corpus(search: &Search, corpus: Corpus) -> Result<CorpusReport, Failure> {
    let mut raw = Vec::new();
    for name in &search.engines {
        let subject = Subject::named(name)?;
        raw.push(run_engine(search, &corpus, subject)?);
    }
    let verified = verify(search, &corpus, &raw)?;
    Ok(corpus_report(corpus, &raw, verified))
}

fn store_dir(search: &Search, corpus: &Corpus, subject: Subject) -> PathBuf {
    let base = search.store.clone();
    let base = base.unwrap_or_else(|| std::env::temp_dir().join("bench-stores"));
    let folder = match subject {
        Subject::Chronolith => {
            let forced = if search.force { "-forced" } else { "" };
            format!("{}-{}{forced}", subject.folder(), search.bucket)
        }
        _ => subject.folder().to_owned(),
    };
    base.join(format!("{}-seed{}", corpus.name, corpus.seed))
        .join(folder)
}

fn common(job: &str, subject: Subject, dir: &Path, corpus: &Corpus) -> Vec<String> {
    let path = |path: &Path| path.display().to_string();
    vec![
        job.into(),
        "--engine".into(),
        subject.name().into(),
        "--dir".into(),
        path(dir),
        "--corpus".into(),
        path(&corpus.dir),
    ]
}

fn run_engine(search: &Search, corpus: &Corpus, subject: Subject) -> Result<Raw, Failure> {
    let dir = store_dir(search, corpus, subject);
    let built = build(search, corpus, subject, &dir)?;
    eprintln!("{}: {}: queries", corpus.name, subject.name());
    let kinds = search.queries.iter();
    // Nobody else has decay.
    let kinds = kinds.filter(|kind| **kind != Kind::Decay || subject == Subject::Chronolith);
    let kinds: Vec<&str> = kinds.map(|kind| kind.name()).collect();
    let mut arguments = common("measure", subject, &dir, corpus);
    let mut more = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if !kinds.is_empty() {
        more("--queries", kinds.join(","));
    }
    more("--passes", search.passes.to_string());
    more("--seconds-max", search.seconds_max.to_string());
    // The search alone names nothing that could be compared.
    let sample = if subject == Subject::TantivyBare {
        0
    } else {
        search.verify
    };
    more("--sample", sample.to_string());
    more("--tau-days", search.changes.tau_days.to_string());
    if let Some(days) = search.changes.window_days {
        more("--window-days", days.to_string());
    }
    let measured: Measured = child(&arguments).map_err(|error| {
        format!("{error} (a store of an older format? build it anew with --fresh)")
    })?;
    let opens = |cold: bool| -> Result<Vec<f64>, Failure> {
        let mut arguments = common("open", subject, &dir, corpus);
        arguments.extend(cold.then(|| "--cold".to_owned()));
        let open = |_| Ok(child::<Opened>(&arguments)?.first_hit_ms);
        (0..search.opens).map(open).collect()
    };
    Ok(Raw {
        subject,
        built,
        measured,
        warm_ms: opens(false)?,
        cold_ms: opens(true)?,
    })
}

/// The store as it is, or a new one; its figures lie beside it.
fn build(search: &Search, corpus: &Corpus, subject: Subject, dir: &Path) -> Result<Built, Failure> {
    let note = dir.with_extension("json");
    let fresh = search.fresh.iter().any(|name| name == subject.name());
    if !fresh && let Ok(text) = fs::read_to_string(&note) {
        return Ok(serde_json::from_str(&text)?);
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    eprintln!("{}: {}: building", corpus.name, subject.folder());
    let mut arguments = common("build", subject, dir, corpus);
    arguments.extend(["--bucket-us".into(), bucket_us(&search.bucket)?.to_string()]);
    if search.force {
        arguments.push("--force".into());
    }
    let built: Built = child(&arguments)?;
    fs::write(&note, serde_json::to_string_pretty(&built)?)?;
    Ok(built)
}

fn verify(search: &Search, corpus: &Corpus, raw: &[Raw]) -> Result<Vec<Verified>, Failure> {
    let Some(raw) = raw.iter().find(|raw| raw.subject == Subject::Chronolith) else {
        return Ok(Vec::new());
    };
    if search.verify == 0 {
        return Ok(Vec::new());
    }
    eprintln!("{}: oracle", corpus.name);
    let mut asked = Vec::new();
    for kind in &raw.measured.kinds {
        let queries = corpus.queries(kind.kind, search.changes)?;
        asked.push((kind.kind, queries, kind.sample.clone()));
    }
    oracle::verify(corpus, &asked)
}
