//! What does a process look like that is watched, or whose system calls fail? Child processes
//! for the suites of limits and failed syncs.
//!
//! `limit_child MODE DIR ...` says what it measured, a line each, and `done`; or `error ...`.
//! A module of its own for each mode.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronolith::{
    Batch, Durability, Error, ErrorKind, Maintenance, Options, ReadMode, ReadOnlyStore, Record,
    RepairOptions, Request, Scope, ScopeSelector, Setup, Store, repair,
};
use chronolith_tests::data::{knob, next_random};
use chronolith_tests::kills::{Lane, Said, Script, child_options, found};
use chronolith_vfs::Env;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let dir = |at: usize| PathBuf::from(words[at]);
    let done = match words[1..] {
        ["poison", _, _] => poison(&dir(2), number(3)),
        ["segments", _, _] => segments(&dir(2), number(3)),
        ["ingest", _, _] => ingest(&dir(2), number(3)),
        ["soak", _, _] => soak(&dir(2), number(3)),
        ["repair", _, _] => repair_many(&dir(2), number(3)),
        _ => panic!("usage: limit_child poison|segments|ingest|soak|repair DIR N"),
    };
    match done {
        Ok(()) => say("done"),
        Err(error) => {
            say(&format!("error {:?} {error}", error.kind()));
            std::process::exit(1);
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out
        .write_all(format!("{}\n", line.trim_end()).as_bytes())
        .and_then(|()| out.flush());
}

/// Writes, flushes and compacts until something makes the handle useless, and then tries on:
/// nothing may be acknowledged any more. Says `failed KIND` for other failures and goes on.
fn poison(dir: &Path, seed: u64) -> Result<(), Error> {
    let store = Store::open(dir, child_options())?;
    let lane = Lane::first(seed);
    let snapshot = store.snapshot();
    let head = lane.last_batch(&found(&snapshot)?);
    let open = Said::Open {
        seq: snapshot.seq(),
        heads: vec![head],
    };
    say(&open.line());
    let first = head.map_or(0, |last| last + 1);
    for number in first..first + 40 {
        match step(&store, lane, number) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Reopen => {
                say(&format!("poisoned {error}"));
                return try_on(store, lane, number);
            }
            Err(error) => say(&format!("failed {:?} {error}", error.kind())),
        }
    }
    store.close()
}

/// One batch, or a chore behind it. A failed write ends the run: its number is not used again.
fn step(store: &Store, lane: Lane, number: u64) -> Result<(), Error> {
    let durability = Script::Write.durability(number);
    let committed = store.write_with(lane.batch(number), durability)?;
    let acked = Said::Acked {
        lane: 0,
        number,
        last_seq: committed.last_seq,
    };
    say(&acked.line());
    match number % 8 {
        3 => store.flush(),
        7 => store.compact(true, &mut |_| {}).map(drop),
        _ => Ok(()),
    }
}

fn try_on(store: Store, lane: Lane, number: u64) -> Result<(), Error> {
    let kind = |tried: Result<(), Error>| match tried {
        Ok(()) => "ok".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    for next in number + 1..number + 6 {
        for durability in [Durability::Buffered, Durability::Synced] {
            let tried = store.write_with(lane.batch(next), durability).map(drop);
            say(&format!("again write {}", kind(tried)));
        }
    }
    say(&format!("again flush {}", kind(store.flush())));
    // Reading goes on.
    found(&store.snapshot())?;
    say(&format!("again close {}", kind(store.close())));
    Ok(())
}

/// A record of about `bytes` bytes of words, of a vocabulary that a large store may have.
fn record(random: &mut u64, id: String, bytes: u64) -> Record {
    let scope = Scope::parse("user/ana").expect("a scope");
    let words: String = (0..bytes / 10)
        .map(|_| format!("word{:05x} ", next_random(random) % 50_000))
        .collect();
    let time_us = 1_700_000_000_000_000 + i64::try_from(next_random(random) >> 20).unwrap_or(0);
    Record::new(scope, id, time_us, words)
}

/// Open descriptors of this process.
fn descriptors() -> usize {
    RealDir::list("/proc/self/fd").len()
}

/// kB of memory that is this process's own, mapped files apart.
fn own_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.and_then(|kb| kb.parse().ok()).expect("a figure")
}

/// Directories, and the bytes below them.
struct RealDir;

impl RealDir {
    fn list(path: impl AsRef<Path>) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Bytes that files take on the disk.
    fn bytes(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let bytes = |path: PathBuf| match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => Self::bytes(&path),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        };
        Self::list(path).into_iter().map(bytes).sum()
    }
}

/// Makes a store of many segments.
fn write_segments(dir: &Path, count: u64, random: &mut u64) -> Result<(), Error> {
    let manual = Options {
        maintenance: Maintenance::Manual,
        ..Options::create(Setup::default())
    };
    let store = Store::open(dir, manual)?;
    for number in 0..count {
        let mut batch = Batch::new();
        batch.upsert(record(random, format!("{number}"), 50));
        store.write_with(batch, Durability::Buffered)?;
        store.flush()?;
    }
    say(&format!(
        "written {} {}",
        store.stats()?.segments,
        descriptors()
    ));
    Ok(())
}

/// Makes a store of many segments and repairs it, whole and without its manifest; says
/// `repaired RECORDS DESCRIPTORS` of each.
fn repair_many(dir: &Path, count: u64) -> Result<(), Error> {
    write_segments(dir, count, &mut 3)?;
    for name in ["whole", "rebuilt"] {
        if name == "rebuilt" {
            let vfs = Env::real().vfs;
            vfs.remove_file(&dir.join("CURRENT")).expect("removed");
            vfs.remove_dir_all(&dir.join("manifest")).expect("removed");
            vfs.create_dir(&dir.join("manifest")).expect("created");
        }
        let mut files = 0;
        let dest = dir.with_file_name(name);
        let options = RepairOptions::default();
        let report = repair(dir, &dest, &options, &mut |_| {
            files = files.max(descriptors())
        })?;
        say(&format!("repaired {} {files}", report.records));
        assert!(report.damaged.is_empty() || name == "rebuilt", "{report:?}");
    }
    Ok(())
}

/// Makes a store of many segments, then has a writer and readers of both modes on it at once.
fn segments(dir: &Path, count: u64) -> Result<(), Error> {
    let mut random = 1;
    write_segments(dir, count, &mut random)?;
    let store = Store::open(dir, Options::default())?;
    let mapped = [(); 3].map(|()| ReadOnlyStore::open(dir, Options::default()));
    for reader in mapped {
        let reader = reader?;
        let request = Request::within(ScopeSelector::parse("user")?);
        let hits = reader.retrieve(&request.k(10_000))?.hits.len();
        say(&format!("mapped {hits} {}", descriptors()));
    }
    let options = Options {
        read_mode: ReadMode::Positioned,
        ..Options::default()
    };
    match ReadOnlyStore::open(dir, options) {
        Ok(reader) => {
            let request = Request::within(ScopeSelector::parse("user")?);
            let hits = reader.retrieve(&request.k(10_000))?.hits.len();
            say(&format!("positioned {hits} {}", descriptors()));
        }
        Err(error) => say(&format!("refused {:?} {error}", error.kind())),
    }
    // The writer was not harmed, and compaction makes it all one.
    let mut batch = Batch::new();
    batch.upsert(record(&mut random, "last".into(), 50));
    store.write(batch)?;
    store.compact(true, &mut |_| {})?;
    say(&format!(
        "compacted {} {}",
        store.stats()?.segments,
        descriptors()
    ));
    store.close()
}

/// Options of the heavy ingest: what the budgets are stated for, smaller.
fn ingest_options() -> Options {
    Options {
        memtable_bytes_max: knob("CHRONOLITH_MEMTABLE_MIB", 4) << 20,
        log_file_bytes_max: 8 << 20,
        ..Options::create(Setup::default())
    }
}

/// Writes as fast as it goes; says the peaks of memory and descriptors.
fn ingest(dir: &Path, batches: u64) -> Result<(), Error> {
    let store = Store::open(dir, ingest_options())?;
    let (mut random, mut text_bytes) = (2, 0);
    let (mut memory_kb, mut files, mut segments) = (0, 0, 0);
    for number in 0..batches {
        let mut batch = Batch::new();
        for at in 0..50 {
            let record = record(&mut random, format!("{number}-{at}"), 800);
            text_bytes += record.text.len();
            batch.upsert(record);
        }
        store.write_with(batch, Durability::Buffered)?;
        memory_kb = memory_kb.max(own_memory_kb());
        if number % 8 == 0 {
            files = files.max(descriptors());
            segments = segments.max(store.stats()?.segments);
        }
    }
    store.close()?;
    let disk = RealDir::bytes(dir);
    say(&format!(
        "peak {memory_kb} {files} {segments} {text_bytes} {disk}"
    ));
    Ok(())
}

/// Writes, forgets, reads and reopens for so many seconds; says `sample MEMORY_KB FILES BYTES
/// CATALOG_BYTES` before each reopen, at rest.
fn soak(dir: &Path, seconds: u64) -> Result<(), Error> {
    let clock = Env::real().clock;
    let end_ns = clock.monotonic_ns() + seconds * 1_000_000_000;
    let round_ns = (seconds * 1_000_000_000 / 20).clamp(500_000_000, 5_000_000_000);
    let lane = Lane::first(3);
    let mut number = 0;
    while clock.monotonic_ns() < end_ns {
        let store = Store::open(dir, child_options())?;
        let reader = ReadOnlyStore::open(dir, Options::default())?;
        let round_end_ns = clock.monotonic_ns() + round_ns;
        while clock.monotonic_ns() < round_end_ns {
            store.write_with(lane.batch(number), Script::Lazy.durability(number))?;
            number += 1;
            if number % 16 == 0 {
                let request = Request::within(ScopeSelector::parse("user")?).text("batch word7");
                store.retrieve(&request)?;
                reader.refresh()?;
                reader.retrieve(&request)?;
            }
        }
        store.wait_idle(Duration::from_secs(5));
        let catalog = RealDir::bytes(&dir.join("catalog"));
        let bytes = RealDir::bytes(dir).saturating_sub(catalog);
        let (memory_kb, files) = (own_memory_kb(), descriptors());
        say(&format!("sample {memory_kb} {files} {bytes} {catalog}"));
        drop(reader);
        store.close()?;
    }
    say(&format!("written {number}"));
    Ok(())
}
