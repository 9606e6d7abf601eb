//! What does a child do? It builds one store, or asks it; figures go to stdout as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::engine::{Asker, K, Subject};
use super::report::Point;
use super::rows::{Ask, Columns, Kind, Rows};
use crate::bench::clock::{bytes_by_kind, process_cpu_ns, thread_cpu_ns, wait_quiet};
use crate::bench::corpus::Corpus;
use crate::bench::summary::percentiles;
use crate::bench::work::child_of;
use crate::engine::Failure;

/// Rows of one commit while a store is built.
const CHUNK: usize = 500;
/// Longest wait for what an engine does in the background after an open.
const QUIET_MAX: Duration = Duration::from_secs(900);
/// Queries that are asked however slow an engine is.
const QUERIES_MIN: usize = 20;

/// Exact answers by kind and query: row numbers.
pub type Answers = BTreeMap<Kind, Vec<Vec<usize>>>;

/// The job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Job {
    /// Fills a new store and settles it.
    Build,
    /// Asks the queries.
    Measure,
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
    /// The folder.
    #[arg(long)]
    pub corpus: PathBuf,
    /// Its first rows.
    #[arg(long)]
    pub rows: usize,
    /// Scopes that they are dealt out to.
    #[arg(long)]
    pub scopes: usize,
    /// Exact answers.
    #[arg(long)]
    pub answers: Option<PathBuf>,
    /// Which rows may answer.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub kinds: Vec<Kind>,
    /// Recall at which the knob stays.
    #[arg(long, default_value_t = 1.0)]
    pub target: f64,
    /// Every value of the knob.
    #[arg(long)]
    pub sweep: bool,
    /// Queries.
    #[arg(long, default_value_t = 1)]
    pub queries: usize,
    /// Passes over them after the warm-up.
    #[arg(long, default_value_t = 5)]
    pub passes: usize,
    /// Processor seconds for all passes of a line.
    #[arg(long, default_value_t = 60.0)]
    pub seconds_max: f64,
}

/// What `Build` reports.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Built {
    /// Processor time of all threads until the engine had come to rest, reading the folder not
    /// in it, µs a row.
    pub build_us: f64,
    /// Bytes on disk, a row.
    pub bytes: f64,
}

/// Does the work.
pub fn run(work: &Work) -> Result<(), Failure> {
    let subject = Subject::named(&work.engine)?;
    let rows = Rows::open(Corpus::open(&work.corpus)?, Some(work.rows), work.scopes)?;
    let said = match work.job {
        Job::Build => serde_json::to_string(&build(work, subject, &rows)?)?,
        Job::Measure => serde_json::to_string(&measure(work, subject, &rows)?)?,
    };
    println!("{said}");
    Ok(())
}

/// Runs a child with these arguments and reads what it said.
pub fn child<T: DeserializeOwned>(arguments: &[String]) -> Result<T, Failure> {
    child_of("vectors-child", arguments)
}

#[expect(clippy::cast_precision_loss, reason = "shown figures")]
fn build(work: &Work, subject: Subject, rows: &Rows) -> Result<Built, Failure> {
    fs::create_dir_all(&work.dir)?;
    let process_begin = process_cpu_ns();
    let mut filler = subject.filler(&work.dir, rows)?;
    let (mut chunk, mut engine_ns) = (Vec::with_capacity(CHUNK), 0);
    let reading_begin = thread_cpu_ns();
    rows.for_each(&mut |row| {
        let last = row.number + 1 == rows.count;
        chunk.push(row);
        if chunk.len() == CHUNK || last {
            let begin = thread_cpu_ns();
            filler.put(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK)))?;
            engine_ns += thread_cpu_ns() - begin;
        }
        Ok(())
    })?;
    // Of this thread only the engine's calls count; of all other threads everything.
    let not_engine_ns = thread_cpu_ns() - reading_begin - engine_ns;
    filler.settle()?;
    let settled_ns = process_cpu_ns() - process_begin - not_engine_ns;
    let bytes: u64 = bytes_by_kind(&work.dir)?.values().sum();
    Ok(Built {
        build_us: settled_ns as f64 / 1000.0 / rows.count as f64,
        bytes: bytes as f64 / rows.count as f64,
    })
}

fn measure(work: &Work, subject: Subject, rows: &Rows) -> Result<Vec<Point>, Failure> {
    let path = work.answers.as_ref().ok_or("--answers is missing")?;
    let answers: Answers = serde_json::from_str(&fs::read_to_string(path)?)?;
    let (columns, (_, asks)) = (rows.columns()?, rows.asks(work.queries)?);
    let mut asker = subject.asker(&work.dir, rows)?;
    wait_quiet(QUIET_MAX);
    let mut points = Vec::new();
    for kind in &work.kinds {
        let exact = answers.get(kind).map(Vec::as_slice);
        for knob in subject.knobs() {
            let mut line = Line {
                work,
                columns: &columns,
                asks: &asks,
                asker: &mut *asker,
                kind: *kind,
                knob: *knob,
            };
            let point = line.measure(exact)?;
            let is_enough = point.recall.is_none_or(|recall| recall >= work.target);
            points.push(point);
            if is_enough && !work.sweep {
                break;
            }
        }
    }
    Ok(points)
}

/// One kind at one value of the knob.
struct Line<'a> {
    work: &'a Work,
    columns: &'a Columns,
    asks: &'a [Ask],
    asker: &'a mut dyn Asker,
    kind: Kind,
    knob: Option<usize>,
}

impl Line<'_> {
    fn measure(&mut self, exact: Option<&[Vec<usize>]>) -> Result<Point, Failure> {
        // What a filter prepares once; a scope is each query's own.
        let filter = self.columns.filter(self.kind, 0);
        self.asker.prepare(self.columns, filter);
        let found = self.warm_up()?;
        let (mut p50_us, mut p95_us) = (Vec::new(), Vec::new());
        for _ in 0..self.work.passes {
            let mut pass = Vec::with_capacity(found.len());
            for ask in &self.asks[..found.len()] {
                pass.push(self.ask(ask)?.1);
            }
            let us = percentiles(pass);
            p50_us.push(us.p50);
            p95_us.push(us.p95);
        }
        let knob = self.knob.map(|knob| knob.to_string());
        Ok(Point {
            kind: self.kind.name().into(),
            knob: knob.unwrap_or_else(|| "default".into()),
            asked: found.len(),
            recall: exact.map(|exact| recall(&found, exact)),
            hits_min: found.iter().map(Vec::len).min().unwrap_or(0),
            p50_us,
            p95_us,
        })
    }

    /// An answer and the processor time of this process that it took, ns: an engine that lets
    /// others work pays for them too.
    fn ask(&mut self, ask: &Ask) -> Result<(Vec<usize>, u64), Failure> {
        let filter = self.columns.filter(self.kind, ask.scope);
        if self.kind == Kind::Scope {
            self.asker.prepare(self.columns, filter);
        }
        let begin = process_cpu_ns();
        let found = self.asker.ask(ask, self.kind, filter, self.knob)?;
        Ok((found, process_cpu_ns() - begin))
    }

    /// Answers every query once, as many as there is time for in every pass.
    fn warm_up(&mut self) -> Result<Vec<Vec<usize>>, Failure> {
        #[expect(clippy::cast_precision_loss, reason = "a few passes")]
        let pass_ns_max = self.work.seconds_max * 1e9 / (self.work.passes as f64 + 1.0);
        let (mut spent_ns, mut found) = (0.0, Vec::new());
        for ask in self.asks {
            if found.len() >= QUERIES_MIN && spent_ns > pass_ns_max {
                break;
            }
            let (rows, ns) = self.ask(ask)?;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
            let ns = ns as f64;
            spent_ns += ns;
            found.push(rows);
        }
        Ok(found)
    }
}

/// Share of the exact answers' rows that were found.
#[expect(clippy::cast_precision_loss, reason = "a share of few rows")]
fn recall(found: &[Vec<usize>], exact: &[Vec<usize>]) -> f64 {
    let (mut both, mut wanted) = (0, 0);
    for (found, exact) in found.iter().zip(exact) {
        let found: BTreeSet<&usize> = found.iter().take(K).collect();
        wanted += exact.len();
        both += exact.iter().filter(|row| found.contains(row)).count();
    }
    both as f64 / wanted.max(1) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn recall_counts_rows_of_the_exact_answer_once() {
        let recall = super::recall(&[vec![1, 1, 2], vec![]], &[vec![1, 3], vec![4, 5]]);
        assert!((recall - 0.25).abs() < 1e-9);
    }
}
