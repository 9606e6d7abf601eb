//! A sound store gives no finding, whatever its shape and whatever a writer does to it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronolith::{Durability, ErrorKind, Options, Store, verify};
use chronolith_vfs::{Clock, RealClock};

use crate::*;

#[test]
fn sound_stores_of_every_shape_give_no_finding() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    let store = create(&path);
    assert_healthy(&path);
    drop(store);
    assert_healthy(&path);
    fs::remove_dir_all(&path).expect("removed");
    full_store(&path);
    let report = assert_healthy(&path);
    assert!(
        report.rows >= 120 && report.replayed == 2 && report.log_frames >= 2,
        "{report:?}"
    );
    assert!(report.blocks > 20);
    let holds: Vec<&str> = report.files.iter().map(|file| file.holds).collect();
    for kind in [
        "pointer",
        "manifest",
        "segment",
        "delete set",
        "tag graph",
        "log",
        "status",
    ] {
        assert!(holds.contains(&kind), "{kind}: {holds:?}");
    }
    // Open, compacted, closed: each from another handle.
    let store = Store::open(&path, options()).expect("opens");
    let own = store.verify(&mut |_| {}).expect("scrubs itself");
    assert_eq!(own.findings, []);
    store.compact(true, &mut |_| {}).expect("compacts");
    assert_healthy(&path);
    store.close().expect("closes");
    assert_healthy(&path);
}

#[test]
fn what_is_no_store_is_an_error_and_not_a_finding() {
    let room = tempfile::tempdir().expect("a directory");
    for path in [room.path().join("none"), room.path().to_path_buf()] {
        let error = verify(&path, &options(), &mut |_| {}).expect_err("no store");
        assert_eq!(error.kind(), ErrorKind::FixCall, "{error}");
    }
    let path = room.path().join("store");
    full_store(&path);
    fs::remove_file(path.join("CURRENT")).expect("removed");
    damaged(&path, "CURRENT", "missing");
}

/// A writer that flushes and compacts all the time, and scrubs beside it.
#[test]
fn a_running_writer_is_no_damage() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    let store = Store::open(
        &path,
        Options {
            create: Some(setup()),
            memtable_bytes_max: 128 << 10,
            log_file_bytes_max: 256 << 10,
            log_preallocate_bytes: 64 << 10,
            durability: Durability::Buffered,
            ..Options::default()
        },
    )
    .expect("creates");
    let is_done = Arc::new(AtomicBool::new(false));
    let clock = RealClock::default();
    let start_ns = clock.monotonic_ns();
    let seconds = || Duration::from_nanos(clock.monotonic_ns() - start_ns).as_secs_f64();
    let (mut scrubs, mut generations) = (0, std::collections::BTreeSet::new());
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut number = 0;
            while !is_done.load(Ordering::Relaxed) {
                let from = number % 3000;
                write(&store, from..from + 40, T0 + i64::from(number) * 60_000_000);
                if number % 400 == 0 {
                    store
                        .forget(scope("user/ana"), format!("r{from}"))
                        .expect("forgets");
                    store.sync().expect("syncs");
                }
                number += 40;
            }
        });
        while seconds() < 4.0 || scrubs < 3 {
            let report = match scrubs % 2 {
                0 => store.verify(&mut |_| {}),
                _ => verify(&path, &options(), &mut |_| {}),
            };
            let report = report
                .inspect_err(|_| is_done.store(true, Ordering::Relaxed))
                .expect("scrubs");
            if !report.findings.is_empty() {
                is_done.store(true, Ordering::Relaxed);
            }
            assert_eq!(report.findings, [], "scrub {scrubs}");
            generations.insert(report.generation);
            scrubs += 1;
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(
        generations.len() > 1,
        "the writer published: {generations:?}"
    );
    drop(store);
    assert_healthy(&path);
}
