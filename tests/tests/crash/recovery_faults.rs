//! Each kind of operation fails while a store that was killed is opened again.

use chronolith_tests::crash::faults::{Fault, check_recovery, modes};
use chronolith_tests::crash::scripts::all;
use chronolith_tests::crash::stops::{operations, stop};
use chronolith_tests::data::{deep, knob};
use chronolith_vfs::{OpKind, RealClock};

use crate::minutes;

#[test]
fn each_operation_of_a_recovery_may_fail() {
    let (clock, mut trials) = (RealClock::default(), 0_u64);
    let shift = usize::try_from(knob("CHRONOLITH_SEED", 0)).unwrap_or(0);
    for (number, script) in (0_usize..).zip(all()) {
        let total = operations(&script).unwrap_or_else(|why| panic!("{why}"));
        let stopped = stop(&script, total - 1, false).unwrap_or_else(|why| panic!("{why}"));
        for kind in OpKind::ALL {
            for (turn, (action, forever)) in modes(kind).into_iter().enumerate() {
                let step = if deep() { 1 } else { 8 };
                let from = match deep() {
                    true => 0,
                    false => (number + turn + shift) % 8,
                };
                for nth in (from as u64..).step_by(step) {
                    let fault = Fault {
                        kind,
                        nth,
                        forever,
                        action,
                    };
                    let checked = check_recovery(&script, &stopped, fault);
                    if checked.unwrap_or_else(|why| panic!("{why}")).is_none() {
                        break;
                    }
                    trials += 1;
                }
            }
        }
    }
    let minutes = minutes(&clock);
    println!("{trials} faults inside a recovery, {minutes:.2} minutes");
    assert!(trials > 1000, "{trials}");
}
