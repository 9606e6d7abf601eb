//! Reading a store that another process may be writing.
//!
//! Manifest, segments and log are enough; nothing is written, locked, cut or swept. What is
//! shown ends at the last commit that the writer acknowledged. `CURRENT` is read before and
//! after the files are opened; where it moved, everything is opened again. Errors of a handle
//! name files by their paths; those of a snapshot name them as they are called in the store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronolith_segments::{Scope, SegmentError};
use chronolith_vfs::planted::{self, Bug};
use chronolith_wal::{LogReader, STATUS_NAME, Status, WalError, log_name, read_status};

use crate::error::Error;
use crate::located::in_store;
use crate::manifest::{self, Manifest, ManifestError, Pointer};
use crate::options::Options;
use crate::query::{Request, Response};
use crate::recover::{Absent, Replay, open_version_partly};
use crate::settings::Shared;
use crate::snapshot::{Snapshot, StoredRecord};
use crate::stats::Stats;

/// How long a reader tries to get a consistent set of files from a busy writer.
const OPEN_WAIT: Duration = Duration::from_secs(5);
/// How long a log that ends before what was acknowledged may be a writer in its recovery.
const BEHIND_WAIT: Duration = Duration::from_millis(250);
/// Looks at a status that says less than the log proves: its writer tells a moment after a sync.
const STATUS_LOOKS: u32 = 6;
/// First pause between two tries; doubles.
const PAUSE: Duration = Duration::from_millis(2);

/// A store that is open for reading only, beside any writer. Cheap to clone; every clone is
/// the same handle and sees the same refresh.
#[derive(Debug, Clone)]
pub struct ReadOnlyStore {
    options: Options,
    dir: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    shared: Arc<Shared>,
    pointer: Pointer,
    manifest: Manifest,
    replay: Replay,
    /// `None` while the store's creation is not finished: there is no log yet.
    log: Option<LogReader>,
    /// What the writer last said it acknowledged; `None` where its status cannot be read.
    acked_upto: Option<u64>,
}

impl ReadOnlyStore {
    /// Opens the store in `path` at its last acknowledged commit. A segment that is damaged
    /// beyond opening, or whose delete set is, fails what needs it, not the open: see
    /// [`Request::partial`].
    ///
    /// # Errors
    /// `NotAStore`; `Busy` where the writer publishes faster than the files can be opened;
    /// `Behind` where the log ends before what was acknowledged (damage, or a power cut after
    /// `Buffered` writes that no writer has recovered from yet); damage by file and offset; the
    /// system's errors.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let dir = path.as_ref().to_path_buf();
        let state = open_consistent(&options, &dir).map_err(|error| in_store(error, &dir))?;
        Ok(Self {
            options,
            dir,
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// Moves on to the last acknowledged commit; true where that is a later one.
    ///
    /// # Errors
    /// As [`ReadOnlyStore::open`]; the handle keeps what it had, or has moved on in part.
    pub fn refresh(&self) -> Result<bool, Error> {
        self.move_on().map_err(|error| in_store(error, &self.dir))
    }

    fn move_on(&self) -> Result<bool, Error> {
        let mut state = self.lock();
        let before = state.replay.current.visible_seq();
        let vfs = &*self.options.env.vfs;
        let extended = match manifest::read_current(vfs, &self.dir)? == state.pointer {
            true => state.extend(&self.options),
            false => Ok(false),
        };
        let is_current = match extended {
            Err(error) if !is_moved(&error) => return Err(error),
            extended => extended.unwrap_or(false),
        };
        if !is_current {
            let fresh = open_consistent(&self.options, &self.dir)?;
            // A status that cannot be read for once must not take back what was shown.
            let is_back = fresh.replay.current.visible_seq() < before
                && fresh.shared.store_id == state.shared.store_id;
            if !is_back || planted::is_on(Bug::ReaderGoesBack) {
                *state = fresh;
            }
        }
        Ok(state.replay.current.visible_seq() > before)
    }

    /// The last commit seq that the writer said it acknowledged, as of the last refresh.
    ///
    /// `None`: its status cannot be read, and the segments hold all there is.
    pub fn acked_upto(&self) -> Option<u64> {
        self.lock().acked_upto
    }

    /// A view of the last refresh.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let (version, seq) = state.replay.current.load();
        Snapshot {
            spaces: state.shared.spaces(),
            shared: Arc::clone(&state.shared),
            version,
            seq,
        }
    }

    /// Answers a request on the last refresh.
    ///
    /// # Errors
    /// As [`Snapshot::retrieve`].
    pub fn retrieve(&self, request: &Request) -> Result<Response, Error> {
        let found = self.snapshot().retrieve(request);
        found.map_err(|error| in_store(error, &self.dir))
    }

    /// The record of this (scope, id), or `None`.
    ///
    /// # Errors
    /// Damage in a partition.
    pub fn get(&self, scope: &Scope, id: &str) -> Result<Option<StoredRecord>, Error> {
        let found = self.snapshot().get(scope, id);
        found.map_err(|error| in_store(error, &self.dir))
    }

    /// The store, counted.
    ///
    /// # Errors
    /// Damage in a partition's scope directory; the log's directory cannot be listed.
    pub fn stats(&self) -> Result<Stats, Error> {
        let counted = Stats::of(&self.snapshot());
        let mut stats = counted.map_err(|error| in_store(error, &self.dir))?;
        let state = self.lock();
        stats.flushed_seq = state.manifest.flushed_seq;
        stats.generation = state.manifest.generation;
        let wal = state.shared.wal_dir();
        let vfs = &*self.options.env.vfs;
        for entry in vfs
            .list(&wal)
            .map_err(|error| Error::io("list", &wal, error))?
        {
            stats.wal_bytes += vfs.stat(&wal.join(&entry.name)).map_or(0, |stat| stat.len);
        }
        Ok(stats)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Replaced whole, or extended batch by batch; a panic leaves a prefix.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Opens what `CURRENT` names now.
    fn open(options: &Options, dir: &Path, absent: Absent) -> Result<Self, Error> {
        let vfs = &*options.env.vfs;
        let pointer = manifest::read_current(vfs, dir)?;
        let manifest = manifest::read_generation(vfs, dir, &pointer)?.manifest;
        let shared = Shared::new(options, dir, manifest.store_id, &manifest.settings)?;
        let version = open_version_partly(&shared, &manifest, absent)?;
        let replay = Replay::new(&shared, version, manifest.flushed_seq);
        let log = match manifest.generation {
            // The log is begun after the first generation and named by the second.
            1 => None,
            _ => Some(LogReader::open(
                &options.env,
                &shared.wal_dir(),
                manifest.store_id,
                manifest.floor_file,
            )?),
        };
        let mut state = Self {
            shared: Arc::new(shared),
            pointer,
            manifest,
            replay,
            log,
            acked_upto: None,
        };
        state.extend(options)?;
        Ok(state)
    }

    /// Applies what was acknowledged since; false where there is nothing to read from.
    fn extend(&mut self, options: &Options) -> Result<bool, Error> {
        let Some(log) = &mut self.log else {
            return Ok(self.manifest.generation == 1);
        };
        log.check_newest()?;
        let found = read_status(&options.env, &self.shared.wal_dir(), &self.shared.store_id)?;
        self.acked_upto = found.map(|status| status.acked_upto);
        // Without a status nothing above the segments is known to be acknowledged.
        let status = found.unwrap_or(Status {
            acked_upto: self.manifest.flushed_seq,
            ..Status::default()
        });
        while let Some(frame) = log.next(&status)? {
            if let Err(error) = self.replay.apply(&self.shared, &frame) {
                // The log has moved on and the memtable has not: going on would leave a hole.
                self.log = None;
                return Err(error);
            }
        }
        let reached = log.last_seq().max(self.manifest.flushed_seq);
        match found {
            Some(status) if status.acked_upto > reached => Err(Error::Behind {
                file: self.shared.wal_dir().join(log_name(log.current_file())),
                found: format!(
                    "the log ends at seq {reached}, its writer acknowledged seq {}",
                    status.acked_upto
                ),
            }),
            Some(status) => {
                let proven = log.proven_ahead()?;
                self.check_status(options, &status, proven)
            }
            None if self.has_more(options)? => Err(Error::Behind {
                file: self.shared.wal_dir().join(STATUS_NAME),
                found: "missing or damaged, and the log holds commits that no segment has".into(),
            }),
            _ => Ok(true),
        }
    }

    /// Refuses a status that is an old copy: it knows of less than `proven`, which frames call
    /// durable, and a writer tells of a sync before any frame does. So beside a writer that goes
    /// on the next look says as much.
    fn check_status(&self, options: &Options, status: &Status, proven: u64) -> Result<bool, Error> {
        let wal = self.shared.wal_dir();
        let known = |status: &Status| status.acked_upto.max(status.durable_upto);
        let mut told = known(status);
        let mut pause = PAUSE;
        for look in 0..STATUS_LOOKS {
            if told >= proven {
                return Ok(true);
            }
            if look > 0 {
                options.env.clock.sleep(pause);
                pause *= 2;
            }
            let now = read_status(&options.env, &wal, &self.shared.store_id)?;
            told = now.as_ref().map_or(told, known);
        }
        if told >= proven {
            return Ok(true);
        }
        Err(Error::Behind {
            file: wal.join(STATUS_NAME),
            found: format!("an old copy: it ends at seq {told}, and the log proves later commits"),
        })
    }

    /// Whether the log has a whole frame above the segments.
    fn has_more(&self, options: &Options) -> Result<bool, Error> {
        let all = Status {
            acked_upto: u64::MAX,
            ..Status::default()
        };
        let (dir, floor) = (self.shared.wal_dir(), self.manifest.floor_file);
        let mut log = LogReader::open(&options.env, &dir, self.manifest.store_id, floor)?;
        while let Some(frame) = log.next(&all)? {
            if frame.last_seq() > self.manifest.flushed_seq {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn open_consistent(options: &Options, dir: &Path) -> Result<State, Error> {
    let clock = &*options.env.clock;
    let start_ns = clock.monotonic_ns();
    // Counted from the first such end: one look at a long log may take longer than the wait.
    let mut behind_ns = None;
    let mut pause = PAUSE;
    loop {
        let before = manifest::read_current(&*options.env.vfs, dir)?;
        let missing = match State::open(options, dir, Absent::Moved) {
            Ok(state) if manifest::read_current(&*options.env.vfs, dir)? == state.pointer => {
                return Ok(state);
            }
            Ok(_) => None,
            Err(error) if is_moved(&error) => {
                // Where CURRENT stands still, what it names is not gone but missing.
                let stands = manifest::read_current(&*options.env.vfs, dir)? == before;
                stands.then_some(error)
            }
            Err(error) => return Err(error),
        };
        let now_ns = clock.monotonic_ns();
        let (since_ns, wait_max) = match missing {
            Some(
                Error::Behind { .. }
                | Error::Log(WalError::SuccessorMissing { .. })
                | Error::Segment(_)
                | Error::SideFile(_),
            ) => (*behind_ns.get_or_insert(now_ns), BEHIND_WAIT),
            _ => (start_ns, OPEN_WAIT),
        };
        if Duration::from_nanos(now_ns.saturating_sub(since_ns)) > wait_max {
            let is_lost = matches!(missing, Some(Error::Segment(_) | Error::SideFile(_)));
            if !is_lost {
                return Err(missing.map_or_else(busy, gone_for_good));
            }
            // What is missing is lost, and fails what needs it: unless a writer publishes now.
            let found = State::open(options, dir, Absent::Lost);
            let stands = manifest::read_current(&*options.env.vfs, dir)? == before;
            let is_late = Duration::from_nanos(now_ns.saturating_sub(start_ns)) > OPEN_WAIT;
            match found {
                found if stands => return found,
                _ if is_late => return Err(busy()),
                _ => behind_ns = None,
            }
        }
        clock.sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

fn busy() -> Error {
    Error::Busy {
        what: "the writer publishes faster than its files can be opened".into(),
    }
}

/// A log file that is not there and that `CURRENT` still needs is damage.
pub(crate) fn gone_for_good(error: Error) -> Error {
    match error {
        Error::Log(WalError::Removed { file }) => Error::Log(WalError::MissingFile { file }),
        error => error,
    }
}

/// True where a file went because a newer generation no longer names it.
fn is_moved(error: &Error) -> bool {
    match error {
        Error::Log(WalError::Removed { .. } | WalError::SuccessorMissing { .. })
        | Error::Behind { .. }
        | Error::Manifest(ManifestError::GenerationMissing { .. }) => true,
        Error::Segment(SegmentError::Io { source, .. }) => {
            source.kind() == std::io::ErrorKind::NotFound
        }
        Error::SideFile(manifest::SideFileError::Missing { .. }) => true,
        _ => false,
    }
}
