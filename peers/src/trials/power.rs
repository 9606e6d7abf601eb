//! What is left after a power cut? A child's file operations are recorded with `strace`; at
//! chosen points everything that was not synced is dropped, in several ways, and the store is
//! reopened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use super::{Bench, each, work};
use crate::child::{Job, Work};
use crate::engine::Engine;
use crate::outcome::{Outcome, Verdict, judge_kept};
use crate::records::{Record, commit};
use crate::report::{Cell, Section, TRIALS};
use crate::runner::{Scratch, command_line, run, run_line};
use crate::seeded::Seeded;
use crate::trace::cut::{self, Model, Unsynced};
use crate::trace::disk::{self, Op, Recorded};
use crate::trace::parse::TRACED;

const JOURNALLED: &str = "power cut, names in journal order";
const STRICT: &str = "power cut, names one by one";
const COMMITS: usize = 30;
const PER_COMMIT: usize = 4;
/// A traced child is slow.
const TRACE_WALL: Duration = Duration::from_secs(120);

/// Both sections.
pub fn run_all(bench: &mut Bench) -> io::Result<()> {
    let strace = Command::new("strace").arg("-V").output();
    let why_not = match strace {
        Ok(output) if output.status.success() => None,
        _ => Some("strace is not installed"),
    };
    let mut sections = [(JOURNALLED, BTreeMap::new()), (STRICT, BTreeMap::new())];
    for engine in bench.engines {
        let recorded = match why_not {
            Some(why) => Err(why.to_owned()),
            None => record(bench, &**engine)?,
        };
        if let Ok(recorded) = &recorded
            && !recorded.mapped.is_empty()
        {
            bench.report.remarks.push(format!(
                "power cut: {} also writes through a mapping, which the trace cannot show: {}",
                engine.name(),
                recorded
                    .mapped
                    .iter()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        for (title, cells) in &mut sections {
            let cell = match &recorded {
                Err(why) => Cell::skipped(why.clone()),
                Ok(recorded) => {
                    let model = if *title == STRICT {
                        Model::Strict
                    } else {
                        Model::Journalled
                    };
                    let verdicts = cuts(bench, &**engine, title, recorded, model)?;
                    bench.report.tally(title, engine.name(), &verdicts)
                }
            };
            cells.insert(engine.name(), cell);
        }
    }
    for (title, cells) in sections {
        bench.report.sections.push(Section {
            title: title.to_owned(),
            rows: rows(),
            cells,
        });
    }
    Ok(())
}

fn rows() -> Vec<&'static str> {
    let outcomes = [
        Outcome::Equal,
        Outcome::NamedError,
        Outcome::Lost,
        Outcome::Torn,
        Outcome::Panic,
        Outcome::Abort,
        Outcome::Hang,
        Outcome::OverCap,
    ];
    std::iter::once(TRIALS)
        .chain(outcomes.map(Outcome::label))
        .collect()
}

fn records(seed: u64) -> Vec<Record> {
    (0..COMMITS)
        .flat_map(|number| commit(seed, number, PER_COMMIT, 0))
        .collect()
}

fn job(bench: &Bench, engine: &dyn Engine, scratch: &Scratch, job: Job) -> io::Result<Work> {
    let dir = fs::canonicalize(scratch.store())?;
    let mut work = work(job, engine.name(), dir, bench.seed);
    work.commits = COMMITS;
    work.per_commit = PER_COMMIT;
    Ok(work)
}

/// The operations of a child that writes every commit and dies, or why there are none.
fn record(bench: &Bench, engine: &dyn Engine) -> io::Result<Result<Recorded, String>> {
    let scratch = Scratch::new(bench.base)?;
    let mut work = job(bench, engine, &scratch, Job::Build)?;
    work.kill = true;
    // strace itself is not to run into the child's limits.
    (work.memory_bytes, work.cpu_s) = (0, 0);
    let trace = scratch.path().join("trace");
    let mut line: Vec<String> = [
        "strace",
        "-f",
        "-qq",
        "-xx",
        "--seccomp-bpf",
        "-s",
        "16777216",
    ]
    .map(str::to_owned)
    .to_vec();
    line.extend(["-e".into(), format!("trace={TRACED}")]);
    line.extend(["-o".into(), trace.display().to_string()]);
    line.extend(command_line(&work)?);
    let run = run_line(&line, scratch.path(), TRACE_WALL)?;
    if run.acknowledged().len() != COMMITS {
        return Ok(Err(format!("cannot be traced: {}", run.describe())));
    }
    let recorded = disk::read(
        &work.dir.display().to_string(),
        &fs::read_to_string(&trace)?,
    );
    eprintln!("power cut, {}: recorded", engine.name());
    Ok(recorded.and_then(|recorded| {
        let acks = recorded.ops.iter().filter(|op| matches!(op, Op::Ack(_)));
        if acks.count() == COMMITS {
            Ok(recorded)
        } else {
            Err("the trace does not show every acknowledgement".into())
        }
    }))
}

fn cuts(
    bench: &Bench,
    engine: &dyn Engine,
    title: &str,
    recorded: &Recorded,
    model: Model,
) -> io::Result<Vec<Verdict>> {
    let acks: Vec<usize> = (0..recorded.ops.len())
        .filter(|index| matches!(recorded.ops[*index], Op::Ack(_)))
        .collect();
    let records = records(bench.seed);
    let name = format!("{title}, {}", engine.name());
    let verdicts = each(&name, (bench.trials / 4).max(8), |index| {
        let mut seeded = Seeded::new(bench.seed ^ ((index as u64 + 1) << 24));
        let cut = cut_point(&acks, recorded.ops.len(), &mut seeded);
        let unsynced = [
            Unsynced::Nothing,
            Unsynced::Random,
            Unsynced::NamesOnly,
            Unsynced::Random,
        ][index % 4];
        let acknowledged = acks.iter().filter(|ack| **ack < cut).count();
        let image = cut::image(recorded, cut, model, unsynced, &mut seeded);
        let scratch = Scratch::new(bench.base)?;
        image.lay_out(&scratch.store(), None)?;
        let run = run(&job(bench, engine, &scratch, Job::Ask)?, scratch.path())?;
        let is_acknowledged = |number: usize| number < acknowledged;
        let mut verdict = judge_kept(&run, &records, PER_COMMIT, &is_acknowledged);
        verdict.seen = format!(
            "operation {cut} of {}, {acknowledged} acknowledged, unsynced {unsynced:?}: {}",
            recorded.ops.len(),
            verdict.seen
        );
        Ok(verdict)
    });
    verdicts.into_iter().collect()
}

/// Right after an acknowledgement, or anywhere after the first.
fn cut_point(acks: &[usize], end: usize, seeded: &mut Seeded) -> usize {
    if seeded.coin() {
        acks[seeded.below(acks.len())] + 1
    } else {
        acks[0] + 1 + seeded.below(end - acks[0])
    }
}
