//! Random operations against the model, seed by seed.

use chronolith_tests::data::{deep, knob};
use chronolith_tests::walk::{OPS, known_time_over_a_reopen, walk};

/// Operations of all seeds in the deep tier.
const DEEP_OPS: u64 = 1_000_000;

#[test]
fn every_answer_is_the_models() {
    let ops = u64::try_from(OPS).expect("small");
    let seeds = if deep() { DEEP_OPS.div_ceil(ops) } else { 200 };
    let (from, count) = match knob("CHRONOLITH_SEED", u64::MAX) {
        u64::MAX => (0, knob("CHRONOLITH_SEEDS", seeds)),
        seed => (seed, 1),
    };
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|threads| {
        for lane in 0..lanes {
            let seeds = (from..from + count).skip(lane).step_by(lanes);
            threads.spawn(move || seeds.for_each(|seed| drop(walk(seed))));
        }
    });
    println!("{count} seeds of {OPS} operations");
}

#[test]
fn two_runs_of_a_seed_are_the_same() {
    for seed in 1000..1005 {
        let (a, b) = (walk(seed), walk(seed));
        assert_eq!(a.trace, b.trace, "seed {seed}");
        assert_eq!(a.disk.trace(), b.disk.trace(), "seed {seed}: on the disk");
    }
}

#[test]
fn known_time_never_goes_back_over_a_reopen() {
    [false, true].into_iter().for_each(known_time_over_a_reopen);
}
