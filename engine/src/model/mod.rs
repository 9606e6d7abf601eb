//! Do the engine's concurrent parts hold under every interleaving? loom runs the engine itself,
//! on a simulated disk.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p chronolith --lib --release model::`.
//!
//! loom decides at every lock, wait and atomic of `chronolith_vfs::sync` who goes on. Locks of
//! std are unknown to it: what the models run holds none of them over such a place. Every
//! interleaving of a whole engine is too many, so each model says how often a thread may be
//! interrupted; the places where it waits by itself do not count.
//!
//! * `commits`: order, acknowledgement and failure of commits.
//! * `views`: a snapshot beside commits, flush and compaction is of one moment.
//! * `readers`: a reader of another process beside a publish and its unlinks.

mod commits;
mod readers;
mod steps;
mod views;

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chronolith_vfs::Env;
use chronolith_vfs::planted::{Bug, switch};
use loom::thread::{Builder as ModelThread, JoinHandle};

use crate::{
    Batch, Committed, Durability, Error, Maintenance, Options, Record, Scope, Setup, Snapshot,
    Store,
};

const DIR: &str = "/store";
/// Stack of a thread, in words: the engine needs more than loom's 32 KiB.
const STACK_WORDS: usize = 1 << 18;

/// Runs `body` in every interleaving with at most so many interruptions.
fn explore(interruptions: usize, body: fn()) {
    let runs = AtomicU64::new(0);
    let runs = std::sync::Arc::new(runs);
    let counted = std::sync::Arc::clone(&runs);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interruptions);
    model.max_branches = 100_000;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        spawn(body).join().expect("no panic");
    });
    println!("{} interleavings", runs.load(Ordering::Relaxed));
}

fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let thread = ModelThread::new().stack_size(STACK_WORDS);
    thread.spawn(body).expect("a thread of the model")
}

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn scope() -> Scope {
    Scope::parse("a").expect("a scope")
}

/// A text that says which record it is of, and which of its versions.
fn text(id: &str, version: u32) -> String {
    format!("word of{id}v{version}")
}

fn put(store: &Store, durability: Durability, records: &[(&str, u32)]) -> Result<Committed, Error> {
    let mut batch = Batch::new();
    for (id, version) in records {
        let record = Record::new(scope(), *id, 1_700_000_000_000_000, text(id, *version));
        batch.upsert(record);
    }
    store.write_with(batch, durability)
}

/// The text of a record, if it is there.
fn found(view: &Snapshot, id: &str) -> Option<String> {
    let stored = view.get(&scope(), id).expect("readable");
    stored.map(|stored| stored.record.text)
}

/// Names the bug that a child of the negative test runs its model with.
const BUG: &str = "CHRONOLITH_MODEL_BUG";

/// Runs a model, one at a time: a planted bug is the process's.
fn alone(model: fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(name) = std::env::var(BUG) {
        let mut all = Bug::ALL.iter().copied();
        let bug = all.find(|bug| format!("{bug:?}") == name);
        switch(Some(bug.expect("a bug of this name")));
    }
    model();
}

#[test]
fn an_acknowledged_batch_is_durable_visible_and_in_order() {
    alone(commits::an_acknowledged_batch_is_durable_visible_and_in_order);
}

#[test]
fn a_failed_sync_is_told_to_all_and_for_ever() {
    alone(commits::a_failed_sync_is_told_to_all_and_for_ever);
}

#[test]
fn a_view_beside_commits_and_a_flush_is_of_one_moment() {
    alone(views::a_view_beside_commits_and_a_flush_is_of_one_moment);
}

#[test]
fn a_view_beside_a_compaction_is_of_one_moment() {
    alone(views::a_view_beside_a_compaction_is_of_one_moment);
}

#[test]
fn a_forget_beside_a_compaction_is_kept() {
    alone(views::a_forget_beside_a_compaction_is_kept);
}

#[test]
fn a_reader_beside_a_compaction_sees_one_version() {
    alone(readers::a_reader_beside_a_compaction_sees_one_version);
}

/// The negative test: each model fails on the bugs that it is for. In children, since a model
/// that fails leaves the engine's locks behind, and a destructor that meets them aborts.
#[test]
fn the_models_find_planted_bugs() {
    let pairs = [
        (
            Bug::AckBeforeSync,
            "an_acknowledged_batch_is_durable_visible_and_in_order",
        ),
        (
            Bug::SyncRetried,
            "a_failed_sync_is_told_to_all_and_for_ever",
        ),
        (
            Bug::SnapshotSeesLater,
            "a_view_beside_commits_and_a_flush_is_of_one_moment",
        ),
        (
            Bug::OldRowLeftLive,
            "a_view_beside_a_compaction_is_of_one_moment",
        ),
        (
            Bug::CompactionForgetsDeaths,
            "a_forget_beside_a_compaction_is_kept",
        ),
    ];
    for (bug, model) in pairs {
        let ended = Command::new(std::env::current_exe().expect("this test's file"))
            .args(["--exact", &format!("model::{model}")])
            .env(BUG, format!("{bug:?}"))
            .output()
            .expect("started");
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let why = said
            .lines()
            .skip_while(|line| !line.contains("panicked at"));
        println!("{bug:?}: {}", why.take(2).collect::<Vec<_>>().join(" "));
        assert!(
            !ended.status.success() && said.contains("panicked at engine/src/model"),
            "{bug:?} was not found: {said}"
        );
    }
}
