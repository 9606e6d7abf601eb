//! What does an operation do to the version? Rows in, deaths out, in seq order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chronolith_segments::{
    Death, DeathKind, DeathLog, Memtable, MemtableOptions, Partition, Scope, SegmentError,
    code_seed,
};
use chronolith_vfs::planted::{self, Bug};

use super::prepare::Ready;
use super::probe::Probed;
use crate::error::Error;
use crate::settings::Shared;
use crate::tag_graph::TagGraph;
use crate::version::{Current, LiveMemtable, Version};

/// The only one who changes memtables and death logs; lives behind the apply lock.
#[derive(Debug)]
pub(crate) struct Applier {
    next_memtable: u64,
    /// True while the log may hold records that were forgotten in it.
    has_forgotten: bool,
}

/// Where the current row of an id lies.
pub(crate) enum Place {
    Memtable(usize, u32),
    Segment(usize, u32),
}

impl Applier {
    pub(crate) fn new(next_memtable: u64) -> Self {
        Self {
            next_memtable,
            has_forgotten: false,
        }
    }

    /// The log may hold what was forgotten, as before the last [`Applier::take_forgotten`].
    pub(crate) fn note_forgotten(&mut self) {
        self.has_forgotten = true;
    }

    /// Whether anything was forgotten since the last call.
    pub(crate) fn take_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.has_forgotten)
    }

    /// A new, empty memtable that continues after `last_seq`.
    pub(crate) fn new_memtable(&mut self, shared: &Shared, last_seq: u64) -> Arc<LiveMemtable> {
        let options = MemtableOptions {
            spaces: shared.spaces().set().spaces.clone(),
            bytes_max: shared.memtable_bytes_max,
            hash_seed: shared.settings.seed,
            code_seed: Some(code_seed(&shared.store_id)),
        };
        let number = self.next_memtable;
        self.next_memtable += 1;
        Arc::new(LiveMemtable::new(Memtable::new(options), number, last_seq))
    }

    /// Applies one batch, with what was found out about it before; returns how many records it
    /// removed or replaced.
    pub(crate) fn apply(
        &mut self,
        shared: &Shared,
        current: &Current,
        (operations, probed): (&[Ready], &Probed),
        first_seq: u64,
        commit_time_us: i64,
    ) -> Result<u64, Error> {
        let operations = match planted::is_on(Bug::BatchInPart) && operations.len() > 4 {
            true => &operations[..operations.len() - 1],
            false => operations,
        };
        let forgets = |operation: &Ready| matches!(operation, Ready::Forget { .. });
        self.has_forgotten |= operations.iter().any(forgets);
        let version = current.version();
        let all: Vec<usize> = (0..version.segments.len()).collect();
        let unseen = probed.unseen(&version);
        let mut effect = Effect::default();
        let mut last_seq = first_seq;
        for ((number, operation), seq) in operations.iter().enumerate().zip(first_seq..) {
            let at = At {
                version: &version,
                segments: match probed.is_absent(number) {
                    true => &unseen,
                    false => &all,
                },
                seq,
                commit_time_us,
            };
            effect.add(at, operation)?;
            last_seq = seq;
        }
        // Only whole batches count: a flush never ends inside one.
        let active = version.active();
        active.last_time_us.store(commit_time_us, Ordering::Release);
        active.last_seq.store(last_seq, Ordering::Release);
        if let Some(graph) = effect.graph {
            replace_graph(current, &version, graph, last_seq);
        }
        // Forgets and edges fill no rows, but the log keeps them until the next flush.
        let rowless_before = active
            .rowless_bytes
            .fetch_add(effect.rowless_bytes, Ordering::Relaxed);
        let rowless_bytes = rowless_before + effect.rowless_bytes;
        if active.table.is_full() || rowless_bytes >= shared.memtable_bytes_max {
            self.seal(shared, current);
        }
        Ok(effect.removed)
    }

    /// Lets rows from here on be kept as the spaces of now want them.
    pub(crate) fn renew(&mut self, shared: &Shared, current: &Current) {
        let active = Arc::clone(current.version().active());
        if !active.is_untouched() {
            return self.seal(shared, current);
        }
        let mut version = (*current.version()).clone();
        version.memtables.pop();
        let next = self.new_memtable(shared, active.last_seq());
        version.memtables.push(next);
        current.replace(version);
    }

    /// Seals the active memtable and begins a new one.
    pub(crate) fn seal(&mut self, shared: &Shared, current: &Current) {
        let mut version = (*current.version()).clone();
        let active = version.active();
        active.table.seal();
        active
            .sealed_graph
            .get_or_init(|| Arc::clone(&version.tag_graph));
        let next = self.new_memtable(shared, active.last_seq());
        version.memtables.push(next);
        current.replace(version);
    }
}

/// To what, and when.
#[derive(Clone, Copy)]
struct At<'a> {
    version: &'a Version,
    /// Places of its segments that may hold the record.
    segments: &'a [usize],
    seq: u64,
    commit_time_us: i64,
}

/// What a batch's operations have done so far.
#[derive(Default)]
struct Effect {
    /// The tag graph as they leave it, where they touch it.
    graph: Option<TagGraph>,
    /// Records removed or replaced.
    removed: u64,
    rowless_bytes: u64,
}

impl Effect {
    fn add(&mut self, at: At<'_>, operation: &Ready) -> Result<(), SegmentError> {
        let At { version, seq, .. } = at;
        match operation {
            Ready::Put { prepared, .. } => {
                let record = &prepared.record;
                if !planted::is_on(Bug::OldRowLeftLive) {
                    self.removed += at.kill(&record.scope, &record.id, DeathKind::Superseded)?;
                }
                let table = &version.active().table;
                table.insert(prepared, seq, at.commit_time_us);
            }
            Ready::Forget { scope, id } => {
                self.removed += at.kill(scope, id, DeathKind::Deleted)?;
            }
            Ready::LinkTag(edge) => {
                let graph = self.graph_of(version);
                // Checked at its commit; a log of another hand must not make a cycle.
                if graph.check(edge).is_ok() {
                    graph.insert(edge.clone());
                }
            }
            Ready::UnlinkTag(edge) => self.graph_of(version).remove(edge),
        }
        self.rowless_bytes += rowless_bytes_of(operation);
        Ok(())
    }

    fn graph_of(&mut self, version: &Version) -> &mut TagGraph {
        self.graph
            .get_or_insert_with(|| (*version.tag_graph).clone())
    }
}

/// Memory and log bytes, about, of an operation that adds no row.
fn rowless_bytes_of(operation: &Ready) -> u64 {
    const DEATH_BYTES: usize = 64;
    const EDGE_BYTES: usize = 128;
    let bytes = match operation {
        Ready::Put { .. } => 0,
        Ready::Forget { scope, id } => DEATH_BYTES + scope.key().len() + id.len(),
        Ready::LinkTag(edge) | Ready::UnlinkTag(edge) => {
            EDGE_BYTES + edge.scope.key().len() + edge.parent.len() + edge.child.len()
        }
    };
    bytes as u64
}

fn replace_graph(current: &Current, version: &Version, graph: TagGraph, last_seq: u64) {
    current.replace(Version {
        tag_graph: Arc::new(graph),
        tag_graph_before: Some((last_seq, Arc::clone(&version.tag_graph))),
        ..version.clone()
    });
}

impl At<'_> {
    /// Ends the current row of (scope, id); says how many there were, 0 or 1.
    fn kill(self, scope: &Scope, id: &str, kind: DeathKind) -> Result<u64, SegmentError> {
        let version = self.version;
        let segments = self.segments.iter().copied();
        let Some(place) = find_live_in(version, scope, id, segments)? else {
            return Ok(0);
        };
        let (deaths, row): (&DeathLog, u32) = match place {
            Place::Memtable(index, row) => (&version.memtables[index].deaths, row),
            Place::Segment(index, row) => (&version.segments[index].deaths, row),
        };
        deaths.push(Death {
            row,
            seq: self.seq,
            kind,
            valid_to_us: self.commit_time_us,
        });
        Ok(1)
    }
}

/// The current row of (scope, id) with everything applied so far. At most one row of an id is
/// live, so the first live one found is it.
pub(crate) fn find_live(
    version: &Version,
    scope: &Scope,
    id: &str,
) -> Result<Option<Place>, SegmentError> {
    find_live_in(version, scope, id, 0..version.segments.len())
}

/// Seq of the current row of (scope, id) with everything applied so far.
pub(crate) fn live_seq(
    version: &Version,
    scope: &Scope,
    id: &str,
) -> Result<Option<u64>, SegmentError> {
    let fields = match find_live(version, scope, id)? {
        None => return Ok(None),
        Some(Place::Memtable(at, row)) => version.memtables[at].table.fields(row)?,
        Some(Place::Segment(at, row)) => version.segments[at].segment.fields(row)?,
    };
    Ok(Some(fields.commit_seq))
}

/// As [`find_live`], where no other segments than those at these places hold the record.
pub(crate) fn find_live_in(
    version: &Version,
    scope: &Scope,
    id: &str,
    segments: impl IntoIterator<Item = usize>,
) -> Result<Option<Place>, SegmentError> {
    for (index, live) in version.memtables.iter().enumerate().rev() {
        if let Some(row) = live.table.find(scope.key(), id, u64::MAX)?
            && !live.deaths.is_dead(row)
        {
            return Ok(Some(Place::Memtable(index, row)));
        }
    }
    for index in segments {
        let live = &version.segments[index];
        if let Some(row) = live.segment.find(scope.key(), id, u64::MAX)?
            && !live.deaths.is_dead(row)
        {
            return Ok(Some(Place::Segment(index, row)));
        }
    }
    Ok(None)
}
