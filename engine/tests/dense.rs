//! What does a search by vector find, and does it depend on anything but the rows?
//!
//! By codes an answer is a function of vectors, filters and the store's seed: the same in a
//! memtable, in many segments and in one. With as many candidates as rows, and where few rows
//! pass, it is that of scoring every vector, which is computed here once more.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "small numbers"
)]

use std::collections::BTreeSet;

use chronolith::{
    Batch, CANDIDATES_MAX, DenseWay, Error, Exactness, Maintenance, Mode, Options, Record, Request,
    Response, Scope, ScopeSelector, Setup, SourceClass, Store, VectorFormat, VectorSpace,
};
use chronolith_segments::{dot, prepare_vector};
use chronolith_vfs::Env;

const DIM: u32 = 64;
const ROWS: usize = 2600;
const CANDIDATES: usize = 60;

fn space() -> VectorSpace {
    VectorSpace {
        model: "test".into(),
        dim: DIM,
        format: VectorFormat::F16,
        normalised: true,
    }
}

fn store() -> Store {
    let setup = Setup {
        vectors: Some(space()),
        ..Setup::default()
    };
    let (env, _disk, _clock) = Env::sim(3);
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(setup)
    };
    Store::open("/store", options).expect("opens")
}

/// Numbers that look like chance.
fn chance(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::iter::from_fn(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Some((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33)
    })
}

/// Around one of a few centres.
fn vector(seed: u64) -> Vec<f32> {
    let normal = |seed: u64, scale: f32| {
        let numbers: Vec<f32> = chance(seed)
            .take(DIM as usize * 4)
            .map(|x| x as f32 / (1_u64 << 31) as f32 - 0.5)
            .collect();
        let four = numbers
            .chunks(4)
            .map(|four| four.iter().sum::<f32>() * scale);
        four.collect::<Vec<f32>>()
    };
    let centre = normal(1_000_000 + seed % 9, 1.0);
    let own = normal(seed, 1.0);
    centre.iter().zip(own).map(|(a, b)| a + b).collect()
}

fn record(i: usize) -> Record {
    let scope = ["a", "a/b", "c"][usize::from(i % 10 == 8) + 2 * usize::from(i % 10 == 9)];
    let mut record = Record::new(
        Scope::parse(scope).expect("a scope"),
        format!("r{i}"),
        (i * 7919 % ROWS) as i64 * 1000,
        ["red fox", "red dog", "blue fox"][i % 3],
    );
    record.vector = (i % 11 != 5).then(|| vector(i as u64));
    record.source_class = [
        None,
        Some(SourceClass::Web),
        Some(SourceClass::UserConfirmed),
    ][i % 3];
    record.tags = [(2, "even"), (5, "fifth"), (100, "rare")]
        .into_iter()
        .filter(|(n, _)| i.is_multiple_of(*n))
        .map(|(_, tag)| tag.to_owned())
        .collect();
    record.source_id = i.is_multiple_of(4).then(|| format!("doc{}", i % 40));
    record
}

fn write(store: &Store, rows: std::ops::Range<usize>) {
    let mut batch = Batch::new();
    for i in rows {
        batch.upsert(record(i));
    }
    store.write(batch).expect("writes");
}

fn ask(seed: u64) -> Request {
    Request::within(ScopeSelector::parse("/").expect("the root"))
        .vector(vector(seed))
        .mode(Mode::Dense)
        .now_us(0)
        .ids_only()
}

fn answer(store: &Store, request: &Request) -> Response {
    store.retrieve(request).expect("answers")
}

/// Scope, id and score bits, best first.
fn found(response: &Response) -> Vec<(String, String, u64)> {
    let hits = response.hits.iter();
    hits.map(|hit| (hit.scope.path(), hit.id.clone(), hit.score.to_bits()))
        .collect()
}

type Kind = (&'static str, fn(Request) -> Request, fn(usize) -> bool);

/// Requests, and which rows pass.
const KINDS: [Kind; 10] = [
    ("all", |r| r, |_| true),
    ("even", |r| r.tag("even"), |i| i.is_multiple_of(2)),
    ("fifth", |r| r.tag("fifth"), |i| i.is_multiple_of(5)),
    ("rare", |r| r.tag("rare"), |i| i.is_multiple_of(100)),
    (
        "time",
        |r| r.since_us(500_000).until_us(2_000_000),
        |i| (500..2000).contains(&(i * 7919 % ROWS)),
    ),
    (
        "class",
        |r| r.min_source(SourceClass::ToolOutput),
        |i| i % 3 == 2,
    ),
    (
        "words",
        |r| r.require("fox").mode(Mode::Dense),
        |i| i % 3 != 1,
    ),
    (
        "not",
        |r| r.exclude("fox").mode(Mode::Dense),
        |i| i % 3 == 1,
    ),
    (
        "time and few",
        |r| r.tag("fifth").since_us(300_000),
        |i| i.is_multiple_of(5) && i * 7919 % ROWS >= 300,
    ),
    (
        "time and tag",
        |r| r.tag("even").since_us(1_000_000),
        |i| i.is_multiple_of(2) && i * 7919 % ROWS >= 1000,
    ),
];

/// The rows that pass, by their exact scores.
fn exact(
    rows: std::ops::Range<usize>,
    query: u64,
    passes: impl Fn(usize) -> bool,
) -> Vec<(f32, String)> {
    let space = space();
    let query = chronolith_segments::check_vector(&space, &vector(query)).expect("fits");
    let mut scored: Vec<(f32, String)> = rows
        .filter(|i| i % 11 != 5 && passes(*i))
        .map(|i| {
            let stored = prepare_vector(&space, &vector(i as u64)).expect("fits");
            (dot(&query, &stored, space.format), format!("r{i}"))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
}

#[test]
fn an_answer_by_codes_does_not_depend_on_the_layout() {
    let store = store();
    write(&store, 0..900);
    store.flush().expect("flushed");
    write(&store, 900..1700);
    store.flush().expect("flushed");
    write(&store, 1700..ROWS);
    for i in (0..ROWS).step_by(17) {
        let scope = record(i).scope;
        store.forget(scope, format!("r{i}")).expect("forgotten");
    }
    let asked = |(_, change, _): &Kind, query: u64, k: usize| {
        change(ask(query)).k(k).candidates(CANDIDATES)
    };
    let all = |store: &Store| -> Vec<_> {
        let mut answers = Vec::new();
        for kind in &KINDS {
            for (query, k) in [(5000, 10), (5001, 3), (5002, 40)] {
                let response = answer(store, &asked(kind, query, k));
                answers.push((kind.0, query, found(&response), response.exactness));
            }
        }
        answers
    };
    let before = all(&store);
    for (kind, query, hits, exactness) in &before {
        assert!(!hits.is_empty(), "{kind} {query}");
        let few = *kind == "rare";
        assert_eq!(*exactness == Exactness::Exact, few, "{kind}: {exactness:?}");
        let (_, _, passes) = KINDS.iter().find(|one| one.0 == *kind).expect("listed");
        for (_, id, _) in hits {
            let i: usize = id[1..].parse().expect("a number");
            assert!(passes(i) && !i.is_multiple_of(17), "{kind}: {id}");
        }
    }
    store.flush().expect("flushed");
    assert_eq!(all(&store), before, "after a flush");
    store.compact(true, &mut |_| {}).expect("compacted");
    assert_eq!(store.stats().expect("stats").segments, 1);
    assert_eq!(all(&store), before, "in one segment");
}

#[test]
fn every_way_finds_what_scoring_every_vector_finds() {
    let store = store();
    write(&store, 0..1500);
    store.flush().expect("flushed");
    write(&store, 1500..ROWS);
    for (name, change, passes) in &KINDS {
        for query in [7000, 7001] {
            let expected: Vec<(String, u32)> = exact(0..ROWS, query, passes)
                .into_iter()
                .take(10)
                .map(|(score, id)| (id, score.to_bits()))
                .collect();
            let shown = |request: &Request| {
                let response = answer(&store, request);
                let hits = response.hits.iter();
                #[expect(clippy::cast_possible_truncation, reason = "it was an f32")]
                let hits = hits.map(|hit| (hit.id.clone(), (hit.score as f32).to_bits()));
                (hits.collect::<Vec<_>>(), response)
            };
            let request = change(ask(query));
            let (hits, response) = shown(&request.clone().exhaustive());
            assert_eq!(hits, expected, "{name}");
            assert_eq!(response.exactness, Exactness::Exact);
            // So many candidates are all rows.
            let (hits, response) = shown(&request.clone().candidates(ROWS));
            assert_eq!(hits, expected, "{name}");
            assert_eq!(response.exactness, Exactness::Exact);
            // Of 64 bits a code says little: it takes more of them.
            let by_codes = change(ask(query)).candidates(400);
            let ids = |hits: &[(String, u32)]| -> BTreeSet<String> {
                hits.iter().map(|(id, _)| id.clone()).collect()
            };
            let (hits, _) = shown(&by_codes);
            let share = ids(&hits).intersection(&ids(&expected)).count();
            assert!(share >= 8, "{name}: {share} of 10");
            assert_eq!(hits.len(), 10);
        }
    }
}

#[test]
fn the_way_is_chosen_by_rows_that_pass_and_said() {
    let store = store();
    write(&store, 0..ROWS);
    let planned = |request: &Request| {
        let response = answer(&store, request);
        let dense = response.plan.dense.expect("dense");
        let counters = response.plan.layout.dense;
        assert_eq!(
            counters.bytes,
            counters.vectors * 128 + counters.codes * 12,
            "64 halves, 8 bytes of code and a factor"
        );
        assert!(response.plan.to_string().contains(dense.reason));
        (dense.way, response.exactness, counters)
    };
    let vectors = exact(0..ROWS, 0, |_| true).len() as u64;
    let (way, exactness, counters) = planned(&ask(1));
    let DenseWay::Codes { candidates } = way else {
        panic!("{way:?}");
    };
    assert!(candidates >= 200);
    assert!(matches!(exactness, Exactness::Approximate { bound } if bound < 0.01));
    assert_eq!(counters.codes, vectors);
    assert!((10..candidates as u64 + 5).contains(&counters.vectors));

    let (way, exactness, counters) = planned(&ask(1).tag("fifth"));
    assert_eq!((way, exactness), (DenseWay::Vectors, Exactness::Exact));
    let passing = exact(0..ROWS, 0, |i| i.is_multiple_of(5)).len() as u64;
    assert_eq!((counters.codes, counters.vectors), (0, passing));

    let (way, exactness, counters) = planned(&ask(1).exhaustive());
    assert_eq!((way, exactness), (DenseWay::Vectors, Exactness::Exact));
    assert_eq!((counters.codes, counters.vectors), (0, vectors));

    let hybrid = ask(1).text("fox").mode(Mode::Hybrid);
    let response = answer(&store, &hybrid);
    assert!(matches!(response.exactness, Exactness::Approximate { .. }));
    let response = answer(&store, &hybrid.exhaustive());
    assert_eq!(response.exactness, Exactness::Exact);
}

#[test]
fn distinct_sources_are_looked_for_beyond_the_candidates() {
    let store = store();
    write(&store, 0..ROWS);
    // 10 sources, and rows without one stand for themselves: of those none is even here.
    let request = ask(9).distinct(true).tag("fifth").tag("even").k(4);
    let exact = answer(&store, &request.clone().exhaustive());
    assert_eq!(exact.hits.len(), 4);
    let few = answer(&store, &request.candidates(1));
    assert_eq!(few.hits.len(), 4, "one candidate is one source");
}

#[test]
fn vectors_that_are_all_alike_tie_and_are_all_looked_at() {
    let store = store();
    let mut batch = Batch::new();
    for i in 0..2300 {
        let mut record = record(i);
        record.vector = Some(vec![0.25; DIM as usize]);
        batch.upsert(record);
    }
    store.write(batch).expect("writes");
    let request = ask(1).candidates(5);
    let response = answer(&store, &request);
    assert_eq!(response.plan.layout.dense.vectors, 2300);
    assert_eq!(
        found(&response),
        found(&answer(&store, &request.exhaustive()))
    );
}

#[test]
fn no_rows_one_row_and_two_rows_are_answered() {
    let store = store();
    for rows in 0..3 {
        if rows > 0 {
            write(&store, rows - 1..rows);
        }
        for candidates in [None, Some(1), Some(7)] {
            let request = match candidates {
                Some(candidates) => ask(1).candidates(candidates),
                None => ask(1),
            };
            let wanted = match candidates {
                Some(1) => rows.min(1),
                _ => rows,
            };
            assert_eq!(
                answer(&store, &request).hits.len(),
                wanted,
                "{rows} {candidates:?}"
            );
        }
    }
}

#[test]
fn candidates_have_bounds() {
    let store = store();
    for candidates in [0, CANDIDATES_MAX + 1] {
        match store.retrieve(&ask(1).candidates(candidates)) {
            Err(Error::Refused(refused)) => assert_eq!(refused.field, "candidates"),
            other => panic!("{other:?}"),
        }
    }
}
