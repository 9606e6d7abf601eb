//! What does an append cost, with and without its sync, and what does a replay cost?
//!
//! `cargo bench -p chronolith-wal --bench append`
//!
//! On real files, beside the build's: the sync is this disk's. Commits per second of many
//! threads are measured with the whole engine (`cargo bench -p chronolith --bench figures`).

use std::hint::black_box;
use std::path::Path;

use chronolith_vfs::Env;
use chronolith_wal::{Log, LogOptions};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

/// Bytes of one body: a short record, encoded.
const BODY: [u8; 300] = [0x5a; 300];
/// Appends of one measured run.
const APPENDS: u32 = 256;
const STORE_ID: [u8; 16] = [7; 16];

fn options() -> LogOptions {
    let mut options = LogOptions::new(STORE_ID);
    options.preallocate_bytes = 256 << 10;
    options
}

fn fresh() -> (TempDir, Log) {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = TempDir::new_in(base).expect("room for a log");
    let log = Log::create(&Env::real(), dir.path(), &options(), 1).expect("a log");
    (dir, log)
}

fn append_all(log: &Log, sync: bool) {
    for _ in 0..APPENDS {
        let appended = log.append(black_box(&BODY), 1).expect("appended");
        if sync {
            log.sync_upto(appended.last_seq).expect("synced");
        }
    }
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append 300 B");
    group.throughput(Throughput::Elements(u64::from(APPENDS)));
    group.sample_size(10);
    for (name, sync) in [("buffered", false), ("synced each", true)] {
        group.bench_function(name, |b| {
            let run = |(_dir, log): &mut (TempDir, Log)| append_all(log, sync);
            b.iter_batched_ref(fresh, run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn replay(c: &mut Criterion) {
    let (dir, log) = fresh();
    append_all(&log, false);
    log.sync_upto(log.last_seq()).expect("synced");
    drop(log);
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(u64::from(APPENDS)));
    group.sample_size(10);
    group.bench_function("256 frames of 300 B", |b| {
        b.iter(|| {
            let recovered = Log::recover(&Env::real(), dir.path(), &options()).expect("a log");
            let frames = recovered.frames().filter(|frame| frame.is_ok()).count();
            assert_eq!(frames, 256);
        });
    });
    group.finish();
}

criterion_group!(benches, append, replay);
criterion_main!(benches);
