//! A store with a history, the model of it, and ways to damage it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chronolith::{
    Batch, Error, Maintenance, Mode, Options, Record, RepairOptions, RepairReport, Request, Scope,
    ScopeSelector, Setup, SourceClass, Store, StoredRecord, TagEdge, VectorFormat, VectorSpace,
    repair,
};
use chronolith_vfs::{CrashImage, Env, SimVfs, Vfs};

pub(crate) const STORE: &str = "/store";
pub(crate) const FIXED: &str = "/fixed";
const SCOPES: [&str; 3] = ["user/ana", "user/ana/project", "user/bo"];
const WORDS: [&str; 12] = [
    "proxy", "deploy", "rollback", "ana", "bridge", "coffee", "error", "E0502", "tuesday", "paris",
    "invoice", "cache",
];
/// 2024-01-01, µs.
const START_US: i64 = 1_704_067_200_000_000;

/// Numbers that repeat with their seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a usize")
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

type Key = (String, String);

/// Every version that was ever acknowledged; `None` = a delete.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) versions: BTreeMap<Key, Vec<(u64, Option<Record>)>>,
    pub(crate) edges: BTreeSet<TagEdge>,
}

impl Model {
    pub(crate) fn live(&self) -> usize {
        let last = |versions: &Vec<(u64, Option<Record>)>| versions.last().cloned();
        let versions = self.versions.values().filter_map(last);
        versions.filter(|(_, record)| record.is_some()).count()
    }
}

/// A simulated disk with a store on it, closed.
#[derive(Debug, Clone)]
pub(crate) struct Bed {
    pub(crate) env: Env,
    pub(crate) vfs: SimVfs,
    pub(crate) model: Model,
}

pub(crate) fn setup() -> Setup {
    Setup {
        vectors: Some(VectorSpace {
            model: "test".into(),
            dim: 4,
            format: VectorFormat::F16,
            normalised: true,
        }),
        bucket_us: 3_600_000_000,
        ..Setup::default()
    }
}

pub(crate) fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        env: env.clone(),
        log_preallocate_bytes: 4096,
        ..Options::create(setup())
    }
}

/// A store under construction.
pub(crate) struct Builder {
    pub(crate) bed: Bed,
    pub(crate) store: Option<Store>,
    pub(crate) dice: Dice,
    clock: std::sync::Arc<chronolith_vfs::SimClock>,
}

impl Builder {
    pub(crate) fn new(seed: u64) -> Self {
        let (env, vfs, clock) = Env::sim(seed);
        let store = Store::open(STORE, options(&env)).expect("opens");
        Self {
            bed: Bed {
                env,
                vfs,
                model: Model::default(),
            },
            store: Some(store),
            dice: Dice(seed),
            clock,
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    pub(crate) fn record(&mut self, scope: &str, id: &str) -> Record {
        let dice = &mut self.dice;
        let text: Vec<&str> = (0..4 + dice.below(20))
            .map(|_| *dice.pick(&WORDS))
            .collect();
        let at_us = START_US + i64::try_from(dice.below(40)).expect("small") * 600_000_000;
        let scope = Scope::parse(scope).expect("a scope");
        let mut record = Record::new(scope, id, at_us, text.join(" "));
        if dice.one_in(2) {
            record.summary = Some((*dice.pick(&WORDS)).to_owned());
        }
        if dice.one_in(3) {
            record.speaker = Some("Ana".into());
            record.source_id = Some(format!("doc-{}", dice.below(5)));
            record.source_class = Some(SourceClass::ToolOutput);
            record.importance = Some(0.5);
        }
        if dice.one_in(2) {
            record.tags = vec![(*dice.pick(&["deploy", "ops", "food"])).to_owned()];
        }
        if dice.one_in(2) {
            let part = |dice: &mut Dice| dice.below(9) as f32 - 4.0;
            record.vector = Some(vec![1.0, part(dice), part(dice), part(dice)]);
        }
        record.attributes = "{\"n\":1}".into();
        record
    }

    /// One batch of `ops` random operations.
    pub(crate) fn batch(&mut self, ops: usize, ids: usize) {
        self.batch_of(ops, ids, true);
    }

    /// One batch of `ops` random puts.
    pub(crate) fn puts(&mut self, ops: usize, ids: usize) {
        self.batch_of(ops, ids, false);
    }

    fn batch_of(&mut self, ops: usize, ids: usize, forgets: bool) {
        let mut batch = Batch::new();
        let mut done: Vec<(Key, Option<Record>)> = Vec::new();
        for _ in 0..ops {
            let scope = *self.dice.pick(&SCOPES);
            let id = format!("id-{}", self.dice.below(ids));
            let key = (scope.to_owned(), id.clone());
            if forgets && self.dice.one_in(5) {
                batch.forget(Scope::parse(scope).expect("a scope"), id);
                done.push((key, None));
            } else {
                let record = self.record(scope, &id);
                batch.upsert(record.clone());
                done.push((key, Some(record)));
            }
        }
        let committed = self.store().write(batch).expect("writes");
        for (seq, (key, record)) in (committed.first_seq..).zip(done) {
            let versions = self.bed.model.versions.entry(key).or_default();
            versions.push((seq, record));
        }
    }

    pub(crate) fn link(&mut self, parent: &str, child: &str) {
        let edge = TagEdge {
            scope: Scope::parse("user/ana").expect("a scope"),
            parent: parent.into(),
            child: child.into(),
        };
        let mut batch = Batch::new();
        batch.link_tag(edge.clone());
        self.store().write(batch).expect("writes");
        self.bed.model.edges.insert(edge);
    }

    /// Drops the handle as a process that ends, and opens again.
    pub(crate) fn reopen(&mut self) {
        self.store = None;
        self.clock.advance(std::time::Duration::from_secs(60));
        self.store = Some(Store::open(STORE, options(&self.bed.env)).expect("opens"));
    }

    /// Leaves the log's tail unflushed.
    pub(crate) fn done(mut self) -> Bed {
        self.store = None;
        self.bed
    }
}

/// Flushed, compacted, flushed again, deletes and newer versions in every stage, a log tail.
pub(crate) fn history(seed: u64, ids: usize) -> Bed {
    let mut builder = Builder::new(seed);
    builder.link("ops", "deploy");
    for _ in 0..6 {
        builder.batch(8, ids);
    }
    builder.store().flush().expect("flushes");
    for _ in 0..4 {
        builder.batch(6, ids);
    }
    builder.store().flush().expect("flushes");
    builder
        .store()
        .compact(true, &mut |_| {})
        .expect("compacts");
    builder.reopen();
    for _ in 0..4 {
        builder.batch(5, ids);
    }
    builder.link("ops", "food");
    builder.store().flush().expect("flushes");
    // The first log file goes one publish after its last operation was flushed.
    builder.reopen();
    builder.batch(5, ids);
    builder.store().flush().expect("flushes");
    for _ in 0..5 {
        builder.batch(3, ids);
    }
    builder.done()
}

impl Bed {
    /// The same disk once more: damage to one is none to the other.
    pub(crate) fn fork(&self) -> Self {
        let vfs = self.vfs.crash(CrashImage::KeepAll);
        Self {
            env: self.env.with_vfs(vfs.clone()),
            vfs,
            model: self.model.clone(),
        }
    }

    /// Files of the store whose path holds `part` and ends with `end`, sorted.
    pub(crate) fn files(&self, part: &str, end: &str) -> Vec<PathBuf> {
        let all = self.vfs.files().into_iter();
        all.filter(|path| {
            let text = path.to_str().expect("UTF-8");
            text.starts_with(STORE) && text.contains(part) && text.ends_with(end)
        })
        .collect()
    }

    pub(crate) fn remove(&self, path: &Path) {
        self.vfs.remove_file(path).expect("removed");
    }

    pub(crate) fn flip(&self, path: &Path, at: usize) {
        let change = |bytes: &mut Vec<u8>| {
            let at = at % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x20;
            }
        };
        self.vfs.damage(path, change).expect("there");
    }

    /// Every byte of the store.
    pub(crate) fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = self.files("", "").into_iter();
        files
            .map(|path| {
                let bytes = self.vfs.content(&path).expect("there");
                (path, bytes)
            })
            .collect()
    }

    pub(crate) fn repair(&self) -> Result<RepairReport, Error> {
        let options = RepairOptions {
            env: self.env.clone(),
            ..RepairOptions::default()
        };
        repair(STORE, FIXED, &options, &mut |_| {})
    }

    pub(crate) fn open(&self, path: &str) -> Store {
        let options = Options {
            create: None,
            ..options(&self.env)
        };
        Store::open(path, options).expect("opens")
    }
}

/// All records of a store, by (scope, id).
pub(crate) fn records(store: &Store) -> BTreeMap<Key, StoredRecord> {
    let mut found = BTreeMap::new();
    let everything = [ScopeSelector::parse("/").expect("the root")];
    store
        .snapshot()
        .for_each_record(&everything, &mut |stored| {
            let key = (stored.record.scope.path(), stored.record.id.clone());
            assert!(found.insert(key, stored).is_none(), "one row an id");
            Ok(())
        })
        .expect("reads");
    found
}

/// Answers that show order and scores of every channel.
pub(crate) fn answers(store: &Store) -> Vec<String> {
    let mut answers = Vec::new();
    for scope in ["user/ana", "user/bo", "/"] {
        let within = || Request::within(ScopeSelector::parse(scope).expect("a scope")).k(50);
        let requests = [
            within().text("proxy deploy tuesday"),
            within().text("coffee").tag("ops"),
            within().vector(vec![1.0, 0.5, 0.0, -1.0]).mode(Mode::Dense),
            within()
                .text("invoice error E0502")
                .vector(vec![0.1, 0.2, 0.9, 0.0])
                .mode(Mode::Hybrid),
        ];
        for request in requests {
            let response = store.retrieve(&request).expect("answers");
            for hit in response.hits {
                answers.push(format!(
                    "{scope} {:?} {} {:?} {:?}",
                    hit.scope, hit.id, hit.score, hit.signals
                ));
            }
            answers.push("--".into());
        }
    }
    answers
}

/// Compares without vectors, which are narrowed and scaled when stored.
pub(crate) fn is_version(stored: &Record, written: &Record) -> bool {
    let plain = |record: &Record| Record {
        vector: None,
        ..record.clone()
    };
    plain(stored) == plain(written) && stored.vector.is_some() == written.vector.is_some()
}

/// The promises about a repaired store: nothing wrong is in it, and whatever is not there is
/// accounted for.
pub(crate) fn check(bed: &Bed, report: &RepairReport, context: &str) {
    let store = bed.open(FIXED);
    let found = records(&store);
    assert_eq!(found.len() as u64, report.records, "{context}");
    for key in found.keys() {
        assert!(bed.model.versions.contains_key(key), "{context}: {key:?}");
    }
    let is_missing = |seq: u64| {
        report.missing.iter().any(|missing| missing.may_hold(seq))
            || report.log_unproven_after.is_some_and(|last| seq > last)
    };
    let is_lost = |key: &Key| {
        report
            .lost_ids
            .iter()
            .any(|lost| lost.id == key.1 && lost.scope.as_ref().is_none_or(|scope| *scope == key.0))
    };
    for (key, versions) in &bed.model.versions {
        let (seq, newest) = versions.last().expect("at least one");
        let found = found.get(key).map(|stored| &stored.record);
        match (newest, found) {
            (None, None) => {}
            (Some(newest), Some(found)) if is_version(found, newest) => {}
            (Some(_), None) => assert!(
                is_lost(key) || is_missing(*seq),
                "{context}: {key:?} at {seq:x} is gone without a word: {report:#?}"
            ),
            (newest, Some(found)) => {
                let old = versions
                    .iter()
                    .rev()
                    .find(|(_, version)| version.as_ref().is_some_and(|v| is_version(found, v)));
                let (old_seq, _) = old.unwrap_or_else(|| panic!("{context}: invented {key:?}"));
                let later = versions.iter().filter(|(at, _)| at > old_seq);
                let all_lost = later.clone().all(|(at, version)| match version {
                    Some(_) => is_missing(*at) || !report.deletes_at_risk.is_empty(),
                    None => {
                        !report.deletes_at_risk.is_empty()
                            || report.log_unproven_after.is_some_and(|last| *at > last)
                    }
                });
                assert!(
                    all_lost,
                    "{context}: {key:?} went back to {old_seq:x} from {seq:x} ({}): {report:#?}",
                    newest.is_some()
                );
            }
        }
    }
}
