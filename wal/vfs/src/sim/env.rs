//! A clock that only moves when told to, and the whole simulated environment.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::SimVfs;
use super::random::SeededEntropy;
use crate::real::RealThreads;
use crate::traits::{Clock, Env, Vfs};

/// Where simulated wall time begins: 2025-01-01T00:00:00Z, in microseconds.
const START_US: i64 = 1_735_689_600_000_000;

/// A clock that stands still until it is set, advanced or slept on.
#[derive(Debug)]
pub struct SimClock {
    wall_us: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl Default for SimClock {
    fn default() -> Self {
        Self {
            wall_us: AtomicI64::new(START_US),
            monotonic_ns: AtomicU64::new(0),
        }
    }
}

impl SimClock {
    /// Starts at 2025-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets wall time, forwards or back; monotonic time does not change.
    pub fn set_us(&self, now_us: i64) {
        self.wall_us.store(now_us, Ordering::SeqCst);
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, duration: Duration) {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.wall_us.fetch_add(us, Ordering::SeqCst);
        self.monotonic_ns.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now_us(&self) -> i64 {
        self.wall_us.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::SeqCst)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

impl Env {
    /// An empty simulated disk, a clock that stands still, and randomness from `seed`; threads
    /// are real. The disk and the clock come along, to be crashed and moved.
    pub fn sim(seed: u64) -> (Self, SimVfs, Arc<SimClock>) {
        let vfs = SimVfs::new();
        let clock = Arc::new(SimClock::new());
        let env = Self {
            vfs: Arc::new(vfs.clone()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::new(SeededEntropy::new(seed)),
            threads: Arc::new(RealThreads),
        };
        (env, vfs, clock)
    }

    /// The same environment over other files: a crash image, or a layer of faults.
    #[must_use]
    pub fn with_vfs(&self, vfs: impl Vfs + 'static) -> Self {
        Self {
            vfs: Arc::new(vfs),
            ..self.clone()
        }
    }
}
