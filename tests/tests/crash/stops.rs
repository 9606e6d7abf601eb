//! A crash at every operation of every script, and at operations of the recoveries after it.

use chronolith_tests::crash::scripts::all;
use chronolith_tests::crash::stops::{
    Counts, Depth, check_kill_then_cut, check_stop, check_stops_inside, operations, pointer_syncs,
};
use chronolith_tests::data::{deep, knob};
use chronolith_vfs::RealClock;

use crate::minutes;

/// Crash points of a script in the fast tier.
const POINTS: u64 = 40;

/// Up to about `count` of `total` operations, evenly; another `CHRONOLITH_SEED`, other ones.
fn points(total: u64, count: u64) -> impl Iterator<Item = u64> {
    let stride = (total / count).max(1);
    let from = knob("CHRONOLITH_SEED", 0) % stride;
    (from..total).step_by(usize::try_from(stride).unwrap_or(usize::MAX))
}

fn say(what: &str, counts: Counts, clock: &RealClock) {
    let Counts { images, recoveries } = counts;
    let minutes = minutes(clock);
    println!("{what}: {images} images, {recoveries} recoveries, {minutes:.2} minutes");
}

#[test]
fn a_crash_at_any_operation_keeps_a_prefix_with_all_that_was_acknowledged() {
    let (clock, mut counts) = (RealClock::default(), Counts::default());
    for script in all() {
        let total = operations(&script).unwrap_or_else(|why| panic!("{why}"));
        for at in points(total, if deep() { total } else { POINTS }) {
            counts += check_stop(&script, at).unwrap_or_else(|why| panic!("{why}"));
        }
    }
    say("crashes", counts, &clock);
    assert!(counts.images > 4000, "{counts:?}");
}

/// Recoveries of `points` stops of every script, each stopped again and again.
fn inside(what: &str, points_max: u64, depth: Depth, images_min: u64) {
    let (clock, mut counts) = (RealClock::default(), Counts::default());
    for (number, script) in (0..).zip(all()) {
        let total = operations(&script).unwrap_or_else(|why| panic!("{why}"));
        // Not the same place of every script, and the last operation of none is left out for ever.
        let from = number % (total / points_max).max(1);
        for at in points(total - from, points_max) {
            let checked = check_stops_inside(&script, at + from, depth);
            counts += checked.unwrap_or_else(|why| panic!("{why}"));
        }
    }
    say(what, counts, &clock);
    assert!(counts.images > images_min, "{counts:?}");
}

#[test]
fn a_crash_inside_recovery_repeats_to_the_same() {
    let (points, stride) = if deep() { (30, 2) } else { (4, 5) };
    let depth = Depth {
        recoveries: 1,
        stride,
    };
    inside("crashes inside a recovery", points, depth, 1500);
}

#[test]
fn a_crash_inside_the_recovery_of_a_recovery_repeats_to_the_same() {
    let (points, stride) = if deep() { (4, 7) } else { (1, 11) };
    let depth = Depth {
        recoveries: 2,
        stride,
    };
    inside(
        "crashes inside the recovery of a recovery",
        points,
        depth,
        400,
    );
}

/// Visible is not durable: a recovery must not build on a `CURRENT` that only the cache has.
#[test]
fn a_power_cut_after_a_kill_finds_what_either_left() {
    let (clock, mut counts) = (RealClock::default(), Counts::default());
    let (each, seeds) = if deep() { (usize::MAX, 8) } else { (1, 3) };
    for (number, script) in all().into_iter().enumerate() {
        let syncs = pointer_syncs(&script).unwrap_or_else(|why| panic!("{why}"));
        let from = number % syncs.len();
        for at in syncs.iter().cycle().skip(from).take(each.min(syncs.len())) {
            let checked = check_kill_then_cut(&script, *at, seeds);
            counts += checked.unwrap_or_else(|why| panic!("{why}"));
        }
    }
    say(
        "power cuts inside the recovery after a kill",
        counts,
        &clock,
    );
    assert!(counts.images > 400, "{counts:?}");
}
