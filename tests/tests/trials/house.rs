//! What every trial needs: a store on a simulated disk, records, and questions.

use chronolith::{
    Batch, Error, Maintenance, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
    VectorFormat, VectorSpace,
};
use chronolith_vfs::{Env, SimVfs};

pub(crate) const DIR: &str = "/store";
pub(crate) const TIME_US: i64 = 1_700_000_000_000_000;

pub(crate) fn sim() -> (Env, SimVfs) {
    let (env, disk, clock) = Env::sim(3);
    clock.set_us(TIME_US);
    (env, disk)
}

pub(crate) fn options(env: &Env) -> Options {
    let space = VectorSpace {
        model: "test".into(),
        dim: 4,
        format: VectorFormat::F32,
        normalised: true,
    };
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        env: env.clone(),
        ..Options::create(Setup {
            vectors: Some(space),
            ..Setup::default()
        })
    }
}

pub(crate) fn open(env: &Env) -> Store {
    Store::open(DIR, options(env)).expect("opens")
}

pub(crate) fn scope(path: &str) -> Scope {
    Scope::parse(path).expect("a scope")
}

pub(crate) fn within(path: &str) -> Request {
    Request::within(ScopeSelector::parse(path).expect("a scope")).now_us(TIME_US)
}

pub(crate) fn record(path: &str, id: impl Into<String>, text: &str) -> Record {
    Record::new(scope(path), id, TIME_US, text)
}

pub(crate) fn put(store: &Store, record: Record) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch).map(drop)
}

/// Ids of the answer, best first.
pub(crate) fn ids(store: &Store, request: &Request) -> Vec<String> {
    let hits = store.retrieve(request).expect("answers").hits;
    hits.into_iter().map(|hit| hit.id).collect()
}

/// How many records a scope shows.
pub(crate) fn count(store: &Store, path: &str) -> usize {
    ids(store, &within(path).k(10_000)).len()
}
