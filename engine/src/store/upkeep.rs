//! What does an open store do beside its calls? It proves, flushes, merges, and lets go.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Core;
use crate::error::Error;
use crate::maintain::{
    Compacted, compact_once, flush_oldest, prove_found, release_log, would_pick,
};
use crate::manifest::Manifest;
use crate::version::Version;

/// Log files that an open leaves as they are. Each open that writes begins one, and only a publish
/// lets any go: where nothing is flushed between opens they would pile up.
const LOG_FILES_KEPT: usize = 8;

impl Core {
    /// A handle whose directory was moved away or replaced, or a forked child, must not write.
    pub(super) fn check_lock(&self) -> Result<(), Error> {
        if self.lock.is_valid() {
            return Ok(());
        }
        Err(Error::Poisoned {
            cause: "the lock file is no longer ours (the directory was replaced, or a fork)".into(),
        })
    }

    /// Makes durable what the open has found and left as it was, before anything is written that
    /// builds on it. Every publish does so by itself.
    pub(super) fn prove(&self) -> Result<(), Error> {
        if !self.is_proven.load(Ordering::Acquire) {
            prove_found(&self.shared, &self.pipeline, &self.publisher)?;
            self.is_proven.store(true, Ordering::Release);
        }
        Ok(())
    }

    pub(crate) fn flush_oldest(&self) -> Result<bool, Error> {
        self.check_lock()?;
        let _one = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        flush_oldest(&self.shared, &self.current, &self.pipeline, &self.publisher)
    }

    /// As [`Core::flush_oldest`], in the background: a panic there would leave writers waiting
    /// for room that nobody makes.
    pub(super) fn flush_guarded(&self) -> Result<bool, Error> {
        self.pipeline.guarded(|| {
            self.hold_reserve()?;
            let flushed = self.flush_oldest()?;
            self.trim_log()?;
            Ok(flushed)
        })
    }

    /// Once after the open: lets go of the log files that earlier opens have left.
    pub(super) fn trim_log(&self) -> Result<(), Error> {
        if self.log_is_trimmed.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.pipeline.log().files().len() > LOG_FILES_KEPT {
            self.flush_all()?;
            let _one = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
            release_log(&self.shared, &self.pipeline, &self.publisher)?;
        }
        self.log_is_trimmed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A close does not wait for a merge to end: it is done again after the next open.
    pub(crate) fn compact_once(&self, force: bool) -> Result<Option<Compacted>, Error> {
        self.compact_while(force, &|| !self.signal.is_stopped())
    }

    pub(crate) fn compact_while(
        &self,
        force: bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Compacted>, Error> {
        self.check_lock()?;
        let _one = self
            .compacting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.pipeline.check_failed()?;
        compact_once(
            &self.shared,
            &self.current,
            &self.pipeline,
            &self.publisher,
            (force, goes_on),
        )
    }

    /// Lets the catalog take in what was published, and is durable. It never fails a caller.
    pub(super) fn follow_catalog(&self) -> Result<(), Error> {
        let Some(catalog) = &self.catalog else {
            return Ok(());
        };
        self.prove()?;
        let manifest = self.manifest();
        let segments = &self.current.version().segments;
        catalog.follow(segments, manifest.generation, manifest.flushed_seq, &|| {
            self.signal.is_stopped()
        });
        Ok(())
    }

    pub(super) fn would_compact(&self, version: &Version, base_us: i64, ladder: &[u32]) -> bool {
        let flushed_seq = self.manifest().flushed_seq;
        let now_us = self.shared.env.clock.now_us();
        let spaces = self.shared.spaces();
        would_pick(
            version,
            (flushed_seq, spaces.set()),
            base_us,
            ladder,
            now_us,
        )
    }

    pub(super) fn manifest(&self) -> Manifest {
        let publisher = self
            .publisher
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        publisher.manifest().clone()
    }

    /// Seals the active memtable if anything happened since the last flush, and flushes all.
    pub(super) fn flush_all(&self) -> Result<(), Error> {
        {
            // The publisher's lock comes before this one: not to be taken here.
            let mut applier = self.pipeline.lock_applier()?;
            self.pipeline.check_failed()?;
            if !self.current.version().active().is_untouched() {
                applier.seal(&self.shared, &self.current);
            }
        }
        while self.flush_oldest()? {}
        Ok(())
    }
}
