//! The same trials on Chronolith and on public engines, in one run and one table.
//!
//! ```text
//! trials   flips, power, disk_full, delete: what is done to a store
//!   |      runner -> child: every store is opened in a process of its own, under limits
//!   |      ask, outcome: what it answered, and what that is worth
//! engine   one small module an engine, behind one trait
//! trace    a power cut out of a trace of file operations
//! report   the table
//! bench    search, vectors and commits: figures instead of trials
//! ```

mod ask;
mod bench;
mod child;
mod engine;
mod image;
mod outcome;
mod records;
mod report;
mod runner;
mod seeded;
mod trace;
mod trials;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};

use crate::engine::Failure;
use crate::report::Report;
use crate::trials::Bench;

#[derive(Parser)]
#[command(about, version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs the trials on every engine and prints one table; exit code 1 where Chronolith
    /// breaks a promise.
    Conformance(Conformance),
    /// Search, ingest, bytes, memory and opens beside tantivy and SQLite FTS5.
    Search(bench::Search),
    /// Search by vector beside graphs and a plain scan.
    Vectors(bench::Vectors),
    /// Durable commits beside RocksDB, redb, fjall and SQLite.
    Commits(bench::Commits),
    /// The process that builds or asks one store; started by `search`.
    #[command(hide = true)]
    BenchChild(bench::Work),
    /// The process that builds or asks one store of vectors; started by `vectors`.
    #[command(hide = true)]
    VectorsChild(bench::VectorsWork),
    /// The process that opens a store; started by the trials.
    #[command(hide = true)]
    Child(child::Work),
}

#[derive(clap::Args)]
struct Conformance {
    /// Flipped bits for each engine; the other trials follow it.
    #[arg(long, default_value_t = 600)]
    trials: usize,
    /// Seed of records, bits and cut points.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Also prints what was seen, a few cases of each kind.
    #[arg(long)]
    examples: bool,
    /// Only these engines.
    #[arg(long)]
    engine: Vec<String>,
    /// Only these trials.
    #[arg(long, value_enum)]
    only: Vec<Trial>,
    /// Where stores are made [default: /dev/shm, else the system's temporary directory].
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trial {
    Flips,
    Power,
    Full,
    Delete,
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Conformance(arguments) => conformance(&arguments),
        Verb::Search(search) => bench::search(&search).map(|()| ExitCode::SUCCESS),
        Verb::Commits(commits) => bench::commits(&commits).map(|()| ExitCode::SUCCESS),
        Verb::Vectors(vectors) => bench::vectors(&vectors).map(|()| ExitCode::SUCCESS),
        Verb::VectorsChild(work) => bench::vectors_work(&work).map(|()| ExitCode::SUCCESS),
        Verb::BenchChild(work) => bench::work(&work).map(|()| ExitCode::SUCCESS),
        Verb::Child(work) => child::run(&work).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        println!("error: {error}");
        ExitCode::FAILURE
    })
}

/// The directory of a run, removed at the end.
struct Base(PathBuf);

impl Drop for Base {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

fn conformance(arguments: &Conformance) -> Result<ExitCode, Failure> {
    let begin = Instant::now();
    let mut engines = engine::all();
    if let Some(unknown) = arguments
        .engine
        .iter()
        .find(|name| engine::named(name).is_none())
    {
        return Err(format!("no engine {unknown}").into());
    }
    engines.retain(|engine| {
        arguments.engine.is_empty() || arguments.engine.iter().any(|name| name == engine.name())
    });
    let parent = arguments.dir.clone().unwrap_or_else(|| {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        }
    });
    let base = Base(parent.join(format!("chronolith-peers-{}", std::process::id())));
    fs::create_dir_all(&base.0)?;
    let mut bench = Bench {
        report: Report {
            seed: arguments.seed,
            trials: arguments.trials,
            seconds: 0,
            engines: engines
                .iter()
                .map(|engine| (engine.name(), engine.about()))
                .collect(),
            sections: Vec::new(),
            findings: Vec::new(),
            remarks: Vec::new(),
            violations: 0,
        },
        engines: &engines,
        base: &base.0,
        trials: arguments.trials,
        seed: arguments.seed,
    };
    let wants = |trial| arguments.only.is_empty() || arguments.only.contains(&trial);
    if wants(Trial::Flips) {
        trials::flips::run_all(&mut bench)?;
    }
    if wants(Trial::Power) {
        trials::power::run_all(&mut bench)?;
    }
    if wants(Trial::Full) {
        trials::disk_full::run_all(&mut bench)?;
    }
    if wants(Trial::Delete) {
        trials::delete::run_all(&mut bench)?;
    }
    bench.report.seconds = begin.elapsed().as_secs();
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&bench.report)?);
    } else {
        bench.report.print(arguments.examples);
    }
    Ok(match bench.report.violations {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
