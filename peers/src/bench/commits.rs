//! What does a durable commit cost, and how many share a sync?
//!
//! Engines take turns of some commits each, so that a slow minute of the disk meets all of
//! them; ratios are taken turn by turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chronolith::{Options, Setup, Store};
use chronolith_vfs::{Env, FaultVfs, OpKind, RealVfs};
use chronolith_wal::{Log, LogOptions};
use serde::Serialize;

use super::committer::{self, BARE, Committer, ROCKSDB, batch_of};
use super::summary::{Ratio, median};
use super::table::{aligned, short, spread, table};
use crate::engine::Failure;
use crate::records::record;

/// Least bytes of a record's text: a few sentences.
const TEXT_BYTES: usize = 200;
/// Commits before anything is measured.
const WARM_UP: usize = 50;
/// A leader waits for this share of a mean sync.
const WAIT_SHARE: f64 = 0.15;

/// `commits`: one durable record at a time, and many writers.
#[derive(Debug, clap::Args)]
pub struct Commits {
    /// Commits of each engine
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// Commits of a turn
    #[arg(long, default_value_t = 50)]
    turn: usize,
    /// Writers of the group commit
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Where stores are made; a disk, not a memory file system [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seed of the records
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Writes the report here
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    skipped: Option<&'static str>,
    p50_us: f64,
    least_us: f64,
    p99_us: f64,
    to_bare: Option<Ratio>,
    to_rocksdb: Option<Ratio>,
}

#[derive(Serialize)]
struct Group {
    what: String,
    commits: usize,
    syncs: u64,
    commits_per_sync: f64,
    commits_per_s: f64,
}

#[derive(Serialize)]
struct Report {
    frame_bytes: usize,
    rows: Vec<Row>,
    writers: usize,
    groups: Vec<Group>,
}

/// Stores of a run, removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

/// Runs both parts.
pub fn run(commits: &Commits) -> Result<(), Failure> {
    let parent = commits.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch(parent.join(format!("chronolith-commits-{}", std::process::id())));
    fs::create_dir_all(&scratch.0)?;
    let (frame_bytes, rows) = singles(commits, &scratch.0)?;
    let mean_us = rows
        .iter()
        .find(|row| row.name == BARE)
        .map_or(100.0, |row| row.p50_us);
    let groups = groups(commits, &scratch.0, frame_bytes, mean_us)?;
    let report = Report {
        frame_bytes,
        rows,
        writers: commits.writers,
        groups,
    };
    print(&report);
    if let Some(path) = &commits.json {
        fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}

/// A folder of its own.
fn folder(parent: &Path, name: &str) -> Result<PathBuf, Failure> {
    let dir = parent.join(name);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn singles(commits: &Commits, dir: &Path) -> Result<(usize, Vec<Row>), Failure> {
    let (store, frame_bytes) = warm_store(commits, dir)?;
    let total = WARM_UP + commits.count;
    let mut committers = vec![
        committer::bare(dir, frame_bytes, total)?,
        committer::chronolith(store),
        committer::rocksdb(&folder(dir, ROCKSDB)?)?,
    ];
    for name in ["redb", "fjall", "sqlite-wal"] {
        committers.push(committer::peer(name, &folder(dir, name)?)?);
    }
    let mut turns: Vec<Vec<Vec<f64>>> = vec![Vec::new(); committers.len()];
    for committer in &mut committers {
        turn(commits, committer, 0, WARM_UP)?;
    }
    for first in (0..commits.count).step_by(commits.turn.max(1)) {
        for (committer, turns) in committers.iter_mut().zip(&mut turns) {
            let count = commits.turn.min(commits.count - first);
            turns.push(turn(commits, committer, WARM_UP + first, count)?);
        }
    }
    Ok((frame_bytes, rows(&committers, &turns)))
}

/// A store with some commits in it, and the bytes of its log for each.
fn warm_store(commits: &Commits, dir: &Path) -> Result<(Store, usize), Failure> {
    let store = committer::store(&dir.join("chronolith"))?;
    let mut bytes = Vec::new();
    for number in 0..WARM_UP {
        let batch = batch_of(&record(commits.seed, 1_000_000 + number, TEXT_BYTES))?;
        let before = store.stats()?.wal_bytes;
        store.write(batch)?;
        bytes.push(store.stats()?.wal_bytes - before);
    }
    bytes.sort_unstable();
    Ok((store, usize::try_from(bytes[WARM_UP / 2])?))
}

fn turn(
    commits: &Commits,
    committer: &mut Committer,
    first: usize,
    count: usize,
) -> Result<Vec<f64>, Failure> {
    let Ok(commit) = &mut committer.commit else {
        return Ok(Vec::new());
    };
    let mut times_us = Vec::with_capacity(count);
    for number in first..first + count {
        let record = record(commits.seed, number, TEXT_BYTES);
        let begin = Instant::now();
        commit(&record)?;
        times_us.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times_us)
}

fn rows(committers: &[Committer], turns: &[Vec<Vec<f64>>]) -> Vec<Row> {
    let medians = |turns: &Vec<Vec<f64>>| -> Vec<f64> {
        let middle = |turn: &Vec<f64>| median(turn.iter().copied());
        turns.iter().map(middle).collect()
    };
    let of = |name: &str| {
        let at = committers
            .iter()
            .position(|committer| committer.name == name)?;
        committers[at].commit.is_ok().then(|| medians(&turns[at]))
    };
    let (bare, rocksdb) = (of(BARE), of(ROCKSDB));
    let to = |mine: &[f64], base: &Option<Vec<f64>>| {
        let quotients = mine
            .iter()
            .zip(base.as_ref()?)
            .map(|(a, b)| a / b.max(1e-9));
        let mut all: Vec<f64> = quotients.collect();
        all.sort_by(f64::total_cmp);
        Some(Ratio {
            median: median(all.iter().copied()),
            low: *all.first()?,
            high: *all.last()?,
        })
    };
    let row = |(committer, turns): (&Committer, &Vec<Vec<f64>>)| {
        let mut all: Vec<f64> = turns.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        let mine = medians(turns);
        Row {
            name: committer.name,
            about: committer.about,
            skipped: committer.commit.as_ref().err().copied(),
            p50_us: median(all.iter().copied()),
            least_us: all.first().copied().unwrap_or(0.0),
            p99_us: all.get(all.len() * 99 / 100).copied().unwrap_or(0.0),
            to_bare: to(&mine, &bare),
            to_rocksdb: to(&mine, &rocksdb),
        }
    };
    committers.iter().zip(turns).map(row).collect()
}

fn counting() -> (FaultVfs, Env) {
    let counted = FaultVfs::new(Arc::new(RealVfs::new()));
    let env = Env::real().with_vfs(counted.clone());
    (counted, env)
}

fn groups(
    commits: &Commits,
    dir: &Path,
    frame_bytes: usize,
    sync_us: f64,
) -> Result<Vec<Group>, Failure> {
    let wait = Duration::from_secs_f64(sync_us * WAIT_SHARE / 1e6);
    let mut groups = vec![store_group(commits, &dir.join("group"))?];
    for (name, wait) in [("log", Duration::ZERO), ("log-wait", wait)] {
        groups.push(log_group(commits, &folder(dir, name)?, frame_bytes, wait)?);
    }
    Ok(groups)
}

/// Runs `commit` on all writers until `count` numbers are used up.
fn race(
    commits: &Commits,
    commit: &(dyn Fn(usize) -> Result<(), Failure> + Sync),
) -> Result<f64, Failure> {
    let next = AtomicUsize::new(0);
    let begin = Instant::now();
    let work = || -> Result<(), Failure> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= commits.count * commits.writers {
                return Ok(());
            }
            commit(number)?;
        }
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let writers: Vec<_> = (0..commits.writers).map(|_| scope.spawn(work)).collect();
        for writer in writers {
            writer.join().map_err(|_| "a writer panicked")??;
        }
        Ok(())
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "shown figures")]
fn group(what: String, commits: &Commits, syncs: u64, seconds: f64) -> Group {
    let count = commits.count * commits.writers;
    Group {
        what,
        commits: count,
        syncs,
        commits_per_sync: count as f64 / syncs.max(1) as f64,
        commits_per_s: count as f64 / seconds,
    }
}

fn store_group(commits: &Commits, dir: &Path) -> Result<Group, Failure> {
    let (counted, env) = counting();
    let options = Options {
        env,
        ..Options::create(Setup::default())
    };
    let store = Store::open(dir, options)?;
    let before = counted.count(OpKind::Sync);
    let seconds = race(commits, &|number| {
        store.write(batch_of(&record(commits.seed, number, TEXT_BYTES))?)?;
        Ok(())
    })?;
    let syncs = counted.count(OpKind::Sync) - before;
    store.close()?;
    let what = format!("Store::write, {} writers", commits.writers);
    Ok(group(what, commits, syncs, seconds))
}

/// The log alone: what the store's commits share, without analysing and indexing.
fn log_group(
    commits: &Commits,
    dir: &Path,
    frame_bytes: usize,
    wait: Duration,
) -> Result<Group, Failure> {
    let (counted, env) = counting();
    let options = LogOptions {
        leader_wait: wait,
        ..LogOptions::new([7; 16])
    };
    let log = Log::create(&env, dir, &options, 1)?;
    let body = vec![7; frame_bytes];
    let before = counted.count(OpKind::Sync);
    let seconds = race(commits, &|_| {
        let appended = log.append(&body, 1)?;
        Ok(log.sync_upto(appended.last_seq)?)
    })?;
    let syncs = counted.count(OpKind::Sync) - before;
    let waits = match wait.as_micros() {
        0 => "no wait".to_owned(),
        us => format!("a leader waits {us} us"),
    };
    let what = format!("the log alone, {} writers, {waits}", commits.writers);
    Ok(group(what, commits, syncs, seconds))
}

fn print(report: &Report) {
    let mut singles = table(&[
        "one durable record",
        "p50 us",
        "least us",
        "p99 us",
        "p50 / bare (low-high)",
        "p50 / rocksdb (low-high)",
    ]);
    for row in &report.rows {
        if let Some(why) = row.skipped {
            println!("skipped: {}: {why}", row.name);
            continue;
        }
        singles.add_row([
            row.name.to_owned(),
            short(row.p50_us),
            short(row.least_us),
            short(row.p99_us),
            spread(row.to_bare),
            spread(row.to_rocksdb),
        ]);
    }
    println!("{}\n", aligned(singles, 1));
    let mut groups = table(&[
        "group commit",
        "commits",
        "syncs",
        "commits / sync",
        "commits / s",
    ]);
    for group in &report.groups {
        groups.add_row([
            group.what.clone(),
            group.commits.to_string(),
            group.syncs.to_string(),
            short(group.commits_per_sync),
            short(group.commits_per_s),
        ]);
    }
    println!("{}\n", aligned(groups, 1));
    for row in &report.rows {
        println!("{:<11} {}", row.name, row.about);
    }
    println!(
        "\nTimes on the wall; a frame of chronolith's log is {} bytes here, and so is a bare write. Ratios by turns.",
        report.frame_bytes
    );
}
