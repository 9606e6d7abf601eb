//! Goal: `atomic` shows old content or new, never another, at every crash point and fault.
//!
//! Mechanism: one run counts the operations; then each operation is the crash point, whole and
//! half done, under every image and several seeds.

use std::io::ErrorKind;
use std::path::Path;

use chronolith_vfs::{CrashImage, Errno, FaultRule, FaultVfs, SimVfs, Vfs, atomic};

const OLD: &[u8] = &[1; 1500];
const NEW: &[u8] = &[2; 2500];

fn dir() -> &'static Path {
    Path::new("/")
}

fn name() -> &'static Path {
    Path::new("/f")
}

/// A disk with the old content and a stale file aside.
fn disk(old: Option<&[u8]>) -> SimVfs {
    let sim = SimVfs::new();
    if let Some(old) = old {
        atomic::replace(&sim, dir(), "f", "f.tmp", old).expect("replaced");
    }
    let stale = sim.create_new(Path::new("/f.tmp")).expect("created");
    stale
        .write_all_at(b"half of something", 0)
        .expect("written");
    sim
}

fn replace(vfs: &dyn Vfs) -> std::io::Result<()> {
    atomic::replace(vfs, dir(), "f", "f.tmp", NEW)
}

/// Crashes at every operation of `work` over fresh disks; calls `check` for each image with
/// whether the work had succeeded.
fn at_every_crash(
    make: impl Fn() -> SimVfs,
    work: impl Fn(&dyn Vfs) -> std::io::Result<()>,
    check: impl Fn(&SimVfs, bool, &str),
) {
    let whole = make();
    let first = whole.ops();
    work(&whole).expect("works without a crash");
    assert!(whole.ops() >= first + 5, "counts too few operations");
    for (point, half) in (first..=whole.ops()).flat_map(|p| [(p, false), (p, true)]) {
        let sim = make();
        if half {
            sim.set_crash_point_half_done(point);
        } else {
            sim.set_crash_point(point);
        }
        let done = work(&sim).is_ok();
        assert_eq!(done, point == whole.ops());
        for image in (0..8).flat_map(CrashImage::all_seeded) {
            let what = format!("crash at {point}, half {half}, {image:?}");
            check(&sim.crash(image), done, &what);
        }
    }
}

#[test]
fn replace_shows_old_or_new_at_every_crash_point() {
    at_every_crash(
        || disk(Some(OLD)),
        replace,
        |sim, done, what| {
            let got = sim.content(name()).expect(what);
            assert!(got == NEW || (!done && got == OLD), "{what}");
            replace(sim).expect("works again after the crash");
            assert_eq!(sim.files(), [name()], "{what}");
        },
    );
}

#[test]
fn the_first_replace_shows_nothing_or_new() {
    at_every_crash(
        || disk(None),
        replace,
        |sim, done, what| match sim.content(name()) {
            Ok(got) => assert_eq!(got, NEW, "{what}"),
            Err(_) => assert!(!done, "{what}"),
        },
    );
}

/// The harness can fail: without the file's sync another content shows.
#[test]
fn a_replace_without_a_sync_is_caught() {
    let sim = disk(Some(OLD));
    sim.remove_file(Path::new("/f.tmp")).expect("removed");
    let file = sim.create_new(Path::new("/f.tmp")).expect("created");
    file.write_all_at(NEW, 0).expect("written");
    sim.rename(Path::new("/f.tmp"), name()).expect("renamed");
    sim.sync_dir(dir()).expect("synced");
    let bad = CrashImage::all().into_iter().filter(|image| {
        let got = sim.crash(*image).content(name()).expect("named");
        got != OLD && got != NEW
    });
    assert!(bad.count() >= 3);
}

#[test]
fn a_sealed_file_is_whole_or_absent_at_every_crash_point() {
    at_every_crash(
        || disk(None),
        |vfs| {
            atomic::create_sealed(vfs, dir(), "f", "f.tmp", NEW)?;
            vfs.sync_dir(dir())
        },
        |sim, done, what| match sim.content(name()) {
            Ok(got) => {
                assert_eq!(got, NEW, "{what}");
                assert!(sim.is_sealed(name()).expect("named"), "{what}");
            }
            Err(_) => assert!(!done, "{what}"),
        },
    );
}

#[test]
fn a_sealed_file_is_not_replaced() {
    let sim = disk(None);
    atomic::create_sealed(&sim, dir(), "f", "f.tmp", OLD).expect("created");
    let again = atomic::create_sealed(&sim, dir(), "f", "f.tmp", NEW);
    assert_eq!(again.expect_err("taken").kind(), ErrorKind::AlreadyExists);
    assert_eq!(sim.content(name()).expect("named"), OLD);
}

#[test]
fn a_fault_at_any_operation_leaves_old_or_new_and_no_file_aside() {
    for errno in [Errno::Io, Errno::NoSpace, Errno::TooManyFiles] {
        for n in 0.. {
            let sim = disk(Some(OLD));
            let faults = FaultVfs::over_sim(&sim);
            faults.add(FaultRule::error(errno).nth(n));
            let done = replace(&faults).is_ok();
            assert_eq!(done, faults.hits() == 0, "{errno:?} at {n} goes unnoticed");
            let got = sim.content(name()).expect("named");
            assert!(got == NEW || (!done && got == OLD), "{errno:?} at {n}");
            if done {
                assert_eq!(n, faults.total());
                break;
            }
            // An operation later the stale file is gone, or its removal is what failed.
            assert!(n == 0 || sim.files() == [name()], "{errno:?} at {n}");
        }
    }
}
