//! What does each kind of question cost?
//!
//! `cargo bench -p chronolith --bench queries -- [filter]`; `CHRONOLITH_BENCH_RECORDS` says how
//! many records the store holds (100,000). A figure is the CPU time of one thread for a round of
//! [`ROUND`] different questions.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench reads its settings, counts small numbers and stops at the first surprise"
)]

#[allow(dead_code, reason = "each bench asks a part of the questions")]
#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Duration;

use chronolith::{Options, Recency, Request, Setup, Store};
use common::{World, ask, words};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Questions of a round.
const ROUND: usize = 200;
const DAY_US: i64 = 86_400_000_000;

/// Runs `work` so often, and gives the CPU time of it: others work on the machine too.
fn cpu(mut work: impl FnMut()) -> impl FnMut(u64) -> Duration {
    let cpu_ns = || -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ns = stat.split_whitespace().next();
        ns.and_then(|ns| ns.parse().ok()).unwrap_or(0)
    };
    move |times| {
        let start_ns = cpu_ns();
        (0..times).for_each(|_| work());
        // The system counts in steps: a round too short to be counted took something.
        Duration::from_nanos((cpu_ns() - start_ns).max(1))
    }
}

/// One question of a kind, from the world.
type Kind = (&'static str, fn(&mut World) -> Request);

const KINDS: [Kind; 12] = [
    ("fact", |world| ask("/", world.fact())),
    ("one word", |world| ask("/", world.one())),
    ("sentence", |world| ask("/", world.sentence())),
    ("fact, exhaustive", |world| {
        ask("/", world.fact()).exhaustive()
    }),
    ("sentence, exhaustive", |world| {
        ask("/", world.sentence()).exhaustive()
    }),
    ("fact in a scope", |world| {
        let scope = world.user();
        ask(&scope, world.fact())
    }),
    ("fact in 7 days", |world| {
        let (from_us, to_us) = world.days(7);
        ask("/", world.fact()).since_us(from_us).until_us(to_us)
    }),
    ("fact, decay", |world| {
        let recency = Recency::Decay { tau_us: 7 * DAY_US };
        ask("/", world.fact())
            .recency(recency)
            .now_us(world.now_us())
    }),
    ("required word", |world| {
        let word = world.one();
        ask("/", world.fact()).require(word)
    }),
    ("phrase", |world| words("/").phrase(world.pair())),
    ("prefix", |world| words("/").prefix(world.one())),
    ("fuzzy word", |world| words("/").fuzzy(world.one(), 1)),
];

fn queries(c: &mut Criterion) {
    let records = std::env::var("CHRONOLITH_BENCH_RECORDS").ok();
    let records = records.and_then(|records| records.parse().ok());
    let records = records.unwrap_or(100_000);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(dir.path().join("s"), Options::create(Setup::default())).unwrap();
    let mut world = World::new(7);
    common::fill(&store, &mut world, records);
    store.flush().unwrap();
    assert!(store.wait_idle(common::IDLE_MAX));
    store.compact(false, &mut |_| ()).unwrap();

    let mut group = c.benchmark_group(format!("{records} records"));
    group.throughput(Throughput::Elements(ROUND as u64));
    group.sample_size(10);
    for (name, make) in KINDS {
        let questions: Vec<Request> = (0..ROUND).map(|_| make(&mut world)).collect();
        group.bench_function(name, |b| {
            b.iter_custom(cpu(|| {
                for question in &questions {
                    black_box(store.retrieve(black_box(question)).unwrap());
                }
            }));
        });
    }
    group.finish();
    store.close().unwrap();
}

criterion_group!(benches, queries);
criterion_main!(benches);
