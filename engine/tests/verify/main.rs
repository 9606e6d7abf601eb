//! Goal: a scrub finds every damage and every contradiction of a store's files, names the
//! file, goes on, and says nothing about a sound store, whatever a writer does beside it.
//!
//! Mechanism: stores of several shapes are made; then a byte is flipped, a file is taken away
//! or added, or a contradiction is planted under right checksums by publishing an edited
//! manifest, another side file, or a batch that is none. Contradictions inside one segment are
//! tested with the segments; those of one function beside it.

#![expect(
    clippy::disallowed_methods,
    reason = "the test damages files behind the engine's back"
)]

mod contradictions;
mod damage;
mod sound;

use std::fs;
use std::path::{Path, PathBuf};

use chronolith::manifest::names::{DataKind, DataName};
use chronolith::manifest::{Manifest, SegmentEntry, Statistics};
use chronolith::{
    Batch, DAY_US, FindingKind, Maintenance, Options, Record, Scope, Setup, Store, TagEdge,
    VectorFormat, VectorSpace, VerifyFinding, VerifyProgress, VerifyReport, manifest, verify,
};
use chronolith_vfs::RealVfs;

const T0: i64 = 1_700_010_000_000_000;

fn scope(path: &str) -> Scope {
    Scope::parse(path).expect("a scope")
}

fn options() -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 4096,
        ..Options::default()
    }
}

fn setup() -> Setup {
    Setup {
        vectors: Some(VectorSpace {
            model: "m".into(),
            dim: 4,
            format: VectorFormat::F16,
            normalised: true,
        }),
        ..Setup::default()
    }
}

fn create(path: &Path) -> Store {
    let options = Options {
        create: Some(setup()),
        ..options()
    };
    Store::open(path, options).expect("creates")
}

fn record(number: u32, at_us: i64) -> Record {
    let place = ["user/ana", "user/ana/p", "user/bob"][number as usize % 3];
    let text = format!("note {number} about proxy port {} and more", number % 7);
    let mut record = Record::new(scope(place), format!("r{number}"), at_us, text);
    record.tags = vec![["ops", "deploy"][number as usize % 2].into()];
    record.summary = number.is_multiple_of(4).then(|| format!("short {number}"));
    record.vector = (!number.is_multiple_of(3)).then(|| vec![1.0, number as f32, 0.5, -2.0]);
    record
}

fn write(store: &Store, numbers: std::ops::Range<u32>, at_us: i64) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.upsert(record(number, at_us + i64::from(number)));
    }
    store.write(batch).expect("writes");
}

fn edge(parent: &str, child: &str) -> TagEdge {
    TagEdge {
        scope: scope("user"),
        parent: parent.into(),
        child: child.into(),
    }
}

/// Segments in two buckets, a delete set, a tag graph, and a log that was not flushed.
fn full_store(path: &Path) {
    let store = create(path);
    write(&store, 0..60, T0);
    store.flush().expect("flushes");
    write(&store, 50..90, T0 + 40 * DAY_US);
    let mut batch = Batch::new();
    batch.link_tag(edge("ops", "deploy"));
    batch.forget(scope("user/ana"), "r3");
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
    write(&store, 80..100, T0);
    let mut batch = Batch::new();
    batch.forget(scope("user/ana"), "r6");
    batch.link_tag(edge("deploy", "rollback"));
    store.write(batch).expect("writes");
}

#[track_caller]
fn scrub(path: &Path) -> VerifyReport {
    let mut last = VerifyProgress::default();
    let report = verify(path, &options(), &mut |now: VerifyProgress| {
        assert!(now.bytes_done >= last.bytes_done && now.files_done >= last.files_done);
        assert!(now.bytes_done <= now.bytes_total && now.files_done <= now.files_total);
        last = now;
    })
    .expect("can be scrubbed");
    assert_eq!(last.files_done, report.files.len() as u64);
    assert_eq!(
        (last.files_done, last.bytes_done),
        (last.files_total, last.bytes_total)
    );
    report
}

#[track_caller]
fn assert_healthy(path: &Path) -> VerifyReport {
    let report = scrub(path);
    assert_eq!(report.findings, []);
    assert!(report.is_ok());
    report
}

/// One of the findings is of this kind, names this file and says this.
#[track_caller]
fn finds(report: &VerifyReport, kind: FindingKind, file: &str, what: &str) -> VerifyFinding {
    let found = report.findings.iter().find(|finding| {
        finding.kind == kind && finding.file.contains(file) && finding.message.contains(what)
    });
    found
        .unwrap_or_else(|| panic!("{kind:?}, {file}, {what}: {:#?}", report.findings))
        .clone()
}

fn damaged(path: &Path, file: &str, what: &str) {
    let report = scrub(path);
    finds(&report, FindingKind::Damage, file, what);
    assert!(!report.is_ok());
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("readable");
    change(&mut bytes);
    // Sealed files are read-only: another file takes the name.
    fs::remove_file(path).expect("removed");
    fs::write(path, bytes).expect("written");
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("lists") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Publishes the manifest as `change` leaves it, under right checksums.
fn republish(path: &Path, change: impl FnOnce(&RealVfs, &mut Manifest)) {
    let vfs = RealVfs::new();
    let loaded = manifest::load_read_only(&vfs, path).expect("a manifest");
    let mut next = loaded.manifest.successor();
    change(&vfs, &mut next);
    next.statistics = Statistics::of(&next.segments);
    manifest::publish(&vfs, path, &next).expect("publishes");
}

fn name(entry: &SegmentEntry) -> String {
    DataName::new(entry.file_number, DataKind::Segment).shown()
}

fn entries(path: &Path) -> Vec<SegmentEntry> {
    let loaded = manifest::load_read_only(&RealVfs::new(), path).expect("a manifest");
    loaded.manifest.segments
}
