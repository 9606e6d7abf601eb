//! The handle: open, write, retrieve, forget, flush, compact, close.

mod migrate;
mod room;
mod spaces;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chronolith_segments::Scope;
use chronolith_vfs::VfsLock;
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::Mutex;
use chronolith_wal::Durability;

pub use self::migrate::{MigrateOptions, Migrated};
use self::room::recover_in_reserve;
use crate::backup::{BackupOptions, BackupProgress, BackupReport};
use crate::catalog::Catalog;
use crate::error::Error;
use crate::maintain::{Compacted, Publisher, Signal, Worker};
use crate::manifest::{self, Manifest};
use crate::options::{Maintenance, Options, Setup};
use crate::query::{Request, Response};
use crate::recover::{Opened, RecoveryReport};
use crate::reserve::{Reserve, is_full, name_full};
use crate::settings::{LOCK_NAME, Shared, settings_of};
use crate::snapshot::{Snapshot, StoredRecord};
use crate::stats::Stats;
use crate::version::Current;
use crate::write::{Batch, Committed, Pipeline, ReadyBatch};

/// What the worker that flushes is called in errors and thread lists.
const FLUSH: &str = "flush";

/// A store that is open for writing. Cheap to clone; every clone is the same handle.
///
/// Dropping the last clone seals the log and stops the background work; [`Store::close`]
/// also flushes, so that the next open replays nothing.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    // Fields drop in order: the worker ends before what it uses.
    worker: Option<Worker>,
    core: Arc<Core>,
    report: RecoveryReport,
    options: Options,
}

/// What callers and background threads share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) current: Current,
    pub(crate) pipeline: Pipeline,
    pub(crate) publisher: Mutex<Publisher>,
    signal: Arc<Signal>,
    /// One flush at a time, whoever asks for it.
    flushing: Mutex<()>,
    /// One compaction at a time.
    compacting: Mutex<()>,
    /// `None` where nobody follows: manual maintenance, or files that are not the system's.
    catalog: Option<Catalog>,
    lock: Box<dyn VfsLock>,
    reserve: Reserve,
    /// True once the log of the processes before was looked at, see [`Core::trim_log`].
    log_is_trimmed: AtomicBool,
    /// True once what the open has found is durable, see [`Core::prove`].
    is_proven: AtomicBool,
    writes_delayed: AtomicU64,
    writes_refused: AtomicU64,
}

impl Store {
    /// Opens the store in `path` for writing, creating it where `options.create` says how and
    /// the directory is new or empty.
    ///
    /// # Errors
    /// `NotAStore`, `CannotCreate`, `Locked`; damage in manifest, segments or log, by file and
    /// offset; the system's errors. Nothing is repaired silently.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let dir = path.as_ref();
        if let Some(setup) = &options.create {
            create_if_missing(&options, dir, setup)?;
        }
        let lock = take_lock(&options, dir)?;
        let Opened {
            shared,
            current,
            log,
            applier,
            publisher,
            commit_time_us,
            report,
        } = recover_in_reserve(&options, dir)?;
        let signal = Arc::new(Signal::default());
        let follows = options.maintenance == Maintenance::Background && options.env.vfs.is_real();
        let catalog = follows.then(|| {
            let segments_min = options.catalog_segments_min;
            Catalog::new(&options.env, dir, shared.store_id, segments_min)
        });
        let core = Arc::new(Core {
            lock,
            reserve: Reserve::new(&shared),
            shared: Arc::new(shared),
            current,
            pipeline: Pipeline::new(log, applier, commit_time_us),
            publisher: Mutex::new(publisher),
            signal: Arc::clone(&signal),
            flushing: Mutex::new(()),
            compacting: Mutex::new(()),
            catalog,
            log_is_trimmed: AtomicBool::new(false),
            is_proven: AtomicBool::new(false),
            writes_delayed: AtomicU64::new(0),
            writes_refused: AtomicU64::new(0),
        });
        // Without a reserve a store opens all the same: puts will ask for it.
        let _ = core.hold_reserve();
        let worker = match options.maintenance {
            Maintenance::Background => Some(start_workers(&options, &core, signal)?),
            Maintenance::Manual => None,
        };
        core.signal.notify();
        let store = Self {
            inner: Arc::new(Inner {
                worker,
                core,
                report,
                options,
            }),
        };
        if store.inner.worker.is_none() {
            // The store is open: what fails here is tried again, or told by what comes.
            let core = store.core();
            match store.flush_sealed() {
                Err(error) if is_full(&error) => core.signal.note(FLUSH, Err(error)),
                flushed => flushed?,
            }
            core.signal.note(FLUSH, core.trim_log().map_err(name_full));
        }
        Ok(store)
    }

    /// What the open found and did.
    pub fn recovery_report(&self) -> &RecoveryReport {
        &self.inner.report
    }

    /// The directory of the store.
    pub fn path(&self) -> PathBuf {
        self.core().shared.dir.clone()
    }

    /// Writes a batch at the durability of the options and waits until it is durable and
    /// visible. All or nothing.
    ///
    /// # Errors
    /// `RefusedInBatch`, `Exists`, `Busy`, `DiskFull`: nothing was written. `OutcomeUnknown`:
    /// reopen and look. `Poisoned`, `Closed`: reopen. A batch that only forgets has space in
    /// reserve on a full disk.
    pub fn write(&self, batch: Batch) -> Result<Committed, Error> {
        self.write_with(batch, self.inner.options.durability)
    }

    /// As [`Store::write`], at a durability of its own.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write_with(&self, batch: Batch, durability: Durability) -> Result<Committed, Error> {
        let core = self.core();
        if batch.is_empty() {
            core.pipeline.check()?;
            let seq = core.current.visible_seq();
            let commit_time_us = core.shared.env.clock.now_us();
            return Ok(Committed {
                first_seq: seq,
                last_seq: seq,
                commit_time_us,
                new_ids: Vec::new(),
                removed: 0,
            });
        }
        let only_forgets = batch.only_forgets();
        let again = only_forgets.then(|| batch.clone());
        let ready = ReadyBatch::new(&core.shared, batch)?;
        core.check_lock()?;
        if !only_forgets {
            core.hold_reserve()?;
        }
        self.wait_for_room(only_forgets)?;
        core.prove()?;
        let active_before = core.current.version().active().number;
        let commit = |ready| {
            let committed = core
                .pipeline
                .commit(&core.shared, &core.current, ready, durability);
            committed.map_err(name_full)
        };
        let committed = match (commit(ready), again) {
            (Err(error), Some(again)) if is_full(&error) => {
                let _given = core.reserve.give_up(&*core.shared.env.vfs);
                commit(ReadyBatch::new(&core.shared, again)?)?
            }
            (committed, _) => committed?,
        };
        // By number, not by count: a flush may have taken one away meanwhile.
        if core.current.version().active().number != active_before {
            match self.inner.worker {
                Some(_) => core.signal.notify(),
                // The batch is in: a flush that fails is no error of this write. The next
                // ones try again, and say so when they run out of room.
                None => core.signal.note(FLUSH, self.flush_sealed()),
            }
        }
        Ok(committed)
    }

    /// Writes a batch that is ready already, as a repair has it: `Buffered`, made durable by
    /// the close that follows.
    pub(crate) fn write_ready(&self, ready: ReadyBatch) -> Result<(), Error> {
        self.write_ready_at(ready, Durability::Buffered)
    }

    /// As [`Store::write_ready`], at a durability of its own.
    fn write_ready_at(&self, ready: ReadyBatch, durability: Durability) -> Result<(), Error> {
        let core = self.core();
        core.check_lock()?;
        core.hold_reserve()?;
        self.wait_for_room(false)?;
        core.prove()?;
        core.pipeline
            .commit(&core.shared, &core.current, ready, durability)
            .map_err(name_full)?;
        match self.inner.worker {
            Some(_) => core.signal.notify(),
            None => self.flush_sealed()?,
        }
        Ok(())
    }

    /// What every part of this handle shares.
    pub(crate) fn shared(&self) -> &Shared {
        &self.core().shared
    }

    /// Removes the record of this (scope, id) from every answer; false where there was none.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn forget(&self, scope: Scope, id: impl Into<String>) -> Result<bool, Error> {
        let mut batch = Batch::new();
        batch.forget(scope, id);
        Ok(self.write(batch)?.removed > 0)
    }

    /// A view of everything committed so far.
    pub fn snapshot(&self) -> Snapshot {
        let (version, seq) = self.core().current.load();
        Snapshot {
            spaces: self.core().shared.spaces(),
            shared: Arc::clone(&self.core().shared),
            version,
            seq,
        }
    }

    /// Answers a request on a fresh snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::retrieve`].
    pub fn retrieve(&self, request: &Request) -> Result<Response, Error> {
        self.snapshot().retrieve(request)
    }

    /// The record of this (scope, id), or `None`.
    ///
    /// # Errors
    /// Damage in a partition.
    pub fn get(&self, scope: &Scope, id: &str) -> Result<Option<StoredRecord>, Error> {
        let hint = self
            .core()
            .catalog
            .as_ref()
            .and_then(|catalog| catalog.locate(scope, id));
        self.snapshot().get_near(scope, id, hint)
    }

    /// Makes everything committed so far durable, at `Synced`.
    ///
    /// # Errors
    /// `OutcomeUnknown`: reopen.
    pub fn sync(&self) -> Result<(), Error> {
        let core = self.core();
        let seq = core.current.visible_seq();
        core.pipeline.log().sync_upto(seq).map_err(|error| {
            core.pipeline.fail(&error.to_string());
            Error::OutcomeUnknown {
                seq,
                cause: error.to_string(),
            }
        })
    }

    /// Moves everything committed so far into segments.
    ///
    /// # Errors
    /// A failed write, sync or publish; the data stays in log and memtable.
    pub fn flush(&self) -> Result<(), Error> {
        let core = self.core();
        core.pipeline.check()?;
        core.hold_reserve()?;
        core.flush_all().map_err(name_full)?;
        core.signal.notify();
        Ok(())
    }

    /// Compacts until nothing pays; with `force` until every bucket is one segment without
    /// dead rows. Calls `progress` after each step.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub fn compact(
        &self,
        force: bool,
        progress: &mut dyn FnMut(&Compacted),
    ) -> Result<Vec<Compacted>, Error> {
        self.flush()?;
        let mut done = Vec::new();
        while let Some(compacted) = self.core().compact_once(force).map_err(name_full)? {
            progress(&compacted);
            done.push(compacted);
        }
        Ok(done)
    }

    /// One round of background work, for [`Maintenance::Manual`]: flushes what is sealed, then
    /// compacts once. True if there may be more to do.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub fn maintain(&self) -> Result<bool, Error> {
        self.core().hold_reserve()?;
        self.flush_sealed()?;
        let compacted = self.core().compact_once(false).map_err(name_full)?;
        Ok(compacted.is_some())
    }

    /// Waits until the background work has nothing to do; false if `timeout` passed first.
    pub fn wait_idle(&self, timeout: Duration) -> bool {
        let core = self.core();
        let idle = || {
            let (base, ladder) = (
                core.shared.settings.bucket_base_us,
                &core.shared.settings.bucket_ladder,
            );
            let version = core.current.version();
            version.sealed().is_empty() && !core.would_compact(&version, base, ladder)
        };
        core.signal.notify();
        core.signal.wait_until(timeout, idle)
    }

    /// Makes or renews a backup of this store in the directory `dest`, beside its writers; see
    /// [`backup`](fn@crate::backup).
    ///
    /// # Errors
    /// As [`backup`](fn@crate::backup); the store is untouched.
    pub fn backup(
        &self,
        dest: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(&BackupProgress),
    ) -> Result<BackupReport, Error> {
        let shared = &self.core().shared;
        crate::backup::backup(&shared.env, &shared.dir, dest.as_ref(), options, progress)
    }

    /// The store, counted.
    ///
    /// # Errors
    /// Damage in a partition's scope directory.
    pub fn stats(&self) -> Result<Stats, Error> {
        let core = self.core();
        let mut stats = Stats::of(&self.snapshot())?;
        stats.wal_bytes = core.pipeline.log().bytes();
        stats.writes_delayed = core.writes_delayed.load(Ordering::Relaxed);
        stats.writes_refused = core.writes_refused.load(Ordering::Relaxed);
        stats.maintenance_error = core.signal.last_error();
        let manifest = core.manifest();
        stats.flushed_seq = manifest.flushed_seq;
        stats.generation = manifest.generation;
        if let Some(catalog) = &core.catalog {
            stats.catalog = Some(catalog.describe());
            stats.catalog_bytes = catalog.bytes();
        }
        Ok(stats)
    }

    /// Verifies every file of the store as of now, beside whatever this handle is doing. See
    /// [`crate::verify()`].
    ///
    /// # Errors
    /// As [`crate::verify()`].
    pub fn verify(
        &self,
        progress: &mut dyn FnMut(crate::VerifyProgress),
    ) -> Result<crate::VerifyReport, Error> {
        crate::verify(self.path(), &self.inner.options, progress)
    }

    /// Flushes, syncs and seals. Other clones of the handle refuse writes from now on. A merge
    /// that is going on is given up, and picked again after the next open.
    ///
    /// On a full disk the reserve is used; where that is too small for the flush, the log keeps
    /// what was not flushed, and the next open replays it.
    ///
    /// # Errors
    /// As [`Store::flush`]; what was acknowledged is in the log all the same.
    pub fn close(self) -> Result<(), Error> {
        let core = self.core();
        core.pipeline.check()?;
        core.check_lock()?;
        core.pipeline.drain(&core.shared, &core.current)?;
        core.pipeline.log().wind_down();
        self.flush_or_leave()?;
        core.pipeline.close();
        if let Some(worker) = &self.inner.worker {
            worker.stop();
        }
        self.seal()?;
        if let Some(catalog) = &core.catalog {
            catalog.close();
        }
        Ok(())
    }

    pub(crate) fn core(&self) -> &Core {
        &self.inner.core
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.stop();
        }
        // A handle that was closed, or refuses writes, has nothing to seal; a forked child or
        // one whose directory was replaced must not touch what is there.
        if self.core.pipeline.check().is_ok() && self.core.lock.is_valid() {
            self.core.pipeline.close();
            let _ = self.core.pipeline.log().seal();
        }
    }
}

fn start_workers(
    options: &Options,
    core: &Arc<Core>,
    signal: Arc<Signal>,
) -> Result<Worker, Error> {
    let spawn = |work: &'static str, step: fn(&Core) -> Result<bool, Error>| {
        let (shared_core, signal) = (Arc::clone(core), Arc::clone(&signal));
        let body = move || signal.run(work, || step(&shared_core));
        let name = &format!("chronolith-{work}");
        options
            .env
            .threads
            .spawn(name, Box::new(body))
            .map_err(|error| Error::io("start a thread for", &core.shared.dir, error))
    };
    let flusher = spawn(FLUSH, Core::flush_guarded)?;
    let compactor = spawn("compact", |core| {
        core.hold_reserve()?;
        Ok(core.compact_once(false)?.is_some())
    })?;
    let mut joiners = vec![flusher, compactor];
    if core.catalog.is_some() {
        joiners.push(spawn("catalog", |core| {
            core.follow_catalog()?;
            Ok(false)
        })?);
    }
    Ok(Worker::new(signal, joiners))
}

fn take_lock(options: &Options, dir: &Path) -> Result<Box<dyn VfsLock>, Error> {
    // Without a store there is nothing to lock, and no file of ours belongs there.
    manifest::read_current(&*options.env.vfs, dir)?;
    let path = dir.join(LOCK_NAME);
    options
        .env
        .vfs
        .try_lock(&path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Error::Locked {
                path: dir.to_path_buf(),
            },
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                Error::NotWritable {
                    path,
                    source: error,
                }
            }
            _ => Error::io("lock", path, error),
        })
}

/// Creates the store unless there is one.
fn create_if_missing(options: &Options, dir: &Path, setup: &Setup) -> Result<(), Error> {
    use manifest::ManifestError as M;
    setup.check()?;
    let vfs = &*options.env.vfs;
    match manifest::read_current(vfs, dir) {
        Ok(_) => return Ok(()),
        Err(M::Missing { .. } | M::EmptyDirectory { .. } | M::CreationUnfinished { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    make_dir(options, dir)?;
    let lock_path = dir.join(LOCK_NAME);
    let _lock = vfs
        .try_lock(&lock_path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Error::Locked {
                path: dir.to_path_buf(),
            },
            _ => Error::io("lock", lock_path, error),
        })?;
    let mut store_id = [0; 16];
    options.env.entropy.fill(&mut store_id);
    let mut seed = [0; 8];
    options.env.entropy.fill(&mut seed);
    let settings = settings_of(setup, u64::from_le_bytes(seed))?;
    // The open that follows begins the log and names it in the second generation.
    manifest::create(
        vfs,
        dir,
        &Manifest::first(store_id, options.env.clock.now_us(), settings),
    )?;
    Ok(())
}

fn make_dir(options: &Options, dir: &Path) -> Result<(), Error> {
    let vfs = &*options.env.vfs;
    match vfs.create_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io("create", dir, error)),
        Ok(()) if planted::is_on(Bug::ParentDirNotSynced) => Ok(()),
        Ok(()) => {
            let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("."));
            vfs.sync_dir(parent)
                .map_err(|error| Error::io("sync", parent, error))
        }
    }
}
