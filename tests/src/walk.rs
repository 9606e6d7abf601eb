//! A seed's random walk: operations of every kind on a store, with the model beside it.
//!
//! A step that the model does not allow panics, as the walk's own expectations do.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::generate::{World, batch_of, setup};
use crate::model::{Model, Row, Verdict, difference};
use chronolith::{
    Durability, Error, Maintenance, Options, ReadMode, ReadOnlyStore, RunPolicy, Setup, Snapshot,
    Store, StoredRecord,
};
use chronolith_vfs::{Clock as _, Env, SimClock, SimVfs};

const DIR: &str = "/store";
/// Steps of a walk.
pub const OPS: usize = 150;

/// One seed's store with the model beside it.
pub struct Walk {
    options: Options,
    /// Where it ran.
    pub disk: SimVfs,
    clock: Arc<SimClock>,
    world: World,
    store: Option<Store>,
    model: Model,
    held: Vec<(Snapshot, Model)>,
    known_us: i64,
    /// What happened, as text.
    pub trace: String,
}

fn options(seed: u64, env: Env, setup: Setup) -> Options {
    let one_of = |shift: u32, from: [u64; 3]| from[((seed >> shift) % 3) as usize];
    Options {
        memtable_bytes_max: one_of(0, [2 << 10, 24 << 10, 1 << 20]),
        log_file_bytes_max: one_of(2, [4 << 10, 32 << 10, 1 << 20]),
        log_preallocate_bytes: one_of(1, [0, 512, 4096]),
        read_mode: if seed.is_multiple_of(5) {
            ReadMode::Positioned
        } else {
            ReadMode::Mapped
        },
        maintenance: Maintenance::Manual,
        // Of the few rows here: nearly every scope in runs, some, none.
        runs: RunPolicy {
            rows_min: [2, 8, 256]
                [usize::from(seed.is_multiple_of(7)) + usize::from(seed.is_multiple_of(3))],
            rows_max: 64,
        },
        env,
        ..Options::create(setup)
    }
}

impl Walk {
    fn new(seed: u64) -> Self {
        let (env, disk, clock) = Env::sim(seed);
        let setup = setup(seed);
        let mut options = options(seed, env, setup.clone());
        let store = Store::open(DIR, options.clone()).expect("a new store opens");
        options.create = None;
        Self {
            options,
            disk,
            clock,
            world: World::new(seed),
            store: Some(store),
            model: Model::new(&setup),
            held: Vec::new(),
            known_us: i64::MIN,
            trace: String::new(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open between steps")
    }

    fn step(&mut self) {
        match self.world.rng.below(100) {
            0..42 => self.write(),
            42..74 => self.ask(),
            74..80 => self.get(),
            80..84 => self.store().flush().expect("flush"),
            84..87 => {
                self.store().maintain().expect("maintain");
            }
            87..90 => {
                let force = self.world.rng.percent(50);
                let done = self.store().compact(force, &mut |_| {}).expect("compact");
                let _ = writeln!(self.trace, "compact {done:?}");
            }
            90..93 => self.reopen(),
            93..96 => self.hold(),
            96..98 => self.read_only(),
            98 => self.census(),
            _ => self.move_clock(),
        }
    }

    fn write(&mut self) {
        let ops = self.world.batch();
        let durability = match self.world.rng.below(3) {
            0 => Durability::Buffered,
            _ => Durability::Synced,
        };
        let verdict = self.model.judge(&ops);
        let found = self.store().write_with(batch_of(&ops), durability);
        let _ = writeln!(self.trace, "write {} {found:?}", ops.len());
        let taken = match (verdict, found) {
            (Verdict::Accept | Verdict::Either, Ok(taken)) => taken,
            (Verdict::Exists(expected), Err(Error::Exists { index })) if index == expected => {
                return;
            }
            (
                Verdict::Cycle | Verdict::Either,
                Err(Error::Refused(_) | Error::RefusedInBatch { .. }),
            ) => return,
            (verdict, found) => panic!("{ops:?}: expected {verdict:?}, found {found:?}"),
        };
        assert!(
            taken.commit_time_us >= self.known_us.max(self.clock.now_us()),
            "known time went back: {} after {}",
            taken.commit_time_us,
            self.known_us
        );
        self.known_us = taken.commit_time_us;
        let count = u64::try_from(ops.len()).expect("few");
        assert_eq!(
            taken.last_seq,
            taken.first_seq + count - 1,
            "one seq an operation"
        );
        let (seq, time) = (taken.first_seq, taken.commit_time_us);
        let removed = self.model.apply(&ops, seq, time, &taken.new_ids);
        assert_eq!(removed, taken.removed, "removed by {ops:?}");
        assert_eq!(
            self.store().snapshot().seq(),
            taken.last_seq,
            "own write is visible"
        );
    }

    fn ask(&mut self) {
        let ask = self.world.ask();
        let place = self.world.rng.below(self.held.len() + 1);
        let (found, expected) = match self.held.get(place) {
            Some((snapshot, model)) => (snapshot.retrieve(&ask.request()), model.answer(&ask)),
            None => (
                self.store().retrieve(&ask.request()),
                self.model.answer(&ask),
            ),
        };
        if let Ok(response) = &found {
            let hits = response
                .hits
                .iter()
                .map(|hit| (&hit.id, hit.score.to_bits()));
            let _ = writeln!(self.trace, "ask {:?}", hits.collect::<Vec<_>>());
        }
        if let Some(difference) = difference(&expected, found) {
            panic!("{ask:?}: {difference}");
        }
    }

    fn get(&mut self) {
        let (scope, id) = (self.world.scope(), self.world.id());
        let found = self.store().get(&scope, &id).expect("get");
        assert_same_row(found.as_ref(), self.model.get(&scope, &id));
        if let Some((snapshot, model)) = self.held.first() {
            let found = snapshot.get(&scope, &id).expect("get");
            assert_same_row(found.as_ref(), model.get(&scope, &id));
        }
    }

    fn reopen(&mut self) {
        if self.world.rng.percent(50) {
            self.held.clear();
        }
        let store = self.store.take().expect("open between steps");
        if self.world.rng.percent(50) {
            store.close().expect("close");
        } else {
            drop(store);
        }
        self.store = Some(Store::open(DIR, self.options.clone()).expect("reopen"));
        // `known_time_never_goes_back` has this case to itself.
        self.known_us = i64::MIN;
        let report = self.store().recovery_report().clone();
        let _ = writeln!(self.trace, "reopen {report:?}");
        assert_eq!(report.bytes_dropped, 0, "a clean end drops nothing");
        self.census();
    }

    fn hold(&mut self) {
        if self.held.len() >= 3 {
            let place = self.world.rng.below(self.held.len());
            self.held.remove(place);
        }
        let held = (self.store().snapshot(), self.model.clone());
        self.held.push(held);
    }

    fn read_only(&mut self) {
        let reader = ReadOnlyStore::open(DIR, self.options.clone()).expect("a reader opens");
        let ask = self.world.ask();
        let found = reader.retrieve(&ask.request());
        if let Some(difference) = difference(&self.model.answer(&ask), found) {
            panic!("in another process: {ask:?}: {difference}");
        }
        compare_all(&reader.snapshot(), &self.model);
    }

    /// Every record, and the counts.
    fn census(&self) {
        compare_all(&self.store().snapshot(), &self.model);
        let stats = self.store().stats().expect("stats");
        assert_eq!(stats.records, self.model.len() as u64, "counted records");
    }

    fn move_clock(&mut self) {
        if self.world.rng.percent(30) {
            let back = self.clock.now_us() - 3_600_000_000;
            self.clock.set_us(back);
        } else {
            self.clock.advance(Duration::from_secs(3600));
        }
    }
}

fn compare_all(snapshot: &Snapshot, model: &Model) {
    let mut found = Vec::new();
    let root = [chronolith::ScopeSelector::Root];
    snapshot
        .for_each_record(&root, &mut |stored| {
            found.push(stored);
            Ok(())
        })
        .expect("a whole store");
    found.sort_by(|a, b| {
        let key = |s: &StoredRecord| (s.record.scope.clone(), s.record.id.clone());
        key(a).cmp(&key(b))
    });
    let expected: Vec<&Row> = model.rows().collect();
    let ids = |rows: &[StoredRecord]| -> Vec<(String, String)> {
        let id = |s: &StoredRecord| (s.record.scope.path(), s.record.id.clone());
        rows.iter().map(id).collect()
    };
    assert_eq!(
        found.len(),
        expected.len(),
        "live records: {:?}",
        ids(&found)
    );
    for (found, expected) in found.iter().zip(expected) {
        assert_same_row(Some(found), Some(expected));
    }
}

fn assert_same_row(found: Option<&StoredRecord>, expected: Option<&Row>) {
    let found = found.map(|s| {
        let (seq, time) = (s.commit_seq, s.commit_time_us);
        format!("{:?} {seq} {time} {}", s.record, s.length)
    });
    let expected = expected.map(|row| {
        let (seq, time) = (row.seq, row.commit_time_us);
        format!("{:?} {seq} {time} {}", row.record, row.length)
    });
    assert_eq!(found, expected);
}

/// Says which seed failed, and at which step.
struct Announce {
    seed: u64,
    step: usize,
}

impl Drop for Announce {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, step } = self;
            eprintln!("failed at step {step} of seed {seed}: repeat with CHRONOLITH_SEED={seed}");
        }
    }
}

/// Walks a whole seed.
///
/// # Panics
/// Where the store is not as the model says.
pub fn walk(seed: u64) -> Walk {
    let mut run = Walk::new(seed);
    let mut announce = Announce { seed, step: 0 };
    for step in 0..OPS {
        announce.step = step;
        run.step();
    }
    run.census();
    run
}

/// The known-time clock is max(last, now), also where the last commit is in a segment.
///
/// # Panics
/// If it goes back over a reopen.
pub fn known_time_over_a_reopen(flushed: bool) {
    let mut run = Walk::new(2);
    let put = |run: &Walk, id: &str| {
        let scope = crate::generate::scope("a");
        let mut batch = chronolith::Batch::new();
        batch.upsert(chronolith::Record::new(scope, id, 0, "alpha"));
        run.store().write(batch).expect("write").commit_time_us
    };
    let before = put(&run, "x");
    if flushed {
        run.store().flush().expect("flush");
    }
    let store = run.store.take().expect("open");
    drop(store);
    run.clock.set_us(before - 3_600_000_000);
    run.store = Some(Store::open(DIR, run.options.clone()).expect("reopen"));
    let after = put(&run, "y");
    assert!(after >= before, "flushed {flushed}: {after} after {before}");
}
