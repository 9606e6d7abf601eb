//! Does the log let go of what is in segments, and of what was forgotten?

use chronolith::{Batch, Maintenance, Options, Record, Scope, Setup, Store};
use chronolith_vfs::{Env, SimVfs};

const DIR: &str = "/store";
const TIME_US: i64 = 1_700_000_000_000_000;
/// Occurs in one record only.
const SECRET: &str = "zyzzyva-4711";

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 4 << 10,
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

fn put(store: &Store, id: &str, text: &str) {
    let mut batch = Batch::new();
    batch.upsert(Record::new(scope(), id, TIME_US, text));
    store.write(batch).expect("written");
}

fn logs(disk: &SimVfs) -> Vec<Vec<u8>> {
    let names = disk.files().into_iter();
    let logs = names.filter(|path| path.extension().is_some_and(|ext| ext == "log"));
    logs.map(|path| disk.content(&path).expect("there"))
        .collect()
}

fn logs_hold(disk: &SimVfs, text: &str) -> bool {
    let holds = |log: &Vec<u8>| log.windows(text.len()).any(|at| at == text.as_bytes());
    logs(disk).iter().any(holds)
}

#[test]
fn after_a_flush_no_log_file_holds_what_was_forgotten() {
    for (flushed_before, reopened) in [(false, false), (true, false), (true, true), (false, true)] {
        let (env, disk, clock) = Env::sim(3);
        clock.set_us(TIME_US);
        let mut store = open(&env);
        put(&store, "kept", "a text");
        put(&store, "gone", SECRET);
        if flushed_before {
            store.flush().expect("flushed");
        }
        assert!(store.forget(scope(), "gone").expect("forgotten"));
        if reopened {
            drop(store);
            store = open(&env);
        }
        assert!(
            logs_hold(&disk, SECRET),
            "this test looks in the wrong place"
        );
        store.flush().expect("flushed");
        assert!(
            !logs_hold(&disk, SECRET),
            "flushed before: {flushed_before}, reopened: {reopened}"
        );
        put(&store, "later", "a text");
        drop(store);
        let store = open(&env);
        assert!(store.get(&scope(), "gone").expect("looked up").is_none());
        for id in ["kept", "later"] {
            assert!(
                store.get(&scope(), id).expect("looked up").is_some(),
                "{id}"
            );
        }
    }
}

#[test]
fn a_close_lets_go_of_what_was_forgotten() {
    let (env, disk, _clock) = Env::sim(3);
    let store = open(&env);
    put(&store, "gone", SECRET);
    assert!(store.forget(scope(), "gone").expect("forgotten"));
    store.close().expect("closed");
    assert!(!logs_hold(&disk, SECRET));
}

#[test]
fn a_small_flush_begins_no_file_and_a_large_one_does() {
    let (env, disk, _clock) = Env::sim(4);
    let store = open(&env);
    for at in 0..4 {
        put(&store, &format!("{at}"), "a text");
        store.flush().expect("flushed");
    }
    assert_eq!(logs(&disk).len(), 1);
    let held: usize = logs(&disk).iter().map(Vec::len).sum();
    for at in 0..5 {
        let text = format!("{at} ").repeat(150 << 10);
        put(&store, &format!("large {at}"), &text);
    }
    store.flush().expect("flushed");
    assert_eq!(logs(&disk).len(), 1);
    let left: usize = logs(&disk).iter().map(Vec::len).sum();
    assert!(left <= held, "{left} bytes of log are left");
}

#[test]
fn opens_that_flush_nothing_pile_up_no_files() {
    for writes in [false, true] {
        let (env, disk, _clock) = Env::sim(5);
        let mut most = 0;
        for at in 0..40 {
            let store = open(&env);
            if writes {
                put(&store, &format!("{at}"), "a text");
            }
            drop(store);
            most = most.max(logs(&disk).len());
        }
        match writes {
            true => assert!(most > 2, "this test opens nothing"),
            false => assert_eq!(most, 1, "an open that writes nothing begins no file"),
        }
        assert!(most <= 10, "{most} log files at once");
        let store = open(&env);
        for at in 0..40 {
            let found = store.get(&scope(), &format!("{at}")).expect("looked up");
            assert_eq!(found.is_some(), writes, "{at}");
        }
    }
}
