//! What does a failed, replayed or unusual step leave behind?

use chronolith::{
    Batch, Maintenance, Options, Record, Request, Scope, ScopeSelector, Setup, Store, TagEdge,
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
