//! Do memory, descriptors and disk stay flat over a long life of writes, forgets, reads and
//! reopens? By a child that says what it takes, at rest, before each reopen.
//!
//! `CHRONOLITH_SOAK_SECONDS=n`: so long.

use std::process::Command;

use chronolith_tests::data::{deep, knob};
use chronolith_tests::kills::Child;

/// The catalog may take so much: its journal grows to 64 MiB before it begins another one.
const CATALOG_BYTES_MAX: u64 = 192 << 20;

#[derive(Debug, Clone, Copy)]
struct Sample {
    memory_kb: u64,
    files: u64,
    bytes: u64,
    catalog_bytes: u64,
}

/// The most of each figure.
fn most(samples: &[Sample]) -> Sample {
    let most = |figure: fn(&Sample) -> u64| samples.iter().map(figure).max().unwrap_or(0);
    Sample {
        memory_kb: most(|sample| sample.memory_kb),
        files: most(|sample| sample.files),
        bytes: most(|sample| sample.bytes),
        catalog_bytes: most(|sample| sample.catalog_bytes),
    }
}

#[test]
fn memory_descriptors_and_disk_stay_flat() {
    let seconds = knob("CHRONOLITH_SOAK_SECONDS", if deep() { 300 } else { 10 });
    let root = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_limit_child"));
    command
        .arg("soak")
        .arg(root.path().join("store"))
        .arg(seconds.to_string());
    let mut child = Child::run(command);
    let (mut samples, mut batches) = (Vec::new(), 0);
    while let Some(line) = child.line() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "sample" => samples.push(Sample {
                memory_kb: number(1),
                files: number(2),
                bytes: number(3),
                catalog_bytes: number(4),
            }),
            "written" => batches = number(1),
            "done" => {}
            _ => panic!("{line}"),
        }
    }
    assert!(samples.len() >= 6, "only {} samples", samples.len());
    // The first third warms up.
    let third = samples.len() / 3;
    let (early, late) = (
        most(&samples[third..2 * third]),
        most(&samples[2 * third..]),
    );
    println!(
        "{seconds} s, {batches} batches, {} reopens: {early:?} then {late:?}",
        samples.len()
    );
    let within = |late: u64, early: u64, slack: u64| late <= early + early / 4 + slack;
    // The allocator's arenas and the catalog's tables fill up to about 40 MB over the first ten
    // thousand batches, which a short run on a busy machine spends most of its time with. A long
    // one sees what grows after that.
    let slack_kb = if seconds < 60 { 24 << 10 } else { 8 << 10 };
    assert!(
        within(late.memory_kb, early.memory_kb, slack_kb),
        "memory grows: {samples:?}"
    );
    assert!(
        within(late.files, early.files, 8),
        "descriptors grow: {samples:?}"
    );
    assert!(
        within(late.bytes, early.bytes, 2 << 20),
        "the disk fills: {samples:?}"
    );
    assert!(
        late.catalog_bytes < CATALOG_BYTES_MAX,
        "the catalog fills the disk: {samples:?}"
    );
}
