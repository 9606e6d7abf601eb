//! Which trials are there? Each takes the engines and fills one or two sections of the report.

pub mod delete;
pub mod disk_full;
pub mod flips;
pub mod power;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::child::{Job, Work};
use crate::engine::Engine;
use crate::report::Report;
use crate::runner::{CPU_S, MEMORY_BYTES};

/// What every trial works with.
pub struct Bench<'a> {
    /// The engines that were asked for.
    pub engines: &'a [Box<dyn Engine>],
    /// Where stores live.
    pub base: &'a Path,
    /// `--trials`.
    pub trials: usize,
    /// `--seed`.
    pub seed: u64,
    /// What comes out.
    pub report: Report,
}

/// A child's work on the store in `dir`, under the usual limits.
pub fn work(job: Job, engine: &str, dir: PathBuf, seed: u64) -> Work {
    Work {
        job,
        engine: engine.to_owned(),
        dir,
        seed,
        commits: 0,
        per_commit: 1,
        bytes_min: 0,
        marked: 0,
        small_buffers: false,
        kill: false,
        search: false,
        ballast: None,
        memory_bytes: MEMORY_BYTES,
        cpu_s: CPU_S,
    }
}

/// Runs `trial` for 0 to `count`, on as many threads as there are cores, with progress on
/// stderr; results in order.
pub fn each<T: Send>(name: &str, count: usize, trial: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let result = trial(index);
                    let Ok(mut done) = done.lock() else { break };
                    done.push((index, result));
                    if done.len() % (count / 4).max(1) == 0 || done.len() == count {
                        eprintln!("{name}: {} of {count}", done.len());
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
