//! Does a process stay within its descriptors and its memory? By children that are watched.

use std::path::Path;
use std::process::Command;

use chronolith_tests::kills::Child;

/// What the documents promise to live with.
const DESCRIPTORS: usize = 256;
/// More segments than there are descriptors.
const SEGMENTS: u64 = 300;
/// The same, for a repair.
const SEGMENTS_REPAIRED: u64 = 400;
/// Memtable of the ingest child, bytes.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// Memtables there may be: the active one, two that wait, and one more that was sealed by the
/// batch in hand.
const MEMTABLES_MAX: u64 = 4;
/// Memory that a memtable takes for each byte of its limit, its flush at work included: measured
/// 5.5 for all four with memtables of 1, 4 and 16 MiB.
const MEMORY_A_BYTE: u64 = 2;
/// Everything else: a batch in hand, a compaction at work, the catalog's cache (8 MiB) and
/// memtables (4 MiB each), the allocator's slack. Measured 46 MB.
const OTHER_BYTES: u64 = 56 << 20;

/// Runs `limit_child` under the descriptor limit; every line it said.
fn run(mode: &str, dir: &Path, n: u64) -> Vec<Vec<String>> {
    let script = format!("ulimit -n {DESCRIPTORS}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_limit_child"), mode]);
    command.arg(dir).arg(n.to_string());
    let mut child = Child::run(command);
    let lines: Vec<String> = std::iter::from_fn(|| child.line()).collect();
    assert_eq!(lines.last().map(String::as_str), Some("done"), "{lines:?}");
    let words = |line: &String| line.split(' ').map(str::to_owned).collect();
    lines.iter().map(words).collect()
}

#[test]
fn more_segments_than_descriptors_are_written_read_and_compacted() {
    let root = tempfile::tempdir().expect("a directory");
    let lines = run("segments", &root.path().join("store"), SEGMENTS);
    let (mut mapped, mut positioned, mut files_max) = (0, None, 0);
    for words in &lines {
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0].as_str() {
            "written" => assert_eq!(number(1), SEGMENTS),
            "mapped" => {
                assert_eq!(number(1), SEGMENTS, "every record is found");
                mapped += 1;
            }
            "positioned" => positioned = Some(number(1)),
            // One descriptor a segment is what this mode costs: a named error, and no harm.
            "refused" => assert!(words.join(" ").contains("os error 24"), "{words:?}"),
            "compacted" => assert_eq!(number(1), 1),
            _ => {}
        }
        if words.len() == 3 && words[0] != "refused" {
            files_max = files_max.max(number(2));
        }
    }
    assert_eq!(mapped, 3);
    assert!(positioned.is_none_or(|hits| hits == SEGMENTS));
    println!(
        "{SEGMENTS} segments under {DESCRIPTORS} descriptors: at most {files_max} open; \
         positioned reading of all: {positioned:?}"
    );
}

#[test]
fn more_segments_than_descriptors_are_repaired() {
    let root = tempfile::tempdir().expect("a directory");
    let lines = run("repair", &root.path().join("store"), SEGMENTS_REPAIRED);
    let repaired: Vec<_> = lines
        .iter()
        .filter(|words| words[0] == "repaired")
        .collect();
    let records = SEGMENTS_REPAIRED.to_string();
    assert!(
        repaired.iter().all(|words| words[1] == records),
        "{lines:?}"
    );
    assert_eq!(repaired.len(), 2, "with a manifest and without");
    println!("{records} segments repaired under {DESCRIPTORS} descriptors: {repaired:?}");
}

#[test]
fn a_heavy_ingest_stays_within_memory_and_descriptors() {
    let root = tempfile::tempdir().expect("a directory");
    let lines = run("ingest", &root.path().join("store"), 300);
    let peak = lines.iter().find(|words| words[0] == "peak");
    let peak = peak.expect("a measure");
    let number = |at: usize| peak[at].parse::<u64>().expect("a number");
    let (memory, files) = (number(1) << 10, number(2));
    let budget = MEMTABLES_MAX * MEMTABLE_BYTES * MEMORY_A_BYTE + OTHER_BYTES;
    println!(
        "{} MB of text: {} MB of memory at most (budget {} MB), {files} descriptors, {} \
         segments, {} MB on disk after the close",
        number(4) >> 20,
        memory >> 20,
        budget >> 20,
        number(3),
        number(5) >> 20
    );
    assert!(
        memory <= budget,
        "{memory} bytes of memory, the budget is {budget}"
    );
    assert!(files < DESCRIPTORS as u64 / 2, "{files} descriptors");
}
