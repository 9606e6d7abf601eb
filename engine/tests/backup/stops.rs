//! What is left when a backup or a restore is stopped, or an operation of it fails?

use std::path::Path;

use chronolith::{BackupError, Error};
use chronolith_vfs::{
    CrashImage, Env, Errno, FailedSync, FaultAction, FaultRule, FaultVfs, OpKind, SimVfs, Vfs,
};

use crate::support::{self, back_up, bring_back, names, open, put, records};

/// Restores from an image of a disk and says which of `states` it is; `None`: there is no
/// finished backup. Anything else fails.
fn state_of(env: &Env, states: &[&[String]]) -> Option<usize> {
    match bring_back(env, "/judge") {
        Ok(_) => {
            let found = records(&open(env, "/judge"));
            let at = states.iter().position(|state| **state == found[..]);
            Some(at.expect("one of the states that were backed up"))
        }
        Err(Error::Backup(BackupError::NotABackup { .. })) => None,
        Err(error) => panic!("a finished backup is whole: {error}"),
    }
}

/// Stops a backup at every operation. Before it `start` restores to state `old`, after it to
/// `new`; nothing else is ever found.
fn stop_backups(env: &Env, start: &SimVfs, copies: bool, states: &[&[String]], new: usize) {
    let old = new.checked_sub(1);
    let whole = start.crash(CrashImage::KeepAll);
    back_up(&env.with_vfs(whole.clone()), copies).expect("backs up");
    for point in 0..whole.ops() {
        let stopped = start.crash(CrashImage::KeepAll);
        stopped.set_crash_point_half_done(point);
        let outcome = back_up(&env.with_vfs(stopped.clone()), copies);
        for image in CrashImage::all_seeded(point) {
            let after = env.with_vfs(stopped.crash(image));
            let state = state_of(&after, states);
            assert!(
                state == old || state == Some(new),
                "{point} {image:?}: {state:?}"
            );
            if outcome.is_ok() {
                assert_eq!(state, Some(new), "{point} {image:?}: it was done");
            }
            if !matches!(image, CrashImage::LoseUnsynced | CrashImage::Subset { .. }) {
                continue;
            }
            // What the crash left is in nobody's way.
            back_up(&after, copies).unwrap_or_else(|e| panic!("{point} {image:?}: {e}"));
            bring_back(&after, "/end").expect("restores");
            assert_eq!(
                records(&open(&after, "/end")),
                *states[new],
                "{point} {image:?}"
            );
            assert_eq!(
                records(&open(&after, "/store")),
                *states[new],
                "{point} {image:?}"
            );
        }
    }
}

#[test]
fn a_crash_at_every_operation_of_a_backup_leaves_the_one_before_it() {
    for copies in [false, true] {
        let (env, sim, _clock) = Env::sim(9);
        let store = support::store(&env);
        let first = records(&store);
        stop_backups(&env, &sim.crash(CrashImage::KeepAll), copies, &[&first], 0);
        back_up(&env, copies).expect("backs up");
        put(&store, 30);
        store.flush().expect("flushes");
        put(&store, 31);
        let second = records(&store);
        stop_backups(
            &env,
            &sim.crash(CrashImage::KeepAll),
            copies,
            &[&first, &second],
            1,
        );
    }
}

#[test]
fn a_crash_at_every_operation_of_a_restore_leaves_a_store_or_none() {
    let (env, sim, _clock) = Env::sim(10);
    let want = records(&support::store(&env));
    back_up(&env, false).expect("backs up");
    for empty_dir in [false, true] {
        let start = sim.crash(CrashImage::KeepAll);
        if empty_dir {
            start.create_dir(Path::new("/new")).expect("made");
            start.sync_dir(Path::new("/")).expect("synced");
        }
        let whole = start.crash(CrashImage::KeepAll);
        bring_back(&env.with_vfs(whole.clone()), "/new").expect("restores");
        for point in 0..=whole.ops() {
            let stopped = start.crash(CrashImage::KeepAll);
            stopped.set_crash_point_half_done(point);
            let outcome = bring_back(&env.with_vfs(stopped.clone()), "/new");
            for image in CrashImage::all_seeded(point) {
                let disk = stopped.crash(image);
                let after = env.with_vfs(disk.clone());
                let is_there = !names(&disk, "/new").is_empty();
                assert!(
                    is_there || outcome.is_err(),
                    "{point} {image:?}: it was done"
                );
                if !is_there {
                    bring_back(&after, "/new").unwrap_or_else(|e| panic!("{point} {image:?}: {e}"));
                }
                assert_eq!(records(&open(&after, "/new")), want, "{point} {image:?}");
            }
        }
    }
}

#[test]
fn a_fault_at_every_operation_of_a_backup_touches_neither_store_nor_old_backup() {
    let (env, sim, _clock) = Env::sim(11);
    let store = support::store(&env);
    let first = records(&store);
    back_up(&env, true).expect("backs up");
    put(&store, 40);
    store.flush().expect("flushes");
    put(&store, 41);
    let second = records(&store);
    drop(store);
    let counted = FaultVfs::over_sim(&sim.crash(CrashImage::KeepAll));
    back_up(&env.with_vfs(counted.clone()), false).expect("backs up");
    for nth in 0..counted.total() {
        for (errno, forever) in [
            (Errno::Io, false),
            (Errno::NoSpace, false),
            (Errno::Io, true),
        ] {
            let disk = sim.crash(CrashImage::KeepAll);
            let faults = FaultVfs::over_sim(&disk);
            let rule = FaultRule::error(errno).nth(nth);
            faults.add(if forever { rule.forever() } else { rule });
            let before = names(&disk, "/store");
            let outcome = back_up(&env.with_vfs(faults.clone()), false);
            assert!(faults.hits() > 0);
            assert_eq!(names(&disk, "/store"), before);
            let clean = env.with_vfs(disk);
            let state = state_of(&clean, &[&first, &second]);
            assert!(state.is_some(), "{nth} {errno:?}");
            assert!(
                outcome.is_err() || state == Some(1),
                "{nth} {errno:?}: it was done"
            );
            let store = open(&clean, "/store");
            assert_eq!(records(&store), second);
            put(&store, 42);
        }
    }
}

#[test]
fn a_backup_that_finds_the_disk_full_gives_its_space_back() {
    let (env, sim, _clock) = Env::sim(18);
    drop(support::store(&env));
    let used: usize = sim
        .files()
        .iter()
        .map(|path| sim.content(path).expect("there").len())
        .sum();
    for spare in [0, 100, 1000, 5000] {
        let disk = sim.crash(CrashImage::KeepAll);
        disk.set_space(Some(used + spare));
        back_up(&env.with_vfs(disk.clone()), true).expect_err("full");
        let left = names(&disk, "/backup");
        assert_eq!(left, [Path::new("/backup/LOCK")], "{spare}");
        disk.set_space(None);
        back_up(&env.with_vfs(disk), true).expect("there is room again");
    }
}

#[test]
fn a_failed_sync_of_a_backup_is_never_a_finished_one() {
    let (env, sim, _clock) = Env::sim(12);
    let want = records(&support::store(&env));
    let counted = FaultVfs::over_sim(&sim.crash(CrashImage::KeepAll));
    back_up(&env.with_vfs(counted.clone()), true).expect("backs up");
    for nth in 0..counted.count(OpKind::Sync) {
        for mode in [FailedSync::CacheKeepsNew, FailedSync::CacheReverts] {
            let disk = sim.crash(CrashImage::KeepAll);
            let faults = FaultVfs::over_sim(&disk);
            let rule = FaultRule::new(FaultAction::FailedSync(mode));
            faults.add(rule.on(OpKind::Sync).nth(nth));
            back_up(&env.with_vfs(faults), true).expect_err("told");
            for image in CrashImage::all_seeded(nth) {
                let after = env.with_vfs(disk.crash(image));
                assert_eq!(state_of(&after, &[&want]), None, "{nth} {mode:?} {image:?}");
            }
        }
    }
}

#[test]
fn a_fault_at_every_operation_of_a_restore_leaves_no_store() {
    let (env, sim, _clock) = Env::sim(13);
    let want = records(&support::store(&env));
    back_up(&env, false).expect("backs up");
    let counted = FaultVfs::over_sim(&sim.crash(CrashImage::KeepAll));
    bring_back(&env.with_vfs(counted.clone()), "/new").expect("restores");
    for nth in 0..counted.total() {
        for errno in [Errno::Io, Errno::NoSpace] {
            let disk = sim.crash(CrashImage::KeepAll);
            let faults = FaultVfs::over_sim(&disk);
            faults.add(FaultRule::error(errno).nth(nth));
            let outcome = bring_back(&env.with_vfs(faults), "/new");
            let after = env.with_vfs(disk.clone());
            match outcome {
                Ok(_) => {}
                Err(_) if names(&disk, "/new").is_empty() => {
                    bring_back(&after, "/new").expect("restores without faults");
                }
                // Only the very last sync comes behind the rename.
                Err(error) => assert!(error.to_string().starts_with("sync /:"), "{nth}: {error}"),
            }
            assert_eq!(records(&open(&after, "/new")), want, "{nth} {errno:?}");
        }
    }
}
