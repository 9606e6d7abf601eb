//! Checks of damaged, swapped and foreign files: an answer is as before, or an error.

use std::path::{Path, PathBuf};

use chronolith::{
    Maintenance, Mode, Options, ReadMode, Record, Request, Scope, ScopeSelector, Setup, Snapshot,
    Store, VectorFormat, VectorSpace,
};
use chronolith_vfs::{CrashImage, Env, SimVfs, Vfs};

use crate::checks::Check;

const DIR: &str = "/store";
const ROWS: u32 = 300;
const DIM: u32 = 64;

fn options(env: &Env, read_mode: ReadMode) -> Options {
    let space = VectorSpace {
        model: "test".into(),
        dim: 64,
        format: VectorFormat::F32,
        normalised: false,
    };
    Options {
        read_mode,
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        env: env.clone(),
        ..Options::create(Setup {
            vectors: Some(space),
            ..Setup::default()
        })
    }
}

fn scope() -> Scope {
    Scope::parse("a").expect("a scope")
}

fn record(n: u32) -> Record {
    // Letters that do not compress to nothing, so that texts fill several blocks.
    let mut state = u64::from(n) + 1;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from(state >> 60).unwrap_or(0))
    };
    let text: String = (0..400).map(|_| letter()).collect();
    let mut record = Record::new(scope(), format!("r{n}"), i64::from(n), text);
    let component = |i: u32| ((n * 7 + i * 13) % 29) as f32 + 0.25;
    record.vector = Some((0..DIM).map(component).collect());
    record
}

fn store(env: &Env, rows: u32) -> Store {
    let store = Store::open(DIR, options(env, ReadMode::Mapped)).expect("created");
    for n in 0..rows {
        let mut batch = chronolith::Batch::new();
        batch.upsert(record(n));
        store
            .write_with(batch, chronolith::Durability::Buffered)
            .expect("written");
    }
    store.flush().expect("flushed");
    store
}

fn reopen(env: &Env, disk: &SimVfs, mode: ReadMode) -> Result<Store, String> {
    let env = env.with_vfs(disk.clone());
    let options = Options {
        create: None,
        ..options(&env, mode)
    };
    Store::open(DIR, options).map_err(|error| error.to_string())
}

/// Every text and every similarity; an error stands for itself.
fn answers(snapshot: &Snapshot, rows: u32) -> Vec<Result<String, String>> {
    let vector: Vec<f32> = (0..DIM).map(|i| (i % 7) as f32 - 2.0).collect();
    let request = Request::within(ScopeSelector::Root)
        .now_us(0)
        .k(300)
        .mode(Mode::Dense)
        .vector(vector)
        .ids_only();
    let found = snapshot.retrieve(&request);
    let mut all = vec![
        found
            .map(|response| format!("{:?}", response.hits))
            .map_err(|error| error.to_string()),
    ];
    for n in 0..rows {
        let found = snapshot.get(&scope(), &format!("r{n}"));
        all.push(
            found
                .map(|found| format!("{:?}", found.map(|stored| stored.record)))
                .map_err(|error| error.to_string()),
        );
    }
    all
}

fn segment(disk: &SimVfs) -> PathBuf {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "seg");
    let found = disk.files().into_iter().find(is_segment);
    found.expect("there is a segment")
}

/// Damages copies of a flushed store's segment with `changes`; every answer is equal or an error.
fn judge(mode: ReadMode, changes: impl Fn(&[u8]) -> Vec<(String, Vec<u8>)>) -> Result<(), String> {
    let (env, disk, _) = Env::sim(3);
    let store = store(&env, ROWS);
    let whole = answers(&store.snapshot(), ROWS);
    store.close().expect("closed");
    let path = segment(&disk);
    let bytes = disk.content(&path).expect("there");
    for (what, changed) in changes(&bytes) {
        let copy = disk.crash(CrashImage::ProcessKill);
        copy.damage(&path, |bytes| *bytes = changed).expect("there");
        let Ok(store) = reopen(&env, &copy, mode) else {
            continue;
        };
        for (found, whole) in answers(&store.snapshot(), ROWS).iter().zip(&whole) {
            if found.is_ok() && found != whole {
                return Err(format!("{what}: another answer"));
            }
        }
    }
    Ok(())
}

/// One flipped bit in every few kilobytes of a segment whose sections have several blocks.
pub(crate) fn bits_of_a_segment(mode: ReadMode) -> Check {
    Check::new(
        format!("corruption, bits of a large segment, {mode:?}"),
        4,
        move |n| {
            judge(mode, |bytes| {
                let from = usize::try_from(n).expect("few") * 997 + 700;
                let places = (from..bytes.len()).step_by(7919);
                let flipped = |at: usize| {
                    let mut changed = bytes.to_vec();
                    changed[at] ^= 0x10;
                    (format!("byte {at} flipped"), changed)
                };
                places.map(flipped).collect()
            })
        },
    )
}

/// A store whose rows have many lengths is scrubbed: no posting is above its bounds.
pub(crate) fn bounds_of_postings() -> Check {
    Check::new("scrub, bounds of postings", 1, |_| {
        let (env, _disk, _) = Env::sim(3);
        let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("created");
        let mut batch = chronolith::Batch::new();
        for n in 0..200_u32 {
            // Every word but one stands in several rows, each of another length.
            let words = (0..n % 23 + 1).map(|i| format!("common word{}", (n + i) % 40));
            let text: String = words.collect::<Vec<_>>().join(" ");
            batch.upsert(Record::new(scope(), format!("r{n}"), i64::from(n), text));
        }
        store.write(batch).expect("written");
        store.flush().expect("flushed");
        let report = store
            .verify(&mut |_| {})
            .map_err(|error| error.to_string())?;
        match report.findings.first() {
            None => Ok(()),
            Some(finding) => Err(format!("{finding:?}")),
        }
    })
}

/// Both copies of the newest manifest are damaged: an error, never the generation before.
pub(crate) fn both_copies() -> Check {
    Check::new("corruption, both copies of the manifest", 2, |n| {
        let (env, disk, _) = Env::sim(3);
        let store = store(&env, 3);
        // A flush that keeps its log, so that the generation before has all its files.
        let mut batch = chronolith::Batch::new();
        batch.upsert(Record::new(scope(), "more", 9, "one more"));
        store.write(batch).expect("written");
        store.flush().expect("flushed");
        store.close().expect("closed");
        let mut manifests: Vec<PathBuf> = disk.files();
        manifests.retain(|path| path.to_string_lossy().contains("MANIFEST-"));
        for path in &manifests[manifests.len() - 2..] {
            if n == 0 {
                disk.damage(path, |bytes| bytes[60] ^= 1).expect("there");
            } else {
                disk.remove_file(path).expect("there");
            }
        }
        match reopen(&env, &disk, ReadMode::Mapped) {
            Err(_) => Ok(()),
            Ok(_) => Err("a store without its manifest opened".into()),
        }
    })
}

/// Two stores were one until a copy was made: files of one are no files of the other, though
/// store id, names and generations are the same. Takes the files whose path holds a part.
pub(crate) fn files_of_another_course(one: &'static str, two: &'static str) -> Check {
    let name = format!("corruption, {one} and {two} files of another course");
    Check::new(name, 1, move |_| {
        let (env, disk, _) = Env::sim(3);
        drop(store(&env, 4));
        let [ours, theirs] = [1, 2].map(|n| {
            let disk = disk.crash(CrashImage::ProcessKill);
            let store = reopen(&env, &disk, ReadMode::Mapped).expect("opens");
            let mut batch = chronolith::Batch::new();
            batch.forget(scope(), format!("r{n}"));
            batch.upsert(Record {
                id: "r3".into(),
                ..record(50 + n)
            });
            store.write(batch).expect("written");
            store.close().expect("closed");
            disk
        });
        let store = reopen(&env, &ours.crash(CrashImage::ProcessKill), ReadMode::Mapped)?;
        let whole = answers(&store.snapshot(), 4);
        drop(store);
        for path in theirs.files() {
            let name = path.to_string_lossy();
            if name.contains(one) || name.contains(two) {
                let content = theirs.content(&path).expect("there");
                put(&ours, &path, &content);
            }
        }
        let Ok(store) = reopen(&env, &ours, ReadMode::Mapped) else {
            return Ok(());
        };
        let found = answers(&store.snapshot(), 4);
        let mut pairs = found.iter().zip(&whole);
        match pairs.any(|(found, whole)| found.is_ok() && found != whole) {
            true => Err("another store's records are shown".into()),
            false => Ok(()),
        }
    })
}

fn put(disk: &SimVfs, path: &Path, content: &[u8]) {
    if disk.content(path).is_err() {
        disk.create_new(path).expect("created");
    }
    let content = content.to_vec();
    disk.damage(path, |bytes| *bytes = content).expect("there");
}
