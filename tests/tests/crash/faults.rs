//! Each kind of operation fails in each way, once and for ever.

use chronolith_tests::crash::faults::{Fault, check, counts, modes};
use chronolith_tests::crash::scripts::all;
use chronolith_tests::data::{deep, knob};
use chronolith_vfs::RealClock;

use crate::minutes;

/// Places of a kind of operation in a script in the fast tier, for each way of failing.
const PLACES: u64 = 2;

#[test]
fn each_operation_may_fail_in_each_way_once_and_for_ever() {
    let (clock, mut trials) = (RealClock::default(), 0_u64);
    for (number, script) in (0_u64..).zip(all()) {
        let calm = counts(&script).unwrap_or_else(|why| panic!("{}: {why}", script.name));
        for (kind, count) in calm {
            for (turn, (action, forever)) in (number..).zip(modes(kind)) {
                let stride = if deep() { 1 } else { count.div_ceil(PLACES) };
                // Another place for each way and script: together they come to every place.
                let from = (turn * 7 + knob("CHRONOLITH_SEED", 0)) % stride.max(1);
                let step = usize::try_from(stride.max(1)).unwrap_or(usize::MAX);
                for nth in (from..count).step_by(step) {
                    trials += 1;
                    let fault = Fault {
                        kind,
                        nth,
                        forever,
                        action,
                    };
                    check(&script, fault).unwrap_or_else(|why| panic!("{why}"));
                }
            }
        }
    }
    let minutes = minutes(&clock);
    println!("{trials} faults, {minutes:.2} minutes");
    assert!(trials > 2000, "{trials}");
}
