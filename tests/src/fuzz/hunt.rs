//! How is a target attacked for a while, and what is kept of a finding?
//!
//! Every execution has a seed of its own, so that a finding can be repeated without the ones
//! before it. Panics are caught; a run that takes too long ends the process after its input is
//! written; memory is what one execution held at most, so it bounds its largest allocation.

#![expect(
    clippy::disallowed_methods,
    reason = "a hunt measures time, watches from a thread and keeps its findings in real files"
)]

use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use super::{Target, corpus, mutate};
use crate::generate::Rng;

/// Counts what an execution holds. The test binary has the allocator.
pub trait Memory {
    /// Forgets the peak.
    fn start(&self);
    /// Most bytes held since the start, beyond what was held then.
    fn peak(&self) -> usize;
}

/// How to attack.
#[derive(Debug, Clone)]
pub struct Hunt {
    /// Seed of the first execution; the next one has the next number.
    pub seed: u64,
    /// When to stop.
    pub time: Duration,
    /// An execution that takes longer ends the process.
    pub hang: Duration,
    /// Most bytes that an execution may hold.
    pub memory_max: usize,
    /// Where inputs of findings go.
    pub scratch: PathBuf,
}

/// What went wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Where and what; findings of one place are one.
    pub what: String,
    /// Seed of the execution.
    pub seed: u64,
    /// The input, made smaller, in the scratch directory.
    pub file: PathBuf,
}

/// What a hunt saw.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Inputs that were run.
    pub executions: u64,
    /// Those that the decoder took.
    pub taken: u64,
    /// Most bytes that one execution held.
    pub memory_peak: usize,
    /// What went wrong.
    pub findings: Vec<Finding>,
}

/// Findings after which a hunt stops.
const FINDINGS_MAX: usize = 12;
/// Executions that are spent on making one finding smaller.
const SMALLER_TRIES: usize = 400;

/// What the watchdog looks at.
type Watched = Arc<Mutex<Option<(Instant, u64, Vec<u8>)>>>;

/// Attacks a target.
///
/// # Panics
/// If corpus or scratch directory cannot be used.
pub fn hunt(target: &Target, hunt: &Hunt, memory: &dyn Memory) -> Tally {
    let inputs: Vec<Vec<u8>> = corpus(target.corpus)
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    fs::create_dir_all(&hunt.scratch).expect("a scratch directory");
    let watched = watch(target.name, hunt);
    let mut tally = Tally::default();
    let (start, mut seed) = (Instant::now(), hunt.seed);
    // One run outside of the count: what is made once and kept is not an execution's.
    let _ = check_one(target, &inputs[0], usize::MAX, memory);
    while start.elapsed() < hunt.time && tally.findings.len() < FINDINGS_MAX {
        let input = make(target, &inputs, seed);
        *lock(&watched) = Some((Instant::now(), seed, input.clone()));
        let outcome = check_one(target, &input, hunt.memory_max, memory);
        *lock(&watched) = None;
        tally.executions += 1;
        match outcome {
            Ok((taken, peak)) => {
                tally.taken += u64::from(taken);
                tally.memory_peak = tally.memory_peak.max(peak);
            }
            Err(what) if is_known(&tally.findings, &what) => {}
            Err(what) => {
                let small = smaller(target, input, &what, hunt, memory);
                let name = format!("{}-{seed:x}", target.name);
                let file = keep(&hunt.scratch, &name, &small);
                tally.findings.push(Finding { what, seed, file });
            }
        }
        seed += 1;
    }
    tally
}

/// The input of one execution.
fn make(target: &Target, inputs: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let (input, other) = (rng.pick(inputs), rng.pick(inputs));
    remake(target, input, other, rng.next())
}

/// Changes an input with the help of another one: raw, with checksums made right in place, or
/// taken apart and put together again.
pub fn remake(target: &Target, input: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut input = input.to_vec();
    let Some(forge) = target.forge else {
        mutate(&mut rng, &mut input, other);
        return input;
    };
    match rng.below(10) {
        0 | 1 => mutate(&mut rng, &mut input, other),
        2..=4 => {
            mutate(&mut rng, &mut input, other);
            (forge.patch)(&mut input);
        }
        _ => {
            if let Some(mut parts) = (forge.take_apart)(&input) {
                let others = (forge.take_apart)(other).unwrap_or_default();
                change_parts(&mut rng, &mut parts, &others);
                input = (forge.put_together)(&parts);
            }
        }
    }
    input
}

/// Changes one part, now and then two; or drops, doubles or exchanges one.
fn change_parts(rng: &mut Rng, parts: &mut Vec<Vec<u8>>, others: &[Vec<u8>]) {
    for _ in 0..1 + usize::from(rng.percent(25)) {
        let at = rng.below(parts.len());
        let other = others.get(at).cloned().unwrap_or_default();
        match rng.below(40) {
            0 => {
                parts.remove(at);
                if parts.is_empty() {
                    return;
                }
            }
            1 => parts.insert(at, other),
            2 => parts[at] = other,
            _ => mutate(rng, &mut parts[at], &other),
        }
    }
}

/// Runs one input: whether it was taken and what it held, or what went wrong.
///
/// # Errors
/// A panic with its place, or too much memory.
pub fn check_one(
    target: &Target,
    input: &[u8],
    memory_max: usize,
    memory: &dyn Memory,
) -> Result<(bool, usize), String> {
    keep_panics();
    RUNNING.set(true);
    memory.start();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let peak = memory.peak();
    RUNNING.set(false);
    match outcome {
        Ok(_) if peak > memory_max => Err(format!("{}: held too much memory", target.name)),
        Ok(taken) => Ok((taken, peak)),
        Err(_) => Err(lock(&LAST_PANIC)
            .take()
            .unwrap_or_else(|| "a panic without a place".into())),
    }
}

static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// True while this thread runs a target; all other panics are shown as ever.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the place of a target's panic instead of printing it.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !RUNNING.get() {
                return before(info);
            }
            let place = info.location().map(ToString::to_string);
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let text: String = text.unwrap_or("no message").chars().take(200).collect();
            *lock(&LAST_PANIC) = Some(format!("{}: {text}", place.unwrap_or_default()));
        }));
    });
}

/// Puts zeros over stretches, and leaves stretches out, as long as it goes wrong the same way.
fn smaller(
    target: &Target,
    mut input: Vec<u8>,
    what: &str,
    hunt: &Hunt,
    memory: &dyn Memory,
) -> Vec<u8> {
    let goes_wrong = |input: &[u8]| {
        let outcome = check_one(target, input, hunt.memory_max, memory);
        outcome.is_err_and(|other| place_of(&other) == place_of(what))
    };
    let mut tries = SMALLER_TRIES;
    let mut step = input.len() / 2;
    while step > 0 && tries > 0 {
        let mut at = 0;
        while at < input.len() && tries > 1 {
            let end = (at + step).min(input.len());
            let mut without = input.clone();
            without.drain(at..end);
            let mut zeroed = input.clone();
            zeroed[at..end].fill(0);
            tries -= 2;
            let smaller = [without, zeroed].into_iter().find_map(|mut candidate| {
                if let Some(forge) = target.forge {
                    (forge.patch)(&mut candidate);
                }
                (candidate != input && goes_wrong(&candidate)).then_some(candidate)
            });
            match smaller {
                Some(smaller) if smaller.len() < input.len() => input = smaller,
                Some(smaller) => {
                    input = smaller;
                    at = end;
                }
                None => at = end,
            }
        }
        step /= 2;
    }
    input
}

fn is_known(findings: &[Finding], what: &str) -> bool {
    findings
        .iter()
        .any(|finding| place_of(&finding.what) == place_of(what))
}

/// File and line of a finding.
fn place_of(what: &str) -> &str {
    what.split(": ").next().unwrap_or(what)
}

fn keep(scratch: &Path, name: &str, input: &[u8]) -> PathBuf {
    let file = scratch.join(name);
    fs::write(&file, input).expect("a scratch directory that can be written");
    file
}

/// Ends the process when an execution takes too long: nothing can stop it from outside.
fn watch(name: &'static str, hunt: &Hunt) -> Watched {
    let watched = Watched::default();
    let (seen, hang, scratch) = (Arc::downgrade(&watched), hunt.hang, hunt.scratch.clone());
    std::thread::spawn(move || {
        while let Some(watched) = seen.upgrade() {
            if let Some((start, seed, input)) = &*lock(&watched)
                && start.elapsed() > hang
            {
                let file = keep(&scratch, &format!("{name}-hang-{seed:x}"), input);
                eprintln!(
                    "{name}: seed {seed} runs for more than {hang:?}; input in {}",
                    file.display()
                );
                std::process::abort();
            }
            drop(watched);
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    watched
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
