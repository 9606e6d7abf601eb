//! A second opener: a thread, a process, a directory that was replaced or went.

#![expect(
    clippy::disallowed_methods,
    reason = "the suite moves and deletes real directories"
)]

use std::sync::Barrier;

use chronolith::{Error, ErrorKind, Options, ReadOnlyStore, Store};
use chronolith_tests::kills::{Child, Lane, Script, child_options, found};

const LANE: Lane = Lane { seed: 12, index: 0 };

#[test]
fn of_many_threads_one_opens() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    drop(Store::open(&dir, child_options()).expect("created"));
    let barrier = Barrier::new(8);
    let opened: Vec<_> = std::thread::scope(|threads| {
        let open = || {
            barrier.wait();
            let opened = Store::open(&dir, child_options());
            // Nobody closes before everybody tried.
            barrier.wait();
            opened.map(drop)
        };
        let openers: Vec<_> = (0..8).map(|_| threads.spawn(open)).collect();
        let ends = openers
            .into_iter()
            .map(|opener| opener.join().expect("no panic"));
        ends.collect()
    });
    let refused = opened.iter().filter_map(|opened| opened.as_ref().err());
    let is_locked = |error: &Error| matches!(error, Error::Locked { .. });
    assert_eq!(refused.filter(|error| is_locked(error)).count(), 7);
}

#[test]
fn another_process_is_refused_and_harms_nothing() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = Store::open(&dir, child_options()).expect("created");
    store.write(LANE.batch(0)).expect("written");
    let program = env!("CARGO_BIN_EXE_kill_child");
    let mut child = Child::start(program, &dir, LANE.seed, Script::Write);
    let line = child.line().expect("a line");
    assert!(line.starts_with("error Retry"), "{line}");
    let (_, status) = child.end();
    assert_eq!(status.code(), Some(1));
    store.write(LANE.batch(1)).expect("written");
    store.close().expect("closed");
    let child = Child::start(program, &dir, LANE.seed, Script::Write);
    assert!(!child.close().is_empty(), "the lock was not given back");
}

/// The lock file is no longer the one that the path names: a handle must not write into what
/// was put there.
#[test]
fn a_handle_whose_directory_was_replaced_writes_no_more() {
    let root = tempfile::tempdir().expect("a directory");
    let (dir, aside) = (root.path().join("store"), root.path().join("aside"));
    let store = Store::open(&dir, child_options()).expect("created");
    store.write(LANE.batch(0)).expect("written");
    std::fs::rename(&dir, &aside).expect("moved");
    let other = Store::open(&dir, child_options()).expect("another store in its place");
    let refused = store
        .write(LANE.batch(1))
        .expect_err("not its directory any more");
    assert_eq!(refused.kind(), ErrorKind::Reopen, "{refused}");
    let files = || {
        let listed = ["wal", "segments", "manifest"].map(|part| std::fs::read_dir(dir.join(part)));
        let names = listed
            .into_iter()
            .flat_map(|entries| entries.expect("listed"));
        let mut names: Vec<_> = names.flatten().map(|entry| entry.path()).collect();
        names.sort();
        names
    };
    let before = files();
    for refused in [store.flush(), store.compact(true, &mut |_| {}).map(drop)] {
        let refused = refused.expect_err("not its directory any more");
        assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    }
    let refused = store.close().expect_err("not its directory any more");
    assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    assert_eq!(files(), before, "the other store was touched");
    assert!(found(&other.snapshot()).expect("readable").is_empty());
    other.write(LANE.batch(0)).expect("unharmed");
    other.close().expect("closed");
    let moved = Store::open(&aside, child_options()).expect("opens where it is now");
    let records = found(&moved.snapshot()).expect("readable");
    assert_eq!(records, LANE.expected(Some(0)));
}

#[test]
fn a_store_that_is_deleted_while_open_is_a_named_error() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = Store::open(&dir, child_options()).expect("created");
    store.write(LANE.batch(0)).expect("written");
    store.flush().expect("flushed");
    let reader = ReadOnlyStore::open(&dir, Options::default()).expect("opens");
    // The catalog's worker may still be making files of its own there.
    let deleted = (0..100).any(|_| std::fs::remove_dir_all(&dir).is_ok());
    assert!(deleted && !dir.exists(), "not deleted");
    let refused = store.write(LANE.batch(1)).expect_err("there is no store");
    assert_eq!(refused.kind(), ErrorKind::Reopen, "{refused}");
    store.close().expect_err("there is no store");
    // A reader keeps what it holds.
    reader.refresh().expect_err("there is no store");
    let records = found(&reader.snapshot()).expect("readable");
    assert_eq!(records, LANE.expected(Some(0)));
}
