//! Crashes, torn tails, failed reads and failed syncs.

use std::path::PathBuf;

use chronolith::{Batch, Durability, Error, ErrorKind, Store};
use chronolith_vfs::{CrashImage, Env, Errno, FaultRule, FaultVfs, OpKind, SimVfs};

use super::house::{DIR, count, open, options, put, record, sim};

fn logs(disk: &SimVfs) -> Vec<PathBuf> {
    let in_wal = |path: &PathBuf| {
        path.parent().is_some_and(|dir| dir.ends_with("wal")) && !path.ends_with("STATUS")
    };
    disk.files().into_iter().filter(in_wal).collect()
}

fn killed(env: &Env, disk: &SimVfs, store: Store) -> (Env, SimVfs) {
    let after = disk.crash(CrashImage::ProcessKill);
    drop(store);
    (env.with_vfs(after.clone()), after)
}

/// Origin: facebook/rocksdb/issues/1351, refuses to open after a kill while appending.
#[test]
fn a_partial_frame_header_at_the_end_is_dropped_and_reported() {
    let (env, disk) = sim();
    let store = open(&env);
    put(&store, record("a", "kept", "first")).expect("written");
    let end = disk
        .content(&logs(&disk).pop().expect("a log"))
        .expect("there")
        .len();
    let mut batch = Batch::new();
    batch.upsert(record("a", "torn", "second"));
    store
        .write_with(batch, Durability::Buffered)
        .expect("written");
    for header_bytes in [1, 7, 8, 20] {
        let (env, disk) = killed(&env, &disk, store.clone());
        let log = logs(&disk).pop().expect("a log");
        disk.damage(&log, |bytes| bytes.truncate(end + header_bytes))
            .expect("there");
        let store = Store::open(DIR, options(&env)).expect("opens after a kill");
        // Zeros at the end are room that was written ahead, and not counted.
        let dropped = store.recovery_report().bytes_dropped;
        assert!(
            (1..=header_bytes as u64).contains(&dropped),
            "{dropped} of {header_bytes}"
        );
        assert_eq!(count(&store, "a"), 1);
        put(&store, record("a", "next", "third")).expect("written");
        let (env, _disk) = killed(&env, &disk, store);
        assert_eq!(count(&open(&env), "a"), 2);
    }
}

/// Origin: facebook/rocksdb/issues/6288, a read error treated as the end of the log.
#[test]
fn a_read_error_in_the_middle_of_replay_is_an_error() {
    let (env, disk) = sim();
    let store = open(&env);
    for at in 0..20 {
        put(&store, record("a", format!("{at}"), "text")).expect("written");
    }
    let (env, disk) = killed(&env, &disk, store);
    let mut failed = 0;
    for kind in [
        OpKind::Read,
        OpKind::Map,
        OpKind::OpenRead,
        OpKind::Len,
        OpKind::List,
    ] {
        for nth in 0..8 {
            let copy = disk.crash(CrashImage::ProcessKill);
            let faults = FaultVfs::over_sim(&copy);
            faults.add(FaultRule::error(Errno::Io).on(kind).at_path("wal").nth(nth));
            match Store::open(DIR, options(&env.with_vfs(faults.clone()))) {
                Ok(store) => assert_eq!(count(&store, "a"), 20, "{kind:?} {nth}"),
                Err(error) => {
                    failed += 1;
                    assert_eq!(error.kind(), ErrorKind::System, "{error}");
                }
            }
            // Without the fault all is there.
            assert_eq!(count(&open(&env.with_vfs(copy)), "a"), 20, "{kind:?} {nth}");
        }
    }
    assert!(failed > 0, "no fault hit the replay");
}

/// Origin: qdrant/qdrant/issues/2231, an unknown file in the log's directory stops the start.
#[test]
fn a_half_written_temporary_beside_the_logs_is_no_obstacle() {
    let (env, disk) = sim();
    let store = open(&env);
    put(&store, record("a", "1", "text")).expect("written");
    let (env, disk) = killed(&env, &disk, store);
    let log = logs(&disk).pop().expect("a log");
    let own = format!("{}.tmp", log.display());
    for name in [
        own.as_str(),
        "/store/wal/unknown.tmp",
        "/store/wal/.nfs01",
        "/store/x.tmp",
    ] {
        let file = env.vfs.create_new(name.as_ref()).expect("created");
        file.write_all_at(b"half", 0).expect("written");
    }
    let store = open(&env);
    assert_eq!(count(&store, "a"), 1);
    assert!(
        disk.content("/store/wal/unknown.tmp".as_ref()).is_ok(),
        "not ours, and removed"
    );
}

/// Origin: fjall-rs/fjall/issues/241, cleared data returns.
#[test]
fn forgotten_records_stay_forgotten_after_a_reopen() {
    for flush_between in [false, true] {
        let (env, disk) = sim();
        let store = open(&env);
        let (mut batch, mut forget) = (Batch::new(), Batch::new());
        for at in 0..1000 {
            batch.upsert(record("a", format!("{at}"), "text"));
            forget.forget(super::house::scope("a"), format!("{at}"));
        }
        store.write(batch).expect("written");
        if flush_between {
            store.flush().expect("flushed");
        }
        assert_eq!(store.write(forget).expect("written").removed, 1000);
        let (env, disk) = killed(&env, &disk, store);
        let store = open(&env);
        assert_eq!(count(&store, "a"), 0);
        store.compact(true, &mut |_| {}).expect("compacted");
        let (env, _disk) = killed(&env, &disk, store);
        assert_eq!(count(&open(&env), "a"), 0);
    }
}

/// Origin: alibaba/zvec/issues/594, compaction drops replayed records.
#[test]
fn replayed_records_survive_a_compaction() {
    let (env, disk) = sim();
    let store = open(&env);
    for at in 0..50 {
        put(&store, record("a", format!("{at}"), "text")).expect("written");
    }
    let (env, disk) = killed(&env, &disk, store);
    let store = open(&env);
    assert_eq!(store.recovery_report().batches_replayed, 50);
    store.compact(true, &mut |_| {}).expect("compacted");
    assert_eq!(count(&store, "a"), 50);
    let (env, _disk) = killed(&env, &disk, store);
    let store = open(&env);
    assert_eq!(store.recovery_report().batches_replayed, 0);
    assert_eq!(count(&store, "a"), 50);
}

/// Origin: cberner/redb CHANGELOG 4.2.0, a commit lost after two crashes.
#[test]
fn a_crash_in_a_commit_and_another_one_in_the_recovery_lose_nothing() {
    let (env, disk) = sim();
    let store = open(&env);
    put(&store, record("a", "0", "text")).expect("written");
    let (env, base) = killed(&env, &disk, store);
    let mut images = 0;
    for first in 0..40 {
        let disk = base.crash(CrashImage::ProcessKill);
        disk.set_crash_point(disk.ops() + first);
        let acked = (|| {
            let store = Store::open(DIR, options(&env.with_vfs(disk.clone()))).ok()?;
            put(&store, record("a", "1", "text")).ok()?;
            put(&store, record("a", "2", "text"))
                .ok()
                .map(|()| 2)
                .or(Some(1))
        })()
        .unwrap_or(0);
        for (at, second) in (0..24).step_by(3).enumerate() {
            let disk = disk.crash(CrashImage::all_seeded(first)[at % 8]);
            disk.set_crash_point(second);
            let _ = Store::open(DIR, options(&env.with_vfs(disk.clone())));
            let disk = disk.crash(CrashImage::all_seeded(second)[(at + 3) % 8]);
            let found = count(&open(&env.with_vfs(disk)), "a");
            assert!(
                found > acked,
                "{acked} + 1 acknowledged, {found} found ({first}, {second})"
            );
            images += 1;
        }
    }
    println!("{images} images after two crashes");
}

/// Origin: tenequm/pond/pull/118, unopenable after a power cut emptied the newest manifest.
#[test]
fn one_broken_manifest_copy_is_reported_and_both_are_an_error() {
    let (env, disk) = sim();
    let store = open(&env);
    put(&store, record("a", "1", "text")).expect("written");
    store.flush().expect("flushed");
    let (env, disk) = killed(&env, &disk, store);
    let manifests = |disk: &SimVfs, end: &str| {
        let mut all = disk.files().into_iter();
        all.rfind(|path| path.to_string_lossy().ends_with(end))
            .expect("a copy")
    };
    for len in [0, 1, 100] {
        let cut = |disk: &SimVfs, end: &str| {
            disk.damage(&manifests(disk, end), |bytes| bytes.truncate(len))
                .expect("there");
        };
        for end in [".a", ".b"] {
            let disk = disk.crash(CrashImage::ProcessKill);
            cut(&disk, end);
            let store = open(&env.with_vfs(disk));
            assert_eq!(count(&store, "a"), 1);
            let report = store.recovery_report();
            let damaged = report.damaged_manifest_copy.as_ref().expect("reported");
            assert!(damaged.contains(end), "{damaged}");
        }
        let disk = disk.crash(CrashImage::ProcessKill);
        cut(&disk, ".a");
        cut(&disk, ".b");
        let env = env.with_vfs(disk);
        let error = Store::open(DIR, options(&env)).expect_err("both copies are damaged");
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.to_string().contains("repair"), "{error}");
    }
}

/// Origin: tursodatabase/turso/issues/2091, cberner/redb/issues/299: the state after a sync
/// that failed once.
#[test]
fn a_failed_sync_refuses_all_later_writes_until_a_reopen() {
    let (env, disk) = sim();
    let faults = FaultVfs::over_sim(&disk);
    let faulty = env.with_vfs(faults.clone());
    let store = open(&faulty);
    put(&store, record("a", "1", "text")).expect("written");
    faults.add(FaultRule::error(Errno::Io).on(OpKind::Sync).at_path("wal"));
    let unknown = put(&store, record("a", "2", "text")).expect_err("the sync failed");
    assert!(matches!(unknown, Error::OutcomeUnknown { .. }), "{unknown}");
    assert_eq!(faults.hits(), 1);
    assert_eq!(count(&store, "a"), 1, "not acknowledged, and visible");
    for _ in 0..3 {
        let refused = put(&store, record("a", "3", "text")).expect_err("poisoned");
        assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
    }
    assert!(store.flush().is_err(), "flushed after a failed sync");
    let disk = disk.crash(CrashImage::LoseUnsynced);
    drop(store);
    let store = open(&env.with_vfs(disk));
    assert!(
        store
            .get(&super::house::scope("a"), "1")
            .expect("readable")
            .is_some()
    );
    assert!(
        store
            .get(&super::house::scope("a"), "3")
            .expect("readable")
            .is_none()
    );
    put(&store, record("a", "4", "text")).expect("written");
}
