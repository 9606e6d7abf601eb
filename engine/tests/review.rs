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
