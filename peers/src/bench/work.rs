//! What does a child do? One job with one engine; its figures go to stdout as JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clock::{
    anonymous_bytes, bytes_by_kind, forget_pages, overhead_ns, process_cpu_ns, thread_cpu_ns,
    wait_quiet, written_bytes,
};
use super::corpus::{Changes, Corpus, Kind, Query, Terms};
use super::searcher::{Counters, Found, Layout, Searcher, Subject};
use crate::engine::Failure;

/// Records of one commit while a store is built.
const CHUNK: usize = 1000;
/// Longest wait for what an engine does in the background after an open.
const QUIET_MAX: Duration = Duration::from_secs(900);
/// Queries that are asked however slow an engine is.
const QUERIES_MIN: usize = 20;

/// The job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Job {
    /// Fills a new store and settles it.
    Build,
    /// Asks the queries.
    Measure,
    /// Opens and answers one query.
    Open,
}

/// Everything that a child needs to know.
#[derive(Debug, Clone, clap::Args)]
pub struct Work {
    /// The job.
    #[arg(value_enum)]
    pub job: Job,
    /// Whose store.
    #[arg(long)]
    pub engine: String,
    /// The directory of the store.
    #[arg(long)]
    pub dir: PathBuf,
    /// The corpus.
    #[arg(long)]
    pub corpus: PathBuf,
    /// Chronolith's buckets, µs.
    #[arg(long, default_value_t = 0)]
    pub bucket_us: i64,
    /// Chronolith is compacted by force.
    #[arg(long)]
    pub force: bool,
    /// Kinds of queries.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub queries: Vec<Kind>,
    /// Passes over them after the warm-up.
    #[arg(long, default_value_t = 5)]
    pub passes: usize,
    /// Processor seconds for all passes of a kind; where they do not suffice, fewer queries are
    /// asked.
    #[arg(long, default_value_t = 60.0)]
    pub seconds_max: f64,
    /// Answers to report.
    #[arg(long, default_value_t = 0)]
    pub sample: usize,
    /// `Open`: as after a start of the machine.
    #[arg(long)]
    pub cold: bool,
    /// What is changed in the queries.
    #[command(flatten)]
    pub changes: Changes,
}

/// What `Build` reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Built {
    /// Records that went in.
    pub records: u64,
    /// Processor seconds of all threads until the last record was accepted; reading the corpus
    /// is not in it, nor is `analysis_cpu_s`.
    pub written_cpu_s: f64,
    /// The same until the engine had come to rest.
    pub settled_cpu_s: f64,
    /// Processor seconds that analysing took, for an engine that is given terms.
    pub analysis_cpu_s: f64,
    /// Seconds on the wall, everything included.
    pub wall_s: f64,
    /// Bytes that the process had written to the disk by then.
    #[serde(default)]
    pub written_bytes: u64,
    /// Bytes on disk by kind of file.
    pub bytes: std::collections::BTreeMap<String, u64>,
}

/// What `Measure` reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// Cost of reading the clock twice, ns; part of every time.
    pub overhead_ns: u64,
    /// Parts of the store.
    pub partitions: u64,
    /// Anonymous memory before the store was opened, bytes.
    pub anonymous_before: u64,
    /// Anonymous memory after all queries, the store still open, bytes.
    pub anonymous_after: u64,
    /// By kind.
    pub kinds: Vec<MeasuredKind>,
}

/// The queries of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredKind {
    /// The kind.
    pub kind: Kind,
    /// How many there are; each pass holds those that were asked, a prefix of them.
    pub queries: usize,
    /// By pass and query: processor time of the asking thread, ns.
    pub passes_ns: Vec<Vec<u64>>,
    /// Processor time of the process over that of the asking thread: 1 where nobody helped.
    pub threads: f64,
    /// Mean number of hits.
    pub found: f64,
    /// The first answers: id and time of each hit.
    pub sample: Vec<Vec<(String, i64)>>,
    /// Means of what the engine counted.
    pub counters: Counters,
}

/// What `Open` reports.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Opened {
    /// From the call that opens to the first answer, ms on the wall.
    pub first_hit_ms: f64,
}

/// Does the work.
pub fn run(work: &Work) -> Result<(), Failure> {
    let subject = Subject::named(&work.engine)?;
    let corpus = Corpus::open(&work.corpus)?;
    let said = match work.job {
        Job::Build => serde_json::to_string(&build(work, subject, &corpus)?)?,
        Job::Measure => serde_json::to_string(&measure(work, subject, &corpus)?)?,
        Job::Open => serde_json::to_string(&open(work, subject, &corpus)?)?,
    };
    println!("{said}");
    Ok(())
}

/// Runs a child of `search` with these arguments and reads what it said.
pub fn child<T: DeserializeOwned>(arguments: &[String]) -> Result<T, Failure> {
    child_of("bench-child", arguments)
}

/// The same for any verb whose last line is JSON.
pub fn child_of<T: DeserializeOwned>(verb: &str, arguments: &[String]) -> Result<T, Failure> {
    let output = std::process::Command::new(std::env::current_exe()?)
        .arg(verb)
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("{}: {}", arguments.join(" "), said.trim()).into());
    }
    let last = said.lines().last().unwrap_or_default();
    Ok(serde_json::from_str(last)?)
}

#[expect(clippy::cast_precision_loss, reason = "a shown figure")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn build(work: &Work, subject: Subject, corpus: &Corpus) -> Result<Built, Failure> {
    fs::create_dir_all(&work.dir)?;
    let layout = Layout {
        bucket_us: work.bucket_us,
        force: work.force,
    };
    let begin = Instant::now();
    let process_begin = process_cpu_ns();
    let mut loader = subject.loader(&work.dir, layout)?;
    let mut analyser = Terms::new();
    let mut terms: Vec<String> = Vec::new();
    let (mut records, mut analysis_ns, mut engine_ns) = (0, 0, 0);
    let reading_begin = thread_cpu_ns();
    corpus.chunks(CHUNK, &mut |chunk| {
        records += u64::try_from(chunk.len())?;
        let at = thread_cpu_ns();
        if subject.wants_terms() {
            terms.resize(chunk.len(), String::new());
            for (record, joined) in chunk.iter().zip(&mut terms) {
                analyser.join(&record.text, joined);
            }
        }
        let analysed = thread_cpu_ns();
        loader.put(chunk, &terms)?;
        analysis_ns += analysed - at;
        engine_ns += thread_cpu_ns() - analysed;
        Ok(())
    })?;
    // Of this thread only the engine's calls count; of all other threads everything.
    let not_engine_ns = thread_cpu_ns() - reading_begin - engine_ns;
    let written_ns = process_cpu_ns() - process_begin - not_engine_ns;
    loader.settle()?;
    let settled_ns = process_cpu_ns() - process_begin - not_engine_ns;
    Ok(Built {
        records,
        written_cpu_s: seconds(written_ns),
        settled_cpu_s: seconds(settled_ns),
        analysis_cpu_s: seconds(analysis_ns),
        wall_s: begin.elapsed().as_secs_f64(),
        written_bytes: written_bytes(),
        bytes: bytes_by_kind(&work.dir)?,
    })
}

fn measure(work: &Work, subject: Subject, corpus: &Corpus) -> Result<Measured, Failure> {
    let mut asked = Vec::new();
    for kind in &work.queries {
        asked.push((*kind, corpus.queries(*kind, work.changes)?));
    }
    let anonymous_before = anonymous_bytes();
    let mut searcher = subject.searcher(&work.dir)?;
    wait_quiet(QUIET_MAX);
    let mut kinds = Vec::new();
    for (kind, queries) in &asked {
        kinds.push(measure_kind(work, &mut *searcher, *kind, queries)?);
    }
    Ok(Measured {
        overhead_ns: overhead_ns(),
        partitions: searcher.partitions()?,
        anonymous_before,
        anonymous_after: anonymous_bytes(),
        kinds,
    })
}

fn measure_kind(
    work: &Work,
    searcher: &mut dyn Searcher,
    kind: Kind,
    queries: &[Query],
) -> Result<MeasuredKind, Failure> {
    let warm = warm_up(work, searcher, queries)?;
    let queries_asked = &queries[..warm.asked];
    let (process_begin, thread_begin) = (process_cpu_ns(), thread_cpu_ns());
    let mut passes_ns = Vec::with_capacity(work.passes);
    for _ in 0..work.passes {
        let mut pass = Vec::with_capacity(queries_asked.len());
        for query in queries_asked {
            let begin = thread_cpu_ns();
            let found = searcher.search(query)?;
            pass.push(thread_cpu_ns() - begin);
            std::hint::black_box(found);
        }
        passes_ns.push(pass);
    }
    let thread_s = seconds(thread_cpu_ns() - thread_begin);
    let process_s = seconds(process_cpu_ns() - process_begin);
    Ok(MeasuredKind {
        kind,
        queries: queries.len(),
        passes_ns,
        threads: process_s / thread_s.max(1e-9),
        found: warm.found,
        sample: warm.sample,
        counters: warm.counters,
    })
}

struct Warm {
    asked: usize,
    found: f64,
    sample: Vec<Vec<(String, i64)>>,
    counters: Counters,
}

/// Asks every query once, as many as there is time for in every pass.
fn warm_up(work: &Work, searcher: &mut dyn Searcher, queries: &[Query]) -> Result<Warm, Failure> {
    #[expect(clippy::cast_precision_loss, reason = "a few passes")]
    let pass_s_max = work.seconds_max / (work.passes as f64 + 1.0);
    // Processor time: a busy machine must not make a sample smaller.
    let begin = thread_cpu_ns();
    let mut warm = Warm {
        asked: 0,
        found: 0.0,
        sample: Vec::new(),
        counters: Counters::new(),
    };
    for query in queries {
        if warm.asked >= QUERIES_MIN && seconds(thread_cpu_ns() - begin) > pass_s_max {
            break;
        }
        let found = searcher.search(query)?;
        warm.asked += 1;
        warm.found += f64::from(u32::try_from(found.len())?);
        for (name, value) in searcher.counters()? {
            *warm.counters.entry(name).or_default() += value;
        }
        if warm.sample.len() < work.sample {
            let pair = |hit: Found| (hit.id, hit.time_us);
            warm.sample.push(found.into_iter().map(pair).collect());
        }
    }
    let asked = f64::from(u32::try_from(warm.asked)?).max(1.0);
    warm.found /= asked;
    for value in warm.counters.values_mut() {
        *value /= asked;
    }
    Ok(warm)
}

fn open(work: &Work, subject: Subject, corpus: &Corpus) -> Result<Opened, Failure> {
    let queries = corpus.queries(Kind::Fact, Changes::default())?;
    let query = queries.first().ok_or("no queries")?;
    if work.cold {
        forget_pages(&work.dir)?;
    } else {
        read_all(&work.dir)?;
    }
    let begin = Instant::now();
    let mut searcher = subject.searcher(&work.dir)?;
    let found = searcher.search(query)?;
    let first_hit_ms = begin.elapsed().as_secs_f64() * 1e3;
    if found.is_empty() {
        return Err("the first query found nothing".into());
    }
    Ok(Opened { first_hit_ms })
}

/// Brings the files into the page cache.
fn read_all(dir: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path)?;
        } else {
            std::io::copy(&mut fs::File::open(&path)?, &mut std::io::sink())?;
        }
    }
    Ok(())
}
