//! Goal: no bytes from disk or from a caller make a decoder panic, hang, or hold more memory
//! than its cap, whether their checksums are right or not.
//!
//! Mechanism: every target of `chronolith_tests::fuzz` is fed mutations of a committed corpus,
//! raw, with checksums made right in place, and taken apart and put together again, under a
//! counting allocator and a watchdog. The fast tier spends under a minute;
//! `CHRONOLITH_DEEP=1` 45 minutes, `CHRONOLITH_FUZZ_SECONDS=n` n seconds, over all targets;
//! `CHRONOLITH_FUZZ_TARGET` names one, `CHRONOLITH_FUZZ_SEED` where to begin. Inputs of
//! findings lie, made smaller, in `target/tmp/fuzz`; once mended they join the corpus.

mod command;
mod inputs;
mod memory;
mod planted;
mod targets;

// What `command` attacks, under the names that it has in the command.
use command::{failure, files};
#[path = "../../../tools/src/interchange.rs"]
#[allow(dead_code, reason = "what a command reports of a bad line")]
mod interchange;
#[path = "../../../tools/src/lines.rs"]
mod lines;
#[path = "../../../tools/src/npy.rs"]
mod npy;
#[path = "../../../tools/src/times.rs"]
#[allow(dead_code, reason = "only its parser is attacked")]
mod times;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that one execution may hold, its input and its simulated disk included.
const MEMORY_MAX: usize = 64 << 20;

/// One test at a time: the allocator counts for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz")
}
