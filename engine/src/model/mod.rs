//! Do the engine's concurrent parts hold, whoever goes on when? The engine itself runs on a
//! simulated disk, under a scheduler that decides at every lock, wait and atomic of
//! `chronolith_vfs::sync`, and at every file operation of [`steps`], who goes on.
//!
//! Locks of std are unknown to it: what the models run holds none of them over such a place.
//! The memtable's own atomics are no such places here; its models lie beside it.
//!
//! * `every`: small models in every interleaving, under loom.
//! * `shuffled`: everything at once in many random ones, under shuttle.

#[cfg(loom)]
mod every;
#[cfg(shuttle)]
mod shuffled;
mod steps;

use std::process::Command;

use chronolith_vfs::Env;
use chronolith_vfs::planted::{Bug, switch};

#[cfg(loom)]
use loom::thread;
#[cfg(shuttle)]
use shuttle::thread;

use crate::{Maintenance, Options, Record, Scope, Setup, Snapshot};

const DIR: &str = "/store";

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

fn record(id: &str, version: u32) -> Record {
    Record::new(scope(), id, 1_700_000_000_000_000, text(id, version))
}

/// The text of a record, if it is there.
fn found(view: &Snapshot, id: &str) -> Option<String> {
    let stored = view.get(&scope(), id).expect("readable");
    stored.map(|stored| stored.record.text)
}

/// Names the bug that a child of a negative test runs its model with.
const BUG: &str = "CHRONOLITH_MODEL_BUG";

/// In such a child, switches the bug on. It is the whole process's.
fn plant_as_told() {
    if let Ok(name) = std::env::var(BUG) {
        let mut all = Bug::ALL.iter().copied();
        let bug = all.find(|bug| format!("{bug:?}") == name);
        switch(Some(bug.expect("a bug of this name")));
    }
}

/// Runs a model in a child with a bug, which it must find. Not here: a model that fails leaves
/// the engine's locks behind, and a destructor that meets them aborts.
fn assert_found(bug: Bug, model: &str) {
    let ended = Command::new(std::env::current_exe().expect("this test's file"))
        .args(["--exact", model])
        .env(BUG, format!("{bug:?}"))
        .env_remove("CHRONOLITH_SEED")
        .env_remove("CHRONOLITH_SCHEDULES")
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
