//! Does an open of a store that was closed cleanly write nothing, and does the first write then
//! stand on everything that an open would have made durable?

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use chronolith::{
    Batch, Error, ErrorKind, Maintenance, Options, ReadOnlyStore, Record, Scope, Setup, Store,
};
use chronolith_vfs::{CrashImage, Env, Errno, FaultRule, FaultVfs, OpKind, SimVfs};

const DIR: &str = "/store";
const TIME_US: i64 = 1_700_000_000_000_000;

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
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

fn put(store: &Store, id: &str) -> Result<u64, Error> {
    let mut batch = Batch::new();
    batch.upsert(Record::new(scope(), id, TIME_US, "a text"));
    Ok(store.write(batch)?.first_seq)
}

fn has(store: &Store, id: &str) -> bool {
    store.get(&scope(), id).expect("looked up").is_some()
}

/// A store of one record, closed; the seq of that.
fn closed() -> (Env, SimVfs, u64) {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(TIME_US);
    let store = open(&env);
    let seq = put(&store, "first").expect("written");
    store.close().expect("closed");
    (env, disk, seq)
}

fn content(disk: &SimVfs) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = disk.files().into_iter();
    files
        .map(|path| {
            let bytes = disk.content(&path).expect("there");
            (path, bytes)
        })
        .collect()
}

#[test]
fn an_open_that_writes_nothing_leaves_every_byte_and_syncs_nothing() {
    let (env, disk, _) = closed();
    let before = content(&disk);
    let faults = FaultVfs::over_sim(&disk);
    let watched = env.with_vfs(faults.clone());
    for closes in [false, true, true] {
        let store = open(&watched);
        assert!(store.recovery_report().sealed);
        assert!(has(&store, "first"));
        match closes {
            true => store.close().expect("closed"),
            false => drop(store),
        }
        assert_eq!(content(&disk), before, "closed: {closes}");
    }
    for kind in [
        OpKind::Sync,
        OpKind::SyncDir,
        OpKind::Write,
        OpKind::Rename,
        OpKind::Remove,
    ] {
        assert_eq!(faults.count(kind), 0, "{kind:?}");
    }
}

#[test]
fn after_an_open_that_wrote_nothing_no_seq_is_given_twice() {
    let (env, disk, first) = closed();
    drop(open(&env));
    let store = open(&env);
    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("opens");
    let second = put(&store, "second").expect("written");
    assert!(reader.refresh().expect("refreshed"), "a reader follows");
    drop(store);
    drop(open(&env));
    let third = put(&open(&env), "third").expect("written");
    assert!(first < second && second < third);
    for image in CrashImage::all() {
        let after = env.with_vfs(disk.crash(image));
        let store = open(&after);
        for id in ["first", "second", "third"] {
            assert!(has(&store, id), "{id} after {image:?}");
        }
    }
}

#[test]
fn the_first_write_proves_the_manifest_before_it_appends() {
    let (env, disk, _) = closed();
    let faults = FaultVfs::over_sim(&disk);
    let store = open(&env.with_vfs(faults.clone()));
    let before = content(&disk);
    faults.add(FaultRule::error(Errno::Io).on(OpKind::SyncDir));
    let error = put(&store, "second").expect_err("a directory does not sync");
    assert_eq!(error.kind(), ErrorKind::Reopen, "{error}");
    let error = put(&store, "second").expect_err("a failed sync is final");
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    drop(store);
    assert_eq!(content(&disk), before);
    put(&open(&env), "second").expect("written after a reopen");
}

#[test]
fn a_full_disk_is_told_by_the_first_write_and_forgets_all_the_same() {
    let (env, disk, _) = closed();
    let used: usize = content(&disk).values().map(Vec::len).sum();
    disk.set_space(Some(used));
    let store = open(&env);
    assert!(has(&store, "first"));
    let error = put(&store, "second").expect_err("there is no space");
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert!(store.forget(scope(), "first").expect("in the reserve"));
    store.close().expect("closed");
    disk.set_space(None);
    let store = open(&env);
    assert!(!has(&store, "first"));
    put(&store, "second").expect("there is space");
}

#[test]
fn what_lies_about_is_swept_by_the_open_once_the_manifest_is_proven() {
    let (env, disk, _) = closed();
    let faults = FaultVfs::over_sim(&disk);
    let orphan = "/store/segments/00000000000000ff.seg";
    let file = env.vfs.create_new(orphan.as_ref()).expect("created");
    file.write_all_at(b"left behind", 0).expect("written");
    let store = open(&env.with_vfs(faults.clone()));
    assert_eq!(
        store.recovery_report().swept,
        ["segments/00000000000000ff.seg"]
    );
    assert_eq!(faults.count(OpKind::SyncDir), 3);
    let all: Arc<[PathBuf]> = disk.files().into();
    assert!(!all.contains(&PathBuf::from(orphan)));
}
