//! One life of a store: open, run a script, be stopped.

use chronolith::{Durability, Error, Maintenance, Options, ReadOnlyStore, Setup, Store};
use chronolith_tests::generate::{Op, batch_of, setup};
use chronolith_vfs::{Env, Vfs};

use crate::oracle::{End, Shared};
use crate::scripts::{Script, Step};
use crate::vfs::Layer;

pub(crate) const DIR: &str = "/store";

/// Every script's store: f32, cosine.
pub(crate) fn the_setup() -> Setup {
    setup(2)
}

/// Where a script runs.
#[derive(Debug, Clone)]
pub(crate) struct Bed {
    pub(crate) options: Options,
    layer: Layer,
}

impl Bed {
    pub(crate) fn new(env: &Env, vfs: impl Vfs + 'static, script: &Script) -> Self {
        Self::over(env, Layer::new(vfs), script)
    }

    pub(crate) fn over(env: &Env, layer: Layer, script: &Script) -> Self {
        let options = Options {
            memtable_bytes_max: script.memtable_bytes_max,
            log_file_bytes_max: script.log_file_bytes_max,
            log_preallocate_bytes: script.preallocate_bytes,
            maintenance: Maintenance::Manual,
            env: env.with_vfs(layer.clone()),
            ..Options::default()
        };
        Self { options, layer }
    }

    /// Opens for writing, creating the store unless that was acknowledged before.
    pub(crate) fn open(&self, oracle: &Shared) -> Result<Store, Error> {
        let created = oracle.lock().created;
        let options = Options {
            create: (!created).then(the_setup),
            ..self.options.clone()
        };
        Store::open(DIR, options)
    }

    /// Opens, and finds the state among those that may be.
    pub(crate) fn recover(&self, oracle: &Shared, end: End) -> Result<Store, String> {
        let store = self.open(oracle).map_err(|e| format!("reopen: {e}"))?;
        oracle.lock().settle_on(&store.snapshot(), end)?;
        Ok(store)
    }

    /// Runs one step; `store` is open before and, unless it fails, after.
    pub(crate) fn step(
        &self,
        store: &mut Option<Store>,
        step: &Step,
        oracle: &Shared,
    ) -> Result<(), Error> {
        let open = store.clone().expect("open between steps");
        match step {
            Step::Write(ops, durability) => write(&open, ops, *durability, oracle)?,
            Step::Flush => settled(open.flush(), oracle)?,
            Step::FlushWith(ops) => {
                self.arrive(&open, ops, oracle);
                let flushed = open.flush();
                self.layer.take_hook();
                // Only what came before it: the arrivals are durable by their own sync.
                flushed?;
            }
            Step::Maintain => {
                open.maintain()?;
            }
            Step::Compact => {
                open.compact(true, &mut |_| {})?;
                oracle.lock().settle();
            }
            Step::CompactWith(ops) => {
                settled(open.flush(), oracle)?;
                self.arrive(&open, ops, oracle);
                let compacted = open.compact(true, &mut |_| {});
                let idle = self.layer.take_hook();
                compacted?;
                assert!(!idle, "the compaction wrote no segment");
            }
            Step::Sync => settled(open.sync(), oracle)?,
            Step::Close => {
                *store = None;
                settled(open.close(), oracle)?;
                *store = Some(self.open(oracle)?);
            }
            Step::Drop => {
                *store = None;
                drop(open);
                *store = Some(self.open(oracle)?);
            }
            Step::Reader => {
                let reader = ReadOnlyStore::open(DIR, self.options.clone())?;
                let oracle = oracle.lock();
                let found = oracle.find(&reader.snapshot(), 0);
                found.unwrap_or_else(|why| panic!("beside the writer: {why}"));
            }
        }
        Ok(())
    }

    fn arrive(&self, store: &Store, ops: &[Op], oracle: &Shared) {
        let (store, ops, oracle) = (store.clone(), ops.to_vec(), oracle.clone());
        self.layer.at_next_segment(move || {
            // Where it fails the oracle knows; what it came into will fail as well.
            let _ = write(&store, &ops, Durability::Synced, &oracle);
        });
    }

    /// A whole life; an error ends it, as it ends a process.
    pub(crate) fn live(&self, script: &Script, oracle: &Shared) -> Result<(), Error> {
        let mut store = Some(self.open(oracle)?);
        oracle.lock().created = true;
        for step in &script.steps {
            self.step(&mut store, step, oracle)?;
        }
        Ok(())
    }
}

/// Writes, and tells the oracle what came of it.
pub(crate) fn write(
    store: &Store,
    ops: &[Op],
    durability: Durability,
    oracle: &Shared,
) -> Result<(), Error> {
    oracle.lock().try_batch(ops);
    let outcome = store.write_with(batch_of(ops), durability);
    if outcome.is_ok() {
        oracle.lock().acknowledge(durability);
    }
    outcome.map(|_| ())
}

fn settled(outcome: Result<(), Error>, oracle: &Shared) -> Result<(), Error> {
    outcome.inspect(|()| oracle.lock().settle())
}
