//! What does each durability level promise, and who calls the sync for whom?
//!
//! Group commit without a timer: whoever needs a sync and finds none running leads one for
//! all frames appended so far; whoever finds one running waits for its end, then looks
//! again. A frame appended while a sync runs is not covered by it.
//!
//! ```text
//!   wait_upto(seq):  failed?            -> error, for ever
//!                    durable >= seq?    -> done
//!                    sync running?      -> wait, look again
//!                    else lead: take (file, appended) under the lock; sync outside it;
//!                               durable = what was taken, or failed; wake all
//! ```
//!
//! A failed sync is final (<https://www.usenix.org/conference/atc20/presentation/rebello>):
//! the kernel may have dropped the dirty pages and call the next sync a success. So there
//! is no retry; everyone who waited gets the error and the log refuses from then on.
//!
//! One file, one protocol; `sync_model` runs this same code under loom.

use std::io;
use std::sync::PoisonError;

use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::{Condvar, Mutex, MutexGuard};

use crate::error::WalError;

/// What an acknowledgement covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives the death of the process: the frame is in the operating system's hands.
    Buffered,
    /// Survives a power cut: the frame's file is synced.
    #[default]
    Synced,
}

/// Who has been promised what. `F` is the file a sync acts on.
#[derive(Debug)]
pub(crate) struct GroupSync<F> {
    state: Mutex<State<F>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<F> {
    /// The current file. Changes only while `durable_upto == appended_upto`.
    file: F,
    /// Last seq written to `file` (or an earlier one). Never goes back.
    appended_upto: u64,
    /// Last seq a finished sync covers; `<= appended_upto`. Never goes back.
    durable_upto: u64,
    /// True while a leader is outside the lock.
    syncing: bool,
    /// The first failure. Never cleared.
    failure: Option<String>,
}

impl<F: Clone> GroupSync<F> {
    /// `durable_upto` is durable already, and nothing is appended behind it.
    pub(crate) fn new(file: F, durable_upto: u64) -> Self {
        let state = State {
            file,
            appended_upto: durable_upto,
            durable_upto,
            syncing: false,
            failure: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Notes that all seqs up to `seq` are written.
    pub(crate) fn note_append(&self, seq: u64) {
        let mut state = self.lock();
        assert!(seq > state.appended_upto, "seqs rise");
        state.appended_upto = seq;
    }

    /// Later appends go to `file`. The caller holds the log's append lock and has synced.
    pub(crate) fn switch_file(&self, file: F) {
        let mut state = self.lock();
        assert!(
            state.durable_upto == state.appended_upto,
            "a log file gets its successor only after its own sync"
        );
        state.file = file;
    }

    /// Last seq that is written. A sync that begins later covers it.
    pub(crate) fn appended_upto(&self) -> u64 {
        self.lock().appended_upto
    }

    /// Last seq that a finished sync covers.
    pub(crate) fn durable_upto(&self) -> u64 {
        self.lock().durable_upto
    }

    /// `Poisoned` after any failed sync.
    pub(crate) fn check(&self) -> Result<(), WalError> {
        match &self.lock().failure {
            Some(reason) => Err(WalError::Poisoned {
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Refuses from now on; the first reason stays.
    pub(crate) fn poison(&self, reason: String) {
        self.lock().failure.get_or_insert(reason);
        self.changed.notify_all();
    }

    /// Returns once every seq up to `seq` is durable. `gather` runs once before a sync this
    /// caller leads (an optional wait for more writers).
    pub(crate) fn sync_upto(
        &self,
        seq: u64,
        gather: impl Fn(),
        sync: impl Fn(&F) -> io::Result<()>,
    ) -> Result<(), WalError> {
        let mut state = self.lock();
        assert!(
            seq <= state.appended_upto,
            "only appended seqs can be waited for"
        );
        let mut waited = false;
        loop {
            if state.durable_upto >= seq {
                return Ok(());
            }
            if let Some(reason) = state.failure.clone() {
                if planted::is_on(Bug::PoisonNotSticky) {
                    state.failure = None;
                }
                return Err(if waited {
                    WalError::SyncFailed { reason }
                } else {
                    WalError::Poisoned { reason }
                });
            }
            waited = true;
            state = if state.syncing {
                self.wait(state)
            } else {
                self.lead(state, &gather, &sync)
            };
        }
    }

    /// Syncs the current file even if every seq is durable: for a frame that has no seq.
    pub(crate) fn sync_now(&self, sync: impl Fn(&F) -> io::Result<()>) -> Result<(), WalError> {
        let mut state = self.lock();
        while state.syncing && state.failure.is_none() {
            state = self.wait(state);
        }
        if let Some(reason) = state.failure.clone() {
            return Err(WalError::Poisoned { reason });
        }
        state = self.lead(state, &|| (), &sync);
        match state.failure.clone() {
            Some(reason) => Err(WalError::SyncFailed { reason }),
            None => Ok(()),
        }
    }

    /// Runs one sync for everything appended when it starts.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<F>>,
        gather: &impl Fn(),
        sync: &impl Fn(&F) -> io::Result<()>,
    ) -> MutexGuard<'a, State<F>> {
        state.syncing = true;
        drop(state);
        gather();
        let state = self.lock();
        let (file, target) = (state.file.clone(), state.appended_upto);
        drop(state);
        let mut outcome = sync(&file);
        if outcome.is_err() && planted::is_on(Bug::SyncRetried) {
            outcome = sync(&file);
        }
        let mut state = self.lock();
        state.syncing = false;
        match outcome {
            // Another failure meanwhile (a rename, a cut) leaves this sync's result in doubt.
            Ok(()) if state.failure.is_none() => {
                state.durable_upto = state.durable_upto.max(target)
            }
            Ok(()) => {}
            Err(e) => {
                state.failure.get_or_insert(e.to_string());
            }
        }
        self.changed.notify_all();
        state
    }

    /// A panic of another thread inside the lock leaves plain numbers, each valid by itself.
    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State<F>>) -> MutexGuard<'a, State<F>> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}
