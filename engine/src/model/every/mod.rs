//! Does a small model hold under every interleaving? loom runs it.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p chronolith --lib --release model::every`.
//!
//! Every interleaving of a whole engine is too many, so each model says how often a thread may
//! be interrupted; the places where it waits by itself do not count.
//!
//! * `commits`: order, acknowledgement and failure of commits.
//! * `views`: a snapshot beside commits, flush and compaction is of one moment.
//! * `readers`: a reader of another process beside a publish and its unlinks.

mod commits;
mod readers;
mod views;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chronolith_vfs::planted::Bug;
use loom::thread::{Builder as ModelThread, JoinHandle};

use super::{assert_found, plant_as_told, record};
use crate::{Batch, Committed, Durability, Error, Store};

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

fn put(store: &Store, durability: Durability, records: &[(&str, u32)]) -> Result<Committed, Error> {
    let mut batch = Batch::new();
    for (id, version) in records {
        batch.upsert(record(id, *version));
    }
    store.write_with(batch, durability)
}

/// Runs a model, one at a time.
fn alone(model: fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    plant_as_told();
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

/// The negative test: each model fails on the bugs that it is for.
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
        assert_found(bug, &format!("model::every::{model}"));
    }
}
