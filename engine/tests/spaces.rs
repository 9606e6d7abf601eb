//! Goal: a store keeps vectors of several models apart, and moves from one to another in use.
//! Mechanism: random operations against a plain map, with flushes, merges, reopens and changes
//! of the spaces between them; every answer by vector is compared with the map's.

#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the store's files behind the engine's back"
)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use chronolith::{
    Batch, Durability, Error, Exactness, Maintenance, MigrateOptions, Mode, Options, ReadOnlyStore,
    Record, Request, Scope, ScopeSelector, Setup, SpaceError, SpaceVector, Store, VectorFormat,
    VectorSpace,
};
use chronolith_segments::{Description, parse_segment_file_name};
use chronolith_vfs::RealVfs;

const DIM: u32 = 4;

fn space(model: &str, dim: u32) -> VectorSpace {
    VectorSpace {
        model: model.into(),
        dim,
        format: VectorFormat::F32,
        normalised: false,
    }
}

fn options(setup: Option<Setup>) -> Options {
    Options {
        create: setup,
        maintenance: Maintenance::Manual,
        durability: Durability::Buffered,
        ..Options::default()
    }
}

fn setup() -> Setup {
    Setup {
        vectors: Some(space("m", DIM)),
        ..Setup::default()
    }
}

fn create(dir: &Path) -> Store {
    Store::open(dir, options(Some(setup()))).expect("opens")
}

fn reopen(store: Store, dir: &Path) -> Store {
    drop(store);
    Store::open(dir, options(None)).expect("reopens")
}

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

fn record(id: &str, text: &str) -> Record {
    Record::new(scope(), id, 1_700_000_000_000_000, text)
}

fn write(store: &Store, record: Record) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch).map(|_| ())
}

fn all() -> Request {
    Request::within(ScopeSelector::parse("user/ana").expect("a scope")).k(100)
}

/// Ids by a question in a space, the best first.
fn ids(store: &Store, request: &Request) -> Vec<String> {
    let response = store.retrieve(request).expect("answers");
    let hits = response.hits.into_iter();
    hits.map(|hit| hit.id).collect()
}

/// A vector that is told by its first component.
fn vector(dim: u32, value: f32) -> Vec<f32> {
    let mut vector = vec![0.0; dim as usize];
    vector[0] = value;
    vector[dim as usize - 1] = 0.5;
    vector
}

fn question(space: Option<&str>, dim: u32) -> Request {
    let mut query = vec![0.0; dim as usize];
    query[0] = 1.0;
    match space {
        Some(name) => all().vector_in(name, query),
        None => all().vector(query),
    }
    .mode(Mode::Dense)
    .exhaustive()
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn below(state: &mut u64, n: u64) -> u64 {
    random(state) % n
}

/// What the store should know.
#[derive(Debug, Default)]
struct Model {
    /// Name, dimension.
    spaces: BTreeMap<String, u32>,
    default: String,
    /// By id: text, and the first component of each vector.
    records: BTreeMap<String, (String, BTreeMap<String, f32>)>,
}

impl Model {
    fn ranked(&self, space: &str) -> Vec<String> {
        let values = self
            .records
            .iter()
            .filter_map(|(id, (_, vectors))| vectors.get(space).map(|value| (*value, id.clone())));
        let mut values: Vec<(f32, String)> = values.collect();
        values.sort_by(|a, b| b.0.total_cmp(&a.0));
        values.into_iter().map(|(_, id)| id).collect()
    }

    fn check(&self, store: &Store) {
        let known: BTreeMap<String, u32> = (store.spaces().into_iter())
            .map(|info| (info.name, info.space.dim))
            .collect();
        assert_eq!(known, self.spaces);
        for (name, dim) in &self.spaces {
            let found = ids(store, &question(Some(name), *dim));
            assert_eq!(found, self.ranked(name), "space {name}");
        }
        let dim = self.spaces[&self.default];
        assert_eq!(ids(store, &question(None, dim)), self.ranked(&self.default));
        for (id, (text, vectors)) in &self.records {
            let stored = store.get(&scope(), id).expect("reads").expect("is there");
            assert_eq!(stored.record.text, *text);
            let mut found: BTreeMap<String, f32> = (stored.record.vectors.iter())
                .map(|one| (one.space.clone(), one.vector[0]))
                .collect();
            found.extend((stored.record.vector.iter()).map(|one| (self.default.clone(), one[0])));
            assert_eq!(found, *vectors, "{id}");
        }
        let stats = store.stats().expect("counts");
        assert_eq!(stats.records, self.records.len() as u64);
        assert_eq!(stats.spaces.len(), self.spaces.len());
    }
}

fn random_life(seed: u64, steps: usize) {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let (mut store, mut state) = (create(&dir), seed);
    let mut model = Model {
        spaces: BTreeMap::from([("main".to_owned(), DIM)]),
        default: "main".into(),
        ..Model::default()
    };
    let mut value = 0.0;
    for step in 0..steps {
        let names: Vec<String> = model.spaces.keys().cloned().collect();
        let name =
            names[usize::try_from(below(&mut state, names.len() as u64)).expect("few")].clone();
        match below(&mut state, 20) {
            0..9 => {
                let id = format!("r{}", below(&mut state, 12));
                let text = format!("text {step}");
                let (mut made, mut vectors) = (record(&id, &text), BTreeMap::new());
                for name in &names {
                    if below(&mut state, 3) > 0 {
                        value += 1.0;
                        let own = vector(model.spaces[name], value);
                        made = match *name == model.default && below(&mut state, 2) == 0 {
                            true => Record {
                                vector: Some(own),
                                ..made
                            },
                            false => made.vector_in(name, own),
                        };
                        vectors.insert(name.clone(), value);
                    }
                }
                write(&store, made).expect("written");
                model.records.insert(id, (text, vectors));
            }
            9..11 => {
                let id = format!("r{}", below(&mut state, 12));
                store.forget(scope(), id.as_str()).expect("forgotten");
                model.records.remove(&id);
            }
            11 | 12 => store.flush().expect("flushed"),
            13 => drop(
                store
                    .compact(below(&mut state, 2) == 0, &mut |_| {})
                    .expect("merged"),
            ),
            14 => store = reopen(store, &dir),
            15 | 16 if names.len() < 4 => {
                let name = format!("s{}", below(&mut state, 6));
                if let Entry::Vacant(entry) = model.spaces.entry(name.clone()) {
                    let dim = 3 + u32::try_from(below(&mut state, 3)).expect("small");
                    store.add_space(&name, &space(&name, dim)).expect("added");
                    entry.insert(dim);
                }
            }
            17 => {
                store.set_default_space(&name).expect("set");
                model.default = name;
            }
            18 => match store.drop_space(&name) {
                Ok(()) => {
                    model.spaces.remove(&name);
                    for (_, vectors) in model.records.values_mut() {
                        vectors.remove(&name);
                    }
                }
                Err(Error::Space(SpaceError::IsDefault { .. })) => assert_eq!(name, model.default),
                Err(error) => panic!("{error}"),
            },
            _ => {
                let dim = model.spaces[&name];
                let (mut asked, mut last) = (Vec::new(), value);
                let done = store.migrate_space(
                    &name,
                    &MigrateOptions {
                        batch_records: 3,
                        ..MigrateOptions::default()
                    },
                    |rows| {
                        let each = rows.iter().map(|row| {
                            last += 1.0;
                            asked.push((row.record.id.clone(), last));
                            Some(vector(dim, last))
                        });
                        Ok::<_, String>(each.collect())
                    },
                    &mut |_| {},
                );
                value = last;
                let lacking = model
                    .records
                    .values()
                    .filter(|(_, of)| !of.contains_key(&name));
                assert_eq!(done.expect("migrates").filled, lacking.count() as u64);
                for (id, value) in asked {
                    let record = model.records.get_mut(&id).expect("is there");
                    record.1.insert(name.clone(), value);
                }
            }
        }
        if step % 5 == 0 {
            model.check(&store);
        }
    }
    model.check(&store);
    let report = store.verify(&mut |_| {}).expect("verifies");
    assert!(
        report.findings.is_empty(),
        "seed {seed}: {:?}",
        report.findings
    );
    let reader = ReadOnlyStore::open(&dir, options(None)).expect("opens beside");
    assert_eq!(reader.snapshot().spaces(), store.spaces());
    store.close().expect("closed");
    let store = Store::open(&dir, options(None)).expect("reopens");
    model.check(&store);
}

#[test]
fn random_lives_answer_as_the_model_does() {
    let lives = std::env::var("CHRONOLITH_SPACES_LIVES").ok();
    let lives: u64 = lives.and_then(|n| n.parse().ok()).unwrap_or(6);
    for seed in 0..lives {
        random_life(seed, 120);
    }
}

#[test]
fn mixing_is_refused_by_name_also_where_the_dimension_is_the_same() {
    let room = tempfile::tempdir().expect("a directory");
    let store = create(&room.path().join("store"));
    store.add_space("next", &space("n", DIM)).expect("added");
    store
        .add_space("next", &space("n", DIM))
        .expect("the same again");
    let kind = |result: Result<(), Error>| match result.expect_err("refused") {
        Error::RefusedInBatch { refused, .. } | Error::Refused(refused) => refused.field,
        error => panic!("{error}"),
    };
    let of = |model: &str, vector| SpaceVector {
        space: "next".into(),
        model: Some(model.into()),
        vector,
    };
    let mut mixed = record("a", "text");
    mixed.vectors = vec![of("m", vector(DIM, 1.0))];
    assert_eq!(kind(write(&store, mixed.clone())), "vector");
    mixed.vectors = vec![of("n", vector(DIM, 1.0))];
    write(&store, mixed.clone()).expect("the space's own");
    mixed.vectors.push(of("n", vector(DIM, 2.0)));
    assert_eq!(kind(write(&store, mixed)), "vector", "twice in a space");
    let longer = record("b", "text").vector_in("next", vector(DIM + 1, 1.0));
    assert_eq!(kind(write(&store, longer)), "vector");
    let unknown = record("b", "text").vector_in("none", vector(DIM, 1.0));
    assert_eq!(kind(write(&store, unknown)), "space");
    let ask = |request: Request| store.retrieve(&request).map(|_| ());
    assert_eq!(
        kind(ask(question(Some("next"), DIM).vector_model("m"))),
        "vector"
    );
    assert_eq!(kind(ask(question(None, DIM).vector_model("n"))), "vector");
    assert_eq!(kind(ask(question(Some("none"), DIM))), "space");
    ask(question(Some("next"), DIM).vector_model("n")).expect("the space's own");
    // What is in one space is in no answer of another.
    assert_eq!(ids(&store, &question(Some("next"), DIM)), ["a"]);
    assert!(ids(&store, &question(Some("main"), DIM)).is_empty());
    let plan = store
        .retrieve(&question(Some("next"), DIM))
        .expect("answers")
        .plan;
    assert_eq!(plan.space.as_deref(), Some("next"));
    assert!(plan.to_string().contains("space next"), "{plan}");
    let other = store
        .add_space("next", &space("x", DIM))
        .expect_err("another");
    assert!(
        matches!(other, Error::Space(SpaceError::Exists { .. })),
        "{other}"
    );
    let bad = store
        .add_space("a b", &space("x", DIM))
        .expect_err("no name");
    assert!(matches!(bad, Error::Refused(_)), "{bad}");
}

#[test]
fn a_store_of_one_space_is_byte_by_byte_what_it_was() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let store = create(&dir);
    let mut one = record("a", "text");
    one.vector = Some(vector(DIM, 1.0));
    write(&store, one).expect("written");
    store.close().expect("closed");
    let version_at = |file: &Path, at: usize| std::fs::read(file).expect("a file")[at];
    let only = |sub: &str, ends: &str| {
        let files = std::fs::read_dir(dir.join(sub)).expect("a directory");
        let mut paths: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
        paths.retain(|path| path.to_string_lossy().ends_with(ends));
        paths.sort();
        paths.pop().expect("one")
    };
    assert_eq!(version_at(&only("segments", ".seg"), 8), 3);
    assert_eq!(version_at(&only("manifest", ".a"), 8), 0);
    // A second space changes the manifest, and segments once they have vectors in it.
    let store = Store::open(&dir, options(None)).expect("opens");
    store.add_space("next", &space("n", DIM)).expect("added");
    assert_eq!(version_at(&only("manifest", ".a"), 8), 1);
    write(&store, record("b", "text")).expect("written");
    store.flush().expect("flushed");
    assert_eq!(version_at(&only("segments", ".seg"), 8), 3);
    write(
        &store,
        record("c", "text").vector_in("next", vector(DIM, 2.0)),
    )
    .expect("written");
    store.flush().expect("flushed");
    assert_eq!(version_at(&only("segments", ".seg"), 8), 4);
}

/// Names of the spaces that segments hold vectors of.
fn spaces_on_disk(dir: &Path) -> Vec<String> {
    let segments = dir.join("segments");
    let mut names = std::collections::BTreeSet::new();
    for file in std::fs::read_dir(&segments).expect("a directory") {
        let name = file.expect("an entry").file_name();
        let name = name.to_string_lossy().into_owned();
        if let Some(number) = parse_segment_file_name(&name) {
            let described = Description::read(&RealVfs::new(), &segments, number).expect("whole");
            names.extend(described.spaces.into_iter().map(|(own, _)| own.name));
        }
    }
    names.into_iter().collect()
}

#[test]
fn a_dropped_space_leaves_with_a_forced_merge_also_where_nothing_else_is_to_do() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let store = create(&dir);
    store.add_space("next", &space("n", 3)).expect("added");
    let mut both = record("a", "text").vector_in("next", vector(3, 1.0));
    both.vector = Some(vector(DIM, 1.0));
    write(&store, both).expect("written");
    store.compact(true, &mut |_| {}).expect("merged");
    assert_eq!(spaces_on_disk(&dir), ["main", "next"]);
    store.drop_space("next").expect("dropped");
    store
        .add_space("next", &space("x", 3))
        .expect("another of that name");
    assert!(
        ids(&store, &question(Some("next"), 3)).is_empty(),
        "no vector of the old one"
    );
    store.compact(true, &mut |_| {}).expect("merged");
    assert_eq!(spaces_on_disk(&dir), ["main"]);
    assert_eq!(ids(&store, &question(None, DIM)), ["a"]);
}

#[test]
fn a_migration_keeps_what_records_are_and_goes_on_after_an_error() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let mut store = create(&dir);
    for at in 0..20_u8 {
        let mut made = record(&format!("r{at:02}"), &format!("text {at}"));
        made.vector = Some(vector(DIM, f32::from(at)));
        made.tags = vec!["t".into()];
        write(&store, made).expect("written");
        if at == 9 {
            store.flush().expect("flushed");
        }
    }
    store.add_space("next", &space("n", 3)).expect("added");
    let before = store.snapshot();
    let known = |store: &Store, id: &str| {
        let stored = store.get(&scope(), id).expect("reads").expect("is there");
        (stored.commit_time_us, stored.record)
    };
    let (first_known, first) = known(&store, "r00");
    let small = MigrateOptions {
        batch_records: 4,
        ..MigrateOptions::default()
    };
    let mut calls = 0;
    let failed = store.migrate_space(
        "next",
        &small,
        |rows| {
            calls += 1;
            match calls {
                3 => Err("out of order".to_owned()),
                _ => Ok(vec![Some(vector(3, 1.0)); rows.len()]),
            }
        },
        &mut |_| {},
    );
    assert!(matches!(failed, Err(Error::Embedder { .. })), "{failed:?}");
    store = reopen(store, &dir);
    // One is changed and one forgotten while the embedder works.
    let mut meddled = false;
    let done = store.migrate_space(
        "next",
        &small,
        |rows| {
            if !std::mem::replace(&mut meddled, true) {
                let id = |at: usize| rows[at].record.id.clone();
                write(&store, record(&id(0), "changed")).expect("written");
                store.forget(scope(), id(1)).expect("forgotten");
            }
            let each = rows.iter().map(|row| match row.record.id.as_str() {
                "r19" => None,
                _ => Some(vector(3, 2.0)),
            });
            Ok::<_, String>(each.collect())
        },
        &mut |_| {},
    );
    let done = done.expect("migrates");
    assert_eq!((done.changed, done.passed), (2, 1), "{done:?}");
    assert_eq!(ids(&store, &question(Some("next"), 3)).len(), 18);
    let (again_known, again) = known(&store, "r00");
    assert_eq!(again_known, first_known, "known since then");
    assert_eq!(
        (&again.text, &again.tags, again.vector),
        (&first.text, &first.tags, first.vector)
    );
    let old = before
        .get(&scope(), "r00")
        .expect("reads")
        .expect("is there");
    assert!(old.record.vectors.is_empty(), "a snapshot sees what was");
    store.set_default_space("next").expect("set");
    store.drop_space("main").expect("dropped");
    store.compact(true, &mut |_| {}).expect("merged");
    let stats = store.stats().expect("counts");
    assert_eq!((stats.vectors, stats.spaces.len()), (18, 1));
    assert_eq!(spaces_on_disk(&dir), ["next"]);
    let report = store.verify(&mut |_| {}).expect("verifies");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let response = store.retrieve(&question(None, 3)).expect("answers");
    assert_eq!(response.exactness, Exactness::Exact);
    store = reopen(store, &dir);
    assert_eq!(ids(&store, &question(None, 3)).len(), 18);
    assert_eq!(
        known(&store, "r00").0,
        first_known,
        "also after a replay and a merge"
    );
}

#[test]
fn a_reader_beside_the_writer_follows_the_spaces() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let store = create(&dir);
    write(&store, record("a", "text")).expect("written");
    let reader = ReadOnlyStore::open(&dir, options(None)).expect("opens beside");
    store.add_space("next", &space("n", 3)).expect("added");
    write(
        &store,
        record("b", "text").vector_in("next", vector(3, 1.0)),
    )
    .expect("written");
    assert!(reader.refresh().expect("refreshes"));
    let found = reader
        .retrieve(&question(Some("next"), 3))
        .expect("answers");
    assert_eq!(found.hits.len(), 1);
    assert_eq!(reader.snapshot().spaces(), store.spaces());
}

#[test]
fn a_store_made_without_vectors_takes_its_first_space_as_the_default() {
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path().join("store");
    let store = Store::open(&dir, options(Some(Setup::default()))).expect("opens");
    write(&store, record("a", "text")).expect("written");
    store.flush().expect("flushed");
    store.add_space("own", &space("n", 3)).expect("added");
    let mut made = record("b", "text");
    made.vector = Some(vector(3, 1.0));
    write(&store, made).expect("written");
    let store = reopen(store, &dir);
    assert_eq!(ids(&store, &question(None, 3)), ["b"]);
    store.compact(true, &mut |_| {}).expect("merged");
    assert_eq!(ids(&store, &question(Some("own"), 3)), ["b"]);
}
