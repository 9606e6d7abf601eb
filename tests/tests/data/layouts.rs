//! `hits` and `exactness` are the same bytes, wherever the rows lie.

use std::path::Path;
use std::time::Duration;

use chronolith::{
    Fusion, Maintenance, Mode, Options, ReadMode, ReadOnlyStore, Recency, Request, Response, Setup,
    Store, VectorFormat,
};
use chronolith_tests::data::{Query, Set, deep, write_all};
use chronolith_vfs::{RealVfs, Vfs};

/// The instant of every request, µs: after the last record of the set.
pub(crate) const NOW_US: i64 = 1_760_000_000_000_000;
/// Every so many queries are asked unless the deep tier is on.
const STRIDE: usize = 9;

/// The queries that are asked.
pub(crate) fn sample(set: &Set) -> impl Iterator<Item = &Query> {
    set.queries.iter().step_by(if deep() { 1 } else { STRIDE })
}

/// Every mode of a query, one request each; the last one with decay.
pub(crate) fn requests(query: &Query) -> Vec<Request> {
    let request = query
        .request()
        .now_us(NOW_US)
        .fusion(Fusion::Convex { dense_weight: 0.3 });
    let tau_us = 90 * 86_400_000_000;
    let decay = request
        .clone()
        .mode(Mode::Hybrid)
        .recency(Recency::Decay { tau_us });
    let modes = [Mode::Sparse, Mode::Dense, Mode::Hybrid].into_iter();
    modes
        .map(|mode| request.clone().mode(mode))
        .chain([decay])
        .collect()
}

/// What must not differ: hits with all their signals, score bits apart, and exactness.
pub(crate) fn bytes_of(response: &Response) -> String {
    let bits: Vec<u64> = response
        .hits
        .iter()
        .map(|hit| hit.score.to_bits())
        .collect();
    serde_json::to_string(&(&response.hits, &response.exactness, bits)).expect("serialises")
}

pub(crate) fn setup(set: &Set) -> Setup {
    Setup {
        vectors: set.space(VectorFormat::F16),
        ..Setup::default()
    }
}

pub(crate) fn options(setup: &Setup, maintenance: Maintenance) -> Options {
    Options {
        maintenance,
        // The files are thrown away; one sync a batch is slow and shows nothing here.
        durability: chronolith::Durability::Buffered,
        // Scopes of these sets are small: their merges must lay rows out all the same.
        runs: chronolith::RunPolicy {
            rows_min: 8,
            rows_max: 64,
        },
        ..Options::create(setup.clone())
    }
}

/// The answers of the first layout, and how the others compare.
struct Expected {
    requests: Vec<Request>,
    answers: Vec<String>,
    layouts: usize,
}

impl Expected {
    fn of(set: &Set, store: &Store) -> Self {
        let requests: Vec<_> = sample(set).flat_map(requests).collect();
        let ask = |request| bytes_of(&store.retrieve(request).expect("answers"));
        let answers: Vec<_> = requests.iter().map(ask).collect();
        let with_hits = answers
            .iter()
            .filter(|answer| answer.contains("\"id\""))
            .count();
        assert!(
            with_hits * 10 > answers.len() * 9,
            "only {with_hits} answers have hits"
        );
        Self {
            requests,
            answers,
            layouts: 1,
        }
    }

    fn check(&mut self, layout: &str, ask: impl Fn(&Request) -> Response) {
        for (request, expected) in self.requests.iter().zip(&self.answers) {
            let found = bytes_of(&ask(request));
            assert_eq!(
                &found, expected,
                "layout {layout:?} answers {request:?} otherwise"
            );
        }
        self.layouts += 1;
    }

    fn check_store(&mut self, layout: &str, store: &Store) {
        let stats = store.stats().expect("counts");
        println!(
            "{layout}: {} segments, {} memtables",
            stats.segments, stats.memtables
        );
        self.check(layout, |request| store.retrieve(request).expect("answers"));
    }
}

fn open(dir: &Path, setup: &Setup, read_mode: ReadMode, maintenance: Maintenance) -> Store {
    let options = Options {
        read_mode,
        catalog_segments_min: 0,
        ..options(setup, maintenance)
    };
    Store::open(dir, options).expect("opens")
}

#[test]
fn an_answer_does_not_depend_on_where_its_rows_lie() {
    let Some(set) = Set::load("locomo") else {
        return;
    };
    let root = tempfile::tempdir().expect("a directory");
    let setup = setup(&set);
    let dir = root.path().join("one");
    let store = open(&dir, &setup, ReadMode::Mapped, Maintenance::Manual);
    write_all(&store, &set.records);
    assert_eq!(
        store.stats().expect("counts").segments,
        0,
        "not in memory any more"
    );
    let mut expected = Expected::of(&set, &store);

    drop(store);
    let store = open(&dir, &setup, ReadMode::Mapped, Maintenance::Manual);
    expected.check_store("replayed from the log", &store);
    let reader = ReadOnlyStore::open(&dir, Options::default()).expect("opens");
    expected.check("a reader over the log", |r| {
        reader.retrieve(r).expect("answers")
    });
    store.flush().expect("flushed");
    expected.check_store("after flush", &store);
    store.compact(true, &mut |_| {}).expect("compacted");
    expected.check_store("after compaction", &store);
    store.close().expect("closed");
    for read_mode in [ReadMode::Mapped, ReadMode::Positioned] {
        let store = open(&dir, &setup, read_mode, Maintenance::Manual);
        expected.check_store(&format!("reopened, {read_mode:?}"), &store);
    }
    // Background work keeps a catalog; the answers take longer than its opening.
    let catalog = dir.join("catalog");
    for label in ["beside a catalog", "its catalog deleted"] {
        let store = open(&dir, &setup, ReadMode::Mapped, Maintenance::Background);
        expected.check_store(label, &store);
        store.close().expect("closed");
        assert!(catalog.is_dir(), "{label}: a clean close leaves a catalog");
        RealVfs::new().remove_dir_all(&catalog).expect("removed");
    }
    let store = open(&dir, &setup, ReadMode::Mapped, Maintenance::Manual);
    expected.check_store("without a catalog", &store);
    reader.refresh().expect("refreshed");
    expected.check("a reader over segments", |r| {
        reader.retrieve(r).expect("answers")
    });
    drop(store);

    for segments in [1, 4, 64] {
        split(&set, &setup, root.path(), segments, &mut expected);
    }
    background(&set, &setup, &root.path().join("background"), &mut expected);
    let (layouts, answers) = (expected.layouts, expected.answers.len());
    println!("{answers} answers, the same bytes in {layouts} layouts");
}

/// The rows dealt out to so many flushes, so that every scope and day lies in all of them.
fn split(set: &Set, setup: &Setup, root: &Path, segments: usize, expected: &mut Expected) {
    let dir = root.join(format!("split-{segments}"));
    // A bucket over all of the set: a flush makes one segment.
    let setup = Setup {
        bucket_us: chronolith::BUCKET_MAX_US,
        ..setup.clone()
    };
    let store = open(&dir, &setup, ReadMode::Mapped, Maintenance::Manual);
    for part in 0..segments {
        write_all(&store, set.records.iter().skip(part).step_by(segments));
        store.flush().expect("flushed");
    }
    let found = store.stats().expect("counts").segments;
    assert!(
        found >= segments as u64,
        "{found} segments where {segments} flushes were"
    );
    expected.check_store(&format!("{segments} flushes"), &store);
    drop(store);
    let store = open(&dir, &setup, ReadMode::Positioned, Maintenance::Manual);
    expected.check_store(&format!("{segments} flushes, positioned"), &store);
}

/// Flushes and compactions whenever the threads please, with every record written twice.
fn background(set: &Set, setup: &Setup, dir: &Path, expected: &mut Expected) {
    let options = Options {
        memtable_bytes_max: 1 << 20,
        ..options(setup, Maintenance::Background)
    };
    let store = Store::open(dir, options).expect("opens");
    let mut drafts = set.records.clone();
    for draft in &mut drafts {
        draft.text = "a draft that is replaced".into();
        draft.tags.clear();
    }
    write_all(&store, &drafts[..drafts.len() / 3]);
    write_all(&store, &set.records);
    expected.check_store("while the background works", &store);
    assert!(store.wait_idle(Duration::from_secs(60)), "never idle");
    expected.check_store("once it is idle", &store);
    store.compact(true, &mut |_| {}).expect("compacted");
    assert_eq!(store.stats().expect("counts").dead_rows, 0);
    expected.check_store("without dead rows", &store);
    store.close().expect("closed");
}
