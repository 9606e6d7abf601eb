//! A store of format 0 that was committed with this test is opened, and the open is stopped
//! at every operation: it opens with everything in it, or it is untouched enough to open then.
//!
//! The store is the disk that a kill left of a script, so what it must hold is computed, not
//! recorded. Format 0 may still change: `CHRONOLITH_WRITE_FIXTURE=1` writes it anew.

#![expect(
    clippy::disallowed_methods,
    reason = "the fixture lies in the source tree"
)]

use std::path::{Path, PathBuf};

use chronolith_tests::crash::stops::{Counts, check_left};
use chronolith_tests::crash::{Bed, Script, Shared, scripts, the_setup};
use chronolith_vfs::{CrashImage, Env, SimVfs, Vfs};

/// Segments, delete sets, tag edges, and a log that no segment has.
fn script() -> Script {
    let mut script = scripts::named("delete");
    let tags = scripts::named("tags");
    script.steps.extend(tags.steps);
    script.steps.pop();
    script
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/store-format-0.bin")
}

/// What a kill leaves of the script, with what it must hold.
fn made() -> (Env, SimVfs, Shared) {
    let (env, disk, _) = Env::sim(1);
    let oracle = Shared::new(&the_setup());
    let (script, mut image) = (script(), None);
    let bed = Bed::new(&env, disk.clone(), &script);
    let killed = || image = Some(disk.crash(CrashImage::ProcessKill));
    bed.live_until(&script, &oracle, killed)
        .expect("the script runs");
    (env, image.expect("the script came to its end"), oracle)
}

fn pack(disk: &SimVfs) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |bytes: &[u8]| {
        out.extend(u32::try_from(bytes.len()).expect("small").to_le_bytes());
        out.extend(bytes);
    };
    for path in disk.files() {
        put(path.to_string_lossy().as_bytes());
        put(&disk.content(&path).expect("there"));
    }
    out
}

fn unpack(mut bytes: &[u8]) -> SimVfs {
    let mut take = || {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(usize::try_from(u32::from_le_bytes(*len)).ok()?);
        bytes = rest;
        Some(part)
    };
    let disk = SimVfs::new();
    while let (Some(path), Some(content)) = (take(), take()) {
        let path = Path::new(std::str::from_utf8(path).expect("a path"));
        let dirs: Vec<_> = path.ancestors().skip(1).collect();
        for dir in dirs.into_iter().rev().filter(|dir| dir.parent().is_some()) {
            let _ = disk.create_dir(dir);
            disk.sync_dir(dir.parent().expect("filtered"))
                .expect("synced");
        }
        let file = disk.create_new(path).expect("created");
        file.write_all_at(content, 0).expect("written");
        file.sync_all().expect("synced");
        disk.sync_dir(path.parent().expect("a directory"))
            .expect("synced");
    }
    disk
}

#[test]
fn a_committed_store_of_format_0_opens_wherever_the_open_is_stopped() {
    let (env, image, oracle) = made();
    if std::env::var_os("CHRONOLITH_WRITE_FIXTURE").is_some() {
        std::fs::write(fixture(), pack(&image)).expect("written");
        println!("{} was written", fixture().display());
    }
    let bytes = std::fs::read(fixture()).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; CHRONOLITH_WRITE_FIXTURE=1 writes it",
            fixture().display()
        )
    });
    let (script, mut counts) = (script(), Counts::default());
    for image in CrashImage::all() {
        let disk = unpack(&bytes);
        let checked = check_left(&script, &env, &disk, &oracle, image);
        counts += checked.unwrap_or_else(|why| panic!("format 0: {why}"));
    }
    println!(
        "upgrade: {} images, {} recoveries",
        counts.images, counts.recoveries
    );
    assert!(counts.images > 50, "{counts:?}");
}
