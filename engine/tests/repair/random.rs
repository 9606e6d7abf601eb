//! Random stores with random damage; the failing seed is printed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use crate::bed::{Bed, Builder, Dice, STORE, check};

/// Seeds of a run, and of the deep tier; `CHRONOLITH_REPAIR_SEEDS` asks for others.
const SEEDS: u64 = 60;
const DEEP_SEEDS: u64 = 6000;

fn random_store(seed: u64) -> Bed {
    let mut builder = Builder::new(seed);
    let ids = 5 + builder.dice.below(60);
    for _ in 0..4 + builder.dice.below(14) {
        match builder.dice.below(8) {
            0 => builder.store().flush().expect("flushes"),
            1 => {
                let compacted = builder.store().compact(true, &mut |_| {});
                compacted.expect("compacts");
            }
            2 => builder.reopen(),
            _ => {
                let ops = 1 + builder.dice.below(9);
                builder.batch(ops, ids);
            }
        }
    }
    builder.done()
}

/// One random damage to one random file.
fn hurt(bed: &Bed, dice: &mut Dice) {
    let mut files = bed.files("", "");
    files.retain(|path| !path.ends_with("LOCK") && !path.ends_with("RESERVE"));
    if files.is_empty() {
        return;
    }
    let path: PathBuf = dice.pick(&files).clone();
    let len = bed.vfs.content(&path).expect("there").len();
    match dice.below(5) {
        // A segment that is gone with every manifest leaves no trace: not in this test.
        0 if !path.to_str().is_some_and(|path| path.ends_with(".seg")) => bed.remove(&path),
        1 => {
            let keep = dice.below(len.max(1));
            let cut = |bytes: &mut Vec<u8>| bytes.truncate(keep);
            bed.vfs.damage(&path, cut).expect("there");
        }
        2 => {
            let at = dice.below(len.max(1)) / 512 * 512;
            let zero = |bytes: &mut Vec<u8>| {
                let end = (at + 512).min(bytes.len());
                bytes[at.min(end)..end].fill(0);
            };
            bed.vfs.damage(&path, zero).expect("there");
        }
        _ => bed.flip(&path, dice.below(len.max(1))),
    }
}

fn run(seed: u64) {
    let bed = random_store(seed);
    let mut dice = Dice(seed ^ 0x00da_3a6e);
    if dice.one_in(4) {
        let _ = chronolith_vfs::Vfs::remove_file(&bed.vfs, &Path::new(STORE).join("CURRENT"));
        for path in bed.files("/manifest/", "") {
            bed.remove(&path);
        }
    }
    for _ in 0..dice.below(4) {
        hurt(&bed, &mut dice);
    }
    let before = bed.bytes();
    match bed.repair() {
        Ok(report) => check(&bed, &report, &format!("seed {seed}")),
        // Nothing is left that says what this was.
        Err(chronolith::Error::Repair(_)) => {}
        // Nor is there anything to repair.
        Err(error) if error.to_string().contains("creation never finished") => {
            let left: Vec<_> = ["/segments/", "/wal/"]
                .iter()
                .flat_map(|dir| bed.files(dir, ""))
                .collect();
            assert!(left.is_empty(), "seed {seed}: {error}: {left:?}");
        }
        Err(error) => panic!("seed {seed}: {error}"),
    }
    assert_eq!(
        bed.bytes(),
        before,
        "seed {seed}: the source keeps every byte"
    );
}

#[test]
fn every_missing_record_of_a_random_damage_is_accounted_for() {
    let is_deep = std::env::var_os("CHRONOLITH_DEEP").is_some_and(|value| value != "0");
    let usual = if is_deep { DEEP_SEEDS } else { SEEDS };
    let seeds = std::env::var("CHRONOLITH_REPAIR_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(usual);
    for seed in 0..seeds {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("failed with seed {seed}");
            resume_unwind(cause);
        }
    }
}
