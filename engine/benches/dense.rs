//! What does a search by vector cost, and what does it find?
//!
//! `cargo bench -p chronolith --bench dense -- [recall] [scopes] [10k] [100k] [1m]` (all but 1m
//! without a name). Vectors are those of the bench generator: 384 components round the centres
//! of topics and sessions. `recall` takes the shared sets (`CHRONOLITH_DATA`, else
//! `../shared/data`), without which it says so and is skipped. Times are CPU time of one
//! thread a query, the least of several rounds; recall is that of the exact answer's rows.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a bench reads files, counts small numbers and stops at the first surprise"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronolith::{
    Batch, Durability, Exactness, Mode, Options, Record, Request, Scope, ScopeSelector, Setup,
    Store, VectorFormat, VectorSpace,
};

const DIM: usize = 384;
const QUERIES: usize = 200;
const ROUNDS: usize = 5;
/// CPU time of a round: the system counts it in steps of 4 ms.
const ROUND_NS: u64 = 150_000_000;
const MINUTE_US: i64 = 60_000_000;
const TIME_0_US: i64 = 1_600_000_000_000_000;
const ALL: [&str; 4] = ["recall", "scopes", "10k", "100k"];

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |name: &str| match asked.is_empty() {
        true => ALL.contains(&name),
        false => asked.iter().any(|arg| arg == name),
    };
    if wants("recall") {
        recall();
    }
    if wants("scopes") {
        scopes();
    }
    for (name, rows) in [("10k", 10_000), ("100k", 100_000), ("1m", 1_000_000)] {
        if wants(name) {
            one_scope(name, rows);
        }
    }
}

/// Vectors of all sets with some, one set a store, asked at the root.
fn recall() {
    let named = std::env::var_os("CHRONOLITH_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let Some(data) = named.or(Some(beside)).filter(|dir| dir.is_dir()) else {
        println!("skipped: recall needs the shared data (set CHRONOLITH_DATA)");
        return;
    };
    println!("recall      of the exact list, by candidates");
    println!(
        "            set          rows   list   10 k..: 50     100     150     200     300     400     600    1000  default"
    );
    let mut entries: Vec<PathBuf> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|dir| dir.join("records.f16.npy").exists())
        .collect();
    entries.sort();
    for dir in entries {
        let rows = vectors(&dir.join("records.f16.npy"));
        let queries = vectors(&dir.join("queries.f16.npy"));
        let store = Filled::new("recall", rows.len(), |i| {
            let mut record = record(i, "all");
            record.vector = Some(rows[i].clone());
            record
        });
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        for k in [10, 100] {
            let ask = |query: &[f32]| dense("/", query.to_vec(), k);
            let mut shares = Vec::new();
            for candidates in [50, 100, 150, 200, 300, 400, 600, 1000] {
                let found = store.found(&queries, &ask, &|request| request.candidates(candidates));
                shares.push(found);
            }
            shares.push(store.found(&queries, &ask, &|request| request));
            let shown: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
            println!(
                "            {name:<11} {:>6}   {k:>4}   {}",
                rows.len(),
                shown.join("  ")
            );
        }
    }
}

/// 10,000 scopes of 100 records; one is asked.
fn scopes() {
    let (scopes, each) = (10_000, 100);
    let mut world = World::new(7);
    let store = Filled::new("scopes", scopes * each, |i| {
        let mut record = record(i, &format!("u{}/p0", i % scopes));
        record.vector = Some(world.row());
        record
    });
    let queries: Vec<(String, Vec<f32>)> = (0..QUERIES)
        .map(|i| (format!("u{}/p0", i * 37 % scopes), world.query()))
        .collect();
    println!("one scope of {scopes}, {each} records each");
    let requests: Vec<Request> = queries
        .iter()
        .map(|(scope, query)| dense(scope, query.clone(), 10))
        .collect();
    store.show("", &requests);
}

/// All rows in one scope, with and without filters.
fn one_scope(name: &str, rows: usize) {
    let mut world = World::new(7);
    let store = Filled::new(name, rows, |i| {
        let mut record = record(i, "u/p");
        record.vector = Some(world.row());
        // One in a thousand, in a hundred, in ten, in five, nine in ten: by chance, not by time.
        let at = mixed(i as u64) % 1000;
        for (tag, share) in [
            ("f1", 1),
            ("f10", 10),
            ("f100", 100),
            ("f200", 200),
            ("f900", 900),
        ] {
            if at < share {
                record.tags.push(tag.to_owned());
            }
        }
        record
    });
    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|_| world.query()).collect();
    println!("{rows} rows in one scope");
    let show = |label: &str, change: &dyn Fn(Request) -> Request| {
        // One line alone, to look at it with a profiler.
        let only = std::env::var("CHRONOLITH_BENCH_LINE");
        if only.is_ok_and(|only| only != label) {
            return;
        }
        let ask = |query: &Vec<f32>| change(dense("u/p", query.clone(), 10));
        let requests: Vec<Request> = queries.iter().map(ask).collect();
        store.show(label, &requests);
    };
    show("all", &|request| request);
    for candidates in [50, 100, 400] {
        show(&format!("all, {candidates} scored"), &|request| {
            request.candidates(candidates)
        });
    }
    for (label, tag) in [
        ("0.1", "f1"),
        ("1", "f10"),
        ("10", "f100"),
        ("20", "f200"),
        ("90", "f900"),
    ] {
        show(&format!("tag {label} %"), &|request| request.tag(tag));
    }
    for (label, share) in [("0.1", 0.001), ("1", 0.01), ("10", 0.1), ("50", 0.5)] {
        let since = TIME_0_US + ((1.0 - share) * rows as f64) as i64 * MINUTE_US;
        show(&format!("newest {label} %"), &|request| {
            request.since_us(since)
        });
    }
    show("tag 10 %, newest 50 %", &|request| {
        request
            .tag("f100")
            .since_us(TIME_0_US + rows as i64 / 2 * MINUTE_US)
    });
    show("hybrid without words", &|request| {
        request.text("common").mode(Mode::Hybrid)
    });
}

fn dense(scope: &str, vector: Vec<f32>, k: usize) -> Request {
    Request::within(ScopeSelector::parse(scope).unwrap())
        .vector(vector)
        .mode(Mode::Dense)
        .k(k)
        .ids_only()
}

fn record(i: usize, scope: &str) -> Record {
    let time_us = TIME_0_US + i as i64 * MINUTE_US;
    Record::new(
        Scope::parse(scope).unwrap(),
        format!("r{i}"),
        time_us,
        "common word",
    )
}

/// A store with its directory.
struct Filled {
    store: Store,
    _dir: tempfile::TempDir,
}

impl Filled {
    fn new(name: &str, rows: usize, mut record: impl FnMut(usize) -> Record) -> Self {
        let dir = tempfile::Builder::new()
            .prefix(name)
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let space = VectorSpace {
            model: "minilm".into(),
            dim: DIM as u32,
            format: VectorFormat::F16,
            normalised: true,
        };
        let setup = Setup {
            vectors: Some(space),
            ..Setup::default()
        };
        let store = Store::open(dir.path().join("s"), Options::create(setup)).unwrap();
        let start_ns = cpu_ns();
        for first in (0..rows).step_by(500) {
            let mut batch = Batch::new();
            for i in first..(first + 500).min(rows) {
                batch.upsert(record(i));
            }
            store.write_with(batch, Durability::Buffered).unwrap();
        }
        store.flush().unwrap();
        assert!(store.wait_idle(Duration::from_secs(1200)));
        let stats = store.stats().unwrap();
        println!(
            "{name:<11} {rows} rows in {} segments, {:.0} bytes each, {:.1} us of the writer's CPU each",
            stats.segments,
            stats.segment_bytes as f64 / rows as f64,
            (cpu_ns() - start_ns) as f64 / 1000.0 / rows as f64
        );
        Self { store, _dir: dir }
    }

    /// Share of the exact lists that `change`d requests find.
    fn found(
        &self,
        queries: &[Vec<f32>],
        ask: &dyn Fn(&[f32]) -> Request,
        change: &dyn Fn(Request) -> Request,
    ) -> f64 {
        let (mut found, mut wanted) = (0, 0);
        for query in queries {
            let exact = self.ids(&ask(query).exhaustive());
            let ids = self.ids(&change(ask(query)));
            wanted += exact.len();
            found += exact.intersection(&ids).count();
        }
        found as f64 / wanted.max(1) as f64
    }

    fn ids(&self, request: &Request) -> BTreeSet<String> {
        let hits = self.store.retrieve(request).unwrap().hits;
        hits.into_iter().map(|hit| hit.id).collect()
    }

    fn show(&self, label: &str, requests: &[Request]) {
        let (mut found, mut wanted, mut exact) = (0, 0, 0);
        for request in requests.iter().take(50) {
            let all = self.ids(&request.clone().exhaustive());
            let ids = self.ids(request);
            wanted += all.len();
            found += all.intersection(&ids).count();
            let exactness = self.store.retrieve(request).unwrap().exactness;
            exact += u32::from(exactness == Exactness::Exact);
        }
        let mut best = f64::MAX;
        let mut work = chronolith::DenseCounters::default();
        for _ in 0..ROUNDS {
            let (start_ns, mut asked) = (cpu_ns(), 0);
            while cpu_ns() - start_ns < ROUND_NS {
                for request in requests {
                    work = self.store.retrieve(request).unwrap().plan.layout.dense;
                }
                asked += requests.len();
            }
            let each = (cpu_ns() - start_ns) as f64 / 1000.0 / asked as f64;
            best = best.min(each);
        }
        println!(
            "  {label:<24} {best:>8.1} us  recall {:.4}  exact {}  codes {:>7}  vectors {:>5}",
            found as f64 / wanted.max(1) as f64,
            if exact == 0 { "no " } else { "yes" },
            work.codes,
            work.vectors
        );
    }
}

/// CPU time of this thread, ns. The system counts it in steps of a few ms: for long rounds.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

fn vectors(path: &Path) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let header_bytes = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let body = &bytes[10 + header_bytes..];
    body.chunks_exact(DIM * 2)
        .map(|row| chronolith_segments::widen(row, VectorFormat::F16))
        .collect()
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The generator's vectors: centres of 512 topics in three levels, sessions of some sixteen
/// rows on two topics, noise of low and of full rank.
struct World {
    state: u64,
    centres: Vec<Vec<f32>>,
    low_rank: Vec<Vec<f32>>,
    session: Vec<f32>,
    topics: [usize; 2],
    left: u64,
    rows: Vec<Vec<f32>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            state: seed,
            centres: Vec::new(),
            low_rank: Vec::new(),
            session: Vec::new(),
            topics: [0, 0],
            left: 0,
            rows: Vec::new(),
        };
        let mut units =
            |n: usize| -> Vec<Vec<f32>> { (0..n).map(|_| unit(world.normal())).collect() };
        let (a, b, d) = (units(8), units(64), units(512));
        let centre = |t: usize| {
            let of = |i: usize| 0.55 * a[t / 64][i] + 0.5 * b[t / 8][i] + 0.65 * d[t][i];
            unit((0..DIM).map(of).collect())
        };
        world.centres = (0..512).map(centre).collect();
        let scale = 1.0 / (DIM as f32).sqrt();
        world.low_rank = (0..48)
            .map(|_| world.normal().into_iter().map(|x| x * scale).collect())
            .collect();
        world
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }

    /// Sums of twelve bytes' worth of chance: near enough to normal.
    fn normal(&mut self) -> Vec<f32> {
        let one = |world: &mut Self| {
            let (a, b) = (world.next(), world.next());
            let sixteen = |x: u64| {
                (0..4)
                    .map(|at| (x >> (16 * at) & 0xffff) as f32)
                    .sum::<f32>()
            };
            // Eight even numbers: variance 8 / 12.
            (sixteen(a) + sixteen(b) - 262_140.0) / 65_536.0 * 1.2247
        };
        (0..DIM).map(|_| one(self)).collect()
    }

    fn row(&mut self) -> Vec<f32> {
        if self.left == 0 {
            self.left = 1 + self.next() % 31;
            self.session = unit(self.normal());
            // Few topics have most sessions.
            let mut topic = || {
                let u = (self.state ^ self.state >> 7) % 10_000;
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                (512.0 * (mixed(u + self.state) as f64 / u64::MAX as f64).powi(3)) as usize % 512
            };
            self.topics = [topic(), topic()];
        }
        self.left -= 1;
        let topic = self.topics[usize::from(self.next().is_multiple_of(5))];
        let z: Vec<f32> = self.normal().into_iter().take(48).collect();
        let noise = self.normal();
        let e = 0.38 / (DIM as f32).sqrt();
        let mut vector: Vec<f32> = (0..DIM)
            .map(|i| 0.62 * self.centres[topic][i] + 0.30 * self.session[i] + noise[i] * e)
            .collect();
        for (z, direction) in z.iter().zip(&self.low_rank) {
            for (x, d) in vector.iter_mut().zip(direction) {
                *x += 0.105 * z * d;
            }
        }
        let vector = unit(vector);
        if self.next().is_multiple_of(64) && self.rows.len() < 4096 {
            self.rows.push(vector.clone());
        }
        vector
    }

    /// Near a row that was given out.
    fn query(&mut self) -> Vec<f32> {
        let at = self.next() as usize % self.rows.len();
        let (noise, e) = (self.normal(), 0.55 / (DIM as f32).sqrt());
        let row = &self.rows[at];
        unit(row.iter().zip(noise).map(|(x, n)| x + n * e).collect())
    }
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / norm).collect()
}
