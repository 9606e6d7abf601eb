//! What becomes of a script in which operations fail, once or for ever?
//!
//! The handle goes on rightly, or says that it must be reopened; what was refused never
//! appears; when the faults stop, the store opens with everything that was acknowledged.

use chronolith::{Durability, Error, ErrorKind, ReadOnlyStore, Store};
use chronolith_vfs::{CrashImage, Env, Errno, FailedSync, FaultAction, FaultRule, FaultVfs};
use chronolith_vfs::{OpKind, SimVfs};

use super::life::{Bed, DIR, the_setup, write};
use super::oracle::{End, Shared};
use super::scripts::{Script, Step, put};
use super::stops::Stopped;

/// What fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Kind of operation.
    pub kind: OpKind,
    /// The first one that fails, counted from 0.
    pub nth: u64,
    /// Every one from there on fails.
    pub forever: bool,
    /// How.
    pub action: FaultAction,
}

impl Fault {
    fn rule(self) -> FaultRule {
        let rule = FaultRule::new(self.action).on(self.kind).nth(self.nth);
        if self.forever { rule.forever() } else { rule }
    }

    /// True where nobody may notice: callers go on after short and interrupted calls.
    fn is_invisible(self) -> bool {
        let moves = matches!(self.kind, OpKind::Read | OpKind::Write);
        match self.action {
            FaultAction::Short(_) => true,
            FaultAction::Error(Errno::Interrupted) => moves && !self.forever,
            _ => false,
        }
    }
}

/// Every way in which an operation of this kind may fail.
///
/// A read or write that is interrupted for ever is none of them: it would rightly be tried for
/// ever.
pub fn modes(kind: OpKind) -> Vec<(FaultAction, bool)> {
    let mut modes = Vec::new();
    let moves = matches!(kind, OpKind::Read | OpKind::Write);
    for errno in Errno::ALL {
        modes.push((FaultAction::Error(errno), false));
        if !(moves && errno == Errno::Interrupted) {
            modes.push((FaultAction::Error(errno), true));
        }
    }
    if moves {
        modes.extend([1, 7].map(|bytes| (FaultAction::Short(bytes), true)));
    }
    let changes = [
        OpKind::Write,
        OpKind::SetLen,
        OpKind::Rename,
        OpKind::Remove,
        OpKind::Sync,
        OpKind::SyncDir,
        OpKind::Seal,
    ];
    if changes.contains(&kind) {
        modes.push((FaultAction::ErrorAfter(Errno::Io), false));
    }
    if kind == OpKind::Sync {
        for mode in [FailedSync::CacheKeepsNew, FailedSync::CacheReverts] {
            modes.push((FaultAction::FailedSync(mode), false));
            modes.push((FaultAction::FailedSync(mode), true));
        }
    }
    modes
}

/// Operations of each kind in a script without faults, as the faults count them.
///
/// # Errors
/// The script fails by itself.
pub fn counts(script: &Script) -> Result<Vec<(OpKind, u64)>, String> {
    let calm = Trial::new(script);
    calm.run(true)?;
    Ok(OpKind::ALL
        .map(|kind| (kind, calm.faults.count(kind)))
        .into())
}

/// Runs the script under one fault.
///
/// # Errors
/// The promise that was broken.
pub fn check(script: &Script, fault: Fault) -> Result<(), String> {
    let mut trial = Trial::new(script);
    if fault.action == FaultAction::FailedSync(FailedSync::CacheReverts) {
        trial.kill_end = End::PowerCut;
    }
    trial.faults.add(fault.rule());
    let outcome = if fault.forever && !fault.is_invisible() {
        trial.run_under()
    } else {
        trial.run(fault.is_invisible())
    };
    outcome.map_err(|why| format!("{}, {fault:?}: {why}", script.name))
}

/// Recovers what a kill left of a script under one fault; `None` where it met none.
///
/// # Errors
/// The promise that was broken.
pub fn check_recovery(
    script: &Script,
    stopped: &Stopped,
    fault: Fault,
) -> Result<Option<()>, String> {
    let what = |why: String| format!("{}, stopped, {fault:?}: {why}", script.name);
    let left = stopped.disk.crash(CrashImage::ProcessKill);
    let faults = FaultVfs::over_sim(&left);
    faults.add(fault.rule());
    let oracle = stopped.oracle.fork();
    let opened = Bed::new(&stopped.env, faults.clone(), script).open(&oracle);
    if faults.hits() == 0 {
        return Ok(None);
    }
    match opened {
        Ok(store) => oracle
            .lock()
            .settle_on(&store.snapshot(), End::Kill)
            .map_err(what)?,
        Err(error) if fault.is_invisible() => return Err(what(format!("noticed: {error}"))),
        Err(error) if error.kind() == ErrorKind::Damaged => {
            return Err(what(format!("a failing call is told as damage: {error}")));
        }
        Err(_) => {}
    }
    faults.clear();
    let bed = Bed::new(&stopped.env, left.crash(CrashImage::ProcessKill), script);
    bed.recover(&oracle, End::Kill).map_err(what)?;
    Ok(Some(()))
}

/// One script under one fault.
struct Trial<'a> {
    script: &'a Script,
    bed: Bed,
    env: Env,
    disk: SimVfs,
    faults: FaultVfs,
    oracle: Shared,
    /// What a reopen may have lost: a sync that fails may take the page cache with it, and
    /// `Buffered` commits live there.
    kill_end: End,
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
            kill_end: End::Kill,
        }
    }

    /// Runs to the end, past the fault; `quiet` = no step may fail.
    fn run(&self, quiet: bool) -> Result<(), String> {
        let opened = match self.bed.open(&self.oracle) {
            Err(error) if quiet => return Err(format!("open: {error}")),
            Err(_) => self.bed.open(&self.oracle),
            opened => opened,
        };
        let mut store = Some(opened.map_err(|e| format!("the second open: {e}"))?);
        self.oracle.lock().created = true;
        for step in &self.script.steps {
            let done = match quiet {
                true => self
                    .bed
                    .step(&mut store, step, &self.oracle)
                    .map_err(|error| error.to_string()),
                false => self.step(&mut store, step),
            };
            done.map_err(|why| format!("{step:?}: {why}"))?;
        }
        let store = store.ok_or("no store is left")?;
        self.settle(&store)?;
        self.check_ends(store)
    }

    /// Runs while everything from one operation on fails, then the faults stop.
    fn run_under(&self) -> Result<(), String> {
        let mut store = self.bed.open(&self.oracle).ok();
        self.oracle.lock().created |= store.is_some();
        let mut is_dead = store.is_none();
        for step in &self.script.steps {
            if store.is_none() || is_dead {
                break;
            }
            let Err(error) = self.bed.step(&mut store, step, &self.oracle) else {
                self.look_after_reopen(&store, step)?;
                continue;
            };
            is_dead = error.kind() == ErrorKind::Reopen;
            if matches!(step, Step::Write(..)) && !is_dead {
                self.oracle.lock().refuse();
            }
        }
        self.faults.clear();
        if let (Some(store), false) = (&store, is_dead) {
            self.write_on(store)?;
        }
        match store {
            Some(store) => self.check_ends(store),
            None => self.check_image(CrashImage::ProcessKill, self.kill_end),
        }
    }

    /// The faults are over: a handle that still writes says so, or must be reopened.
    fn write_on(&self, store: &Store) -> Result<(), String> {
        let late = [put("b", "late", 2000)];
        match write(store, &late, Durability::Synced, &self.oracle) {
            Ok(()) => self.settle(store),
            Err(error) if error.kind() == ErrorKind::Reopen => Ok(()),
            Err(error) => Err(format!("after the faults: {error}")),
        }
    }

    fn check_ends(&self, store: Store) -> Result<(), String> {
        self.check_image(CrashImage::LoseUnsynced, End::PowerCut)?;
        drop(store);
        self.check_image(CrashImage::ProcessKill, self.kill_end)
    }

    fn check_image(&self, image: CrashImage, end: End) -> Result<(), String> {
        let bed = Bed::new(&self.env, self.disk.crash(image), self.script);
        let recovered = bed.recover(&self.oracle.fork(), end);
        recovered.map(drop).map_err(|e| format!("{end:?}: {e}"))
    }

    fn step(&self, store: &mut Option<Store>, step: &Step) -> Result<(), String> {
        let before = self.oracle.fork();
        let Err(error) = self.bed.step(store, step, &self.oracle) else {
            return self.look_after_reopen(store, step);
        };
        if self.faults.hits() == 0 {
            return Err(format!("without a fault: {error}"));
        }
        let is_write = matches!(step, Step::Write(..));
        if is_write {
            self.check_reader(&error)?;
        }
        if error.kind() == ErrorKind::Reopen || store.is_none() {
            return self.reopen(store);
        }
        if !is_write {
            // Arrivals may or may not be in; nothing else changed.
            return self.again(store, step, &error);
        }
        self.oracle.lock().refuse();
        let open = store.as_ref().ok_or("no store is left")?;
        let found = before.lock().find(&open.snapshot(), 0);
        found.map_err(|why| format!("after the definite error {error}: {why}"))?;
        // A process that ends here leaves nothing of what was refused.
        for (image, end) in [
            (CrashImage::ProcessKill, self.kill_end),
            (CrashImage::KeepAll, End::PowerCut),
        ] {
            self.check_image(image, end)
                .map_err(|why| format!("after the definite error {error}: {why}"))?;
        }
        self.again(store, step, &error)
    }

    /// The seal of a dropped handle fails without a word, and may take `Buffered` commits along.
    fn look_after_reopen(&self, store: &Option<Store>, step: &Step) -> Result<(), String> {
        match store {
            Some(store) if matches!(step, Step::Drop | Step::Shrink | Step::Repair) => {
                let mut oracle = self.oracle.lock();
                oracle.settle_on(&store.snapshot(), self.kill_end)
            }
            _ => Ok(()),
        }
    }

    /// Other processes never see what was not acknowledged.
    fn check_reader(&self, error: &Error) -> Result<(), String> {
        let bed = Bed::new(&self.env, self.disk.clone(), self.script);
        let Ok(reader) = ReadOnlyStore::open(DIR, bed.options) else {
            return Ok(());
        };
        match self.oracle.lock().is_acked(&reader.snapshot())? {
            true => Ok(()),
            false => Err(format!("a reader sees what failed with {error}")),
        }
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
        drop(store.take());
        *store = Some(self.bed.recover(&self.oracle, self.kill_end)?);
        Ok(())
    }

    fn settle(&self, store: &Store) -> Result<(), String> {
        let oracle = self.oracle.lock();
        oracle.find(&store.snapshot(), 0).map(|_| ())
    }
}
