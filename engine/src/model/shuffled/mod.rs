//! Do flush, compaction, forget, read and crash get along, all at once? shuttle runs them in
//! many random orders.
//!
//! Run: `RUSTFLAGS="--cfg shuttle" cargo test -p chronolith --lib --release model::shuffled`.
//!
//! Where `every` takes a few operations and leaves nothing out, this takes writers, a flusher,
//! a compactor, readers of this and of another process and crashes, and only samples. Who takes
//! part and what they write is drawn too. One scheduler draws at each place who goes on; the
//! other gives threads random priorities that change at a few random places, which meets orders
//! in which one thread stands still for long.
//!
//! A failure prints its seed. `CHRONOLITH_SEED` runs that seed alone, `CHRONOLITH_SCHEDULES`
//! sets how many schedules each scheduler runs, `CHRONOLITH_DEEP=1` runs 50 times as many.
//!
//! * `actors`: what each thread does.
//! * `ledger`: what they did, checked against a model.

mod actors;
mod ledger;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use chronolith_vfs::planted::Bug;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

use self::actors::{World, draw};
use super::{assert_found, plant_as_told};

/// Schedules of one seed. The second scheduler learns from the first of them how long one is.
const ROUND: usize = 50;
/// Schedules a scheduler runs.
const SCHEDULES: u64 = 800;
/// Stack of a thread, in bytes: the engine needs more than shuttle's 32 KiB.
const STACK_BYTES: usize = 2 << 20;
/// Far above the longest schedule: who comes here waits for ever.
const STEPS_MAX: usize = 1_000_000;

fn knob(name: &str) -> Option<u64> {
    let given = std::env::var(name).ok()?;
    Some(given.parse().unwrap_or_else(|_| panic!("{name}={given}")))
}

/// Runs `scenario` under schedulers made from seeds.
fn explore<S: Scheduler + 'static>(scheduler: impl Fn(u64) -> S, scenario: fn()) {
    plant_as_told();
    let times = match knob("CHRONOLITH_DEEP") {
        None | Some(0) => 1,
        Some(_) => 50,
    };
    let schedules = knob("CHRONOLITH_SCHEDULES").unwrap_or(SCHEDULES * times);
    let seeds = match knob("CHRONOLITH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..schedules.div_ceil(ROUND as u64),
    };
    println!("{ROUND} schedules of each of the seeds {seeds:?}");
    for seed in seeds {
        let mut config = Config::new();
        config.stack_size = STACK_BYTES;
        config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
        // The seed says as much.
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        let runner = Runner::new(scheduler(seed), config);
        let ran = catch_unwind(AssertUnwindSafe(|| runner.run(scenario)));
        if let Err(panic) = ran {
            eprintln!("failed with seed {seed}: repeat with CHRONOLITH_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

/// At each place, whoever is drawn goes on.
fn random(seed: u64) -> RandomScheduler {
    RandomScheduler::new_from_seed(seed, ROUND)
}

/// The thread of the highest priority goes on; priorities are drawn, and change one to four
/// times.
///
/// Source: Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding
/// bugs" (2010).
fn priorities(seed: u64) -> PctScheduler {
    let depth = 2 + usize::try_from(seed % 4).expect("small");
    PctScheduler::new_from_seed(seed, depth, ROUND)
}

/// Runs threads that do `acts` in a new store.
fn run(acts: impl IntoIterator<Item = fn(&World)>) {
    let world = World::new();
    let threads: Vec<_> = acts
        .into_iter()
        .map(|act| {
            let world = world.clone();
            thread::spawn(move || act(&world))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    actors::end(world);
}

fn everything_at_once() {
    let all: [fn(&World); 7] = [
        actors::write,
        actors::write,
        actors::flush,
        actors::compact,
        actors::read,
        actors::read_beside,
        actors::crash,
    ];
    run(all.into_iter().filter(|_| draw(4) > 0));
}

/// Little happens, so that a flush and a forget often lie within the compaction.
fn forgets_beside_a_compaction() {
    let all: [fn(&World); 5] = [
        actors::forget,
        actors::forget,
        actors::flush_once,
        actors::compact_once,
        actors::crash,
    ];
    run(all);
}

#[test]
fn everything_at_once_under_random_schedules() {
    explore(random, everything_at_once);
}

#[test]
fn everything_at_once_under_random_priorities() {
    explore(priorities, everything_at_once);
}

#[test]
fn forgets_beside_a_compaction_under_random_schedules() {
    explore(random, forgets_beside_a_compaction);
}

#[test]
fn forgets_beside_a_compaction_under_random_priorities() {
    explore(priorities, forgets_beside_a_compaction);
}

/// The negative test: what a race of flush, compaction, forget, read or crash could do.
#[test]
fn the_shuffled_models_find_planted_bugs() {
    let pairs = [
        (Bug::FlushForgetsDeaths, "forgets_beside_a_compaction"),
        (Bug::CompactionForgetsDeaths, "forgets_beside_a_compaction"),
        (Bug::SettledDeathsLost, "forgets_beside_a_compaction"),
        (Bug::DeadDroppedEarly, "forgets_beside_a_compaction"),
        (Bug::UnlinkBeforePublish, "forgets_beside_a_compaction"),
        (Bug::SnapshotSeesLater, "everything_at_once"),
        (Bug::AckBeforeSync, "everything_at_once"),
        (Bug::FloorTooHigh, "everything_at_once"),
    ];
    for (bug, scenario) in pairs {
        let model = format!("model::shuffled::{scenario}_under_random_priorities");
        assert_found(bug, &model);
    }
}
