//! What goes into one commit: operations that become visible all at once or not at all.

use chronolith_segments::{Record, Scope};

use crate::tag_graph::TagEdge;

/// What a put does where its (scope, id) is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PutMode {
    /// Takes the old record's place: last writer wins, whatever the event times.
    #[default]
    Upsert,
    /// Refuses the whole batch with [`crate::Error::Exists`].
    Insert,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Put { record: Box<Record>, mode: PutMode },
    Forget { scope: Scope, id: String },
    LinkTag(TagEdge),
    UnlinkTag(TagEdge),
}

/// Operations of one commit, applied in order: of two puts of one (scope, id) the last wins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
}

impl Batch {
    /// True for a batch that takes records away and adds nothing.
    pub(crate) fn only_forgets(&self) -> bool {
        let forgets = |operation: &Operation| matches!(operation, Operation::Forget { .. });
        self.operations.iter().all(forgets)
    }

    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the record of this (scope, id).
    pub fn upsert(&mut self, record: Record) -> &mut Self {
        self.operations.push(Operation::Put {
            record: Box::new(record),
            mode: PutMode::Upsert,
        });
        self
    }

    /// Adds the record; the batch is refused where its (scope, id) is taken.
    pub fn insert(&mut self, record: Record) -> &mut Self {
        self.operations.push(Operation::Put {
            record: Box::new(record),
            mode: PutMode::Insert,
        });
        self
    }

    /// Adds the record under a new id: a UUID v7, returned by the commit. `record.id` is
    /// ignored.
    pub fn add(&mut self, mut record: Record) -> &mut Self {
        record.id.clear();
        self.operations.push(Operation::Put {
            record: Box::new(record),
            mode: PutMode::Insert,
        });
        self
    }

    /// Removes the record of this (scope, id) from every answer; no error where there is none.
    pub fn forget(&mut self, scope: Scope, id: impl Into<String>) -> &mut Self {
        self.operations.push(Operation::Forget {
            scope,
            id: id.into(),
        });
        self
    }

    /// Makes `edge.child` count as `edge.parent` in tag filters, in the edge's scope and below.
    pub fn link_tag(&mut self, edge: TagEdge) -> &mut Self {
        self.operations.push(Operation::LinkTag(edge));
        self
    }

    /// Takes an edge back; no error where there is none.
    pub fn unlink_tag(&mut self, edge: TagEdge) -> &mut Self {
        self.operations.push(Operation::UnlinkTag(edge));
        self
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// True without operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// A commit that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Seq of its first operation.
    pub first_seq: u64,
    /// Seq of its last operation.
    pub last_seq: u64,
    /// When it became known, µs; never goes back.
    pub commit_time_us: i64,
    /// Ids made for [`Batch::add`], in order.
    pub new_ids: Vec<String>,
    /// How many records were forgotten or replaced.
    pub removed: u64,
}
