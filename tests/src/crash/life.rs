//! One life of a store: open, run a script, be stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronolith::{
    BackupOptions, Durability, Error, ErrorKind, Maintenance, Options, ReadOnlyStore,
    RepairOptions, Setup, Store, repair, restore,
};
use chronolith_vfs::{Env, Vfs};

use super::layer::Layer;
use super::oracle::{End, Shared};
use super::scripts::{Script, Step};
use crate::generate::{Op, batch_of, setup};
use crate::model::Verdict;

/// Where the store lies.
pub const DIR: &str = "/store";

/// Where its backup lies.
const BACKUP: &str = "/backup";

/// Every script's store: f32, cosine.
pub fn the_setup() -> Setup {
    setup(2)
}

/// Where a script runs.
#[derive(Debug, Clone)]
pub struct Bed {
    /// How the store is opened, `create` apart.
    pub options: Options,
    layer: Layer,
    /// True where no operation fails, so that every step must do what it is there for.
    strict: bool,
    places: Arc<AtomicU64>,
}

impl Bed {
    /// A bed for `script` on files of its own.
    pub fn new(env: &Env, vfs: impl Vfs + 'static, script: &Script) -> Self {
        Self::over(env, Layer::new(vfs), script)
    }

    /// A bed over a layer that the caller keeps.
    pub fn over(env: &Env, layer: Layer, script: &Script) -> Self {
        let options = Options {
            memtable_bytes_max: script.memtable_bytes_max,
            log_file_bytes_max: script.log_file_bytes_max,
            log_preallocate_bytes: script.preallocate_bytes,
            maintenance: Maintenance::Manual,
            env: env.with_vfs(layer.clone()),
            ..Options::default()
        };
        Self {
            options,
            layer,
            strict: false,
            places: Arc::default(),
        }
    }

    /// Opens for writing, creating the store unless that was acknowledged before.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(&self, oracle: &Shared) -> Result<Store, Error> {
        let created = oracle.lock().created;
        let options = Options {
            create: (!created).then(the_setup),
            ..self.options.clone()
        };
        Store::open(DIR, options)
    }

    /// Opens, and finds the state among those that may be.
    ///
    /// # Errors
    /// Why it does not open, or what it holds that it may not.
    pub fn recover(&self, oracle: &Shared, end: End) -> Result<Store, String> {
        let store = self.open(oracle).map_err(|e| format!("reopen: {e}"))?;
        oracle.lock().settle_on(&store.snapshot(), end)?;
        Ok(store)
    }

    /// Runs one step; `store` is open before and, unless it fails, after.
    ///
    /// # Errors
    /// Those of the store.
    ///
    /// # Panics
    /// Where the store breaks a promise in the middle of the step.
    pub fn step(
        &self,
        store: &mut Option<Store>,
        step: &Step,
        oracle: &Shared,
    ) -> Result<(), Error> {
        let open = store.clone().expect("open between steps");
        match step {
            Step::Write(ops, durability) => write(&open, ops, *durability, oracle)?,
            Step::Refused(ops) => self.refused(&open, ops, oracle)?,
            Step::Flush => settled(open.flush(), oracle)?,
            Step::FlushWith(ops) => {
                self.arrive(&open, ops, oracle, false);
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
            Step::CompactWith(ops) | Step::CompactWithFlush(ops) => {
                settled(open.flush(), oracle)?;
                let flushes = matches!(step, Step::CompactWithFlush(_));
                self.arrive(&open, ops, oracle, flushes);
                let compacted = open.compact(true, &mut |_| {});
                let idle = self.layer.take_hook();
                compacted?;
                // Where a fault came after the landing there is nothing to compact any more.
                assert!(!idle || !self.strict, "the compaction wrote no segment");
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
            Step::Shrink => {
                *store = None;
                drop(open);
                let mut small = self.clone();
                small.options.memtable_bytes_max = 2 << 10;
                *store = Some(small.open(oracle)?);
            }
            Step::Backup => {
                let upto = oracle.lock().acked();
                open.backup(BACKUP, &BackupOptions::default(), &mut |_| {})?;
                oracle.lock().backed_up = Some(upto);
            }
            Step::Restore => {
                let floor = oracle.lock().backed_up.unwrap_or(0);
                self.restore(oracle, floor)?
                    .unwrap_or_else(|why| panic!("restored: {why}"));
            }
            Step::Repair => {
                *store = None;
                drop(open);
                self.repair(oracle)?;
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

    /// A batch that must be refused, unless a fault kept out what it would be refused for.
    fn refused(&self, store: &Store, ops: &[Op], oracle: &Shared) -> Result<(), Error> {
        let verdict = oracle.lock().last().judge(ops);
        if !matches!(verdict, Verdict::Exists(_)) {
            assert!(!self.strict, "nothing to refuse in {ops:?}");
            return write(store, ops, Durability::Synced, oracle).inspect_err(|error| {
                if error.kind() != ErrorKind::Reopen {
                    oracle.lock().refuse();
                }
            });
        }
        match store.write(batch_of(ops)) {
            Err(Error::Exists { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => panic!("an insert over a record was taken: {ops:?}"),
        }
    }

    /// The bed with other names for what it restores: some may be on the disk already.
    #[must_use]
    pub fn far_places(self) -> Self {
        self.places.store(1000, Ordering::Relaxed);
        self
    }

    /// A name that no restore or repair of this bed has taken.
    fn new_place(&self, what: &str) -> String {
        let n = self.places.fetch_add(1, Ordering::Relaxed);
        format!("/{what}-{n}")
    }

    /// Makes a store of the last backup; the inner error is what is wrong with it.
    ///
    /// # Errors
    /// Those of the restore.
    pub fn restore(&self, oracle: &Shared, floor: usize) -> Result<Result<(), String>, Error> {
        let place = self.new_place("restored");
        let env = &self.options.env;
        restore(env, BACKUP.as_ref(), place.as_ref(), &mut |_| {})?;
        let store = Store::open(&place, self.options.clone())?;
        Ok(oracle.lock().find(&store.snapshot(), floor).map(|_| ()))
    }

    fn repair(&self, oracle: &Shared) -> Result<(), Error> {
        let place = self.new_place("repaired");
        let options = RepairOptions {
            env: self.options.env.clone(),
            ..RepairOptions::default()
        };
        let report = repair(DIR, &place, &options, &mut |_| {})?;
        let store = Store::open(&place, self.options.clone())?;
        if !report.is_complete() || report.log_unproven_after.is_some() {
            // What cannot be read is missing and said to be: that needs a fault.
            assert!(!self.strict, "repaired: {report:?}");
            return Ok(());
        }
        let oracle = oracle.lock();
        let found = oracle.find(&store.snapshot(), oracle.acked());
        found.unwrap_or_else(|why| panic!("repaired: {why}"));
        Ok(())
    }

    fn arrive(&self, store: &Store, ops: &[Op], oracle: &Shared, flushes: bool) {
        let (store, ops, oracle) = (store.clone(), ops.to_vec(), oracle.clone());
        self.layer.at_next_segment(move || {
            match write(&store, &ops, Durability::Synced, &oracle) {
                Ok(()) if flushes => drop(store.flush()),
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Reopen => {}
                Err(_) => oracle.lock().refuse(),
            }
        });
    }

    /// A whole life; an error ends it, as it ends a process.
    ///
    /// # Errors
    /// The one that ended it.
    pub fn live(&self, script: &Script, oracle: &Shared) -> Result<(), Error> {
        self.live_until(script, oracle, || ())
    }

    /// As [`Bed::live`], and calls `end` while the store is still open: what drops it closes it.
    ///
    /// # Errors
    /// As [`Bed::live`].
    pub fn live_until(
        &self,
        script: &Script,
        oracle: &Shared,
        end: impl FnOnce(),
    ) -> Result<(), Error> {
        let strict = Self {
            strict: true,
            ..self.clone()
        };
        let mut store = Some(self.open(oracle)?);
        oracle.lock().created = true;
        for step in &script.steps {
            strict.step(&mut store, step, oracle)?;
        }
        end();
        Ok(())
    }
}

/// Writes, and tells the oracle what came of it.
///
/// # Errors
/// Those of the store.
pub fn write(
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
