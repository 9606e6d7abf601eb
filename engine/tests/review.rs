//! What does a failed, replayed or unusual step leave behind?

use std::sync::atomic::{AtomicBool, Ordering};

use chronolith::{
    Batch, Maintenance, Options, ReadOnlyStore, Record, Request, Scope, ScopeSelector, Setup,
    Store, TagEdge,
};
use chronolith_vfs::Env;

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

fn edge(parent: &str, child: &str) -> TagEdge {
    TagEdge {
        scope: scope(),
        parent: parent.into(),
        child: child.into(),
    }
}

fn hits_under(store: &Store, tag: &str) -> usize {
    let request = Request::within(ScopeSelector::parse("user/ana").expect("a scope")).tag(tag);
    store.retrieve(&request).expect("answers").hits.len()
}

#[test]
fn an_edge_that_was_replayed_survives_the_flush_that_follows() {
    let (env, _vfs, _clock) = Env::sim(7);
    let store = Store::open("/store", options(&env)).expect("opens");
    let mut record = Record::new(scope(), "a", 1, "text");
    record.tags = vec!["deploy".into()];
    let mut batch = Batch::new();
    batch.upsert(record).link_tag(edge("ops", "deploy"));
    store.write(batch).expect("writes");
    drop(store);

    let store = Store::open("/store", options(&env)).expect("opens");
    assert_eq!(store.recovery_report().batches_replayed, 1);
    store.close().expect("closes");

    let store = Store::open("/store", options(&env)).expect("opens");
    assert_eq!(store.recovery_report().batches_replayed, 0);
    assert_eq!(hits_under(&store, "ops"), 1);
}

#[test]
fn two_edges_of_one_batch_that_close_a_cycle_are_refused_together() {
    let (env, _vfs, _clock) = Env::sim(8);
    let store = Store::open("/store", options(&env)).expect("opens");
    let mut batch = Batch::new();
    batch.link_tag(edge("a", "b")).link_tag(edge("b", "a"));
    assert!(store.write(batch).is_err());
    let mut batch = Batch::new();
    batch
        .link_tag(edge("a", "b"))
        .unlink_tag(edge("a", "b"))
        .link_tag(edge("b", "a"));
    store
        .write(batch)
        .expect("an edge taken back closes no cycle");
}

#[test]
fn a_flush_of_nothing_publishes_nothing() {
    let (env, _vfs, _clock) = Env::sim(9);
    let store = Store::open("/store", options(&env)).expect("opens");
    store.flush().expect("flushes");
    let before = store.stats().expect("counts").generation;
    store.flush().expect("flushes");
    assert_eq!(store.stats().expect("counts").generation, before);
    store.forget(scope(), "nobody").expect("forgets");
    store.flush().expect("flushes");
    assert_eq!(store.stats().expect("counts").generation, before + 1);
}

#[test]
fn forgets_and_edges_alone_are_flushed_too_and_do_not_keep_the_log() {
    let (env, _vfs, _clock) = Env::sim(10);
    let options = Options {
        memtable_bytes_max: 64 << 10,
        log_file_bytes_max: 64 << 10,
        ..options(&env)
    };
    let store = Store::open("/store", options).expect("opens");
    let mut record = Record::new(scope(), "a", 1, "text");
    record.tags = vec!["deploy".into()];
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
    let flushed_seq = store.stats().expect("counts").flushed_seq;
    for round in 0..100 {
        let mut batch = Batch::new();
        for at in 0..100 {
            batch.forget(scope(), format!("nobody-{round}-{at}"));
        }
        batch.link_tag(edge("ops", &format!("tag-{round}")));
        store.write(batch).expect("writes");
    }
    let stats = store.stats().expect("counts");
    assert!(stats.flushed_seq > flushed_seq, "nothing was flushed");
    assert!(
        stats.wal_bytes < 400 << 10,
        "{} bytes of log",
        stats.wal_bytes
    );
    assert_eq!(hits_under(&store, "deploy"), 1);
}

#[test]
fn a_closed_handle_says_so_even_to_an_empty_batch() {
    let (env, _vfs, _clock) = Env::sim(11);
    let store = Store::open("/store", options(&env)).expect("opens");
    let other = store.clone();
    store.close().expect("closes");
    let error = other.write(Batch::new()).expect_err("closed");
    assert!(matches!(error, chronolith::Error::Closed), "{error}");
}

/// A reader reads the status first and the log after it: what a writer commits meanwhile must
/// not make the status look like an old copy.
#[test]
fn a_reader_beside_a_busy_writer_is_never_told_that_the_status_is_old() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = Store::open(&dir, options(&Env::real())).expect("opens");
    let batch = |number: u64, records: u64| {
        let mut batch = Batch::new();
        for at in 0..records {
            let id = format!("{number}-{at}");
            batch.upsert(Record::new(scope(), id, 1, "the port of the staging proxy"));
        }
        batch
    };
    // A log that takes a while to replay.
    for number in 0..20 {
        store.write(batch(number, 200)).expect("writes");
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for number in 100.. {
                store.write(batch(number, 1)).expect("writes");
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let opened = (0..10).map(|_| ReadOnlyStore::open(&dir, Options::default()));
        let opened: Result<Vec<_>, _> = opened.collect();
        is_done.store(true, Ordering::Relaxed);
        opened.expect("opens beside a writer");
    });
}

#[test]
fn a_forgotten_record_is_in_no_count() {
    let (env, _vfs, _clock) = Env::sim(12);
    let store = Store::open("/store", options(&env)).expect("opens");
    let alone = Scope::parse("user/ben").expect("a scope");
    let mut batch = Batch::new();
    batch.upsert(Record::new(scope(), "a", 1, "text"));
    batch.upsert(Record::new(scope(), "b", 2, "text"));
    batch.upsert(Record::new(alone.clone(), "c", 3, "text"));
    store.write(batch).expect("writes");
    for flushed in [false, true] {
        if flushed {
            store.flush().expect("flushes");
            store.forget(scope(), "b").expect("forgets");
        } else {
            store.forget(alone.clone(), "c").expect("forgets");
        }
        let stats = store.stats().expect("counts");
        let rows = if flushed { 1 } else { 2 };
        assert_eq!((stats.records, stats.scopes), (rows, 1));
        assert_eq!(stats.scope_list[0].rows, rows);
    }
}
