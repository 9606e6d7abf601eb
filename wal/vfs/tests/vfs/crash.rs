//! Goal: a crash takes what was not synced and nothing else.
//!
//! Mechanism: small disks in a known state, each image looked at; random workloads against a
//! model that knows for every file which contents are allowed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{CrashImage, FailedSync, OpKind, SimVfs, Vfs, VfsFile, is_simulated_crash};
use proptest::prelude::*;

fn path(name: &str) -> &Path {
    Path::new(name)
}

/// `/a` with synced content and a durable name.
fn synced(bytes: &[u8]) -> (SimVfs, Arc<dyn VfsFile>) {
    let sim = SimVfs::new();
    let file = sim.create_new(path("/a")).expect("created");
    file.write_all_at(bytes, 0).expect("written");
    file.sync_data().expect("synced");
    sim.sync_dir(path("/")).expect("synced");
    (sim, file)
}

fn content(sim: &SimVfs, image: CrashImage) -> Vec<u8> {
    sim.crash(image)
        .content(path("/a"))
        .expect("a durable name")
}

#[test]
fn every_image_keeps_what_was_synced() {
    let (sim, _) = synced(&[7; 3000]);
    for seed in 0..20 {
        for image in CrashImage::all_seeded(seed) {
            assert_eq!(content(&sim, image), [7; 3000], "{image:?}");
        }
    }
}

#[test]
fn each_image_keeps_and_loses_what_it_says() {
    let (sim, file) = synced(&[1; 600]);
    file.write_all_at(&[2; 1000], 300).expect("written");
    let old = vec![1; 600];
    let new: Vec<u8> = [vec![1; 300], vec![2; 1000]].concat();
    let length_leads: Vec<u8> = [vec![1; 600], vec![0; 700]].concat();
    assert_eq!(content(&sim, CrashImage::LoseUnsynced), old);
    assert_eq!(content(&sim, CrashImage::NamesOnly), old);
    assert_eq!(content(&sim, CrashImage::KeepAll), new);
    assert_eq!(content(&sim, CrashImage::DataOnly), new);
    assert_eq!(content(&sim, CrashImage::ProcessKill), new);
    assert_eq!(content(&sim, CrashImage::LengthLeads), length_leads);
    assert_eq!(
        sim.content(path("/a")).expect("unchanged"),
        new,
        "the disk itself stays"
    );
}

#[test]
fn a_killed_process_leaves_data_that_a_later_power_cut_takes() {
    let (sim, file) = synced(b"old");
    file.write_all_at(b"new", 0).expect("written");
    let killed = sim.crash(CrashImage::ProcessKill);
    assert_eq!(content(&killed, CrashImage::LoseUnsynced), b"old");
    let reopened = killed.open_write(path("/a")).expect("opened");
    reopened.sync_data().expect("synced");
    assert_eq!(content(&killed, CrashImage::LoseUnsynced), b"new");
    assert_eq!(
        content(&sim, CrashImage::LoseUnsynced),
        b"old",
        "disks are apart"
    );
}

#[test]
fn torn_writes_tear_at_512_and_nowhere_else() {
    let (sim, file) = synced(&[0; 4096]);
    file.write_all_at(&[9; 3000], 100).expect("written");
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        let torn = content(&sim, CrashImage::Torn { seed });
        assert_eq!(torn.len(), 4096);
        for (index, sector) in torn.chunks(512).enumerate() {
            let written = (index * 512).max(100)..(index * 512 + 512).clamp(100, 3100);
            let old = vec![0; 512];
            let mut new = old.clone();
            for at in written {
                new[at - index * 512] = 9;
            }
            assert!(
                sector == old || sector == new,
                "sector {index} of seed {seed}"
            );
        }
        seen.insert(torn);
    }
    assert!(seen.len() > 16, "only {} different images", seen.len());
}

#[test]
fn a_sector_is_never_newer_in_one_part_than_in_another() {
    let (sim, file) = synced(&[]);
    file.write_all_at(b"first", 0).expect("written");
    file.write_all_at(b"second", 5).expect("written");
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        seen.insert(content(&sim, CrashImage::Torn { seed }));
    }
    let want: [&[u8]; 3] = [&[0; 11], b"first\0\0\0\0\0\0", b"firstsecond"];
    let want: BTreeSet<Vec<u8>> = want.iter().map(|bytes| bytes.to_vec()).collect();
    assert_eq!(seen, want);
}

#[test]
fn a_cut_and_what_follows_it_survive_in_order() {
    let (sim, file) = synced(&[1; 10]);
    file.set_len(4).expect("cut");
    file.set_len(8).expect("extended");
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        seen.insert(content(&sim, CrashImage::Subset { seed }));
    }
    let want = [vec![1; 10], vec![1; 4], vec![1, 1, 1, 1, 0, 0, 0, 0]];
    assert_eq!(seen, want.into_iter().collect());
}

#[test]
fn equal_seeds_give_equal_images() {
    let (sim, file) = synced(&[0; 4096]);
    file.write_all_at(&[9; 4096], 0).expect("written");
    for image in CrashImage::all_seeded(5) {
        assert_eq!(content(&sim, image), content(&sim, image), "{image:?}");
    }
}

#[test]
fn a_seal_is_durable_after_sync_all() {
    let (sim, file) = synced(b"x");
    sim.seal(path("/a")).expect("sealed");
    let sealed = |image| sim.crash(image).is_sealed(path("/a")).expect("named");
    assert!(!sealed(CrashImage::LoseUnsynced));
    file.sync_data().expect("synced");
    assert!(!sealed(CrashImage::LoseUnsynced));
    assert!(sealed(CrashImage::KeepAll));
    file.sync_all().expect("synced");
    assert!(sealed(CrashImage::LoseUnsynced));
}

#[test]
fn a_sealed_file_is_not_written() {
    let (sim, file) = synced(b"x");
    sim.seal(path("/a")).expect("sealed");
    let denied = io::ErrorKind::PermissionDenied;
    assert_eq!(file.write_at(b"y", 0).expect_err("sealed").kind(), denied);
    assert_eq!(file.set_len(0).expect_err("sealed").kind(), denied);
    assert_eq!(
        sim.open_write(path("/a")).expect_err("sealed").kind(),
        denied
    );
}

#[test]
fn a_crash_releases_locks() {
    let sim = SimVfs::new();
    let lock = sim.try_lock(path("/LOCK")).expect("free");
    for image in CrashImage::all() {
        sim.crash(image)
            .try_lock(path("/LOCK"))
            .expect("free after the crash");
    }
    assert!(lock.is_valid());
}

#[test]
fn nothing_works_at_and_behind_the_crash_point() {
    let (sim, file) = synced(b"old");
    let ops = sim.ops();
    sim.set_crash_point(ops + 1);
    file.write_all_at(b"new", 0).expect("before the point");
    let error = file.write_all_at(b"xyz", 0).expect_err("at the point");
    assert!(is_simulated_crash(&error), "{error}");
    assert!(sim.has_crashed());
    assert!(is_simulated_crash(&file.len().expect_err("behind")));
    assert!(is_simulated_crash(
        &sim.list(path("/")).expect_err("behind")
    ));
    assert!(is_simulated_crash(
        &sim.try_lock(path("/L")).expect_err("behind")
    ));
    assert_eq!(content(&sim, CrashImage::KeepAll), b"new");
    let last = sim.trace().pop().expect("traced");
    assert_eq!(
        (last.number, last.kind, last.bytes),
        (ops + 1, OpKind::Write, 3)
    );
    assert_eq!(sim.crash(CrashImage::KeepAll).ops(), 0);
}

#[test]
fn a_half_done_write_is_half_done() {
    let (sim, file) = synced(&[1; 2048]);
    sim.set_crash_point_half_done(sim.ops());
    let error = file.write_all_at(&[2; 2048], 0).expect_err("at the point");
    assert!(is_simulated_crash(&error));
    let half = [vec![2; 1024], vec![1; 1024]].concat();
    assert_eq!(content(&sim, CrashImage::KeepAll), half);
    assert_eq!(content(&sim, CrashImage::LoseUnsynced), [1; 2048]);
}

#[test]
fn a_failed_sync_loses_the_pages_and_the_next_one_succeeds() {
    for mode in [FailedSync::CacheKeepsNew, FailedSync::CacheReverts] {
        let (sim, file) = synced(b"old");
        file.write_all_at(b"newer", 0).expect("written");
        sim.fail_sync(0, mode);
        assert_eq!(file.sync_data().expect_err("fails").raw_os_error(), Some(5));
        let reads: &[u8] = match mode {
            FailedSync::CacheKeepsNew => b"newer",
            FailedSync::CacheReverts => b"old\0\0",
        };
        assert_eq!(sim.content(path("/a")).expect("read"), reads);
        assert_eq!(content(&sim, CrashImage::ProcessKill), reads);
        assert_eq!(content(&sim, CrashImage::LoseUnsynced), b"old");
        file.sync_data().expect("lies");
        for image in CrashImage::all().into_iter().take(7) {
            assert_eq!(content(&sim, image), b"old\0\0", "{image:?}");
        }
    }
}

#[test]
fn a_full_disk_takes_writes_again_when_space_returns() {
    let (sim, file) = synced(&[1; 100]);
    sim.set_space(Some(150));
    let error = file.write_at(&[2; 100], 100).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    file.write_all_at(&[2; 100], 0).expect("no growth");
    sim.set_space(None);
    file.write_all_at(&[2; 100], 100).expect("space");
}

#[test]
fn damage_outlives_a_crash() {
    let (sim, _) = synced(b"bytes");
    sim.damage(path("/a"), |bytes| bytes[0] ^= 1)
        .expect("damaged");
    assert_eq!(content(&sim, CrashImage::LoseUnsynced), b"cytes");
    assert_eq!(sim.files(), [path("/a")]);
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, Vec<u8>),
    SetLen(usize),
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = proptest::collection::vec(1u8.., 0..1500);
    prop_oneof![
        4 => (0usize..2500, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
        1 => (0usize..3000).prop_map(Step::SetLen),
        2 => Just(Step::Sync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Naive twin: all contents since the last sync. Every sector of an image is that sector
    /// in one of them (or zeros), and the length is one of theirs.
    #[test]
    fn an_image_is_made_of_sectors_since_the_last_sync(
        steps in proptest::collection::vec(step(), 1..12),
        seed: u64,
    ) {
        let (sim, file) = synced(&[]);
        let mut versions = vec![Vec::new()];
        for step in steps {
            let mut now = versions[versions.len() - 1].clone();
            match step {
                Step::Write(at, bytes) => {
                    if !bytes.is_empty() {
                        now.resize(now.len().max(at + bytes.len()), 0);
                        now[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                    file.write_all_at(&bytes, at as u64)?;
                    versions.push(now);
                }
                Step::SetLen(len) => {
                    now.resize(len, 0);
                    file.set_len(len as u64)?;
                    versions.push(now);
                }
                Step::Sync => {
                    file.sync_data()?;
                    versions = vec![now];
                }
            }
        }
        let cuts = versions.windows(2).any(|pair| pair[1].len() < pair[0].len());
        let now = versions[versions.len() - 1].clone();
        prop_assert_eq!(&content(&sim, CrashImage::KeepAll), &now);
        prop_assert_eq!(&content(&sim, CrashImage::LoseUnsynced), &versions[0]);
        for image in CrashImage::all_seeded(seed) {
            let got = content(&sim, image);
            prop_assert!(versions.iter().any(|v| v.len() == got.len()), "{:?}", image);
            // A cut that was lost mixes with later writes in a sector: lengths only.
            if cuts {
                continue;
            }
            for (index, sector) in got.chunks(512).enumerate() {
                let is = |version: &Vec<u8>| {
                    let mut padded = version.clone();
                    padded.resize((index + 1) * 512, 0);
                    padded[index * 512..].starts_with(sector)
                };
                prop_assert!(versions.iter().any(is), "{:?} sector {}", image, index);
            }
        }
    }
}
