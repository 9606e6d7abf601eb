//! What does a full disk do? On a small tmpfs: write until it is full, free space, write five
//! more on the same handle, close, reopen, compare with what was acknowledged.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Bench, each, work};
use crate::child::{Job, Work};
use crate::engine::Engine;
use crate::outcome::{Outcome, judge_kept};
use crate::records::{Record, commit};
use crate::report::{Cell, Finding, Section};
use crate::runner::{Ended, Run, Scratch, command_line, run, run_line};

const TITLE: &str = "full disk";
const PER_COMMIT: usize = 16;
const BYTES_MIN: usize = 4000;
/// Commits after which a disk that is still not full never will be.
const COMMITS_MAX: usize = 600;
/// Filling takes longer than opening.
const FILL_WALL: Duration = Duration::from_secs(180);
const BALLAST_BYTES: usize = 3 << 20;

const RUNS: &str = "runs";
const FILLED: &str = "acknowledged before";
const FILLED_LOST: &str = "ACKNOWLEDGED LOST";
const LATER: &str = "acknowledged after space came back (of 5 a run)";
const LATER_LOST: &str = "ACKNOWLEDGED LATER, LOST";
const WEDGED: &str = "runs whose handle took no more writes";
const NOT_OPENED: &str = "runs: cannot be opened or asked afterwards";
const WRONG: &str = "runs: part of a commit or a wrong record";
const CRASHED: &str = "runs: panic, abort, SIGBUS or hang";

/// The section.
pub fn run_all(bench: &mut Bench) -> io::Result<()> {
    let mut cells = BTreeMap::new();
    for engine in bench.engines {
        cells.insert(engine.name(), one(bench, &**engine)?);
    }
    bench.report.sections.push(Section {
        title: TITLE.to_owned(),
        rows: vec![
            RUNS,
            FILLED,
            FILLED_LOST,
            LATER,
            LATER_LOST,
            WEDGED,
            NOT_OPENED,
            WRONG,
            CRASHED,
        ],
        cells,
    });
    Ok(())
}

/// A small file system in memory, unmounted at the end.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(path: &Path, bytes: usize) -> Result<Self, String> {
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(path)
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        if output.status.success() {
            return Ok(Self(path.to_owned()));
        }
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("a tmpfs needs root: {why}"))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A mount that stays behind is seen by the removal of the run's directory.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// What one run showed.
#[derive(Default)]
struct Seen {
    counts: BTreeMap<&'static str, u64>,
    what: Vec<(&'static str, String)>,
}

impl Seen {
    fn add(&mut self, row: &'static str, count: usize, what: impl Into<String>) {
        *self.counts.entry(row).or_default() += count as u64;
        if count > 0 && ![RUNS, FILLED, LATER].contains(&row) {
            self.what.push((row, what.into()));
        }
    }
}

fn one(bench: &mut Bench, engine: &dyn Engine) -> io::Result<Cell> {
    let runs = (bench.trials / 200).clamp(2, 8);
    let name = format!("{TITLE}, {}", engine.name());
    let (base, seed) = (bench.base, bench.seed);
    let seen = each(&name, runs, |index| one_run(base, seed, engine, index));
    let mut counts = BTreeMap::new();
    for seen in seen {
        let seen = match seen? {
            Ok(seen) => seen,
            Err(why) => return Ok(Cell::skipped(why)),
        };
        for (row, count) in seen.counts {
            *counts.entry(row).or_default() += count;
        }
        for (row, what) in seen.what {
            if engine.name() == "chronolith" && row != NOT_OPENED {
                bench.report.violations += 1;
            }
            bench.report.find(Finding {
                trial: TITLE,
                engine: engine.name(),
                outcome: row,
                what,
            });
        }
    }
    Ok(Cell::Counts(counts))
}

fn one_run(
    base: &Path,
    seed: u64,
    engine: &dyn Engine,
    index: usize,
) -> io::Result<Result<Seen, String>> {
    let scratch = Scratch::new(base)?;
    let disk = scratch.path().join("disk");
    fs::create_dir(&disk)?;
    let size = (12 << 20) + index * (1 << 20) + index * 4096 * 7;
    let _mounted = match Tmpfs::mount(&disk, size) {
        Ok(mounted) => mounted,
        Err(why) => return Ok(Err(why)),
    };
    let ballast = disk.join("ballast");
    File::create(&ballast)?.write_all(&vec![1; BALLAST_BYTES])?;
    let store = disk.join("store");
    fs::create_dir(&store)?;
    let mut fill = work(Job::Fill, engine.name(), store, seed ^ index as u64);
    (fill.per_commit, fill.bytes_min) = (PER_COMMIT, BYTES_MIN);
    (fill.commits, fill.ballast) = (COMMITS_MAX, Some(ballast));
    fill.small_buffers = true;
    (fill.memory_bytes, fill.cpu_s) = (0, 60);
    let filled = run_line(&command_line(&fill)?, scratch.path(), FILL_WALL)?;
    Ok(judge(&fill, &filled, &scratch))
}

/// Reopens the store and compares.
fn judge(fill: &Work, filled: &Run, scratch: &Scratch) -> Result<Seen, String> {
    let mut seen = Seen::default();
    seen.add(RUNS, 1, "");
    let full = filled
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("full ")?.split(':').next()?.parse().ok());
    let acknowledged = filled.acknowledged();
    let full: usize = match full {
        Some(full) => full,
        None if filled.ended == Ended::Exit(0) => {
            return Err(format!("the disk was never full: {}", filled.describe()));
        }
        None if filled.ended == Ended::Exit(1) => {
            return Err(format!(
                "cannot be opened on this disk: {}",
                filled.describe()
            ));
        }
        // It died of the full disk.
        None => acknowledged.len(),
    };
    if filled.ended != Ended::Exit(0) || filled.stderr.contains("panicked at") {
        seen.add(CRASHED, 1, filled.describe());
    }
    let later: Vec<usize> = acknowledged.iter().copied().filter(|n| *n > full).collect();
    seen.add(FILLED, acknowledged.len() - later.len(), "");
    seen.add(LATER, later.len(), "");
    if filled.ended == Ended::Exit(0) && later.is_empty() {
        let refused = filled.stdout.lines().find(|line| line.starts_with("no "));
        seen.add(WEDGED, 1, refused.unwrap_or(""));
    }
    let mut ask = fill.clone();
    ask.job = Job::Ask;
    ask.commits = full + 6;
    let run = run(&ask, scratch.path()).map_err(|error| error.to_string())?;
    let lost = |from: &[usize]| from.iter().filter(|n| !has(&run, &ask, **n)).count();
    let before: Vec<usize> = acknowledged.iter().copied().filter(|n| *n < full).collect();
    let records: Vec<Record> = (0..ask.commits)
        .flat_map(|number| commit(ask.seed, number, PER_COMMIT, BYTES_MIN))
        .collect();
    // What is lost is counted below, so nothing counts as acknowledged here.
    let verdict = judge_kept(&run, &records, PER_COMMIT, &|_| false);
    match verdict.outcome {
        Outcome::NamedError => seen.add(NOT_OPENED, 1, verdict.seen),
        Outcome::Equal | Outcome::Torn => {
            seen.add(
                FILLED_LOST,
                lost(&before),
                format!("{} commits", lost(&before)),
            );
            seen.add(
                LATER_LOST,
                lost(&later),
                format!("{} commits", lost(&later)),
            );
            let torn = verdict.outcome == Outcome::Torn;
            seen.add(WRONG, usize::from(torn), verdict.seen);
        }
        _ => seen.add(CRASHED, 1, format!("reopen: {}", verdict.seen)),
    }
    Ok(seen)
}

/// Whether every record of the commit is there.
fn has(run: &Run, ask: &Work, number: usize) -> bool {
    let Ok(reply) = crate::outcome::reply_of(run) else {
        return false;
    };
    let records = commit(ask.seed, number, PER_COMMIT, BYTES_MIN);
    records.iter().enumerate().all(|(at, record)| {
        let right = crate::ask::expected_get(record);
        reply.got(number * PER_COMMIT + at) == Some(&Ok(right))
    })
}
