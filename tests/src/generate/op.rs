//! One operation, in a form that a model can read: the engine's batch is closed.

use chronolith::{Batch, Record, Scope, TagEdge};

/// One operation of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Adds or replaces.
    Upsert(Record),
    /// Adds, or refuses the batch.
    Insert(Record),
    /// Adds under an id that the engine makes.
    Add(Record),
    /// Removes.
    Forget(Scope, String),
    /// Adds an edge between tags.
    Link(TagEdge),
    /// Takes an edge back.
    Unlink(TagEdge),
}

/// The engine's batch of these operations.
pub fn batch_of(ops: &[Op]) -> Batch {
    let mut batch = Batch::new();
    for op in ops {
        match op.clone() {
            Op::Upsert(record) => batch.upsert(record),
            Op::Insert(record) => batch.insert(record),
            Op::Add(record) => batch.add(record),
            Op::Forget(scope, id) => batch.forget(scope, id),
            Op::Link(edge) => batch.link_tag(edge),
            Op::Unlink(edge) => batch.unlink_tag(edge),
        };
    }
    batch
}
