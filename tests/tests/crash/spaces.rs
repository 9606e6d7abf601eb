//! Vector spaces come, are filled, become the default and go, and the machine stops at any
//! moment: what is there is one of the sets that there were, what was acknowledged keeps its
//! vectors, and the way to the new space goes on where it was.

use std::convert::Infallible;
use std::path::Path;

use chronolith::{
    Batch, Error, Maintenance, MigrateOptions, Options, Record, Scope, Setup, Store, StoredRecord,
    VectorFormat, VectorSpace,
};
use chronolith_vfs::{CrashImage, Env, SimVfs};

const DIR: &str = "/store";
const IMAGES: [CrashImage; 6] = [
    CrashImage::LoseUnsynced,
    CrashImage::KeepAll,
    CrashImage::Subset { seed: 5 },
    CrashImage::Torn { seed: 6 },
    CrashImage::NamesOnly,
    CrashImage::ProcessKill,
];

fn space(model: &str, dim: u32) -> VectorSpace {
    VectorSpace {
        model: model.into(),
        dim,
        format: VectorFormat::F32,
        normalised: false,
    }
}

fn scope() -> Scope {
    Scope::parse("user/ana").expect("a scope")
}

fn open(env: &Env, disk: &SimVfs) -> Result<Store, Error> {
    let setup = Setup {
        vectors: Some(space("m", 2)),
        ..Setup::default()
    };
    let options = Options {
        maintenance: Maintenance::Manual,
        env: env.with_vfs(disk.clone()),
        ..Options::create(setup)
    };
    Store::open(Path::new(DIR), options)
}

/// How far the life has come: what was acknowledged.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    records: u16,
    added: bool,
    migrated: bool,
    is_default: bool,
    dropped: bool,
    /// A drop was begun.
    dropping: bool,
}

fn put(store: &Store, at: u16, done: &mut Done) -> Result<(), Error> {
    let id = format!("r{at}");
    let mut record = Record::new(scope(), id, 1_700_000_000_000_000, format!("text {at}"));
    record.vector = Some(vec![f32::from(at), 1.0]);
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch)?;
    done.records = at + 1;
    Ok(())
}

fn migrate(store: &Store) -> Result<(), Error> {
    let options = MigrateOptions {
        batch_records: 2,
        ..MigrateOptions::default()
    };
    let embed = |rows: &[StoredRecord]| {
        let vectors = rows.iter().map(|row| {
            let length = u16::try_from(row.record.text.len()).expect("short");
            Some(vec![f32::from(length), 2.0, 3.0])
        });
        Ok::<_, Infallible>(vectors.collect())
    };
    store.migrate_space("next", &options, embed, &mut |_| {})?;
    Ok(())
}

/// What is left of the way, from wherever it is.
fn go_on(store: &Store, done: &mut Done) -> Result<(), Error> {
    store.add_space("next", &space("n", 3))?;
    done.added = true;
    migrate(store)?;
    done.migrated = true;
    store.set_default_space("next")?;
    done.is_default = true;
    done.dropping = true;
    if store.spaces().iter().any(|own| own.name == "main") {
        store.drop_space("main")?;
    }
    done.dropped = true;
    store.compact(true, &mut |_| {})?;
    Ok(())
}

fn live(env: &Env, disk: &SimVfs, done: &mut Done) -> Result<(), Error> {
    let store = open(env, disk)?;
    for at in 0..5 {
        put(&store, at, done)?;
        if at == 2 {
            store.flush()?;
        }
    }
    go_on(&store, done)?;
    store.close()
}

fn check(env: &Env, disk: &SimVfs, done: Done) -> Result<(), Error> {
    let store = open(env, disk)?;
    let spaces = store.spaces();
    let has = |name: &str| spaces.iter().any(|own| own.name == name);
    assert!(has("next") || !done.added, "{spaces:?} after {done:?}");
    assert!(has("main") || done.dropping, "{spaces:?} after {done:?}");
    assert!(!has("main") || !done.dropped, "{spaces:?} after {done:?}");
    let default = spaces.iter().find(|own| own.is_default).expect("one");
    assert!(default.name == "next" || !done.is_default, "after {done:?}");
    let vectors = |record: &Record, name: &str| {
        let own = record.vector.as_ref().filter(|_| default.name == name);
        let mut others = record.vectors.iter().filter(|one| one.space == name);
        own.cloned()
            .or_else(|| others.next().map(|one| one.vector.clone()))
    };
    for at in 0..done.records {
        let found = store
            .get(&scope(), &format!("r{at}"))?
            .expect("acknowledged");
        let of_main = has("main").then(|| vec![f32::from(at), 1.0]);
        assert_eq!(
            vectors(&found.record, "main"),
            of_main,
            "r{at} after {done:?}"
        );
        let of_next = vectors(&found.record, "next");
        assert!(of_next.is_some() || !done.migrated, "r{at} after {done:?}");
        assert!(of_next.is_none_or(|own| own == [6.0, 2.0, 3.0]));
    }
    let before = store.stats()?.records;
    go_on(&store, &mut Done::default())?;
    let stats = store.stats()?;
    assert_eq!(
        (stats.records, stats.vectors),
        (before, before),
        "after {done:?}"
    );
    let report = store.verify(&mut |_| {})?;
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    store.close()
}

#[test]
fn a_way_to_another_space_goes_on_wherever_it_was_stopped() {
    let (env, disk, _) = Env::sim(1);
    live(&env, &disk, &mut Done::default()).expect("no crash");
    let operations = disk.ops();
    let stride = match std::env::var_os("CHRONOLITH_DEEP") {
        Some(_) => 1,
        None => 3,
    };
    for at in (1..operations).step_by(stride) {
        let (env, disk, _) = Env::sim(1);
        disk.set_crash_point(at);
        let mut done = Done::default();
        // A process that is dead hears of one more step at most: nothing it waits for fails.
        let lived = live(&env, &disk, &mut done);
        assert!(disk.has_crashed(), "at {at}: {lived:?}");
        for image in IMAGES {
            let left = disk.crash(image);
            let checked = check(&env, &left, done);
            assert!(
                checked.is_ok(),
                "at {at}, {image:?}: {checked:?} after {done:?}"
            );
        }
    }
}
