//! Each kind of operation fails once: the handle goes on rightly, or says that it must be
//! reopened; what was refused never appears.

use chronolith::{Error, ErrorKind, Store};
use chronolith_tests::data::deep;
use chronolith_vfs::{CrashImage, Env, Errno, FaultRule, FaultVfs, OpKind, SimVfs};

use crate::life::{Bed, the_setup};
use crate::oracle::{End, Shared};
use crate::scripts::{Script, Step, all};

/// One script under one fault.
struct Trial<'a> {
    script: &'a Script,
    bed: Bed,
    env: Env,
    disk: SimVfs,
    faults: FaultVfs,
    oracle: Shared,
}

impl<'a> Trial<'a> {
    fn new(script: &'a Script) -> Self {
        let (env, disk, _) = Env::sim(1);
        let faults = FaultVfs::over_sim(&disk);
        Self {
            bed: Bed::new(&env, faults.clone(), script),
            oracle: Shared::new(&the_setup()),
            script,
            env,
            disk,
            faults,
        }
    }

    /// Runs to the end, past the fault.
    fn run(&self) -> Result<(), String> {
        let opened = self
            .bed
            .open(&self.oracle)
            .or_else(|_| self.bed.open(&self.oracle));
        let mut store = Some(opened.map_err(|e| format!("the second open: {e}"))?);
        self.oracle.lock().created = true;
        for step in &self.script.steps {
            self.step(&mut store, step)
                .map_err(|why| format!("{step:?}: {why}"))?;
        }
        let store = store.ok_or("no store is left")?;
        self.settle(&store)?;
        let left = self.disk.crash(CrashImage::LoseUnsynced);
        let bed = Bed::new(&self.env, left, self.script);
        bed.recover(&self.oracle.fork(), End::PowerCut)
            .map_err(|e| format!("power cut: {e}"))?;
        drop(store);
        let bed = Bed::new(
            &self.env,
            self.disk.crash(CrashImage::ProcessKill),
            self.script,
        );
        bed.recover(&self.oracle.fork(), End::Kill)
            .map_err(|e| format!("kill: {e}"))?;
        Ok(())
    }

    fn step(&self, store: &mut Option<Store>, step: &Step) -> Result<(), String> {
        let before = self.oracle.fork();
        let Err(error) = self.bed.step(store, step, &self.oracle) else {
            return Ok(());
        };
        if self.faults.hits() == 0 {
            return Err(format!("without a fault: {error}"));
        }
        if error.kind() == ErrorKind::Reopen || store.is_none() {
            return self.reopen(store);
        }
        if !matches!(step, Step::Write(..)) {
            // Arrivals may or may not be in; nothing else changed.
            return self.again(store, step, &error);
        }
        self.oracle.lock().refuse();
        let open = store.as_ref().ok_or("no store is left")?;
        let snapshot = open.snapshot();
        let states = before.lock();
        states
            .find(&snapshot, 0)
            .map_err(|why| format!("after the definite error {error}: {why}"))?;
        drop(states);
        self.again(store, step, &error)
    }

    /// The fault is over: the same step succeeds, or the handle says that it is of no use.
    fn again(&self, store: &mut Option<Store>, step: &Step, first: &Error) -> Result<(), String> {
        match self.bed.step(store, step, &self.oracle) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Reopen => {
                if matches!(step, Step::Write(..)) && matches!(error, Error::Poisoned { .. }) {
                    self.oracle.lock().refuse();
                }
                self.reopen(store)
            }
            Err(error) => Err(format!("fails again: {error}, after {first}")),
        }
    }

    /// A new process looks for what became of it.
    fn reopen(&self, store: &mut Option<Store>) -> Result<(), String> {
        if let Some(open) = store.take() {
            drop(open);
        }
        *store = Some(self.bed.recover(&self.oracle, End::Kill)?);
        Ok(())
    }

    fn settle(&self, store: &Store) -> Result<(), String> {
        let oracle = self.oracle.lock();
        oracle.find(&store.snapshot(), 0).map(|_| ())
    }
}

#[test]
fn each_operation_may_fail_once() {
    let mut trials = 0;
    let each = if deep() { u64::MAX } else { 3 };
    for script in all() {
        let calm = Trial::new(&script);
        calm.run()
            .unwrap_or_else(|why| panic!("{}: {why}", script.name));
        for kind in OpKind::ALL {
            let count = calm.faults.count(kind);
            let stride = count.div_ceil(each).max(1);
            let nths = (0..count).step_by(usize::try_from(stride).unwrap_or(usize::MAX));
            for (nth, errno) in nths.flat_map(|n| [(n, Errno::Io), (n, Errno::NoSpace)]) {
                let trial = Trial::new(&script);
                trial.faults.add(FaultRule::error(errno).on(kind).nth(nth));
                trials += 1;
                if let Err(why) = trial.run() {
                    panic!("{}, {errno:?} at {kind:?} {nth}: {why}", script.name);
                }
            }
        }
    }
    eprintln!("{trials} faults");
    assert!(trials > 500, "{trials}");
}
