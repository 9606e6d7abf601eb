//! Goal: after a crash at any operation the store opens at the last published generation or
//! the one in flight, whole. Mechanism: stop a scripted run at every operation, look at every
//! image of the disk, reopen, go on. Found by it: a pointer that was seen but not durable.

use std::path::Path;

use chronolith_vfs::Vfs;

use super::super::{
    Manifest, ManifestError, first_free_file_number, load, load_read_only, orphans, sweep,
};
use super::disk::{CrashImage, Disk};
use super::store::{Failure, advance, assert_data_whole, clean, healthy, store};

const GENERATIONS: u64 = 4;

/// Creation and three publishes, with removals; `published` is what was acknowledged.
fn scenario(vfs: &dyn Vfs, store: &Path, published: &mut Vec<Manifest>) -> Result<(), Failure> {
    for generation in 1..=GENERATIONS {
        published.push(advance(vfs, store, generation)?);
        if let [.., older, before, now] = &published[..] {
            clean(vfs, store, [older, before, now])?;
        }
    }
    Ok(())
}

/// Runs the scenario up to operation `n`; `None` once it ends before that.
fn run_until(n: usize) -> Option<(Disk, u64)> {
    let disk = Disk::default();
    disk.set_crash_point(n);
    let mut published = Vec::new();
    scenario(&disk, &store(), &mut published).err()?;
    Some((disk, published.len() as u64))
}

/// Opens after a crash, finishes a cut creation, and returns the generation that opened.
fn reopen(disk: &Disk, acknowledged: u64, expected: &[Manifest], context: &str) -> u64 {
    let store = store();
    let loaded = match load(disk, &store) {
        Ok(loaded) => loaded,
        Err(
            ManifestError::Missing { .. }
            | ManifestError::EmptyDirectory { .. }
            | ManifestError::CreationUnfinished { .. },
        ) if acknowledged == 0 => {
            advance(disk, &store, 1)
                .unwrap_or_else(|error| panic!("{context}: created again: {error}"));
            load(disk, &store).expect("just created")
        }
        Err(error) => panic!("{context}: {error}"),
    };
    let generation = loaded.manifest.generation;
    assert!(
        (acknowledged..=acknowledged + 1).contains(&generation),
        "{context}: generation {generation}"
    );
    assert_eq!(
        loaded.manifest,
        expected[usize::try_from(generation).expect("small") - 1],
        "{context}: a mix"
    );
    assert_eq!(loaded.damaged_copy, None, "{context}");
    assert_data_whole(disk, &store, &loaded.manifest);
    generation
}

fn sweep_now(disk: &Disk, manifest: &Manifest) {
    let free = first_free_file_number(disk, &store(), manifest).expect("listed");
    sweep(
        disk,
        orphans(disk, &store(), manifest, free).expect("listed"),
    )
    .expect("swept");
    assert_data_whole(disk, &store(), manifest);
}

#[test]
fn a_crash_at_any_operation_opens_at_the_generation_before_or_after() {
    let (_, expected) = healthy(GENERATIONS + 1);
    let mut images = 0;
    let (mut before, mut after) = (0, 0);
    for n in 0.. {
        let Some((disk, acknowledged)) = run_until(n) else {
            break;
        };
        for image in CrashImage::all() {
            let context = format!("operation {n}, {image:?}");
            let disk = disk.crash(image);
            let generation = reopen(&disk, acknowledged, &expected, &context);
            if generation == acknowledged {
                before += 1
            } else {
                after += 1
            }
            sweep_now(
                &disk,
                &expected[usize::try_from(generation).expect("small") - 1],
            );
            // The store goes on from there, over whatever orphans there were.
            let next = advance(&disk, &store(), generation + 1)
                .unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_eq!(
                load_read_only(&disk, &store()).expect("published").manifest,
                next,
                "{context}"
            );
            images += 1;
        }
    }
    assert!(
        images >= 8 * 60 && before > 0 && after > 0,
        "{images} images, {before} before, {after} after"
    );
}

#[test]
fn a_power_cut_after_a_killed_process_was_reopened_and_swept_loses_nothing() {
    let (_, expected) = healthy(GENERATIONS + 1);
    for n in 0.. {
        let Some((disk, acknowledged)) = run_until(n) else {
            break;
        };
        disk.restart();
        let generation = reopen(&disk, acknowledged, &expected, &format!("killed at {n}"));
        sweep_now(
            &disk,
            &expected[usize::try_from(generation).expect("small") - 1],
        );
        for image in CrashImage::all() {
            let context = format!("killed at {n}, swept, then {image:?}");
            let found = reopen(&disk.crash(image), generation, &expected, &context);
            assert_eq!(found, generation, "{context}");
        }
    }
}

#[test]
fn a_crash_inside_the_recovery_repeats_to_the_same_generation() {
    let (_, expected) = healthy(GENERATIONS + 1);
    let mut cut = 0;
    for n in (0..).step_by(7) {
        let Some((first, acknowledged)) = run_until(n) else {
            break;
        };
        for image in CrashImage::all() {
            for m in 0.. {
                let disk = first.crash(image);
                disk.set_crash_point(m);
                let store = store();
                let Ok(loaded) = load(&disk, &store) else {
                    cut += 1;
                    if m > 4 {
                        break;
                    }
                    let context = format!("operation {n}, {image:?}, recovery {m}");
                    reopen(
                        &disk.crash(CrashImage::all()[m % 8]),
                        acknowledged,
                        &expected,
                        &context,
                    );
                    continue;
                };
                let swept = orphans(&disk, &store, &loaded.manifest, u64::MAX)
                    .and_then(|orphans| sweep(&disk, orphans));
                if swept.is_ok() {
                    break;
                }
                cut += 1;
                let context = format!("operation {n}, {image:?}, sweep {m}");
                let found = reopen(
                    &disk.crash(CrashImage::all()[m % 8]),
                    acknowledged,
                    &expected,
                    &context,
                );
                assert_eq!(found, loaded.manifest.generation, "{context}");
            }
        }
    }
    assert!(cut > 100, "{cut}");
}
