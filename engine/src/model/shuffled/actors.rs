//! What does each thread of a shuffled model do?

use std::sync::Arc;

use chronolith_vfs::{CrashImage, SimVfs};
use shuttle::rand::{Rng, thread_rng};

use super::super::steps::step_env;
use super::super::{DIR, found, options, record, scope};
use super::ledger::{Acked, Change, Contents, Ledger};
use crate::{
    Batch, Durability, Error, Options, ReadOnlyStore, Request, ScopeSelector, Snapshot, Store,
};

/// Few, so that everybody meets everybody.
const IDS: [&str; 3] = ["a", "b", "c"];
/// Memtable limits: one that nobody reaches (the reserve on the disk grows with it), and one
/// that every record passes, so that writers seal and flush too.
const MEMTABLE_BYTES: [u64; 2] = [1 << 20, 1];

/// A number below `n`, as the schedule's seed decides.
pub(super) fn draw(n: usize) -> usize {
    thread_rng().gen_range(0..n)
}

/// One store, its disk, and what is known of both.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) store: Store,
    disk: SimVfs,
    options: Options,
    pub(super) ledger: Arc<Ledger>,
}

impl World {
    /// A store of two segments, in which records were replaced and forgotten, and mostly a
    /// memtable.
    pub(super) fn new() -> Self {
        let (env, disk) = step_env();
        let mut options = options(&env);
        options.memtable_bytes_max = MEMTABLE_BYTES[draw(MEMTABLE_BYTES.len())];
        let world = Self {
            store: Store::open(DIR, options.clone()).expect("created"),
            disk,
            options,
            ledger: Arc::default(),
        };
        let put = |id| Change::Upsert(id, world.ledger.new_version());
        world.commit(vec![put("a"), put("b"), put("c")], Durability::Synced);
        world.store.flush().expect("flushed");
        let changes = vec![put("a"), Change::Forget("c")];
        world.commit(changes, Durability::Synced);
        world.store.flush().expect("flushed");
        world.commit(vec![put("b")], Durability::Buffered);
        world
    }

    fn commit(&self, changes: Vec<Change>, durability: Durability) {
        let acked = self.ledger.acked();
        let mut batch = Batch::new();
        for change in &changes {
            match change {
                Change::Upsert(id, version) => batch.upsert(record(id, *version)),
                Change::Insert(id, version) => batch.insert(record(id, *version)),
                Change::Forget(id) => batch.forget(scope(), *id),
            };
        }
        match (self.store.write_with(batch, durability), &changes[..]) {
            (Ok(done), _) => self.ledger.committed(acked, changes, durability, &done),
            (Err(Error::Exists { .. }), [Change::Insert(id, _)]) => self.ledger.refused(acked, id),
            (Err(error), _) => panic!("{changes:?}: {error}"),
        }
    }

    /// One change of a drawn kind, or one of each of two ids in one batch.
    fn draw_changes(&self) -> Vec<Change> {
        let at = draw(IDS.len());
        let (id, next) = (IDS[at], IDS[(at + 1) % IDS.len()]);
        let version = self.ledger.new_version();
        match draw(5) {
            0 => vec![Change::Insert(id, version)],
            1 => vec![Change::Upsert(id, version)],
            2 | 3 => vec![Change::Forget(id)],
            _ => vec![Change::Upsert(id, version), Change::Forget(next)],
        }
    }
}

/// Texts by id as look-ups and as the index have them.
fn contents(view: &Snapshot) -> Contents {
    let looked_up: Contents = IDS
        .iter()
        .filter_map(|id| found(view, id).map(|text| ((*id).to_owned(), text)))
        .collect();
    let request = Request::within(ScopeSelector::Exact(scope())).text("word");
    let hits = view.retrieve(&request.k(9)).expect("answered").hits;
    let count = hits.len();
    let listed: Contents = hits
        .into_iter()
        .filter_map(|hit| hit.text.map(|text| (hit.id, text)))
        .collect();
    assert_eq!(listed.len(), count, "each record once: {listed:?}");
    assert_eq!(looked_up, listed, "look-ups and the index agree");
    looked_up
}

fn look(world: &World, who: &'static str, acked: Acked, view: &Snapshot) {
    let contents = contents(view);
    world.ledger.saw(who, acked.seq, Some(view.seq()), contents);
}

fn draw_durability() -> Durability {
    match draw(2) {
        0 => Durability::Synced,
        _ => Durability::Buffered,
    }
}

pub(super) fn write(world: &World) {
    for _ in 0..3 {
        world.commit(world.draw_changes(), draw_durability());
    }
}

pub(super) fn forget(world: &World) {
    let id = IDS[draw(IDS.len())];
    world.commit(vec![Change::Forget(id)], draw_durability());
}

pub(super) fn flush_once(world: &World) {
    world.store.flush().expect("flushed");
}

/// One compaction, without a flush before it: what it reads may have deaths that no manifest
/// knows yet, and nothing mends what it leaves.
pub(super) fn compact_once(world: &World) {
    world.store.maintain().expect("compacted");
}

fn compact_all(world: &World) {
    world.store.compact(true, &mut |_| {}).expect("compacted");
}

pub(super) fn flush(world: &World) {
    for _ in 0..2 {
        flush_once(world);
    }
}

pub(super) fn compact(world: &World) {
    for _ in 0..2 {
        match draw(2) {
            0 => compact_once(world),
            _ => compact_all(world),
        }
    }
}

/// Reads views of the writer's handle, and each one again when it is old.
pub(super) fn read(world: &World) {
    let mut old: Option<Snapshot> = None;
    for _ in 0..3 {
        let acked = world.ledger.acked();
        let view = world.store.snapshot();
        look(world, "a view", acked, &view);
        if let Some(old) = old.replace(view.clone()) {
            assert!(view.seq() >= old.seq(), "visibility never goes back");
            look(world, "an old view", Acked::default(), &old);
        }
    }
}

/// Reads as another process does.
pub(super) fn read_beside(world: &World) {
    let acked = world.ledger.acked();
    let reader = ReadOnlyStore::open(DIR, world.options.clone()).expect("a reader gets in");
    let view = reader.snapshot();
    look(world, "another process", acked, &view);
    let acked = world.ledger.acked();
    reader.refresh().expect("refreshed");
    let later = reader.snapshot();
    assert!(later.seq() >= view.seq(), "visibility never goes back");
    look(world, "another process, later", acked, &later);
    look(world, "another process, before", Acked::default(), &view);
}

/// Opens what a kill or a power cut leaves now, twice.
pub(super) fn crash(world: &World) {
    for _ in 0..2 {
        let images = CrashImage::all_seeded(draw(1 << 16) as u64);
        recover(world, images[draw(images.len())]);
    }
}

fn recover(world: &World, image: CrashImage) {
    // Nobody goes on between these two.
    let acked = world.ledger.acked();
    let left = world.disk.crash(image);
    let acked = match image {
        CrashImage::ProcessKill => acked.seq,
        _ => acked.durable_seq,
    };
    let options = Options {
        env: world.options.env.with_vfs(left),
        create: None,
        ..world.options.clone()
    };
    let store = Store::open(DIR, options).expect("recovered");
    let contents = contents(&store.snapshot());
    world.ledger.saw("a recovery", acked, None, contents);
}

/// What is left when all is done, to this handle and to the next one.
pub(super) fn end(world: World) {
    let acked = world.ledger.acked();
    look(&world, "the last view", acked, &world.store.snapshot());
    recover(&world, CrashImage::LoseUnsynced);
    recover(&world, CrashImage::ProcessKill);
    compact_all(&world);
    look(&world, "the compacted view", acked, &world.store.snapshot());
    recover(&world, CrashImage::ProcessKill);
    world.ledger.check();
}
