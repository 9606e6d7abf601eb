//! Who flushes and compacts in the background, and when?
//!
//! One thread flushes, so memtables are published in the order they were sealed; another one
//! compacts, so a long merge never makes writers wait. Both sleep on a signal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronolith_vfs::Joiner;

use crate::error::Error;
use crate::reserve::is_full;

/// How long an error keeps a worker from trying again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What the workers are told and what they report.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    /// Raised by whoever made work.
    work: u64,
    /// The last failure of each kind of work that has not succeeded since.
    errors: BTreeMap<&'static str, String>,
    /// The kinds whose failure was a full disk.
    full: BTreeSet<&'static str>,
}

impl Signal {
    /// There may be something to do, or something was done.
    pub(crate) fn notify(&self) {
        self.lock().work += 1;
        self.changed.notify_all();
    }

    /// Ends the workers.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// True once the workers are told to end: long work should stop where it stands.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stop
    }

    /// Waits until `done` holds or the time is over; false = the time is over.
    pub(crate) fn wait_until(&self, timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, timeout, |_| !done());
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What fails in the background, and has not worked since.
    pub(crate) fn last_error(&self) -> Option<String> {
        let state = self.lock();
        let errors = state.errors.iter();
        let told: Vec<_> = errors.map(|(work, why)| format!("{work}: {why}")).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// True while `work` fails because the disk is full.
    pub(crate) fn is_full(&self, work: &'static str) -> bool {
        self.lock().full.contains(work)
    }

    /// Notes the outcome of `work`, by whoever did it.
    pub(crate) fn note(&self, work: &'static str, outcome: Result<(), Error>) {
        self.lock().note(work, outcome.err());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `step` whenever there is work, until told to stop. `step` says whether it did
    /// something and should run again at once. A panic is noted under `work` and goes on.
    pub(crate) fn run(&self, work: &'static str, step: impl Fn() -> Result<bool, Error>) {
        let told = NoteOnDrop { signal: self, work };
        self.run_guarded(work, step);
        std::mem::forget(told);
    }

    fn run_guarded(&self, work: &'static str, step: impl Fn() -> Result<bool, Error>) {
        let mut seen = None;
        let mut state = self.lock();
        while !state.stop {
            if seen == Some(state.work) {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            seen = Some(state.work);
            drop(state);
            let done = step();
            state = self.lock();
            match done {
                Ok(again) => {
                    state.note(work, None);
                    if again {
                        seen = None;
                        state.work += 1;
                    }
                    self.changed.notify_all();
                }
                Err(error) => {
                    state.note(work, Some(error));
                    self.changed.notify_all();
                    let retry = self
                        .changed
                        .wait_timeout_while(state, RETRY_AFTER, |state| !state.stop);
                    state = retry.unwrap_or_else(PoisonError::into_inner).0;
                    seen = None;
                }
            }
        }
    }
}

impl State {
    fn note(&mut self, work: &'static str, error: Option<Error>) {
        match error.as_ref().is_some_and(is_full) {
            true => self.full.insert(work),
            false => self.full.remove(work),
        };
        match error {
            Some(error) => self.errors.insert(work, error.to_string()),
            None => self.errors.remove(work),
        };
    }
}

/// Notes the end of a worker that nobody asked for, unless forgotten.
struct NoteOnDrop<'a> {
    signal: &'a Signal,
    work: &'static str,
}

impl Drop for NoteOnDrop<'_> {
    fn drop(&mut self) {
        let why = "ended by a panic; reopen the store".to_owned();
        self.signal.lock().errors.insert(self.work, why);
        self.signal.changed.notify_all();
    }
}

/// The background threads of a handle; stopped and joined when dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    signal: Arc<Signal>,
    joiners: Mutex<Vec<Box<dyn Joiner>>>,
}

impl Worker {
    pub(crate) fn new(signal: Arc<Signal>, joiners: Vec<Box<dyn Joiner>>) -> Self {
        Self {
            signal,
            joiners: Mutex::new(joiners),
        }
    }

    /// Stops and waits. A worker that panicked has left its reason in the pipeline.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        let joiners =
            std::mem::take(&mut *self.joiners.lock().unwrap_or_else(PoisonError::into_inner));
        for joiner in joiners {
            joiner.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn failed() -> Result<bool, Error> {
        Err(Error::Internal("no room".into()))
    }

    #[test]
    fn one_workers_success_does_not_hide_anothers_failure() {
        let signal = Signal::default();
        signal.note("flush", failed().map(|_| ()));
        signal.note("compact", Ok(()));
        let told = signal.last_error().expect("the flush still fails");
        assert!(
            told.starts_with("flush: ") && told.contains("no room"),
            "{told}"
        );
        signal.note("flush", Ok(()));
        assert_eq!(signal.last_error(), None);
    }

    #[test]
    fn a_worker_that_panics_is_told_of() {
        let signal = Signal::default();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            signal.run("flush", || panic!("planned"));
        }));
        assert!(ended.is_err());
        let told = signal.last_error().expect("a worker is gone");
        assert!(told.contains("flush") && told.contains("panic"), "{told}");
    }
}
