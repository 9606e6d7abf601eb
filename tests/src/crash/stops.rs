//! What is left of a store that is stopped at an operation, and of one that is stopped again
//! while it recovers?
//!
//! Every check returns why it failed: the crash suite panics with it, the planted suite counts
//! it as a catch.

use chronolith::{Durability, Error, ReadOnlyStore};
use chronolith_vfs::{CrashImage, Env, SimVfs};

use super::life::{Bed, DIR, the_setup, write};
use super::oracle::{End, Shared};
use super::scripts::{Script, put};

/// Images looked at, recoveries run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Disks as a crash may leave them.
    pub images: u64,
    /// Opens for writing of such disks, the ones cut short included.
    pub recoveries: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.images += other.images;
        self.recoveries += other.recoveries;
    }
}

fn end_of(image: CrashImage) -> End {
    match image {
        CrashImage::ProcessKill => End::Kill,
        _ => End::PowerCut,
    }
}

/// Mutating operations of the script without a crash.
///
/// # Errors
/// The script fails by itself.
pub fn operations(script: &Script) -> Result<u64, String> {
    let (env, disk, _) = Env::sim(1);
    let oracle = Shared::new(&the_setup());
    let bed = Bed::new(&env, disk.clone(), script);
    let lived = bed.live(script, &oracle);
    lived.map_err(|error| format!("{}, without a crash: {error}", script.name))?;
    Ok(disk.ops())
}

/// A life that was stopped.
#[derive(Debug)]
pub struct Stopped {
    /// Its environment.
    pub env: Env,
    /// Its disk; images are taken of it.
    pub disk: SimVfs,
    /// What it may hold.
    pub oracle: Shared,
    /// What a reader must see at least after a kill.
    reader_floor: usize,
}

/// The script, stopped at operation `at`; half of a write is done where `half`.
///
/// # Errors
/// The script failed before.
pub fn stop(script: &Script, at: u64, half: bool) -> Result<Stopped, String> {
    let (env, disk, _) = Env::sim(1);
    if half {
        disk.set_crash_point_half_done(at);
    } else {
        disk.set_crash_point(at);
    }
    let oracle = Shared::new(&the_setup());
    match Bed::new(&env, disk.clone(), script).live(script, &oracle) {
        Err(error) if !disk.has_crashed() => {
            Err(format!("{}, before the crash: {error}", script.name))
        }
        _ => {
            // A process that is dead may acknowledge one more Buffered commit: nothing that its
            // caller waits for fails, and nobody hears of it. Its status is not there.
            let acked = oracle.lock().acked();
            // A status that is half written proves nothing: then a reader refuses, or shows less.
            let trace = disk.trace();
            let at_status = trace.last().is_some_and(|op| op.path.ends_with("STATUS"));
            Ok(Stopped {
                env,
                disk,
                oracle,
                reader_floor: match half && at_status {
                    true => 0,
                    false => acked.saturating_sub(1),
                },
            })
        }
    }
}

/// A reader of what is left changes nothing and sees a prefix, after a kill all of what was
/// acknowledged.
fn check_reader(bed: &Bed, disk: &SimVfs, oracle: &Shared, floor: usize) -> Result<(), String> {
    let before = disk.ops();
    let opened = ReadOnlyStore::open(DIR, bed.options.clone());
    if disk.ops() != before {
        return Err("a reader wrote".into());
    }
    let oracle = oracle.lock();
    match opened {
        Ok(reader) => {
            let found = oracle.find(&reader.snapshot(), floor);
            found.map(|_| ()).map_err(|why| format!("a reader: {why}"))
        }
        // After a power cut the log may be shorter than what was shown before it.
        Err(Error::Behind { .. }) if floor == 0 => Ok(()),
        Err(_) if !oracle.created => Ok(()),
        Err(error) => Err(format!("a reader: {error}")),
    }
}

/// A backup that was acknowledged stays whole, whatever became of the store and of a later one.
fn check_backup(env: &Env, disk: &SimVfs, script: &Script, oracle: &Shared) -> Result<(), String> {
    let Some(floor) = oracle.lock().backed_up else {
        return Ok(());
    };
    // Names that the script itself did not take.
    let bed = Bed::new(env, disk.crash(CrashImage::ProcessKill), script).far_places();
    let restored = bed.restore(oracle, floor);
    let restored = restored.map_err(|error| format!("the backup: {error}"))?;
    restored.map_err(|why| format!("the backup: {why}"))
}

/// Reopens, checks, writes on, loses power, reopens and checks again.
fn check_image(
    env: &Env,
    disk: &SimVfs,
    script: &Script,
    oracle: &Shared,
    (end, reader_floor): (End, usize),
) -> Result<(), String> {
    check_backup(env, disk, script, oracle)?;
    let bed = Bed::new(env, disk.clone(), script);
    check_reader(&bed, disk, oracle, reader_floor)?;
    let store = bed.recover(oracle, end)?;
    let failed = |error: Error| format!("after the reopen: {error}");
    let puts = [
        ("a", "later", 1000, Durability::Synced),
        ("b", "buffered", 1001, Durability::Buffered),
        ("a", "later", 1002, Durability::Synced),
    ];
    for (path, id, n, durability) in puts {
        write(&store, &[put(path, id, n)], durability, oracle).map_err(failed)?;
        if n == 1000 {
            // Before a flush: what the recovery itself wrote must hold.
            let bed = Bed::new(env, disk.crash(CrashImage::LoseUnsynced), script);
            bed.recover(&oracle.fork(), End::PowerCut)
                .map_err(|why| format!("once more: {why}"))?;
        }
        if n == 1001 {
            store.flush().map_err(failed)?;
            oracle.lock().settle();
        }
    }
    let again = disk.crash(CrashImage::LoseUnsynced);
    drop(store);
    let bed = Bed::new(env, again, script);
    let store = bed.recover(oracle, End::PowerCut)?;
    store.close().map_err(|error| format!("close: {error}"))
}

/// Stops the script at operation `at` and checks every image of its disk.
///
/// # Errors
/// The first image that is not as it may be.
pub fn check_stop(script: &Script, at: u64) -> Result<Counts, String> {
    let stopped = stop(script, at, at % 2 == 1)?;
    let mut counts = Counts::default();
    for image in CrashImage::all_seeded(at) {
        let left = stopped.disk.crash(image);
        let end = end_of(image);
        let floor = match end {
            End::Kill => stopped.reader_floor,
            End::PowerCut => 0,
        };
        counts.images += 1;
        counts.recoveries += 3;
        let ours = stopped.oracle.fork();
        check_image(&stopped.env, &left, script, &ours, (end, floor)).map_err(|why| {
            let name = script.name;
            format!("{name}, crash at operation {at}, {image:?}: {why}")
        })?;
    }
    Ok(counts)
}

/// How deep crashes inside recoveries go, and which of their operations are taken.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Recoveries that are cut short, one after the other.
    pub recoveries: usize,
    /// Of each recovery, every so many-th operation.
    pub stride: u64,
}

/// Stops the script at `at`, then recoveries of it; every pairing of images.
///
/// # Errors
/// The first image that is not as it may be.
pub fn check_stops_inside(script: &Script, at: u64, depth: Depth) -> Result<Counts, String> {
    let stopped = stop(script, at, false)?;
    let mut counts = Counts::default();
    // Paired differently from place to place, so that in the end all pairs are met.
    let seconds = CrashImage::all_seeded(at + 1);
    let turn = usize::try_from(at % 8).unwrap_or(0);
    for (number, first) in CrashImage::all_seeded(at).into_iter().enumerate() {
        let second = seconds[(number + turn) % 8];
        let left = stopped.disk.crash(first);
        let what = format!("{}, crash at {at} {first:?}", script.name);
        let fall = Fall {
            script,
            env: &stopped.env,
            end: end_of(first),
            images: [second, first],
            what,
        };
        fall.again(&left, &stopped.oracle, depth, at, &mut counts)?;
    }
    Ok(counts)
}

/// Opens a whole disk, stopped at each operation and left as `image`; a reader looks as well.
///
/// # Errors
/// The first image that is not as it may be.
pub fn check_left(
    script: &Script,
    env: &Env,
    disk: &SimVfs,
    oracle: &Shared,
    image: CrashImage,
) -> Result<Counts, String> {
    let bed = Bed::new(env, disk.clone(), script);
    let acked = oracle.lock().acked();
    check_reader(&bed, disk, oracle, acked).map_err(|why| format!("a whole disk: {why}"))?;
    let mut counts = Counts::default();
    let fall = Fall {
        script,
        env,
        end: End::Kill,
        images: [image, CrashImage::KeepAll],
        what: "a whole disk".into(),
    };
    let depth = Depth {
        recoveries: 1,
        stride: 1,
    };
    fall.again(disk, oracle, depth, 0, &mut counts)?;
    Ok(counts)
}

/// Operations of the script that make names in the store's own directory durable: before each
/// of them a new `CURRENT` can be seen and lost.
///
/// # Errors
/// The script fails by itself.
pub fn pointer_syncs(script: &Script) -> Result<Vec<u64>, String> {
    let (env, disk, _) = Env::sim(1);
    let oracle = Shared::new(&the_setup());
    let lived = Bed::new(&env, disk.clone(), script).live(script, &oracle);
    lived.map_err(|error| format!("{}, without a crash: {error}", script.name))?;
    let is_pointer = |op: &chronolith_vfs::TraceEntry| {
        op.kind == chronolith_vfs::OpKind::SyncDir && op.path.as_os_str() == DIR
    };
    let trace = disk.trace();
    Ok(trace
        .iter()
        .filter(|op| is_pointer(op))
        .map(|op| op.number)
        .collect())
}

/// Kills the process at operation `at` and cuts the power at every operation of the recovery;
/// `seeds` ways of what is left of it.
///
/// # Errors
/// The first image that is not as it may be.
pub fn check_kill_then_cut(script: &Script, at: u64, seeds: u64) -> Result<Counts, String> {
    let stopped = stop(script, at, false)?;
    let left = stopped.disk.crash(CrashImage::ProcessKill);
    let mut counts = Counts::default();
    for seed in 0..seeds {
        let fall = Fall {
            script,
            env: &stopped.env,
            end: End::Kill,
            images: [CrashImage::Subset { seed }, CrashImage::KeepAll],
            what: format!("{}, killed at {at}", script.name),
        };
        let depth = Depth {
            recoveries: 1,
            stride: 1,
        };
        fall.again(&left, &stopped.oracle, depth, 0, &mut counts)?;
    }
    Ok(counts)
}

/// A crash, and the images of the next ones.
struct Fall<'a> {
    script: &'a Script,
    env: &'a Env,
    end: End,
    /// Of the next crash, and of the one after it.
    images: [CrashImage; 2],
    what: String,
}

impl Fall<'_> {
    /// Recovers from `disk`, stopped at sampled operations.
    fn again(
        &self,
        disk: &SimVfs,
        oracle: &Shared,
        depth: Depth,
        from: u64,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let [image, next] = self.images;
        let step = usize::try_from(depth.stride).unwrap_or(usize::MAX);
        for inside in (from % depth.stride..).step_by(step) {
            // As a killed process leaves it: the same disk, once more.
            let trial = disk.crash(CrashImage::ProcessKill);
            trial.set_crash_point(inside);
            let ours = oracle.fork();
            let opened = Bed::new(self.env, trial.clone(), self.script).open(&ours);
            let ended = opened.is_ok();
            drop(opened);
            counts.recoveries += 1;
            let left = trial.crash(image);
            let fall = Fall {
                end: match (self.end, end_of(image)) {
                    (End::Kill, End::Kill) => End::Kill,
                    _ => End::PowerCut,
                },
                images: [next, image],
                what: format!("{}, then at {inside} {image:?}", self.what),
                ..*self
            };
            if depth.recoveries > 1 {
                let deeper = Depth {
                    recoveries: depth.recoveries - 1,
                    ..depth
                };
                fall.again(&left, oracle, deeper, inside, counts)?;
            } else {
                counts.images += 1;
                counts.recoveries += 3;
                check_image(self.env, &left, self.script, &ours, (fall.end, 0))
                    .map_err(|why| format!("{}: {why}", fall.what))?;
            }
            if ended {
                break;
            }
        }
        Ok(())
    }
}
