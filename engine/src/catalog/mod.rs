//! Keyed state that is derived from the segments: where an id lies, and which texts are known.
//!
//! ```text
//!   publish --> segments --follow--> STORE/catalog/db   (fjall)
//!   clean close -----------seal----> STORE/catalog/SEAL names, lengths, digests
//!   open: the seal matches every file --> go on; anything else --> rebuild
//! ```
//!
//! Nothing waits for it. It opens in the background; until then, and whenever it is degraded,
//! every answer is the same without it: a locator is a hint that is verified against the row,
//! and a miss proves nothing. Its files are opened only when the seal of the last clean close
//! proves every byte of them, since a store of its kind can go back in time, or ask for any
//! amount of memory, after one flipped bit. A panic inside it ends it, not the caller.
//!
//! While there are few segments it takes nothing in: asking each of them is as quick, and an
//! entry of each record would be a good part of what the record weighs. Once there are enough it
//! takes in those it does not know, in the background as ever; a store that falls below again
//! keeps what is there, and follows what compactions do to it. Where nothing was ever taken in
//! there are no files either.
//!
//! * [`Catalog`]: the handle that the engine holds.
//! * `db`: keyspaces and what is in them. `moved`: what compactions took elsewhere. `seal`: the
//!   proof. `journal`: how long they get.

mod db;
mod journal;
mod moved;
mod seal;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use chronolith_segments::Scope;
use chronolith_vfs::Env;

use crate::manifest::StoreId;
use crate::version::LiveSegment;

pub(crate) use db::{DB_DIR, Locator};
use db::{Db, Handles};
pub(crate) use seal::{ASIDE_DIR, SEAL_NAME, SEAL_TEMP, compare as compare_with_seal};

/// Directory of the catalog.
pub(crate) const CATALOG_DIR: &str = "catalog";

/// Why something in the catalog failed; reported, never returned to a caller.
pub(super) type Fault = String;

#[derive(Debug)]
enum Phase {
    /// Not opened yet.
    Waiting,
    /// There are too few segments, and no files.
    Unneeded,
    /// Follows the segments.
    Ready(Box<Db>),
    /// Given up until the next open, which rebuilds it.
    Degraded(Fault),
    /// Sealed or dropped.
    Closed,
}

/// The catalog of one writing handle.
#[derive(Debug)]
pub(crate) struct Catalog {
    env: Env,
    dir: PathBuf,
    store_id: StoreId,
    /// Live segments from which on they are taken in.
    segments_min: usize,
    phase: Mutex<Phase>,
    /// What look-ups use without waiting for a follow.
    handles: ArcSwapOption<Handles>,
}

impl Catalog {
    /// A catalog that is not opened yet; [`Catalog::follow`] opens it.
    pub(crate) fn new(env: &Env, store: &Path, store_id: StoreId, segments_min: usize) -> Self {
        Self {
            env: env.clone(),
            dir: store.join(CATALOG_DIR),
            store_id,
            segments_min,
            phase: Mutex::new(Phase::Waiting),
            handles: ArcSwapOption::empty(),
        }
    }

    /// Opens or rebuilds the catalog if need be, and takes in the segments it does not know where
    /// there are enough of them. Failures degrade it. Stops where it stands once `is_stopped` says so.
    pub(crate) fn follow(
        &self,
        segments: &[Arc<LiveSegment>],
        generation: u64,
        flushed_seq: u64,
        is_stopped: &dyn Fn() -> bool,
    ) {
        let mut phase = self.lock();
        let takes_in = segments.len() >= self.segments_min;
        let followed = guarded(|| {
            if matches!(*phase, Phase::Waiting | Phase::Unneeded) {
                if !takes_in && !self.has_files() {
                    *phase = Phase::Unneeded;
                    return Ok(());
                }
                let db = self.open_or_rebuild(flushed_seq)?;
                self.handles.store(Some(Arc::new(db.handles())));
                *phase = Phase::Ready(Box::new(db));
            }
            match &mut *phase {
                Phase::Ready(db) => {
                    let takes_in = takes_in.then_some(is_stopped);
                    db.follow(segments, generation, flushed_seq, takes_in)
                }
                _ => Ok(()),
            }
        });
        if let Err(fault) = followed {
            self.handles.store(None);
            *phase = Phase::Degraded(fault);
        }
    }

    /// Where the id was when its segment was taken in: a hint.
    pub(crate) fn locate(&self, scope: &Scope, id: &str) -> Option<Locator> {
        let handles = self.handles.load_full()?;
        guarded(|| handles.locate(scope, id)).ok().flatten()
    }

    /// Ends the catalog and writes its seal, so that the next open need not rebuild it.
    pub(crate) fn close(&self) {
        self.handles.store(None);
        let phase = std::mem::replace(&mut *self.lock(), Phase::Closed);
        let Phase::Ready(db) = phase else { return };
        // Without a seal the next open rebuilds: a failure here costs time only.
        let _ = guarded(|| {
            let known = db.close(&self.env, &self.dir.join(DB_DIR))?;
            seal::write(&self.env, &self.dir, &self.store_id, known)
        });
    }

    /// What the catalog is doing, for people.
    pub(crate) fn describe(&self) -> String {
        let Ok(phase) = self.phase.try_lock() else {
            return "catching up".into();
        };
        match &*phase {
            Phase::Waiting => "opening".into(),
            Phase::Unneeded => format!("not needed below {} segments", self.segments_min),
            Phase::Ready(db) => format!("{} locators written", db.locators_written()),
            Phase::Degraded(fault) => format!("degraded, rebuilt at the next open: {fault}"),
            Phase::Closed => "closed".into(),
        }
    }

    /// Bytes of its files.
    pub(crate) fn bytes(&self) -> u64 {
        seal::bytes(&self.env, &self.dir)
    }

    /// True where an earlier handle has left a database or a part of one.
    fn has_files(&self) -> bool {
        self.env.vfs.stat(&self.dir.join(DB_DIR)).is_ok()
    }

    fn open_or_rebuild(&self, flushed_seq: u64) -> Result<Db, Fault> {
        let path = self.dir.join(DB_DIR);
        match seal::read(&self.env, &self.dir, &self.store_id) {
            // A watermark above the flushed seq is from another future.
            Some(known) if known.watermark <= flushed_seq => {
                seal::remove(&self.env, &self.dir)?;
                Db::open(&path, known)
            }
            _ => {
                seal::clear(&self.env, &self.dir, &self.store_id)?;
                Db::open(&path, db::Known::default())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        // A panic inside is caught and degrades the catalog before the lock is let go.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work`; a panic becomes a fault.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("it panicked".into()))
}
