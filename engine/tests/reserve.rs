//! Does a full disk refuse puts by name, let records be forgotten and the store be closed, and
//! take writes again when there is space?

use std::path::Path;

use chronolith::{
    Batch, Error, ErrorKind, Maintenance, Options, Record, Scope, ScopeSelector, Setup, Store,
};
use chronolith_vfs::{CrashImage, Env, Errno, FaultRule, FaultVfs, OpKind, SimVfs, Vfs};

const DIR: &str = "/store";
const RESERVE: &str = "/store/RESERVE";
const TIME_US: i64 = 1_700_000_000_000_000;

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        memtable_bytes_max: 64 << 10,
        log_preallocate_bytes: 0,
        log_file_bytes_max: 16 << 10,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn open(env: &Env) -> Store {
    Store::open(DIR, options(env)).expect("opens")
}

fn scope() -> Scope {
    Scope::parse("a").expect("a scope")
}

fn put(store: &Store, id: &str, text: &str) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.upsert(Record::new(scope(), id, TIME_US, text));
    store.write(batch).map(drop)
}

fn ids(store: &Store) -> Vec<String> {
    let mut ids = Vec::new();
    let all = [ScopeSelector::Exact(scope())];
    let snapshot = store.snapshot();
    let read = snapshot.for_each_record(&all, &mut |stored| {
        ids.push(stored.record.id);
        Ok(())
    });
    read.expect("readable");
    ids.sort();
    ids
}

fn used(disk: &SimVfs) -> usize {
    let bytes = |path: &std::path::PathBuf| disk.content(path).map_or(0, |bytes| bytes.len());
    disk.files().iter().map(bytes).sum()
}

/// A store of ten records on a disk without a byte to spare.
fn full() -> (Env, SimVfs, Store) {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(TIME_US);
    let store = open(&env);
    for at in 0..10 {
        put(&store, &format!("{at}"), "a text").expect("written");
    }
    disk.set_space(Some(used(&disk)));
    (env, disk, store)
}

fn is_held(disk: &SimVfs) -> bool {
    disk.stat(Path::new(RESERVE))
        .is_ok_and(|stat| stat.len == 32 << 10)
}

#[test]
fn a_full_disk_has_a_name_and_changes_nothing() {
    let (_env, disk, store) = full();
    for _ in 0..3 {
        let full = put(&store, "new", "a text").expect_err("no room");
        assert!(matches!(full, Error::DiskFull { .. }), "{full}");
        assert_eq!(full.kind(), ErrorKind::Retry);
        let full = store.flush().expect_err("no room");
        assert!(matches!(full, Error::DiskFull { .. }), "{full}");
    }
    assert_eq!(ids(&store).len(), 10);
    assert!(is_held(&disk), "a put used the reserve");
}

#[test]
fn forgetting_uses_the_reserve_and_puts_do_not() {
    let (env, disk, store) = full();
    for at in 0..9 {
        assert!(store.forget(scope(), format!("{at}")).expect("forgotten"));
        let full = put(&store, "new", "a text").expect_err("the space is not a put's");
        assert!(matches!(full, Error::DiskFull { .. }), "{full}");
    }
    assert!(!is_held(&disk));
    assert_eq!(ids(&store), ["9"]);
    // Forgotten durably.
    let after = disk.crash(CrashImage::LoseUnsynced);
    drop(store);
    let store = open(&env.clone().with_vfs(after));
    assert_eq!(ids(&store), ["9"]);
}

#[test]
fn writes_resume_and_the_reserve_comes_back_with_the_space() {
    let (_env, disk, store) = full();
    store.forget(scope(), "0").expect("forgotten");
    assert!(!is_held(&disk));
    put(&store, "new", "a text").expect_err("no room");
    // Space for the write, not for the reserve.
    disk.set_space(Some(used(&disk) + (8 << 10)));
    put(&store, "new", "a text").expect_err("the reserve comes first");
    assert!(
        !disk.files().iter().any(|path| path.ends_with("RESERVE")),
        "a part of it is left"
    );
    disk.set_space(None);
    put(&store, "new", "a text").expect("there is room again");
    assert!(is_held(&disk));
    store.flush().expect("flushed");
    assert_eq!(ids(&store).len(), 10);
}

#[test]
fn process_after_process_forgets_on_a_full_disk() {
    for closes in [false, true] {
        let (env, disk, store) = full();
        drop(store);
        disk.set_space(Some(used(&disk)));
        for at in 0..9 {
            let options = Options {
                log_preallocate_bytes: 64 << 10,
                ..options(&env)
            };
            let store = Store::open(DIR, options);
            let store = store.unwrap_or_else(|why| panic!("open {at}, {closes}: {why}"));
            assert!(store.forget(scope(), format!("{at}")).expect("forgotten"));
            put(&store, "new", &"a text ".repeat(9000)).expect_err("no room");
            match closes {
                true => store.close().expect("closed"),
                false => drop(store),
            }
        }
        disk.set_space(None);
        assert_eq!(ids(&open(&env)), ["9"], "closed: {closes}");
    }
}

#[test]
fn a_close_on_a_full_disk_succeeds_and_loses_nothing() {
    for text_bytes in [10, 40 << 10] {
        let (env, disk, clock) = Env::sim(8);
        clock.set_us(TIME_US);
        let store = open(&env);
        // Words that do not compress: the large one is no longer flushed within the reserve.
        let text: String = (0..text_bytes / 10)
            .map(|n: u64| format!("{:x} ", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            .collect();
        put(&store, "old", &text).expect("written");
        disk.set_space(Some(used(&disk)));
        store.close().expect("closed");
        let reopened = Store::open(DIR, options(&env));
        let store = reopened.expect("opens on the full disk");
        assert_eq!(ids(&store), ["old"]);
        assert!(!store.recovery_report().ambiguous);
        disk.set_space(None);
        put(&store, "new", "a text").expect("there is room again");
        store.close().expect("closed");
        assert_eq!(ids(&open(&env)), ["new", "old"]);
    }
}

#[test]
fn a_full_disk_is_opened_in_the_reserves_space() {
    let (env, disk, store) = full();
    drop(store);
    let disk = disk.crash(CrashImage::ProcessKill);
    disk.set_space(Some(used(&disk)));
    let env = env.with_vfs(disk.clone());
    let store = open(&env);
    assert_eq!(ids(&store).len(), 10);
    assert!(store.forget(scope(), "0").expect("forgotten"));
    put(&store, "new", "a text").expect_err("no room");
    store.close().expect("closed");
    assert_eq!(ids(&open(&env)).len(), 9);
}

#[test]
fn memtables_that_wait_for_space_do_not_hold_up_forgetting() {
    let (env, disk, clock) = Env::sim(9);
    clock.set_us(TIME_US);
    let store = open(&env);
    put(&store, "old", "a text").expect("written");
    // Room for the log of a few memtables, not for their segments.
    disk.set_space(Some(used(&disk) + (500 << 10)));
    let mut refused = None;
    for at in 0..400 {
        let text: String = (0..200u64)
            .map(|n| format!("{:x} ", (n + at * 200).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            .collect();
        match put(&store, &format!("{at}"), &text) {
            Ok(()) => {}
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let refused = refused.expect("the disk never filled");
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    let before = ids(&store);
    assert!(store.forget(scope(), "old").expect("forgotten"));
    assert_eq!(ids(&store).len(), before.len() - 1);
    store.close().expect("closed");
}

#[test]
fn a_reserve_that_a_crash_cut_short_is_made_again() {
    let (env, disk, store) = full();
    disk.set_space(None);
    drop(store);
    disk.damage(Path::new(RESERVE), |bytes| bytes.truncate(100))
        .expect("cut");
    assert!(!is_held(&disk));
    drop(open(&env));
    assert!(is_held(&disk));
}

/// A disk with space and without a file to give.
fn without_files(env: &Env, disk: &SimVfs) -> (Env, FaultVfs) {
    let faults = FaultVfs::over_sim(disk);
    faults.add(
        FaultRule::error(Errno::NoSpace)
            .on(OpKind::Create)
            .forever(),
    );
    (env.clone().with_vfs(faults.clone()), faults)
}

fn files(disk: &SimVfs) -> Vec<String> {
    let mut files: Vec<String> = disk
        .files()
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    files.retain(|file| !file.ends_with("RESERVE"));
    files
}

#[test]
fn process_after_process_forgets_on_a_disk_without_a_file_to_give() {
    for closes in [false, true] {
        let (env, disk, store) = full();
        disk.set_space(None);
        drop(store);
        let before = files(&disk);
        let (poor, faults) = without_files(&env, &disk);
        for at in 0..9 {
            let store = Store::open(DIR, options(&poor));
            let store = store.unwrap_or_else(|why| panic!("open {at}, {closes}: {why}"));
            assert_eq!(ids(&store).len(), 10 - at);
            assert!(store.forget(scope(), format!("{at}")).expect("forgotten"));
            match closes {
                true => store.close().expect("closed"),
                false => drop(store),
            }
            assert_eq!(files(&disk), before, "no file more, and none less");
        }
        // Durably, and by a power cut as well.
        let after = disk.crash(CrashImage::LoseUnsynced);
        assert_eq!(ids(&open(&env.clone().with_vfs(after))), ["9"]);
        faults.clear();
        let store = open(&poor);
        put(&store, "new", "a text").expect("there are files again");
        store.close().expect("closed");
        assert_eq!(ids(&open(&env)), ["9", "new"], "closed: {closes}");
        assert!(is_held(&disk), "the reserve is back");
    }
}

#[test]
fn an_open_handle_forgets_and_closes_on_a_disk_without_a_file_to_give() {
    let (env, disk, store) = full();
    disk.set_space(None);
    drop(store);
    let faults = FaultVfs::over_sim(&disk);
    let poor = env.clone().with_vfs(faults.clone());
    let store = open(&poor);
    faults.add(
        FaultRule::error(Errno::NoSpace)
            .on(OpKind::Create)
            .forever(),
    );
    // More than a log file's worth: it cannot have a successor and grows on.
    for at in 0..10 {
        assert!(store.forget(scope(), format!("{at}")).expect("forgotten"));
    }
    for _ in 0..200 {
        let mut batch = Batch::new();
        batch.forget(scope(), "x".repeat(100));
        store.write(batch).expect("forgetting takes no file");
    }
    let full = store.flush().expect_err("a segment is a file");
    assert!(matches!(full, Error::DiskFull { .. }), "{full}");
    store.close().expect("closed");
    assert!(ids(&open(&poor)).is_empty());
}

/// What a replay brings back may be more than one memtable: the open does not wait for a flush
/// that cannot be had.
#[test]
fn a_log_of_many_memtables_is_opened_on_a_disk_without_a_file_to_give() {
    let (env, disk, clock) = Env::sim(11);
    clock.set_us(TIME_US);
    let large = Options {
        memtable_bytes_max: 64 << 20,
        ..options(&env)
    };
    let store = Store::open(DIR, large).expect("opens");
    for at in 0..40 {
        put(&store, &format!("{at:02}"), &"a longer text ".repeat(400)).expect("written");
    }
    drop(store);
    let (poor, _) = without_files(&env, &disk);
    let store = open(&poor);
    assert!(store.forget(scope(), "00").expect("forgotten"));
    assert_eq!(ids(&store).len(), 39);
}
