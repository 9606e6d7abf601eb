//! Checks of what stands at the doors: the lock, readers in other processes, long lists.

use std::path::Path;

use chronolith::{
    Batch, Durability, Error, Maintenance, Mode, Options, ReadOnlyStore, Record, Scope,
    ScopeSelector, Setup, Store,
};
use chronolith_tests::generate::{Ask, BASE_US, Op, batch_of, setup};
use chronolith_tests::model::{Model, difference};
use chronolith_vfs::Env;

use crate::checks::Check;

fn options(env: Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        env,
        ..Options::create(Setup::default())
    }
}

fn record(n: i64) -> Record {
    let scope = Scope::parse("a").expect("a scope");
    Record::new(scope, format!("r{n}"), BASE_US + n, "alpha")
}

fn put(store: &Store, n: i64) {
    let mut batch = Batch::new();
    batch.upsert(record(n));
    store
        .write_with(batch, Durability::Synced)
        .expect("written");
}

/// The store is open in this process: nobody else opens it.
pub(crate) fn second_opener() -> Check {
    Check::new("process, a second opener", 1, |_| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let first = Store::open(&path, options(Env::real())).expect("created");
        let second = Store::open(&path, options(Env::real()));
        drop(first);
        match second {
            Err(Error::Locked { .. }) => Ok(()),
            other => Err(format!("the second open: {:?}", other.map(|_| ()))),
        }
    })
}

/// A reader refreshes over a compaction while STATUS is an old one.
pub(crate) fn reader_is_monotonic() -> Check {
    Check::new("readers, a stale STATUS beside a compaction", 1, |_| {
        let (env, disk, _) = Env::sim(4);
        let store = Store::open("/store", options(env.clone())).expect("created");
        for n in 0..3 {
            put(&store, n);
            store.flush().expect("flushed");
        }
        let status = Path::new("/store/wal/STATUS");
        let stale = disk.content(status).expect("there");
        put(&store, 3);
        let reader = ReadOnlyStore::open("/store", options(env)).expect("opens");
        let before = reader.snapshot().seq();
        while store.maintain().expect("maintained") {}
        disk.damage(status, |bytes| *bytes = stale).expect("there");
        reader.refresh().map_err(|error| error.to_string())?;
        let after = reader.snapshot().seq();
        match after >= before {
            true => Ok(()),
            false => Err(format!("a reader went back from {before} to {after}")),
        }
    })
}

/// More rows of one score than a list of the best holds: the newest of them win.
pub(crate) fn long_ties() -> Check {
    Check::new("model, long lists of ties", 4, |n| {
        let (env, _, _) = Env::sim(4);
        let setup = setup(2);
        let mut model = Model::new(&setup);
        let options = Options {
            create: Some(setup),
            ..options(env)
        };
        let store = Store::open("/store", options).expect("created");
        for row in 0..200 {
            let ops = [Op::Upsert(record(row))];
            let taken = store.write(batch_of(&ops)).expect("written");
            model.apply(&ops, taken.first_seq, taken.commit_time_us, &taken.new_ids);
            if row % 50 == 0 && n % 2 == 1 {
                store.flush().expect("flushed");
            }
        }
        let ask = Ask {
            text: Some("alpha".into()),
            mode: Mode::Sparse,
            k: [5, 40][usize::from(n > 1)],
            ..Ask::within(ScopeSelector::Root, BASE_US)
        };
        let found = store.retrieve(&ask.request());
        difference(&model.answer(&ask), found).map_or(Ok(()), Err)
    })
}
