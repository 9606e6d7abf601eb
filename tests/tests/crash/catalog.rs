//! The catalog is cut short: while it catches up, while it is rebuilt, and in the middle of
//! its files. It runs on the real file system alone, so its crashes are copies of a live
//! store's directory and directories of which a part is missing.

#![expect(
    clippy::disallowed_methods,
    reason = "the test copies and removes real files behind the engine's back"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronolith::{Batch, Options, Record, Request, Scope, ScopeSelector, Setup, Store};

const ROWS: u32 = 30;

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

/// A catalog that takes in every segment.
fn options(create: Option<Setup>) -> Options {
    Options {
        create,
        catalog_segments_min: 0,
        ..Options::default()
    }
}

fn put(store: &Store, from: u32) {
    let mut batch = Batch::new();
    for n in from..from + ROWS {
        let time_us = 1_700_000_000_000_000 + i64::from(n);
        batch.upsert(Record::new(
            scope(),
            format!("r{n}"),
            time_us,
            format!("note {n}"),
        ));
    }
    store.write(batch).expect("written");
}

fn answers(store: &Store, rows: u32) -> String {
    let request = Request::within(ScopeSelector::Root)
        .text("note 7")
        .k(10)
        .now_us(0);
    let hits = store.retrieve(&request).expect("answers").hits;
    let seqs: Vec<_> = (0..rows + 1)
        .map(|n| store.get(&scope(), &format!("r{n}")).expect("looks"))
        .map(|found| found.map(|stored| stored.commit_seq))
        .collect();
    format!("{hits:?} {seqs:?}")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("created");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("listed").path();
        let target = to.join(path.file_name().expect("a name"));
        // Files of a live store may go while they are copied: a crash would lose them too.
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target)),
        }
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("listed") {
        let path = entry.expect("listed").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Opens, asks before and after the catalog has caught up, and ends as `closes` says.
fn check(path: &Path, expected: &str, rows: u32, closes: bool) {
    let store = Store::open(path, options(None)).expect("opens");
    assert_eq!(answers(&store, rows), expected, "at once");
    store.wait_idle(Duration::from_secs(5));
    assert_eq!(answers(&store, rows), expected, "later");
    match closes {
        true => store.close().expect("closes"),
        false => drop(store),
    }
}

#[test]
fn a_catalog_that_was_cut_short_changes_no_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let live = dir.path().join("live");
    let store = Store::open(&live, options(Some(Setup::default()))).expect("created");
    let mut trials = 0;
    for round in 0..4 {
        put(&store, round * ROWS);
        store.flush().expect("flushed");
        let rows = (round + 1) * ROWS;
        let expected = answers(&store, rows);
        // While it takes in what was just published: as a kill leaves it. The store's own files
        // must be of one moment.
        while !store.wait_idle(Duration::from_secs(1)) {}
        let copied = dir.path().join(format!("catch-up-{round}"));
        copy(&live, &copied);
        // A rebuild that is cut short again and again, then one that ends.
        for closes in [false, false, true, true] {
            check(&copied, &expected, rows, closes);
            trials += 1;
        }
    }
    let expected = answers(&store, 4 * ROWS);
    store.close().expect("closed");
    let all = files(&live.join("catalog"));
    assert!(all.len() > 2, "{all:?}");
    for (number, file) in all.iter().enumerate() {
        for half in [false, true] {
            // Everything from this file on is not there, or it ends in its middle.
            let copied = dir.path().join(format!("part-{number}-{half}"));
            copy(&live, &copied);
            let inside = |file: &PathBuf| copied.join(file.strip_prefix(&live).expect("inside"));
            for later in &all[number + usize::from(half)..] {
                fs::remove_file(inside(later)).expect("removed");
            }
            if half {
                let bytes = fs::read(inside(file)).expect("read");
                fs::write(inside(file), &bytes[..bytes.len() / 2]).expect("written");
            }
            check(&copied, &expected, 4 * ROWS, number % 2 == 0);
            fs::remove_dir_all(&copied).expect("removed");
            trials += 1;
        }
    }
    println!("{trials} catalogs cut short");
    assert!(trials > 20, "{trials}");
}
