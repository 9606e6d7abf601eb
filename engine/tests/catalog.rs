//! Goal: whatever happens to the catalog's directory, no answer changes and nothing fails.
//! Mechanism: a small store is closed cleanly, its catalog is deleted, cut or flipped byte by
//! byte (strided), and the store is opened, asked, written and closed again.

#![expect(
    clippy::disallowed_methods,
    reason = "the test damages files behind the engine's back"
)]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use chronolith::{
    Batch, FindingKind, Options, Record, Request, Scope, ScopeSelector, Setup, Store, verify,
};
use chronolith_vfs::{Clock, RealClock};
use xxhash_rust::xxh3::xxh3_128;

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

/// Writes a segment of these records of a day.
fn write_segment(store: &Store, day: i64, numbers: Range<i64>) {
    let mut batch = Batch::new();
    for i in numbers {
        let at = 1_700_000_000_000_000 + day * 86_400_000_000 + i;
        batch.upsert(Record::new(
            scope(),
            format!("r{day}-{i}"),
            at,
            text(day, i),
        ));
    }
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
}

fn text(day: i64, i: i64) -> String {
    format!("note {i} of day {day}")
}

/// A catalog that takes in segments from so many on.
fn options(segments_min: usize) -> Options {
    Options {
        catalog_segments_min: segments_min,
        ..Options::default()
    }
}

fn creating() -> Options {
    Options {
        create: Some(Setup::default()),
        ..options(0)
    }
}

fn store_with_catalog(path: &Path) {
    let store = Store::open(path, creating()).expect("creates");
    for day in 0..3 {
        write_segment(&store, day, 0..40);
    }
    store.forget(scope(), "r0-7").expect("forgets");
    wait_for_catalog(&store);
    store.close().expect("closes");
    assert!(path.join("catalog/SEAL").is_file(), "a clean close seals");
}

/// Waits until the catalog has written something, or given up.
fn wait_for_catalog(store: &Store) -> String {
    let clock = RealClock::default();
    loop {
        let state = store
            .stats()
            .expect("counts")
            .catalog
            .expect("there is a catalog");
        if state != "opening" && state != "catching up" {
            return state;
        }
        clock.sleep(std::time::Duration::from_millis(1));
    }
}

/// Waits until the catalog has written so many locators at least; returns how many.
fn wait_for_locators(store: &Store, at_least: u64) -> u64 {
    let clock = RealClock::default();
    loop {
        let state = wait_for_catalog(store);
        assert!(!state.contains("degraded"), "{state}");
        // Before it follows across the threshold it says that it is not needed.
        if let Some(written) = state.strip_suffix(" locators written") {
            let written = written.parse().expect("a number");
            if written >= at_least {
                return written;
            }
        }
        clock.sleep(std::time::Duration::from_millis(1));
    }
}

fn answers(store: &Store) -> String {
    let request = Request::within(ScopeSelector::Subtree(scope()))
        .text("note 7 day")
        .k(20)
        .now_us(0);
    let hits = store.retrieve(&request).expect("answers").hits;
    let got = ["r0-6", "r0-7", "r2-39", "none"].map(|id| {
        store
            .get(&scope(), id)
            .expect("looks")
            .map(|r| r.commit_seq)
    });
    format!("{}{got:?}", serde_json::to_string(&hits).expect("prints"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("lists").path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("creates");
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("lists").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copies");
        }
    }
}

fn open_ask_and_close(path: &Path) -> String {
    let store = Store::open(path, options(0)).expect("opens");
    let first = answers(&store);
    let state = wait_for_catalog(&store);
    assert!(!state.contains("degraded"), "{state}");
    assert_eq!(answers(&store), first, "the same with the catalog at work");
    store.close().expect("closes");
    first
}

#[test]
fn a_sound_catalog_is_taken_up_again_and_a_missing_one_rebuilt() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    store_with_catalog(&path);
    let sound = open_ask_and_close(&path);
    assert!(!path.join("catalog/db.damaged").exists(), "the seal fitted");
    fs::remove_dir_all(path.join("catalog")).expect("removes");
    assert_eq!(open_ask_and_close(&path), sound);
    assert!(path.join("catalog/SEAL").is_file());
}

#[test]
fn damage_to_any_of_its_files_changes_no_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let original = dir.path().join("s");
    store_with_catalog(&original);
    let store = Store::open(&original, options(0)).expect("opens");
    let sound = answers(&store);
    drop(store);
    // The drop left no seal: make one.
    let store = Store::open(&original, options(0)).expect("opens");
    wait_for_catalog(&store);
    store.close().expect("closes");

    let mut trials = 0;
    let mut aside = 0;
    for (number, file) in files(&original.join("catalog")).iter().enumerate() {
        let name = file.strip_prefix(&original).expect("inside");
        let bytes = fs::read(file).expect("reads");
        // Each file in two of the four ways, so that each way meets every other file.
        for kind in [number % 2, 2 + number % 2] {
            let at = (bytes.len() / 3 + kind * 7) % bytes.len().max(1);
            let damaged = dir.path().join(format!("d{number}-{kind}"));
            copy(&original, &damaged);
            let mut bytes = bytes.clone();
            match kind {
                0 if bytes.is_empty() => bytes.push(1),
                0 => bytes[at] ^= 1,
                1 => bytes.truncate(at),
                2 => bytes.extend([0; 512]),
                _ => bytes.clear(),
            }
            fs::write(damaged.join(name), bytes).expect("damages");
            assert_eq!(
                open_ask_and_close(&damaged),
                sound,
                "{} damaged in way {kind}",
                name.display()
            );
            aside += usize::from(damaged.join("catalog/db.damaged").exists());
            fs::remove_dir_all(&damaged).expect("removes");
            trials += 1;
        }
    }
    println!("{trials} catalogs damaged, {aside} set aside");
    assert!(aside > 0, "the seal notices damage");
}

#[test]
fn compacted_rows_are_followed_and_found_after_a_reopen() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let store = Store::open(&path, creating()).expect("creates");
    write_segment(&store, 0, 0..40);
    write_segment(&store, 0, 40..80);
    wait_for_locators(&store, 80);
    store.compact(true, &mut |_| {}).expect("compacts");
    write_segment(&store, 1, 0..40);
    let written = wait_for_locators(&store, 120);
    assert_eq!(written, 120, "the output is followed and not taken in anew");
    store.close().expect("closes");

    let store = Store::open(&path, options(0)).expect("opens");
    wait_for_locators(&store, 120);
    for i in 0..80 {
        let id = format!("r0-{i}");
        let found = store.get(&scope(), &id).expect("looks");
        assert_eq!(found.map(|found| found.record.text), Some(text(0, i)));
    }
    store.close().expect("closes");
    assert!(!path.join("catalog/db.damaged").exists(), "the seal fitted");
}

/// Every record of these days, and what was forgotten is gone.
fn check_all(store: &Store, days: Range<i64>, forgotten: &str) {
    for day in days {
        for i in 0..40 {
            let id = format!("r{day}-{i}");
            let found = store.get(&scope(), &id).expect("looks");
            let expected = (id != forgotten).then(|| text(day, i));
            assert_eq!(found.map(|found| found.record.text), expected, "{id}");
        }
    }
}

#[test]
fn segments_are_taken_in_once_there_are_enough() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    let mut creating = creating();
    creating.catalog_segments_min = 2;
    let store = Store::open(&path, creating).expect("creates");
    write_segment(&store, 0, 0..40);
    assert_eq!(wait_for_catalog(&store), "not needed below 2 segments");
    check_all(&store, 0..1, "none");
    store.close().expect("closes");
    assert!(!path.join("catalog/db").exists(), "nothing was written");

    // Across the threshold, with a record that is gone before.
    let store = Store::open(&path, options(2)).expect("opens");
    assert_eq!(wait_for_catalog(&store), "not needed below 2 segments");
    store.forget(scope(), "r0-7").expect("forgets");
    write_segment(&store, 1, 0..40);
    assert_eq!(wait_for_locators(&store, 79), 79, "of what was there too");
    check_all(&store, 0..2, "r0-7");

    // Below it again: what is there stays and is followed, what comes is taken in once it counts.
    store.compact(true, &mut |_| {}).expect("compacts");
    write_segment(&store, 2, 0..40);
    store.compact(true, &mut |_| {}).expect("compacts");
    store.wait_idle(std::time::Duration::from_secs(5));
    check_all(&store, 0..3, "r0-7");
    store.close().expect("closes");
    assert!(path.join("catalog/SEAL").is_file(), "a clean close seals");

    // Without the seal, as after a crash, what was taken in is not taken up again.
    let store = Store::open(&path, options(128)).expect("opens");
    wait_for_locators(&store, 0);
    check_all(&store, 0..3, "r0-7");
    drop(store);
    let store = Store::open(&path, options(128)).expect("opens");
    assert_eq!(wait_for_locators(&store, 0), 0);
    check_all(&store, 0..3, "r0-7");
    drop(store);
    let store = Store::open(&path, options(1)).expect("opens");
    assert_eq!(wait_for_locators(&store, 119), 119);
    check_all(&store, 0..3, "r0-7");
    store.close().expect("closes");
}

#[test]
fn a_catalog_of_a_newer_release_is_rebuilt_and_not_called_damaged() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s");
    store_with_catalog(&path);
    let sound = open_ask_and_close(&path);
    let seal = path.join("catalog/SEAL");
    let ours = fs::read(&seal).expect("reads");
    let mut newer = ours.clone();
    newer[7] += 1;
    let digest_at = newer.len() - 16;
    let digest = xxh3_128(&newer[..digest_at]).to_le_bytes();
    newer[digest_at..].copy_from_slice(&digest);
    fs::remove_file(&seal).expect("removes");
    fs::write(&seal, newer).expect("writes");

    let report = verify(&path, &Options::default(), &mut |_| {}).expect("scrubs");
    let [found] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert_eq!(
        (found.kind, &*found.file),
        (FindingKind::Extra, "catalog/SEAL")
    );
    assert!(found.message.contains("a newer release"), "{found:?}");
    assert!(report.is_ok());

    assert_eq!(open_ask_and_close(&path), sound);
    assert!(!path.join("catalog/db.damaged").exists(), "it was sound");
    let rebuilt = fs::read(&seal).expect("sealed again");
    assert_eq!(rebuilt[..8], ours[..8], "in this release's version");
}
