//! A whole store around hostile bytes: a segment that the manifest names, a batch that the
//! log carries. What the decoders let pass must not hurt the engine either.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use chronolith::manifest;
use chronolith::{
    Batch, Durability, Fusion, Maintenance, Mode, Options, ReadMode, ReadOnlyStore, Recency,
    Record, Request, RunPolicy, Scope, ScopeSelector, Setup, Snapshot, SourceClass, Store, TagEdge,
    VectorFormat, VectorSpace,
};
use chronolith_segments::{decode_batch, segment_file_name};
use chronolith_vfs::{CrashImage, Env, SimVfs};
use chronolith_wal::{Log, LogOptions};

use super::disk::{fixed, put};

pub(super) const DIR: &str = "/store";
const START_US: i64 = 1_700_000_000_000_000;
const DAY_US: i64 = 86_400_000_000;
const SCOPES: [&str; 3] = ["user/ana", "user/ana/work", "team"];
const WORDS: [&str; 8] = [
    "staging", "proxy", "port", "deploy", "rollback", "database", "incident", "review",
];

/// A store with every kind of file, after a clean close and before it.
pub(super) struct Base {
    pub(super) env: Env,
    pub(super) disk: SimVfs,
}

/// The store that hostile bytes are put into. Made once, the same in every process.
pub(super) fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| build(40))
}

/// A view of it, for requests.
pub(super) fn snapshot() -> Snapshot {
    static SNAPSHOT: OnceLock<Snapshot> = OnceLock::new();
    let view = || {
        let base = base();
        let disk = base.disk.crash(CrashImage::ProcessKill);
        let store = ReadOnlyStore::open(DIR, options(&base.env.with_vfs(disk), ReadMode::Mapped));
        store.expect("sound").snapshot()
    };
    SNAPSHOT.get_or_init(view).clone()
}

pub(super) fn options(env: &Env, read_mode: ReadMode) -> Options {
    let space = VectorSpace {
        model: "test".into(),
        dim: 4,
        format: VectorFormat::F16,
        normalised: true,
    };
    Options {
        read_mode,
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        runs: RunPolicy {
            rows_min: 2,
            rows_max: 8,
        },
        env: env.clone(),
        ..Options::create(Setup {
            vectors: Some(space),
            ..Setup::default()
        })
    }
}

fn id(at: u32) -> (Scope, String) {
    let scope = Scope::parse(SCOPES[at as usize % SCOPES.len()]).expect("a scope");
    (scope, format!("r{at}"))
}

fn record(at: u32) -> Record {
    let (scope, id) = id(at);
    let word = |salt: u32| WORDS[(at.wrapping_mul(7).wrapping_add(salt * 3) % 8) as usize];
    let text = format!("{} {} {} number {at}", word(0), word(1), word(2));
    let time_us = START_US + i64::from(at * 5 % 17) * 3_600_000_000;
    let component = |i: u32| ((at * 3 + i * 5) % 11) as f32 + 0.5;
    Record {
        summary: at.is_multiple_of(3).then(|| format!("summary of {at}")),
        speaker: at.is_multiple_of(2).then(|| "ana".into()),
        tags: match at % 4 {
            0 => Vec::new(),
            1 => vec!["ops".into()],
            _ => vec!["ops".into(), format!("kind-{}", at % 3)],
        },
        vector: (!at.is_multiple_of(5)).then(|| (0..4).map(component).collect()),
        source: Some("test".into()),
        source_class: SourceClass::ALL.get(at as usize % 6).copied(),
        importance: (at % 3 == 1).then_some(0.25),
        source_id: at.is_multiple_of(6).then(|| format!("doc-{}", at % 4)),
        attributes: if at.is_multiple_of(7) {
            format!("{{\"n\":{at}}}")
        } else {
            String::new()
        },
        ..Record::new(scope, id, time_us, text)
    }
}

/// `rows` records flushed into one segment with deaths and tag edges, two more in the log.
pub(super) fn build(rows: u32) -> Base {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(START_US + 9 * DAY_US);
    let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("created");
    let mut batch = Batch::new();
    for at in 0..rows {
        batch.upsert(record(at));
    }
    batch.link_tag(TagEdge {
        scope: Scope::parse("user").expect("a scope"),
        parent: "kinds".into(),
        child: "kind-1".into(),
    });
    store.write(batch).expect("written");
    store.flush().expect("flushed");
    let mut deaths = Batch::new();
    for at in [2, 3, 11] {
        let (scope, id) = id(at);
        deaths.forget(scope, id);
    }
    deaths.upsert(record(5)).upsert(record(rows));
    store.write(deaths).expect("written");
    store.flush().expect("flushed");
    let mut last = Batch::new();
    last.upsert(record(rows + 1));
    let (scope, id) = id(7);
    last.forget(scope, id);
    store.write_with(last, Durability::Synced).expect("written");
    let image = disk.crash(CrashImage::ProcessKill);
    drop(store);
    Base { env, disk: image }
}

/// Paths of the base store's files with this ending or name.
pub(super) fn files(disk: &SimVfs, ending: &str) -> Vec<PathBuf> {
    disk.files()
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect()
}

/// Puts the bytes in place of the largest segment of the store in `dir`, and lets the manifest
/// name them.
///
/// # Panics
/// If the store is not sound, or has no segment.
pub fn put_segment(env: &Env, disk: &SimVfs, dir: &Path, bytes: &[u8]) {
    let loaded = manifest::load_read_only(&*env.vfs, dir).expect("the store is sound");
    let mut next = loaded.manifest.successor();
    let entry = next
        .segments
        .iter_mut()
        .max_by_key(|entry| entry.rows)
        .expect("a segment");
    entry.bytes = bytes.len() as u64;
    let trailer = bytes.len().saturating_sub(48);
    entry.digest = u128::from_le_bytes(fixed(bytes.get(trailer + 16..).unwrap_or_default()));
    let name = segment_file_name(entry.file_number);
    put(disk, &dir.join("segments").join(name), bytes);
    manifest::publish(&*env.vfs, dir, &next).expect("a valid manifest");
}

/// Puts the bytes in place of the base store's largest segment, opens the store, asks, and
/// compacts.
pub(super) fn run(bytes: &[u8]) -> bool {
    let base = base();
    let disk = base.disk.crash(CrashImage::ProcessKill);
    let env = base.env.with_vfs(disk.clone());
    put_segment(&env, &disk, DIR.as_ref(), bytes);
    let mode = match bytes.len() % 2 {
        0 => ReadMode::Mapped,
        _ => ReadMode::Positioned,
    };
    let Ok(store) = Store::open(DIR, options(&env, mode)) else {
        return false;
    };
    ask(&store.snapshot());
    let _ = store.stats();
    let _ = store.maintain();
    let _ = store.compact(true, &mut |_| {});
    let _ = store.close();
    true
}

/// Appends the bytes as a batch to the base store's log, and opens the store.
pub(super) fn run_replay(bytes: &[u8]) -> bool {
    let base = base();
    let disk = base.disk.crash(CrashImage::ProcessKill);
    let env = base.env.with_vfs(disk.clone());
    let loaded = manifest::load_read_only(&*env.vfs, DIR.as_ref()).expect("sound");
    let ops = decode_batch(bytes).map_or(1, |batch| batch.ops.len());
    let log_options = LogOptions {
        floor_file: loaded.manifest.floor_file,
        flushed_seq: loaded.manifest.flushed_seq,
        preallocate_bytes: 0,
        ..LogOptions::new(loaded.manifest.store_id)
    };
    let wal = Path::new(DIR).join("wal");
    let mut recovered = Log::recover(&env, &wal, &log_options).expect("sound");
    let epoch = recovered.report().epoch_highest + 1;
    let log = recovered.start(epoch).expect("started");
    let ops = u32::try_from(ops).unwrap_or(1).max(1);
    let Ok(appended) = log.append(bytes, ops) else {
        return false;
    };
    log.sync_upto(appended.last_seq).expect("synced");
    log.write_status(appended.last_seq).expect("written");
    drop(log);
    if let Ok(reader) = ReadOnlyStore::open(DIR, options(&env, ReadMode::Positioned)) {
        ask(&reader.snapshot());
    }
    let Ok(store) = Store::open(DIR, options(&env, ReadMode::Mapped)) else {
        return false;
    };
    ask(&store.snapshot());
    let _ = store.flush();
    let _ = store.stats();
    let _ = store.close();
    true
}

fn ask(snapshot: &Snapshot) {
    let within = |scope: &str| {
        let selector = ScopeSelector::parse(scope).expect("a scope");
        Request::within(selector)
            .now_us(START_US + 9 * DAY_US)
            .k(50)
    };
    let vector = vec![0.1, 0.9, 0.3, 0.5];
    let requests = [
        within("user").text("staging proxy number"),
        within("team").text("deploy").vector(vector.clone()),
        within("user/ana").vector(vector).mode(Mode::Dense),
        within("user").text("number").tag("kinds"),
        within("/")
            .tag("ops")
            .since_us(START_US + 3_600_000_000)
            .until_us(START_US + 9 * 3_600_000_000),
        within("user")
            .text("number")
            .min_source(SourceClass::ProjectFile)
            .distinct(true),
        within("user").text("port").context(2, 2).k(3).explain(),
        within("/")
            .text("database")
            .fusion(Fusion::Rrf {
                sparse_weight: 1.0,
                dense_weight: 1.0,
            })
            .recency(Recency::Decay { tau_us: DAY_US }),
        within("/"),
    ];
    for request in &requests {
        if let Ok(response) = snapshot.retrieve(request) {
            assert!(
                response.hits.iter().all(|hit| !hit.score.is_nan()),
                "a score is none"
            );
        }
    }
    for at in [0, 1, 5, 40] {
        let (scope, id) = id(at);
        let _ = snapshot.get(&scope, &id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::number;
    use super::*;

    #[test]
    fn the_base_store_is_the_same_every_time() {
        let (one, two) = (build(9), build(9));
        for path in one.disk.files() {
            assert_eq!(
                one.disk.content(&path).expect("there"),
                two.disk.content(&path).expect("there"),
                "{}",
                path.display()
            );
        }
        let segment = files(&one.disk, ".seg");
        assert!(number(&one.disk.content(&segment[0]).expect("there"), 28, 8).is_some());
    }
}
