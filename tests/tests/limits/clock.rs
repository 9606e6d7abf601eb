//! The clock goes back, far ahead, or stands still: seqs and known time only rise, answers
//! stay, and the store opens.

use chronolith::{
    Batch, Maintenance, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
};
use chronolith_vfs::Env;

const NOW_US: i64 = 1_700_000_000_000_000;
const YEAR_US: i64 = 365 * 86_400_000_000;
/// Where the clock goes, in order.
const JUMPS: [i64; 12] = [
    NOW_US,
    NOW_US,
    NOW_US - 1,
    NOW_US - 10 * YEAR_US,
    0,
    -YEAR_US,
    NOW_US + 50 * YEAR_US,
    NOW_US,
    i64::MIN,
    NOW_US + 60 * YEAR_US,
    i64::MAX,
    NOW_US,
];

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn batch(at: usize) -> Batch {
    let scope = Scope::parse("a").expect("a scope");
    let mut batch = Batch::new();
    let time_us = NOW_US + i64::try_from(at).expect("small");
    batch.upsert(Record::new(scope, format!("{at}"), time_us, "some words"));
    batch
}

/// Writes at every jump; `between` sees the store after each write and may replace it.
fn jump(mut between: impl FnMut(usize, Store, &Env) -> Store) {
    let (env, _disk, clock) = Env::sim(4);
    clock.set_us(NOW_US);
    let mut store = Store::open("/store", options(&env)).expect("created");
    let (mut seq, mut known_us) = (0, i64::MIN);
    for (at, now_us) in JUMPS.into_iter().enumerate() {
        clock.set_us(now_us);
        let committed = store.write(batch(at)).expect("written");
        assert!(
            committed.first_seq > seq,
            "seq {} after {seq}",
            committed.first_seq
        );
        assert!(
            committed.commit_time_us >= known_us,
            "known time went back at {now_us}"
        );
        (seq, known_us) = (committed.last_seq, committed.commit_time_us);
        store = between(at, store, &env);
        let request = Request::within(ScopeSelector::parse("a").expect("a scope")).text("words");
        let hits = store.retrieve(&request.k(100)).expect("answers").hits.len();
        assert_eq!(hits, at + 1, "after the clock went to {now_us}");
    }
}

#[test]
fn seqs_and_known_time_rise_whatever_the_clock_does() {
    jump(|_, store, _| store);
}

#[test]
fn a_store_flushes_and_compacts_whatever_the_clock_does() {
    jump(|at, store, _| {
        match at % 3 {
            0 => store.flush().expect("flushed"),
            1 => drop(store.compact(true, &mut |_| {}).expect("compacted")),
            _ => {}
        }
        store
    });
}

#[test]
fn a_store_opens_whatever_the_clock_did() {
    jump(|at, store, env| {
        match at % 2 {
            0 => store.close().expect("closed"),
            _ => drop(store),
        }
        Store::open("/store", options(env)).expect("opens")
    });
}
