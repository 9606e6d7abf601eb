//! A store with every kind of file, twice: closed log and pending log.

use std::path::{Path, PathBuf};

use chronolith::{
    Batch, Durability, Maintenance, Options, ReadMode, Record, Scope, Setup, SourceClass, Store,
    TagEdge, VectorFormat, VectorSpace,
};
use chronolith_vfs::{CrashImage, Env, SimVfs};

use super::answers::{Answers, answers};

pub(crate) const DIR: &str = "/store";
pub(crate) const START_US: i64 = 1_700_000_000_000_000;
pub(crate) const SCOPES: [&str; 3] = ["user/ana", "user/ana/work", "team"];
const WORDS: [&str; 8] = [
    "staging", "proxy", "port", "deploy", "rollback", "database", "incident", "review",
];

/// A disk before it is damaged, and what a store on it answers.
pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) env: Env,
    pub(crate) disk: SimVfs,
    pub(crate) whole: Answers,
    /// What it answered before each of the batches that the log may lose with notice.
    pub(crate) earlier: Vec<Answers>,
    /// Earlier contents of files that still exist under their names.
    pub(crate) stale: Vec<(PathBuf, Vec<u8>)>,
}

pub(crate) fn options(env: &Env, read_mode: ReadMode) -> Options {
    let space = VectorSpace {
        model: "test".into(),
        dim: 4,
        format: VectorFormat::F16,
        normalised: true,
    };
    Options {
        read_mode,
        maintenance: Maintenance::Manual,
        log_file_bytes_max: 2 << 10,
        log_preallocate_bytes: 0,
        env: env.clone(),
        ..Options::create(Setup {
            vectors: Some(space),
            ..Setup::default()
        })
    }
}

pub(crate) fn id(at: u32) -> (Scope, String) {
    let scope = Scope::parse(SCOPES[at as usize % SCOPES.len()]).expect("a scope");
    (scope, format!("r{at}"))
}

fn record(at: u32) -> Record {
    let (scope, id) = id(at);
    let word = |salt: u32| WORDS[(at.wrapping_mul(7).wrapping_add(salt * 3) % 8) as usize];
    let text = format!("{} {} {} number {at}", word(0), word(1), word(2));
    let time_us = START_US + i64::from(at % 17) * 86_400_000_000;
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

pub(crate) fn write(store: &Store, range: std::ops::Range<u32>, durability: Durability) {
    let mut batch = Batch::new();
    for at in range {
        batch.upsert(record(at));
    }
    store.write_with(batch, durability).expect("written");
}

pub(crate) fn forget(store: &Store, ids: &[u32]) {
    let mut batch = Batch::new();
    for at in ids {
        let (scope, id) = id(*at);
        batch.forget(scope, id);
    }
    store.write(batch).expect("written");
}

/// Every record of the fixtures has an id below this.
pub(crate) const IDS: u32 = 100;

/// Builds a store; `clean` ends with a seal, else the process dies over a pending log.
pub(crate) fn build(clean: bool) -> Fixture {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(START_US + 90 * 86_400_000_000);
    let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("created");
    write(&store, 0..30, Durability::Synced);
    let mut edges = Batch::new();
    for child in ["kind-1", "kind-2"] {
        let scope = Scope::parse("user").expect("a scope");
        edges.link_tag(TagEdge {
            scope,
            parent: "kinds".into(),
            child: child.into(),
        });
    }
    store.write(edges).expect("written");
    store.flush().expect("flushed");
    write(&store, 30..55, Durability::Synced);
    forget(&store, &[2, 3, 31]);
    store.flush().expect("flushed");
    let stale = contents(&disk);
    write(&store, 50..70, Durability::Synced);
    forget(&store, &[4, 33]);
    store.flush().expect("flushed");
    // From here on only in the log, over several files of it.
    for from in [70, 76, 82] {
        write(&store, from..from + 6, Durability::Synced);
    }
    forget(&store, &[5, 71]);
    let mut earlier = Vec::new();
    for from in [88, 92] {
        earlier.push(answers(&store.snapshot()).expect("answers"));
        let durability = if clean {
            Durability::Synced
        } else {
            Durability::Buffered
        };
        write(&store, from..from + 4, durability);
    }
    let whole = answers(&store.snapshot()).expect("answers");
    let image = if clean {
        None
    } else {
        Some(disk.crash(CrashImage::ProcessKill))
    };
    drop(store);
    let disk = image.unwrap_or_else(|| disk.crash(CrashImage::ProcessKill));
    let now = contents(&disk);
    let changed = |(path, bytes): &(PathBuf, Vec<u8>)| {
        now.iter()
            .any(|(other, content)| other == path && content != bytes)
    };
    Fixture {
        name: if clean { "sealed" } else { "pending" },
        env,
        whole,
        earlier,
        stale: stale.into_iter().filter(changed).collect(),
        disk,
    }
}

pub(crate) fn contents(disk: &SimVfs) -> Vec<(PathBuf, Vec<u8>)> {
    let files = disk.files().into_iter();
    files
        .map(|path| (path.clone(), disk.content(&path).expect("there")))
        .collect()
}

/// What kind of file a path is: those of one kind can be taken for each other.
pub(crate) fn kind(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match path.extension() {
        Some(_) if name.starts_with("MANIFEST") => "manifest".into(),
        Some(extension) => extension.to_string_lossy().into_owned(),
        None => name,
    }
}

/// The fixture's environment over another disk, its clock standing where it was.
pub(crate) fn env_over(fixture: &Fixture, disk: &SimVfs) -> Env {
    fixture.env.with_vfs(disk.clone())
}
