//! What does a search by vector leave out where very many rows pass, and what never?
//!
//! Stores with small runs and a low bound, so that few rows are very many: a compaction lays
//! rows out in runs, and a search looks at the best of them. Whatever is left out, a hit is in
//! scope, passes the filters and has its exact score, and the answer says that it may miss
//! some. What lies in no run is always looked at.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "small numbers"
)]

use chronolith::{
    Batch, DenseWay, Exactness, Maintenance, Mode, Options, Record, Request, Response, RunPolicy,
    Scope, ScopeSelector, Setup, Store, VectorFormat, VectorSpace,
};
use chronolith_vfs::Env;

const DIM: usize = 64;
const ROWS: usize = 6000;
const KINDS: usize = 40;
const CANDIDATES: usize = 40;

fn store(probe_rows_min: u64) -> Store {
    let setup = Setup {
        vectors: Some(VectorSpace {
            model: "test".into(),
            dim: u32::try_from(DIM).expect("small"),
            format: VectorFormat::F16,
            normalised: true,
        }),
        ..Setup::default()
    };
    let (env, _disk, _clock) = Env::sim(3);
    let options = Options {
        maintenance: Maintenance::Manual,
        runs: RunPolicy {
            rows_min: 32,
            rows_max: 256,
        },
        probe_rows_min,
        env,
        ..Options::create(setup)
    };
    Store::open("/store", options).expect("opens")
}

/// Around one of a few directions; kinds are the same for rows and questions.
fn vector(kind: usize, seed: u64) -> Vec<f32> {
    let numbers = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..DIM).map(move |_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
        })
    };
    let (centre, own) = (numbers(1_000_003 * (kind as u64 + 1)), numbers(seed + 17));
    centre.zip(own).map(|(a, b)| a + 0.6 * b).collect()
}

fn record(i: usize) -> Record {
    let scope = if i.is_multiple_of(3) { "a/b" } else { "a" };
    let mut record = Record::new(
        Scope::parse(scope).expect("a scope"),
        format!("r{i}"),
        i as i64 * 1000,
        "w",
    );
    record.vector = (i % 13 != 5).then(|| vector(i % KINDS, i as u64));
    if i.is_multiple_of(2) {
        record.tags.push("even".into());
    }
    // All of one kind, and few: far away from most questions.
    if i % KINDS == 7 && i < 2000 {
        record.tags.push("far".into());
    }
    record.source_id = Some(format!("doc{}", i % 30));
    record
}

fn write(store: &Store, rows: std::ops::Range<usize>) {
    let mut batch = Batch::new();
    for i in rows {
        batch.upsert(record(i));
    }
    store.write(batch).expect("writes");
}

/// All rows in one segment, laid out in runs.
fn clustered(probe_rows_min: u64) -> Store {
    let store = store(probe_rows_min);
    for part in 0..3 {
        write(&store, part * ROWS / 3..(part + 1) * ROWS / 3);
        store.flush().expect("flushes");
    }
    store.compact(true, &mut |_| {}).expect("compacts");
    assert_eq!(store.stats().expect("counts").segments, 1);
    store
}

fn ask(kind: usize) -> Request {
    Request::within(ScopeSelector::parse("/").expect("the root"))
        .vector(vector(kind, 500_000 + kind as u64))
        .mode(Mode::Dense)
        .candidates(CANDIDATES)
        .now_us(0)
        .ids_only()
}

fn answer(store: &Store, request: Request) -> Response {
    store.retrieve(&request).expect("answers")
}

/// Id and score bits, best first.
fn found(response: &Response) -> Vec<(String, u64)> {
    let hits = response.hits.iter();
    hits.map(|hit| (hit.id.clone(), hit.score.to_bits()))
        .collect()
}

fn is_probed(response: &Response) -> bool {
    let dense = response.plan.dense.as_ref().expect("was asked");
    let probed = matches!(dense.way, DenseWay::Runs { .. });
    let counters = &response.plan.layout.dense;
    assert_eq!(probed, counters.runs_left_out > 0 && dense.bound.is_some());
    probed
}

#[test]
fn the_best_rows_are_found_in_few_runs() {
    let store = clustered(1000);
    let (mut same, mut all) = (0, 0);
    for kind in 0..KINDS {
        let exact = found(&answer(&store, ask(kind).exhaustive()));
        // Codes of 64 bits tell little: all of the kind, that they leave nothing out.
        let probed = answer(&store, ask(kind).candidates(ROWS / KINDS * 2));
        assert!(is_probed(&probed), "{}", probed.plan);
        assert_eq!(probed.exactness, Exactness::Approximate { bound: 0.015 });
        let counters = &probed.plan.layout.dense;
        assert!(counters.codes < ROWS as u64 / 2, "{counters:?}");
        assert!(counters.runs_left_out < counters.runs, "{counters:?}");
        assert!(probed.plan.to_string().contains("left out"));
        let probed = found(&probed);
        assert_eq!(probed.len(), 10);
        assert!(probed.is_sorted_by(|a, b| f64::from_bits(a.1) >= f64::from_bits(b.1)));
        all += exact.len();
        same += exact.iter().filter(|hit| probed.contains(hit)).count();
    }
    // Scores included: a hit that is found has the bits of the exact one.
    assert!(same * 100 >= all * 97, "{same} of {all}");
}

#[test]
fn fewer_rows_than_the_bound_are_all_looked_at() {
    let store = clustered(ROWS as u64);
    let all = answer(&store, ask(3));
    assert!(!is_probed(&all));
    assert_eq!(all.plan.layout.dense.runs, 0);
    // And rows that nobody laid out: a search goes by codes as if there were no bound.
    let flat = self::store(1000);
    write(&flat, 0..ROWS);
    let plain = answer(&flat, ask(3));
    assert!(!is_probed(&plain));
    assert_eq!(found(&plain), found(&all), "a scan depends on no layout");
    let reason = plain.plan.dense.as_ref().expect("was asked").reason;
    assert!(reason.contains("none lies in a run"), "{reason}");
    flat.flush().expect("flushes");
    assert_eq!(found(&answer(&flat, ask(3))), found(&all));
}

#[test]
fn rows_in_no_run_are_always_looked_at() {
    let store = clustered(1000);
    // Nobody's kind: no run is near. First in the memtable, then flushed.
    let strange: Vec<f32> = vector(KINDS + 9, 1).iter().map(|x| -x).collect();
    let mut record = record(1);
    record.id = "strange".into();
    record.vector = Some(strange.clone());
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch).expect("writes");
    for _ in 0..2 {
        let response = answer(&store, ask(1).vector(strange.clone()));
        assert!(is_probed(&response));
        assert_eq!(response.hits[0].id, "strange");
        store.flush().expect("flushes");
    }
    let mut batch = Batch::new();
    batch.forget(Scope::parse("a").expect("a scope"), "strange");
    store.write(batch).expect("writes");
    let response = answer(&store, ask(1).vector(strange));
    assert!(response.hits.iter().all(|hit| hit.id != "strange"));
}

#[test]
fn filters_hold_and_as_many_hits_come_as_there_are() {
    let store = clustered(500);
    for kind in [2, 3, 20] {
        let even = answer(&store, ask(kind).tag("even").k(20));
        assert_eq!(even.hits.len(), 20);
        assert!(
            even.hits
                .iter()
                .all(|hit| hit.tags.contains(&"even".into()))
        );
        let scope = ScopeSelector::parse("=a/b").expect("a scope");
        let within = Request::within(scope)
            .vector(vector(kind, 77))
            .mode(Mode::Dense)
            .candidates(CANDIDATES);
        let within = answer(&store, within);
        assert!(is_probed(&within), "{}", within.plan);
        assert_eq!(within.hits.len(), 10);
        assert!(within.hits.iter().all(|hit| hit.scope.path() == "a/b"));
        // Most of the kind that has the tag lies in runs that no other question looks at.
        let far = answer(&store, ask(kind).tag("far").k(30));
        let exact = answer(&store, ask(kind).tag("far").k(30).exhaustive());
        assert_eq!(far.hits.len(), 30);
        assert_eq!(far.hits.len(), exact.hits.len());
        // A source is found for each place, though one run may have one alone.
        let distinct = answer(&store, ask(kind).distinct(true).k(25));
        assert_eq!(distinct.hits.len(), 25);
    }
    for i in (0..ROWS).filter(|i| i % KINDS == 2) {
        let mut batch = Batch::new();
        let scope = if i.is_multiple_of(3) { "a/b" } else { "a" };
        batch.forget(Scope::parse(scope).expect("a scope"), format!("r{i}"));
        store.write(batch).expect("writes");
    }
    // All that lies in the best runs is dead, and the others are asked.
    let gone = answer(&store, ask(2));
    let exact = answer(&store, ask(2).exhaustive());
    assert_eq!((gone.hits.len(), exact.hits.len()), (10, 10));
    assert!(found(&gone).iter().all(|hit| !dead(&hit.0)));
}

fn dead(id: &str) -> bool {
    let i: usize = id[1..].parse().expect("a number");
    i % KINDS == 2
}

#[test]
fn an_exact_answer_stays_to_the_bit_when_rows_are_laid_out() {
    let flat = store(1000);
    write(&flat, 0..ROWS);
    let clustered = clustered(1000);
    for kind in 0..8 {
        let before = answer(&flat, ask(kind).exhaustive());
        let after = answer(&clustered, ask(kind).exhaustive());
        assert_eq!(after.exactness, Exactness::Exact);
        assert_eq!(found(&after), found(&before));
    }
}
