//! In which order do batches become durable, visible and acknowledged?
//!
//! The commit lock orders batches: seq and place in the log are given under it. The apply
//! lock is taken by whichever writer finds its batch durable first; it applies every batch in
//! front that may be shown, so visibility is in seq order and one STATUS write serves a group.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use chronolith_segments::set_commit_time;
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::{Condvar, Mutex, MutexGuard};
use chronolith_wal::{Durability, Log};
use hashbrown::HashMap;

use super::apply::Applier;
use super::batch::{Committed, PutMode};
use super::prepare::{Ready, ReadyBatch};
use super::probe::Probed;
use crate::error::Error;
use crate::settings::Shared;
use crate::tag_graph::TagEdge;
use crate::version::Current;

/// A batch that is in the log and not yet visible.
#[derive(Debug)]
struct Pending {
    first_seq: u64,
    last_seq: u64,
    commit_time_us: i64,
    durability: Durability,
    operations: Vec<Ready>,
    probed: Probed,
}

/// What a pending batch leaves of an id.
#[derive(Debug, Clone, Copy)]
struct PendingId {
    last_seq: u64,
    exists: bool,
}

#[derive(Debug, Default)]
struct Queue {
    pending: VecDeque<Pending>,
    /// Ids touched by batches that are not visible yet, for insert-only checks.
    ids: HashMap<Vec<u8>, PendingId>,
    /// Tag edges that batches not visible yet link (true) or unlink, by last seq.
    edges: Vec<(u64, TagEdge, bool)>,
    /// Records removed by visible batches whose writer has not asked yet, by last seq.
    removed: HashMap<u64, u64>,
    /// Known-time clock: max(last, now).
    commit_time_us: i64,
    /// Why nothing is accepted any more.
    failed: Option<String>,
    closed: bool,
}

/// The way from a ready batch to its acknowledgement.
#[derive(Debug)]
pub(crate) struct Pipeline {
    log: Log,
    queue: Mutex<Queue>,
    applied: Condvar,
    applier: Mutex<Applier>,
}

impl Pipeline {
    /// A pipeline behind a log; `commit_time_us` is the newest known time so far.
    pub(crate) fn new(log: Log, applier: Applier, commit_time_us: i64) -> Self {
        let queue = Queue {
            commit_time_us,
            ..Queue::default()
        };
        Self {
            log,
            queue: Mutex::new(queue),
            applied: Condvar::new(),
            applier: Mutex::new(applier),
        }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The apply lock: whoever holds it may replace the version.
    pub(crate) fn lock_applier(&self) -> Result<MutexGuard<'_, Applier>, Error> {
        // A panic while applying may have left half a batch in the memtable.
        self.applier.lock().map_err(|_| Error::Poisoned {
            cause: "a panic while applying a batch".into(),
        })
    }

    /// The apply lock for replacing partitions by equal ones, which needs no whole batch.
    pub(crate) fn lock_to_swap(&self) -> MutexGuard<'_, Applier> {
        self.applier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a batch and waits for its durability and visibility.
    pub(crate) fn commit(
        &self,
        shared: &Shared,
        current: &Current,
        batch: ReadyBatch,
        durability: Durability,
    ) -> Result<Committed, Error> {
        self.guarded(|| self.commit_guarded(shared, current, batch, durability))
    }

    fn commit_guarded(
        &self,
        shared: &Shared,
        current: &Current,
        batch: ReadyBatch,
        durability: Durability,
    ) -> Result<Committed, Error> {
        let probed = Probed::of(&current.version(), &batch.operations)?;
        let new_ids = batch.new_ids.clone();
        let (first_seq, last_seq, commit_time_us) =
            self.enqueue(shared, current, batch, probed, durability)?;
        if durability == Durability::Synced
            && let Err(error) = self.log.sync_upto(last_seq)
        {
            let cause = error.to_string();
            self.fail(&cause);
            return Err(Error::OutcomeUnknown {
                seq: first_seq,
                cause,
            });
        }
        // The batch is in the log: from here on its outcome is visible or unknown, never an
        // error that says it is not there.
        if let Err(error) = self.apply_ready(shared, current) {
            self.fail(&error.to_string());
        }
        let removed = self.wait_visible(current, first_seq, last_seq)?;
        Ok(Committed {
            first_seq,
            last_seq,
            commit_time_us,
            new_ids,
            removed,
        })
    }

    fn enqueue(
        &self,
        shared: &Shared,
        current: &Current,
        batch: ReadyBatch,
        probed: Probed,
        durability: Durability,
    ) -> Result<(u64, u64, i64), Error> {
        let ReadyBatch {
            operations,
            mut body,
            ..
        } = batch;
        let mut queue = self.lock_queue();
        queue.check()?;
        let touched = queue.check_inserts(current, &operations)?;
        queue.check_edges(current, &operations)?;
        let commit_time_us = queue.commit_time_us.max(shared.env.clock.now_us());
        set_commit_time(&mut body, commit_time_us);
        let ops = u32::try_from(operations.len()).unwrap_or(u32::MAX);
        let appended = match self.log.append(&body, ops) {
            Ok(appended) => appended,
            Err(error) => {
                if error.is_final() {
                    queue.failed.get_or_insert(error.to_string());
                    // A Buffered batch may wait behind one that nobody will show any more.
                    self.applied.notify_all();
                }
                return Err(error.into());
            }
        };
        queue.commit_time_us = commit_time_us;
        let (first_seq, last_seq) = (appended.first_seq, appended.last_seq);
        for (key, exists) in touched {
            queue.ids.insert(key, PendingId { last_seq, exists });
        }
        for operation in &operations {
            if let Some((edge, is_link)) = edge_of(operation) {
                queue.edges.push((last_seq, edge.clone(), is_link));
            }
        }
        queue.pending.push_back(Pending {
            first_seq,
            last_seq,
            commit_time_us,
            durability,
            operations,
            probed,
        });
        Ok((first_seq, last_seq, commit_time_us))
    }

    /// Applies every batch in front that is as durable as its writer asked.
    fn apply_ready(&self, shared: &Shared, current: &Current) -> Result<(), Error> {
        let mut applier = self.lock_applier()?;
        let mut shown = Vec::new();
        let applied = self.guarded(|| {
            self.apply_each(&mut applier, shared, current, &mut |last_seq, removed| {
                shown.push((last_seq, removed));
            })
        });
        if let Some((last_seq, _)) = shown.last() {
            // Before any of them is acknowledged. A status that cannot be written only leaves
            // readers of other processes behind.
            let _ = self.log.write_status(*last_seq);
            self.lock_queue().removed.extend(shown);
        }
        if let Err(error) = &applied {
            // In the log but not in the memtable: this handle's view is no longer the log's.
            self.fail(&error.to_string());
        }
        drop(applier);
        self.applied.notify_all();
        applied
    }

    fn apply_each(
        &self,
        applier: &mut Applier,
        shared: &Shared,
        current: &Current,
        shown: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        while let Some(pending) = self.take_ready() {
            let removed = applier.apply(
                shared,
                current,
                (&pending.operations, &pending.probed),
                pending.first_seq,
                pending.commit_time_us,
            )?;
            current.show_upto(pending.last_seq);
            let mut queue = self.lock_queue();
            queue.ids.retain(|_, id| id.last_seq > pending.last_seq);
            queue.edges.retain(|edge| edge.0 > pending.last_seq);
            drop(queue);
            shown(pending.last_seq, removed);
        }
        Ok(())
    }

    /// Runs `work`; where it panics everybody else is told, who would wait for it for ever.
    pub(crate) fn guarded<T>(&self, work: impl FnOnce() -> T) -> T {
        let told = FailOnDrop(self);
        let done = work();
        std::mem::forget(told);
        done
    }

    fn take_ready(&self) -> Option<Pending> {
        let durable_upto = self.log.durable_upto();
        let mut queue = self.lock_queue();
        if queue.failed.is_some() {
            return None;
        }
        let front = queue.pending.front()?;
        let ready = front.durability == Durability::Buffered || front.last_seq <= durable_upto;
        if ready {
            queue.pending.pop_front()
        } else {
            None
        }
    }

    fn wait_visible(&self, current: &Current, first_seq: u64, last_seq: u64) -> Result<u64, Error> {
        let mut queue = self.lock_queue();
        loop {
            // A batch that became visible stays acknowledged, whatever failed after it.
            if current.visible_seq() >= last_seq
                && let Some(removed) = queue.removed.remove(&last_seq)
            {
                return Ok(removed);
            }
            if let Some(cause) = queue.failed.clone() {
                return Err(Error::OutcomeUnknown {
                    seq: first_seq,
                    cause,
                });
            }
            queue = self
                .applied
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses everything from now on, for this reason if there is none yet.
    pub(crate) fn fail(&self, cause: &str) {
        self.lock_queue()
            .failed
            .get_or_insert_with(|| cause.to_owned());
        self.applied.notify_all();
    }

    /// Refuses writes from now on; the first call returns true.
    pub(crate) fn close(&self) -> bool {
        !std::mem::replace(&mut self.lock_queue().closed, true)
    }

    /// Why this handle refuses writes, if it does.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.lock_queue().check()
    }

    /// Why nothing may be written any more by anyone; a closed handle still flushes.
    pub(crate) fn check_failed(&self) -> Result<(), Error> {
        match self.check() {
            Err(Error::Closed) => Ok(()),
            checked => checked,
        }
    }

    /// Waits until everything in the queue is visible, or fails.
    pub(crate) fn drain(&self, shared: &Shared, current: &Current) -> Result<(), Error> {
        let last_seq = match self.lock_queue().pending.back() {
            Some(pending) => pending.last_seq,
            None => return Ok(()),
        };
        self.log
            .sync_upto(last_seq)
            .inspect_err(|error| self.fail(&error.to_string()))?;
        self.apply_ready(shared, current)
    }

    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is valid after every statement.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails its pipeline unless forgotten.
struct FailOnDrop<'a>(&'a Pipeline);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fail("a panic while writing or flushing a batch");
    }
}

/// The edge an operation links (true) or unlinks.
fn edge_of(operation: &Ready) -> Option<(&TagEdge, bool)> {
    match operation {
        Ready::LinkTag(edge) => Some((edge, true)),
        Ready::UnlinkTag(edge) => Some((edge, false)),
        Ready::Put { .. } | Ready::Forget { .. } => None,
    }
}

impl Queue {
    fn check(&self) -> Result<(), Error> {
        if let Some(cause) = &self.failed {
            return Err(Error::Poisoned {
                cause: cause.clone(),
            });
        }
        if self.closed {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Checks new tag edges against visible, pending and earlier ones of the batch.
    fn check_edges(&self, current: &Current, operations: &[Ready]) -> Result<(), Error> {
        let edges: Vec<(&TagEdge, bool)> = operations.iter().filter_map(edge_of).collect();
        if !edges.iter().any(|(_, is_link)| *is_link) {
            return Ok(());
        }
        let visible = Arc::clone(&current.version().tag_graph);
        if let ([(edge, _)], true) = (edges.as_slice(), self.edges.is_empty()) {
            return Ok(visible.check(edge)?);
        }
        // Of an edge's changes the last one counts, so one that is visible already may be
        // repeated here.
        let mut graph = (*visible).clone();
        for (_, edge, is_link) in &self.edges {
            graph.set(edge, *is_link);
        }
        for (edge, is_link) in edges {
            if is_link {
                graph.check(edge)?;
            }
            graph.set(edge, is_link);
        }
        Ok(())
    }

    /// Checks insert-only puts against visible, pending and earlier ids of the batch; returns
    /// what the batch leaves of each id.
    fn check_inserts(
        &self,
        current: &Current,
        operations: &[Ready],
    ) -> Result<HashMap<Vec<u8>, bool>, Error> {
        let mut touched: HashMap<Vec<u8>, bool> = HashMap::with_capacity(operations.len());
        for (index, operation) in operations.iter().enumerate() {
            let (scope, id, exists_after) = match operation {
                Ready::Put { prepared, .. } => (&prepared.record.scope, &prepared.record.id, true),
                Ready::Forget { scope, id } => (scope, id, false),
                Ready::LinkTag(_) | Ready::UnlinkTag(_) => continue,
            };
            let key = [scope.key(), b"\0", id.as_bytes()].concat();
            if matches!(
                operation,
                Ready::Put {
                    mode: PutMode::Insert,
                    ..
                }
            ) {
                let exists = match touched
                    .get(&key)
                    .copied()
                    .or_else(|| self.ids.get(&key).map(|id| id.exists))
                {
                    Some(exists) => exists,
                    None if planted::is_on(Bug::InsertOverFlushed) => false,
                    None => super::apply::find_live(&current.version(), scope, id)?.is_some(),
                };
                if exists {
                    return Err(Error::Exists { index });
                }
            }
            if let Ready::Put {
                over_seq: Some(seq),
                ..
            } = operation
            {
                let is_pending = touched.contains_key(&key) || self.ids.contains_key(&key);
                let found = super::apply::live_seq(&current.version(), scope, id)?;
                if is_pending || found != Some(*seq) {
                    return Err(Error::Changed { index });
                }
            }
            touched.insert(key, exists_after);
        }
        Ok(touched)
    }
}
