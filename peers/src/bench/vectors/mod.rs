//! How fast is search by vector, and what does it find, beside graphs and a plain scan?
//!
//! ```text
//!  vectors (parent)                              one child for each engine and job
//!    folder -> build, unless the store is there -->  build: rows in, figures to build.json
//!           -> answers: exact, of the folder or own, once for all engines
//!           -> measure                          -->  measure: knob up until the recall is reached
//!    report -> table, JSON, SVG; other reports of the same rows beside
//! ```
//!
//! * [`npy`], [`rows`]: what is stored and asked. [`engine`]: each as its manual shows it.
//! * [`work`]: what a child does. [`report`], [`picture`]: what is shown.

mod engine;
mod npy;
mod picture;
mod report;
mod rows;
mod work;

use std::fs;
use std::path::{Path, PathBuf};

use self::engine::{Subject, exact};
use self::report::{Engine, Report};
use self::rows::{Kind, Rows};
use self::work::{Answers, Built, child};
use super::corpus::Corpus;
use crate::engine::Failure;

pub use self::work::{Work, run as work};

/// `vectors`: searches by vector side by side.
#[derive(Debug, clap::Args)]
pub struct Vectors {
    /// A folder made by bench/gen.py with vectors
    #[arg(long)]
    corpus: PathBuf,
    /// Engines
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "chronolith,usearch,hnsw,flat"
    )]
    engines: Vec<String>,
    /// The first N rows alone [default: all]
    #[arg(long)]
    rows: Option<usize>,
    /// Scopes that the rows are dealt out to; one of them is asked in `scope`
    #[arg(long, default_value_t = 1)]
    scopes: usize,
    /// Which rows may answer: by chance, the newest, one scope; hybrid: by words too
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all")]
    filters: Vec<Kind>,
    /// Recall at which the knob stays
    #[arg(long, default_value_t = 0.99)]
    target: f64,
    /// Every value of the knob
    #[arg(long)]
    sweep: bool,
    /// Queries, spread over all there are
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// Passes over them after the warm-up
    #[arg(long, default_value_t = 5)]
    passes: usize,
    /// Processor seconds for all passes of a line; an engine that is slower is asked fewer queries
    #[arg(long, default_value_t = 60.0)]
    seconds_max: f64,
    /// Where stores are kept from run to run [default: bench-stores in the temporary directory]
    #[arg(long)]
    store: Option<PathBuf>,
    /// Builds the stores of these engines anew
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "chronolith")]
    fresh: Vec<String>,
    /// Reports of the same rows, as peers/python/vectors.py writes them, for the same table
    #[arg(long, value_delimiter = ',')]
    beside: Vec<PathBuf>,
    /// Writes the report here
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes a plot here
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Runs everything.
pub fn run(vectors: &Vectors) -> Result<(), Failure> {
    let rows = Rows::open(Corpus::open(&vectors.corpus)?, vectors.rows, vectors.scopes)?;
    let subjects = vectors.engines.iter().map(|name| Subject::named(name));
    let subjects = subjects.collect::<Result<Vec<_>, _>>()?;
    if vectors.passes == 0 {
        return Err("--passes 0: one pass at least".into());
    }
    let base = vectors.store.clone();
    let base = base.unwrap_or_else(|| std::env::temp_dir().join("bench-stores"));
    let base = base.join(format!(
        "{}-seed{}-{}x{}-vectors",
        rows.corpus.name, rows.corpus.seed, rows.count, rows.scopes
    ));
    fs::create_dir_all(&base)?;
    let answers = base.join("answers.json");
    write_answers(vectors, &rows, &answers)?;
    let mut report = Report::of(&rows);
    for subject in subjects {
        let engine = run_engine(vectors, &rows, subject, &base, &answers)?;
        report.engines.push(engine);
    }
    for path in &vectors.beside {
        report.add(path)?;
    }
    report.print(vectors.target);
    if let Some(path) = &vectors.json {
        fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &vectors.svg {
        picture::draw(path, &report, vectors.target)?;
    }
    Ok(())
}

/// Exact answers of all kinds, for the children.
fn write_answers(vectors: &Vectors, rows: &Rows, path: &Path) -> Result<(), Failure> {
    let (columns, (places, asks)) = (rows.columns()?, rows.asks(vectors.queries)?);
    let mut answers = Answers::new();
    for kind in vectors.filters.iter().filter(|kind| **kind != Kind::Hybrid) {
        let found = match rows.given_answers(*kind)? {
            Some(given) => places
                .iter()
                .map(|place| given.get(*place).cloned().unwrap_or_default())
                .collect(),
            None => {
                eprintln!("{}: exact answers: {}", rows.corpus.name, kind.name());
                let filters = asks.iter().map(|ask| columns.filter(*kind, ask.scope));
                exact(rows, &columns, &asks, &filters.collect::<Vec<_>>())?
            }
        };
        answers.insert(*kind, found);
    }
    Ok(fs::write(path, serde_json::to_string(&answers)?)?)
}

fn run_engine(
    vectors: &Vectors,
    rows: &Rows,
    subject: Subject,
    base: &Path,
    answers: &Path,
) -> Result<Engine, Failure> {
    let dir = base.join(subject.name());
    let common = |job: &str| -> Vec<String> {
        let named = [
            ("--engine", subject.name().to_owned()),
            ("--dir", dir.display().to_string()),
            ("--corpus", rows.corpus.dir.display().to_string()),
            ("--rows", rows.count.to_string()),
            ("--scopes", rows.scopes.to_string()),
        ];
        let named = named
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value]);
        std::iter::once(job.to_owned()).chain(named).collect()
    };
    let built = build(vectors, subject, &dir, &common("build"))?;
    eprintln!("{}: {}: queries", rows.corpus.name, subject.name());
    let mut arguments = common("measure");
    let kinds = vectors.filters.iter().filter(|kind| subject.can(**kind));
    let kinds: Vec<&str> = kinds.map(|kind| kind.name()).collect();
    for (name, value) in [
        ("--answers", answers.display().to_string()),
        ("--kinds", kinds.join(",")),
        ("--target", vectors.target.to_string()),
        ("--queries", vectors.queries.to_string()),
        ("--passes", vectors.passes.to_string()),
        ("--seconds-max", vectors.seconds_max.to_string()),
    ] {
        arguments.extend([name.to_owned(), value]);
    }
    arguments.extend(vectors.sweep.then(|| "--sweep".to_owned()));
    let points = if kinds.is_empty() {
        Vec::new()
    } else {
        child(&arguments)?
    };
    Ok(Engine {
        name: subject.name().into(),
        about: subject.about().into(),
        build_us: built.build_us,
        bytes: built.bytes,
        points,
    })
}

/// The store as it is, or a new one; its figures lie beside it.
fn build(
    vectors: &Vectors,
    subject: Subject,
    dir: &Path,
    arguments: &[String],
) -> Result<Built, Failure> {
    let note = dir.with_extension("json");
    let fresh = vectors.fresh.iter().any(|name| name == subject.name());
    if !fresh && let Ok(text) = fs::read_to_string(&note) {
        return Ok(serde_json::from_str(&text)?);
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    eprintln!("{}: building", subject.name());
    let built: Built = child(arguments)?;
    fs::write(&note, serde_json::to_string_pretty(&built)?)?;
    Ok(built)
}
