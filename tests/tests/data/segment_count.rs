//! A trickle of commits over a year does not become a heap of files.

use std::path::Path;
use std::time::Duration;

use chronolith::{Batch, DAY_US, Options, Record, Request, Scope, ScopeSelector, Setup, Store};
use chronolith_vfs::{RealVfs, Vfs};

const COMMITS: i64 = 300;
const SEGMENT_FILES_MAX: usize = 10;
const START_US: i64 = 1_700_000_000_000_000;

fn open(dir: &Path) -> Store {
    Store::open(dir, Options::create(Setup::default())).expect("opens")
}

fn commit(store: &Store, day: i64) {
    let scope = Scope::parse("user/ana").expect("a scope");
    let text = format!("note of day {day}");
    let mut batch = Batch::new();
    batch.upsert(Record::new(
        scope,
        format!("day-{day}"),
        START_US + day * DAY_US,
        text,
    ));
    store.write(batch).expect("written");
}

fn segment_files(dir: &Path) -> usize {
    let entries = RealVfs::new().list(&dir.join("segments")).expect("listed");
    entries
        .iter()
        .filter(|entry| entry.name.ends_with(".seg"))
        .count()
}

fn check(dir: &Path, store: &Store, how: &str) {
    assert!(store.wait_idle(Duration::from_secs(60)), "never idle");
    let files = segment_files(dir);
    println!("{COMMITS} commits over {COMMITS} days, {how}: {files} segment files");
    assert!(files <= SEGMENT_FILES_MAX, "{files} segment files");
    let request = Request::within(ScopeSelector::parse("user").expect("a scope")).k(1000);
    let hits = store.retrieve(&request).expect("answers").hits;
    let ids: Vec<_> = hits.iter().map(|hit| hit.id.clone()).collect();
    let expected: Vec<_> = (0..COMMITS).rev().map(|day| format!("day-{day}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn three_hundred_commits_in_one_session_leave_few_segments() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = open(&dir);
    for day in 0..COMMITS {
        commit(&store, day);
        store.flush().expect("flushed");
    }
    check(&dir, &store, "a flush after each");
}

#[test]
fn three_hundred_commits_in_as_many_sessions_leave_few_segments() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    for day in 0..COMMITS {
        let store = open(&dir);
        commit(&store, day);
        store.close().expect("closed");
    }
    check(&dir, &open(&dir), "a close after each");
}
