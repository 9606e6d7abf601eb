//! What is a check here? Numbered trials that say what broke; most belong to another suite.

use chronolith_tests::crash::faults::{self, Fault};
use chronolith_tests::crash::stops::{
    check_kill_then_cut, check_stop, operations, pointer_syncs, stop,
};
use chronolith_tests::crash::{Script, scripts};
use chronolith_tests::walk;
use chronolith_vfs::{FaultAction, OpKind};

type Run = Box<dyn Fn(u64) -> Result<(), String>>;

/// A check, trial by trial; a panic is a failure too.
pub(crate) struct Check {
    /// The suite, and what of it.
    pub(crate) name: String,
    /// Trials there are.
    pub(crate) trials: u64,
    pub(crate) run: Run,
}

impl Check {
    pub(crate) fn new(
        name: impl Into<String>,
        trials: u64,
        run: impl Fn(u64) -> Result<(), String> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            trials,
            run: Box::new(run),
        }
    }
}

/// The `n`th of `total` places, jumping about, so that few trials come far around.
fn place(n: u64, total: u64) -> u64 {
    // The golden section of 2^16, made odd: it meets every place of a power of two once.
    (n * 40_503) % total.next_power_of_two() % total.max(1)
}

/// The crash enumerator on one script: a trial is an operation with its eight images.
pub(crate) fn crash(name: &'static str) -> Check {
    let script = scripts::named(name);
    let total = operations(&script).expect("the script runs with the bugs off");
    Check::new(format!("crash enumerator, {name}"), total, move |n| {
        check_stop(&script, place(n, total)).map(|_| ())
    })
}

/// As [`crash`], from the script's last operation backwards: where its last steps matter.
pub(crate) fn crash_late(name: &'static str) -> Check {
    let script = scripts::named(name);
    let total = operations(&script).expect("the script runs with the bugs off");
    let what = format!("crash enumerator, the end of {name}");
    Check::new(what, total, move |n| {
        check_stop(&script, total - 1 - n).map(|_| ())
    })
}

/// A kill before a new CURRENT is durable, then power cuts inside the recovery: a trial is a
/// publish of the script.
pub(crate) fn kill_then_cut(name: &'static str) -> Check {
    let script = scripts::named(name);
    let syncs = pointer_syncs(&script).expect("the script runs with the bugs off");
    let what = format!("power cut after a kill, {name}");
    Check::new(what, syncs.len() as u64, move |n| {
        let at = syncs[usize::try_from(n).unwrap_or(0)];
        check_kill_then_cut(&script, at, 3).map(|_| ())
    })
}

fn count(script: &Script, kind: OpKind) -> u64 {
    let counts = faults::counts(script).expect("the script runs with the bugs off");
    counts
        .iter()
        .find(|(counted, _)| *counted == kind)
        .map_or(0, |(_, count)| *count)
}

/// One way of failing: a trial is the operation that fails.
pub(crate) fn fault(name: &'static str, kind: OpKind, action: FaultAction) -> Check {
    let script = scripts::named(name);
    let total = count(&script, kind);
    let what = format!("faults, {action:?} at {kind:?}, {name}");
    Check::new(what, total, move |nth| {
        let fault = Fault {
            kind,
            nth,
            forever: false,
            action,
        };
        faults::check(&script, fault)
    })
}

/// One way of failing while what a kill left is opened again.
pub(crate) fn recovery_fault(name: &'static str, kind: OpKind, action: FaultAction) -> Check {
    let script = scripts::named(name);
    let total = operations(&script).expect("the script runs with the bugs off");
    let what = format!("faults in recovery, {action:?} at {kind:?}, {name}");
    Check::new(what, 40, move |nth| {
        let stopped = stop(&script, total - 1, false)?;
        let fault = Fault {
            kind,
            nth,
            forever: false,
            action,
        };
        faults::check_recovery(&script, &stopped, fault).map(|_| ())
    })
}

/// The random walk beside the model: a trial is a seed.
pub(crate) fn model() -> Check {
    Check::new("model, random walk", 100, |seed| {
        walk::walk(seed);
        Ok(())
    })
}

/// Known time over a reopen: not flushed, flushed.
pub(crate) fn known_time() -> Check {
    Check::new("model, known time over a reopen", 2, |n| {
        walk::known_time_over_a_reopen(n == 1);
        Ok(())
    })
}
