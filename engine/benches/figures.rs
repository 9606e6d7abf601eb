//! The engine's figures: commits, ingest, bytes, memory, open and query times.
//!
//! `cargo bench -p chronolith --bench figures -- [commits] [ingest] [queries]` (all without a
//! name). Ingest and queries use the shared data (`CHRONOLITH_DATA`, else `../shared/data`),
//! its sets repeated under new ids until there are 100,000 records in 100 scopes; without it
//! they say so and are skipped. Ratios are taken in one run; absolute times are this machine's.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a bench reads files, counts small numbers and stops at the first surprise"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronolith::{
    Batch, Fusion, Mode, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
    VectorFormat, VectorSpace,
};
use chronolith_vfs::{Clock, Env, FaultVfs, OpKind, RealClock, RealVfs, Vfs};

const RECORDS: usize = 100_000;
const SCOPES: usize = 100;
const COMMITS: usize = 10_000;
const DIM: usize = 384;

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|arg| arg == name);
    if wants("commits") {
        commits();
    }
    let Some(data) = data_dir() else {
        println!("skipped: ingest and queries need the shared data (set CHRONOLITH_DATA)");
        return;
    };
    if wants("ingest") || wants("queries") {
        let corpus = Corpus::load(&data);
        for vectors in [false, true] {
            if wants("ingest") {
                ingest(&corpus, vectors);
            }
        }
        if wants("queries") {
            queries(&corpus);
        }
    }
}

fn data_dir() -> Option<PathBuf> {
    let named = std::env::var_os("CHRONOLITH_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    named.or(Some(beside)).filter(|dir| dir.is_dir())
}

fn scratch(name: &str) -> tempfile::TempDir {
    // On the disk of the build, not on a memory file system.
    tempfile::Builder::new()
        .prefix(name)
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .unwrap()
}

/// 10,000 single-record `Synced` commits from 1 and 16 threads, next to bare fdatasyncs of the
/// same bytes into preallocated zeros.
fn commits() {
    println!("commits     threads  commits/s   us each  syncs/commit   bare us   ratio");
    for threads in [1, 16] {
        let bare_us = bare_syncs(1000);
        let dir = scratch("commits");
        let counted = FaultVfs::new(Arc::new(RealVfs::new()));
        let env = Env::real().with_vfs(counted.clone());
        let store = Store::open(
            dir.path().join("s"),
            Options {
                env,
                ..Options::create(Setup::default())
            },
        )
        .unwrap();
        let syncs_before = counted.count(OpKind::Sync);
        let clock = RealClock::default();
        let start_ns = clock.monotonic_ns();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let store = store.clone();
                scope.spawn(move || {
                    for i in (thread..COMMITS).step_by(threads) {
                        let mut batch = Batch::new();
                        batch.upsert(record(
                            i,
                            "user/ana",
                            &format!("note {i}: {}", "the proxy moved to port 8443 ".repeat(8)),
                        ));
                        store.write(batch).unwrap();
                    }
                });
            }
        });
        let seconds = (clock.monotonic_ns() - start_ns) as f64 / 1e9;
        let syncs = (counted.count(OpKind::Sync) - syncs_before) as f64 / COMMITS as f64;
        let each_us = seconds * 1e6 / COMMITS as f64;
        println!(
            "            {threads:>7}  {:>9.0}  {each_us:>8.1}  {syncs:>12.3}  {bare_us:>8.1}  {:>6.2}",
            COMMITS as f64 / seconds,
            each_us / bare_us
        );
        store.close().unwrap();
    }
}

/// Mean time of an fdatasync of 300 bytes into preallocated zeros, µs.
fn bare_syncs(count: usize) -> f64 {
    let dir = scratch("bare");
    let vfs = RealVfs::new();
    let file = vfs.create_new(&dir.path().join("f")).unwrap();
    file.write_all_at(&vec![0; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let clock = RealClock::default();
    let start_ns = clock.monotonic_ns();
    for i in 0..count {
        file.write_all_at(&[7; 300], (i * 300) as u64).unwrap();
        file.sync_data().unwrap();
    }
    (clock.monotonic_ns() - start_ns) as f64 / 1000.0 / count as f64
}

fn record(i: usize, scope: &str, text: &str) -> Record {
    Record::new(
        Scope::parse(scope).unwrap(),
        format!("r{i}"),
        1_700_000_000_000_000 + i as i64 * 1_000_000,
        text,
    )
}

/// Texts and vectors of the sets with vectors, and their queries.
struct Corpus {
    texts: Vec<String>,
    vectors: Vec<Vec<f32>>,
    queries: Vec<(String, Vec<f32>)>,
}

impl Corpus {
    fn load(data: &Path) -> Self {
        let mut corpus = Self {
            texts: Vec::new(),
            vectors: Vec::new(),
            queries: Vec::new(),
        };
        for set in ["locomo", "beam-100k", "cranfield", "nfcorpus", "musique"] {
            let dir = data.join(set);
            corpus.texts.extend(texts(&dir.join("records.jsonl")));
            corpus.vectors.extend(vectors(&dir.join("records.f16.npy")));
            let questions = texts(&dir.join("queries.jsonl"));
            corpus.queries.extend(
                questions
                    .into_iter()
                    .zip(vectors(&dir.join("queries.f16.npy")))
                    .take(200),
            );
        }
        corpus
    }

    fn record(&self, i: usize, with_vector: bool) -> Record {
        let at = i % self.texts.len();
        let mut record = record(i, &format!("user/{:03}", i % SCOPES), &self.texts[at]);
        record.vector = with_vector.then(|| self.vectors[at].clone());
        record
    }
}

fn texts(path: &Path) -> Vec<String> {
    let lines = std::fs::read_to_string(path).unwrap();
    let text = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["text"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

fn vectors(path: &Path) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let header_bytes = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let body = &bytes[10 + header_bytes..];
    body.chunks_exact(DIM * 2)
        .map(|row| chronolith_segments::widen(row, VectorFormat::F16))
        .collect()
}

fn setup(with_vectors: bool) -> Setup {
    let space = VectorSpace {
        model: "minilm".into(),
        dim: DIM as u32,
        format: VectorFormat::F16,
        normalised: true,
    };
    Setup {
        vectors: with_vectors.then_some(space),
        ..Setup::default()
    }
}

fn fill(store: &Store, corpus: &Corpus, with_vectors: bool) {
    for first in (0..RECORDS).step_by(500) {
        let mut batch = Batch::new();
        for i in first..first + 500 {
            batch.upsert(corpus.record(i, with_vectors));
        }
        store.write(batch).unwrap();
    }
}

fn ingest(corpus: &Corpus, with_vectors: bool) {
    let dir = scratch("ingest");
    let path = dir.path().join("s");
    let store = Store::open(&path, Options::create(setup(with_vectors))).unwrap();
    let clock = RealClock::default();
    let start_ns = clock.monotonic_ns();
    fill(&store, corpus, with_vectors);
    let written = (clock.monotonic_ns() - start_ns) as f64 / 1e9;
    store.flush().unwrap();
    assert!(store.wait_idle(Duration::from_secs(600)));
    let settled = (clock.monotonic_ns() - start_ns) as f64 / 1e9;
    let stats = store.stats().unwrap();
    store.close().unwrap();
    let open_ns = clock.monotonic_ns();
    let store = Store::open(&path, Options::default()).unwrap();
    let opened_ms = (clock.monotonic_ns() - open_ns) as f64 / 1e6;
    let text_bytes: usize = (0..RECORDS)
        .map(|i| corpus.texts[i % corpus.texts.len()].len())
        .sum();
    println!(
        "ingest      vectors {with_vectors:<5}  {:>7.0} records/s acknowledged, {:>7.0} settled, {:>6.0} bytes a record in {} segments ({:.0} of text), peak memory {} MiB, open {opened_ms:.1} ms",
        RECORDS as f64 / written,
        RECORDS as f64 / settled,
        stats.segment_bytes as f64 / RECORDS as f64,
        stats.segments,
        text_bytes as f64 / RECORDS as f64,
        peak_memory_mib(),
    );
    drop(store);
}

fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn queries(corpus: &Corpus) {
    let dir = scratch("queries");
    let store = Store::open(dir.path().join("s"), Options::create(setup(true))).unwrap();
    fill(&store, corpus, true);
    store.flush().unwrap();
    assert!(store.wait_idle(Duration::from_secs(600)));
    println!("queries     {RECORDS} records, {SCOPES} scopes, k 10, text included; us");
    println!("            where      mode      p50      p95      p99");
    for (label, all) in [("one scope", false), ("all", true)] {
        for mode in [Mode::Sparse, Mode::Dense, Mode::Hybrid] {
            let mut times = Vec::new();
            for (i, (text, vector)) in corpus.queries.iter().enumerate() {
                let scope = if all {
                    "/".to_owned()
                } else {
                    format!("user/{:03}", i % SCOPES)
                };
                let request = Request::within(ScopeSelector::parse(&scope).unwrap())
                    .text(text.clone())
                    .vector(vector.clone())
                    .mode(mode)
                    .fusion(Fusion::Convex { dense_weight: 0.4 });
                times.push(store.retrieve(&request).unwrap().took_us);
            }
            times.sort_unstable();
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
            println!(
                "            {label:<9}  {mode:<8?}  {:>5}    {:>5}    {:>5}",
                at(0.5),
                at(0.95),
                at(0.99)
            );
        }
    }
    store.close().unwrap();
}
