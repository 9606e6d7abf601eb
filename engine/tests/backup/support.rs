//! Small stores on a simulated disk, backed up and brought back.

use std::path::{Path, PathBuf};

use chronolith::{
    BackupOptions, BackupReport, Batch, Error, Maintenance, Options, Record, RestoreReport, Scope,
    ScopeSelector, Setup, Store, TagEdge, backup, restore,
};
use chronolith_vfs::{Env, SimVfs};

/// Where the index of a backup lies.
pub(crate) const INDEX: &str = "/backup/BACKUP";

pub(crate) fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 4096,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

pub(crate) fn record(i: usize) -> Record {
    let at_us = 1_700_000_000_000_000 + i64::try_from(i).expect("small") * 1_000;
    Record::new(scope(), format!("r{i}"), at_us, format!("note {i} of many"))
}

pub(crate) fn put(store: &Store, i: usize) {
    let mut batch = Batch::new();
    batch.upsert(record(i));
    store.write(batch).expect("writes");
}

/// Every record as `id=text`, sorted.
pub(crate) fn records(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    let selector = ScopeSelector::parse("/").expect("a selector");
    store
        .snapshot()
        .for_each_record(&[selector], &mut |found| {
            all.push(format!("{}={}", found.record.id, found.record.text));
            Ok(())
        })
        .expect("reads");
    all.sort();
    all
}

/// Opens what was restored; it must have come back without a loss.
pub(crate) fn open(env: &Env, path: &str) -> Store {
    let existing = Options {
        create: None,
        ..options(env)
    };
    let store = Store::open(path, existing).expect("opens");
    let report = store.recovery_report();
    assert_eq!((report.bytes_dropped, report.ambiguous), (0, false));
    assert_eq!(report.damaged_manifest_copy, None);
    store
}

pub(crate) fn how(copies: bool) -> BackupOptions {
    match copies {
        true => BackupOptions::copies(),
        false => BackupOptions::default(),
    }
}

pub(crate) fn back_up(env: &Env, copies: bool) -> Result<BackupReport, Error> {
    let (store, dest) = (Path::new("/store"), Path::new("/backup"));
    backup(env, store, dest, &how(copies), &mut |_| {})
}

pub(crate) fn bring_back(env: &Env, dest: &str) -> Result<RestoreReport, Error> {
    restore(env, Path::new("/backup"), Path::new(dest), &mut |_| {})
}

/// A store with segments, a delete set, a tag graph and a log that is not flushed.
pub(crate) fn store(env: &Env) -> Store {
    let store = Store::open("/store", options(env)).expect("creates");
    (0..3).for_each(|i| put(&store, i));
    let mut batch = Batch::new();
    batch.link_tag(TagEdge {
        scope: scope(),
        parent: "ops".into(),
        child: "deploy".into(),
    });
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
    store.forget(scope(), "r1").expect("forgets");
    (3..5).for_each(|i| put(&store, i));
    store.flush().expect("flushes");
    (5..7).for_each(|i| put(&store, i));
    store
}

/// Paths of all files below a directory.
pub(crate) fn names(sim: &SimVfs, below: &str) -> Vec<PathBuf> {
    let files = sim.files().into_iter();
    files.filter(|path| path.starts_with(below)).collect()
}

/// An index with its two checksums made to hold again.
pub(crate) fn reseal(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    let end = bytes.len() - 16;
    let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
    hasher.update(b"chronolith/bckup");
    hasher.update(&bytes[..end]);
    bytes[end..].copy_from_slice(&hasher.digest128().to_le_bytes());
    bytes
}
