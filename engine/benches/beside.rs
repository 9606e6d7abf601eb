//! What does a query cost while others write?
//!
//! `cargo bench -p chronolith --bench beside -- [records] [writes a second] [seconds]` (100,000,
//! 5,000 and 20 without a number). The same questions are asked twice: with nobody beside, and beside a
//! writer of durable batches with the flushes and compactions that follow from it. Times are wall
//! time of one thread, as its caller waits; writer and background work have the other cores.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench measures wall time, counts small numbers and stops at the first surprise"
)]

#[allow(dead_code, reason = "each bench asks a part of the questions")]
#[path = "common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chronolith::{Batch, Options, Request, Setup, Store};
use common::World;

/// Records of one durable batch.
const BATCH: u64 = 10;

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let number = |place: usize, default: u64| numbers.get(place).copied().unwrap_or(default);
    let (records, rate, seconds) = (number(0, 100_000), number(1, 5000), number(2, 20));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(dir.path().join("s"), Options::create(Setup::default())).unwrap();
    let mut world = World::new(7);
    common::fill(&store, &mut world, records);
    store.flush().unwrap();
    assert!(store.wait_idle(common::IDLE_MAX));
    store.compact(false, &mut |_| ()).unwrap();

    println!("{records} records, questions of rare words in all scopes and in one; wall time, us");
    println!("                         p50      p99      max   questions");
    let lasting = Duration::from_secs(seconds);
    for (name, one_scope) in [("all scopes", false), ("one scope", true)] {
        let questions = world.questions(1000, one_scope);
        let alone = ask(&store, &questions, lasting);
        show(name, "alone", &alone);
        let (beside, written) = beside(&store, &mut world, rate, || {
            ask(&store, &questions, lasting)
        });
        show(name, "beside", &beside);
        println!(
            "            p99 beside / alone: {:.2}; {:.0} records a second were written",
            at(&beside, 0.99) as f64 / at(&alone, 0.99) as f64,
            written as f64 / lasting.as_secs_f64(),
        );
    }
    store.close().unwrap();
}

/// Runs `work` beside a writer of `rate` records a second; gives also how many were written.
fn beside<T>(store: &Store, world: &mut World, rate: u64, work: impl FnOnce() -> T) -> (T, u64) {
    let (over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let done = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let start = Instant::now();
            while !over.load(Ordering::Relaxed) {
                let due = written.load(Ordering::Relaxed) as f64 / rate as f64;
                let early = due - start.elapsed().as_secs_f64();
                if early > 0.0 {
                    std::thread::sleep(Duration::from_secs_f64(early));
                }
                let mut batch = Batch::new();
                for _ in 0..BATCH {
                    batch.upsert(world.record());
                }
                store.write(batch).unwrap();
                written.fetch_add(BATCH, Ordering::Relaxed);
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        done
    });
    (done, written.into_inner())
}

/// Asks one question after the other for so long; what each took, ascending, µs.
fn ask(store: &Store, questions: &[Request], lasting: Duration) -> Vec<u64> {
    let (start, mut times) = (Instant::now(), Vec::new());
    for question in questions.iter().cycle() {
        if start.elapsed() >= lasting {
            break;
        }
        let asked = Instant::now();
        store.retrieve(question).unwrap();
        times.push(asked.elapsed().as_micros() as u64);
    }
    times.sort_unstable();
    times
}

fn at(times: &[u64], share: f64) -> u64 {
    times[((times.len() - 1) as f64 * share) as usize]
}

fn show(name: &str, way: &str, times: &[u64]) {
    println!(
        "{name:<11} {way:<8} {:>8} {:>8} {:>8}   {}",
        at(times, 0.5),
        at(times, 0.99),
        at(times, 1.0),
        times.len()
    );
}
