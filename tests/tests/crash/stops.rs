//! A crash at every operation of every script, and at operations of the recovery after it.

use chronolith::{Durability, Error, ReadOnlyStore};
use chronolith_tests::data::deep;
use chronolith_vfs::{CrashImage, Env, SimVfs};

use crate::life::{Bed, DIR, the_setup, write};
use crate::oracle::{End, Shared};
use crate::scripts::{Script, all, put};

/// Crash points of a script in the fast tier.
const POINTS: u64 = 24;

fn end_of(image: CrashImage) -> End {
    match image {
        CrashImage::ProcessKill => End::Kill,
        _ => End::PowerCut,
    }
}

/// Mutating operations of the script without a crash.
fn operations(script: &Script) -> u64 {
    let (env, disk, _) = Env::sim(1);
    let oracle = Shared::new(&the_setup());
    let bed = Bed::new(&env, disk.clone(), script);
    if let Err(error) = bed.live(script, &oracle) {
        panic!("{}: {error}", script.name);
    }
    disk.ops()
}

/// The script, stopped at operation `at`; half of a write is done where `half`.
fn stopped(script: &Script, at: u64, half: bool) -> (Env, SimVfs, Shared) {
    let (env, disk, _) = Env::sim(1);
    if half {
        disk.set_crash_point_half_done(at);
    } else {
        disk.set_crash_point(at);
    }
    let oracle = Shared::new(&the_setup());
    let lived = Bed::new(&env, disk.clone(), script).live(script, &oracle);
    if let Err(error) = lived {
        assert!(
            disk.has_crashed(),
            "{}: before the crash: {error}",
            script.name
        );
    }
    (env, disk, oracle)
}

/// A reader of what is left changes nothing and sees a prefix.
fn check_reader(bed: &Bed, disk: &SimVfs, oracle: &Shared) -> Result<(), String> {
    let before = disk.ops();
    let opened = ReadOnlyStore::open(DIR, bed.options.clone());
    if disk.ops() != before {
        return Err("a reader wrote".into());
    }
    let oracle = oracle.lock();
    match opened {
        Ok(reader) => oracle.find(&reader.snapshot(), 0).map(|_| ()),
        Err(_) if !oracle.created => Ok(()),
        Err(error) => Err(format!("a reader: {error}")),
    }
}

/// Reopens, checks, writes on, loses power, reopens and checks again.
fn check_image(
    env: &Env,
    disk: &SimVfs,
    script: &Script,
    oracle: &Shared,
    end: End,
) -> Result<(), String> {
    let bed = Bed::new(env, disk.clone(), script);
    check_reader(&bed, disk, oracle)?;
    let store = bed.recover(oracle, end)?;
    let failed = |error: Error| format!("after the reopen: {error}");
    write(
        &store,
        &[put("a", "later", 1000)],
        Durability::Synced,
        oracle,
    )
    .map_err(failed)?;
    write(
        &store,
        &[put("b", "buffered", 1001)],
        Durability::Buffered,
        oracle,
    )
    .map_err(failed)?;
    store.flush().map_err(failed)?;
    oracle.lock().settle();
    write(
        &store,
        &[put("a", "later", 1002)],
        Durability::Synced,
        oracle,
    )
    .map_err(failed)?;
    let again = disk.crash(CrashImage::LoseUnsynced);
    drop(store);
    let bed = Bed::new(env, again, script);
    let store = bed.recover(oracle, End::PowerCut)?;
    store.close().map_err(|error| format!("close: {error}"))
}

fn points(total: u64, count: u64) -> impl Iterator<Item = u64> {
    let stride = if deep() { 1 } else { (total / count).max(1) };
    (0..total).step_by(usize::try_from(stride).unwrap_or(usize::MAX))
}

#[test]
fn a_crash_at_any_operation_keeps_a_prefix_with_all_that_was_acknowledged() {
    let mut images = 0;
    for script in all() {
        for at in points(operations(&script), POINTS) {
            let (env, disk, oracle) = stopped(&script, at, at % 2 == 1);
            for image in CrashImage::all_seeded(at) {
                let left = disk.crash(image);
                let end = end_of(image);
                images += 1;
                if let Err(why) = check_image(&env, &left, &script, &oracle.fork(), end) {
                    panic!("{}, crash at operation {at}, {image:?}: {why}", script.name);
                }
            }
        }
    }
    eprintln!("{images} crash images");
    assert!(images > 1500, "{images} crash images");
}

#[test]
fn a_crash_inside_recovery_repeats_to_the_same() {
    let mut images = 0;
    for script in all() {
        for at in points(operations(&script), 3) {
            let (env, disk, oracle) = stopped(&script, at, false);
            let first_images = CrashImage::all_seeded(at).into_iter();
            for (first, second) in first_images.zip(CrashImage::all().into_iter().rev()) {
                images += crash_again(&script, &env, &disk, &oracle, at, (first, second));
            }
        }
    }
    eprintln!("{images} images of a crash inside recovery");
    assert!(images > 500, "{images}");
}

/// Recovers from `first`, stopped at sampled operations, each left as `second`.
fn crash_again(
    script: &Script,
    env: &Env,
    disk: &SimVfs,
    oracle: &Shared,
    at: u64,
    (first, second): (CrashImage, CrashImage),
) -> usize {
    let stride = if deep() { 1 } else { 5 };
    let mut images = 0;
    for inside in (at % stride..).step_by(usize::try_from(stride).unwrap_or(1)) {
        let left = disk.crash(first);
        left.set_crash_point(inside);
        let ours = oracle.fork();
        let opened = Bed::new(env, left.clone(), script).open(&ours);
        let ended = opened.is_ok();
        drop(opened);
        let end = match (end_of(first), end_of(second)) {
            (End::Kill, End::Kill) => End::Kill,
            _ => End::PowerCut,
        };
        images += 1;
        let left = left.crash(second);
        if let Err(why) = check_image(env, &left, script, &ours, end) {
            let name = script.name;
            panic!("{name}, crash at {at} {first:?}, then at {inside} {second:?}: {why}");
        }
        if ended {
            break;
        }
    }
    images
}
