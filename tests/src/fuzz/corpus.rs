//! Where do mutations begin? Small valid inputs, and every input that once went wrong.
//!
//! They are committed below `tests/fuzz-corpus/<corpus>/`: `valid-*` must be taken by their
//! target, all others (`found-*`, once mended; `odd-*`) must only do no harm. `CHRONOLITH_FUZZ_WRITE_SEEDS=1` writes
//! the valid ones anew, after a format changed.

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus is part of the source tree"
)]

use std::fs;
use std::path::{Path, PathBuf};

use chronolith::{Batch, ReadMode, Record, Scope, SourceClass, Store, VectorFormat, VectorSpace};
use chronolith_segments::{OpRef, PutMode, SpaceNumber, StoredVectors, encode_batch};
use chronolith_vfs::{Env, SimVfs};
use chronolith_wal::{Log, LogOptions, Recovered, STATUS_NAME, log_name};

use super::log::STORE_ID;
use super::log_bytes::{self, PAIR_HEADER};
use super::store::{Base, DIR, build, files, options};

/// The directory of a corpus.
pub fn corpus_dir(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz-corpus")
        .join(name)
}

/// Name and bytes of each input of a corpus, by name.
///
/// # Panics
/// If there is none: a corpus is part of the source.
pub fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let dir = corpus_dir(name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("a directory that can be read");
            let bytes = fs::read(entry.path()).expect("a file that can be read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", dir.display());
    inputs
}

/// The valid inputs of every corpus, made anew: (corpus, name, bytes).
pub fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (size, rows) in [("tiny", 1), ("small", 40), ("large", 160)] {
        let base = build(rows);
        from_disk(&mut seeds, size, &base.disk);
    }
    seeds.push(("segment", "odd-runs".into(), merged(40)));
    seeds.extend(batches().map(|(name, bytes)| ("batch", name.into(), bytes)));
    seeds.push(("batch", "odd-spaces".into(), batch_of_spaces()));
    for (corpus, ending) in [("segment", ".seg"), ("manifest", ".a")] {
        seeds.push((corpus, "odd-spaces".into(), of_spaces(ending)));
    }
    from_log(&mut seeds);
    seeds.extend(super::seal::seeds().map(|(name, bytes)| ("seal", name.into(), bytes)));
    seeds.extend(matrices().map(|(name, bytes)| ("npy", format!("valid-{name}"), bytes)));
    for (corpus, name, text) in TEXTS {
        seeds.push((corpus, format!("valid-{name}"), text.as_bytes().to_vec()));
    }
    for (name, bytes) in REQUESTS {
        seeds.push(("request", format!("valid-{name}"), bytes.to_vec()));
    }
    seeds
}

type Seeds = Vec<(&'static str, String, Vec<u8>)>;

fn from_disk(seeds: &mut Seeds, size: &str, disk: &SimVfs) {
    let kinds = [
        (".seg", "segment"),
        (".del", "deletes"),
        (".tags", "tag_graph"),
        (".a", "manifest"),
        ("/CURRENT", "pointer"),
        (".log", "log"),
    ];
    for (ending, corpus) in kinds {
        for (at, path) in files(disk, ending).iter().enumerate() {
            let bytes = disk.content(path).expect("there");
            // One of each size; later ones are much like the first.
            if at == 0 || (corpus != "segment" && size == "small") {
                seeds.push((corpus, format!("valid-{size}-{at}"), bytes));
            }
        }
    }
}

/// A segment that a compaction wrote: its rows lie by what their vectors look like. No store of
/// this build expects its number, so it is not taken everywhere.
fn merged(rows: u32) -> Vec<u8> {
    let Base { env, disk } = build(rows);
    let env = env.with_vfs(disk.clone());
    let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("opened");
    store.compact(true, &mut |_| {}).expect("compacted");
    let name = files(&disk, ".seg").pop().expect("a segment");
    disk.content(&name).expect("there")
}

/// The newest file of a store with vectors in two spaces. No store of this build expects its
/// number, so it is not taken everywhere.
fn of_spaces(ending: &str) -> Vec<u8> {
    let Base { env, disk } = build(10);
    let env = env.with_vfs(disk.clone());
    let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("opened");
    let space = VectorSpace {
        model: "other".into(),
        dim: 3,
        format: VectorFormat::F32,
        normalised: false,
    };
    store.add_space("next", &space).expect("added");
    let scope = Scope::parse("user/ana").expect("a scope");
    let mut batch = Batch::new();
    for at in 0..4_u8 {
        let record = Record::new(scope.clone(), format!("n{at}"), 0, "some words");
        batch.upsert(match at {
            0 => record,
            _ => record.vector_in("next", vec![f32::from(at), 1.0, 2.0]),
        });
    }
    store.write(batch).expect("written");
    store.flush().expect("flushed");
    let mut names = files(&disk, ending);
    names.sort();
    let name = names.pop().expect("a file");
    disk.content(&name).expect("there")
}

/// Of a store with a second space; one without refuses it.
fn batch_of_spaces() -> Vec<u8> {
    let scope = Scope::parse("user/ana").expect("a scope");
    let record = Record::new(scope, "a", 1_700_000_000_000_000, "some words");
    let mut vectors = StoredVectors::main(Some(vec![1, 60, 2, 60, 3, 60, 4, 60]));
    vectors.put(SpaceNumber::new(1), vec![0, 60, 0, 0]);
    let op = OpRef::Put {
        mode: PutMode::Upsert,
        record: &record,
        vectors: &vectors,
        known_since_us: Some(1_600_000_000_000_000),
    };
    let mut bytes = Vec::new();
    encode_batch(&[op], 1_700_000_000_000_000, &mut bytes).expect("small");
    bytes
}

/// Logs of two files, whose first says that it has a successor and is nothing without that; and
/// one that several writers wrote into one file.
///
/// The corpus has a few of builds that knew neither as well (`valid-*.log`): those stay.
fn from_log(seeds: &mut Seeds) {
    let (cut, status) = cut_pair();
    let rotated = rotated_pair();
    let mut of_a_day = rotated.clone();
    // As builds wrote it for a day: a mark in format 0, outside the checksum.
    of_a_day[PAIR_HEADER + 8] = 0;
    (log_bytes::FORGE.patch)(&mut of_a_day);
    seeds.push(("log", "valid-pair-cut".into(), cut));
    seeds.push(("log", "valid-pair-rotated".into(), rotated));
    seeds.push(("log", "valid-pair-of-a-day".into(), of_a_day));
    seeds.push(("log", "valid-epochs".into(), taken_over()));
    seeds.push(("status", format!("valid-{STATUS_NAME}"), status));
}

/// The second of these files was begun by a writer that found the first without a seal. With
/// the status.
fn cut_pair() -> (Vec<u8>, Vec<u8>) {
    let lives = Lives::begin();
    let mut recovered = lives.recover();
    let log = recovered.start(2).expect("started");
    log.append(b"body", 3).expect("appended");
    log.seal().expect("sealed");
    (lives.pair(), lives.content(STATUS_NAME))
}

/// The second of these files was begun because the first was full.
fn rotated_pair() -> Vec<u8> {
    let lives = Lives::begin();
    let log = lives.recover().take_over(2).expect("taken over");
    log.rotate().expect("rotated");
    log.append(b"body", 3).expect("appended");
    drop(log);
    lives.pair()
}

/// One file of three epochs.
fn taken_over() -> Vec<u8> {
    let lives = Lives::begin();
    for epoch in [2, 3] {
        let log = lives.recover().take_over(epoch).expect("taken over");
        log.append(b"body", epoch).expect("appended");
    }
    lives.content(&log_name(1))
}

/// A log that one writer has left, and others go on with.
struct Lives {
    env: Env,
    disk: SimVfs,
    options: LogOptions,
}

impl Lives {
    const DIR: &str = "/wal";

    fn begin() -> Self {
        let (env, disk) = super::disk::env();
        super::disk::put(&disk, "/wal/none".as_ref(), &[]);
        // Zeros behind a first file would be no part of it.
        let options = LogOptions {
            preallocate_bytes: 0,
            ..LogOptions::new(STORE_ID)
        };
        let log = Log::create(&env, Self::DIR.as_ref(), &options, 1).expect("created");
        for (_, body) in batches() {
            let appended = log.append(&body, 2).expect("appended");
            log.sync_upto(appended.last_seq).expect("synced");
            log.write_status(appended.last_seq).expect("written");
        }
        Self { env, disk, options }
    }

    fn recover(&self) -> Recovered {
        Log::recover(&self.env, Self::DIR.as_ref(), &self.options).expect("sound")
    }

    fn content(&self, file: &str) -> Vec<u8> {
        let path = Path::new(Self::DIR).join(file);
        self.disk.content(&path).expect("there")
    }

    fn pair(&self) -> Vec<u8> {
        log_bytes::pair(&self.content(&log_name(1)), &self.content(&log_name(2)))
    }
}

fn batches() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let scope = Scope::parse("user/ana").expect("a scope");
    let plain = Record::new(scope.clone(), "a", 1_700_000_000_000_000, "some words");
    let full = Record {
        summary: Some("short".into()),
        speaker: Some("Ana".into()),
        tags: vec!["ops".into(), "b".into()],
        source: Some("chat".into()),
        source_class: Some(SourceClass::Web),
        importance: Some(0.5),
        source_id: Some("doc".into()),
        attributes: "{\"k\":1}".into(),
        ..Record::new(scope.clone(), "id-2", -5, "staging proxy 8443")
    };
    let put = |record, vectors| OpRef::Put {
        mode: PutMode::Upsert,
        record,
        vectors,
        known_since_us: None,
    };
    let main = StoredVectors::main(Some(vec![1, 60, 2, 60, 3, 60, 4, 60]));
    let (parent, child) = ("kinds", "kind-1");
    let encode = |ops: &[OpRef<'_>]| {
        let mut bytes = Vec::new();
        encode_batch(ops, 1_700_000_000_000_000, &mut bytes).expect("small");
        bytes
    };
    let all = [
        put(&plain, StoredVectors::NONE),
        put(&full, &main),
        OpRef::Delete {
            scope: &scope,
            id: "r4",
        },
        OpRef::LinkTag {
            scope: &scope,
            parent,
            child,
        },
        OpRef::UnlinkTag {
            scope: &scope,
            parent,
            child,
        },
    ];
    let made = [
        ("odd-empty", encode(&[])),
        ("valid-put", encode(&all[..1])),
        ("valid-delete", encode(&all[2..3])),
        ("valid-all", encode(&all)),
    ];
    made.into_iter()
}

/// Vectors in NumPy's format: of both versions of its header, in both widths.
fn matrices() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let matrix = |version: u8, descr: &str, rows: u32, data: &[u8]| {
        let dict =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, 3), }}\n");
        let length = u32::try_from(dict.len()).expect("short").to_le_bytes();
        let length = if version == 1 {
            &length[..2]
        } else {
            &length[..]
        };
        [
            &b"\x93NUMPY"[..],
            &[version, 0],
            length,
            dict.as_bytes(),
            data,
        ]
        .concat()
    };
    let made = [
        (
            "half",
            matrix(1, "<f2", 2, &[0, 60, 0, 188, 1, 0, 0, 64, 255, 123, 0, 0]),
        ),
        (
            "single",
            matrix(2, "<f4", 1, &[0, 0, 128, 63, 0, 0, 0, 192, 1, 0, 0, 0]),
        ),
        ("empty", matrix(1, "<f4", 0, &[])),
    ];
    made.into_iter()
}

const TEXTS: [(&str, &str, &str); 14] = [
    (
        "lines",
        "full",
        r#"{"id":"a","ts":"2025-03-03T09:02:00Z","scope":"u/x","text":"t\u0000é","summary":"s","tags":["b","a"],"speaker":"Ana","source":"chat","source_class":"web","importance":0.3,"source_id":"d","vector":[0.5,-1e-3],"attributes":{"k":[1,{"z":null}]},"ts_kind":"real"}"#,
    ),
    (
        "lines",
        "three",
        "{\"id\":\"a\",\"ts\":1,\"text\":\"t\"}\r\n\n[]\n{\"id\":\"b\",\"ts\":-5,\"scope\":\"s\",\"text\":\"\"}",
    ),
    (
        "lines",
        "times",
        "{\"id\":\"a\",\"ts\":\"0001-01-01T00:00:00.000001+23:59\",\"text\":\"t\"}\n{\"id\":\"b\",\"ts\":9223372036854775807,\"text\":\"t\"}\n{\"id\":\"c\",\"ts\":0,\"text\":\"t\"}",
    ),
    ("scope", "path", "user/ana/project/apollo"),
    ("scope", "key", "user\0ana\0"),
    ("scope", "selectors", "user/ana\n=team/x\na/b/c+up\n/"),
    ("scope", "accents", "Ünï/çødé/熊猫"),
    (
        "analyzer",
        "prose",
        "The dog's running; don't o'clock, Café NAÏVE Ёлка STRASSE Straße.",
    ),
    (
        "analyzer",
        "code",
        "read_file parseHttpURL ./src/main.rs std::vec E0502 ORA-00942 v1.2.3 a.b@c.de",
    ),
    (
        "analyzer",
        "url",
        "https://ex.test/a?b=1&c=%20#x <tag> \"q\" {a|b} state-of-the-art 15:00 3.14",
    ),
    (
        "analyzer",
        "cjk",
        "熊猫吃竹 안녕 세계 ひらがな カタカナ ｶﾀｶﾅ ไทย עברית العربية",
    ),
    (
        "analyzer",
        "marks",
        "e\u{301}\u{301}\u{327} \u{200d}\u{feff}\u{202e} ﬁ ǅ İ ſ \u{1f468}\u{200d}\u{1f469} \u{0}",
    ),
    ("analyzer", "id", "default-2/english+summary+speaker+date"),
    (
        "analyzer",
        "long",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ),
];

const REQUESTS: [(&str, &[u8]); 4] = [
    ("text", b"\x00\x0estaging proxy \x05\x05\0\0\0\0\0\0\0"),
    (
        "tags",
        b"\x01\x03ops\x02\x0dkind-1,kind-2\x0e\x02\0\0\0\0\0\0\0",
    ),
    (
        "scope",
        b"\x03\x08user/ana\x00\x06number\x0f\x02\0\x02\0\0\0\0\0",
    ),
    (
        "vector",
        b"\x12\x80\x3f\x00\x3f\x80\x3e\x40\x3f\x06\x02\0\0\0\0\0\0\0",
    ),
];
