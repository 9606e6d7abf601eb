//! Who flushes and compacts in the background, and when?
//!
//! One thread flushes, so memtables are published in the order they were sealed; another one
//! compacts, so a long merge never makes writers wait. Both sleep on a signal.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronolith_vfs::Joiner;

use crate::error::Error;

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
    last_error: Option<String>,
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

    /// The last failure of a worker, if it has not worked since.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// Notes the outcome of work that a caller did in a worker's place.
    pub(crate) fn note(&self, outcome: Result<(), Error>) {
        self.lock().last_error = outcome.err().map(|error| error.to_string());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `step` whenever there is work, until told to stop. `step` says whether it did
    /// something and should run again at once.
    pub(crate) fn run(&self, step: impl Fn() -> Result<bool, Error>) {
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
                    state.last_error = None;
                    if again {
                        seen = None;
                        state.work += 1;
                    }
                    self.changed.notify_all();
                }
                Err(error) => {
                    state.last_error = Some(error.to_string());
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
