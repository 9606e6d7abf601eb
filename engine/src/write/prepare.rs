//! A batch before the commit lock: checked, analysed and encoded; and the way back at replay.

use chronolith_segments::analyze::Analyzed;
use chronolith_segments::{
    BATCH_VERSION, Op, OpRef, Prepared, PutMode as CodecMode, Refused, Scope, decode_batch,
    encode_batch, limits,
};
use uuid::Builder;

use super::batch::{Batch, Operation, PutMode};
use crate::error::Error;
use crate::settings::Shared;
use crate::tag_graph::TagEdge;

/// One operation, ready to be applied.
#[derive(Debug)]
pub(crate) enum Ready {
    Put {
        prepared: Box<Prepared>,
        mode: PutMode,
        /// Refused unless the record that it replaces is the one of this seq.
        over_seq: Option<u64>,
    },
    Forget {
        scope: Scope,
        id: String,
    },
    LinkTag(TagEdge),
    UnlinkTag(TagEdge),
}

impl Ready {
    /// Scope and id of the record that it writes or removes.
    pub(crate) fn target(&self) -> Option<(&Scope, &str)> {
        match self {
            Self::Put { prepared, .. } => Some((&prepared.record.scope, &prepared.record.id)),
            Self::Forget { scope, id } => Some((scope, id)),
            Self::LinkTag(_) | Self::UnlinkTag(_) => None,
        }
    }
}

/// A batch, ready for log and memtable.
#[derive(Debug)]
pub(crate) struct ReadyBatch {
    pub(crate) operations: Vec<Ready>,
    /// The log's bytes; the commit time is filled in under the commit lock.
    pub(crate) body: Vec<u8>,
    pub(crate) new_ids: Vec<String>,
}

impl ReadyBatch {
    /// Checks every operation and encodes the batch. Nothing is written where one is refused.
    pub(crate) fn new(shared: &Shared, batch: Batch) -> Result<Self, Error> {
        let mut new_ids = Vec::new();
        let operations = shared.with_scratch(|scratch| -> Result<Vec<Ready>, Error> {
            let mut ready_at = |(index, operation)| {
                ready(shared, operation, scratch, &mut new_ids)
                    .map_err(|refused| Error::RefusedInBatch { index, refused })
            };
            let operations = batch.operations.into_iter().enumerate();
            operations.map(&mut ready_at).collect()
        })?;
        Self::of(operations, new_ids)
    }

    /// Encodes operations that are ready.
    pub(crate) fn of(operations: Vec<Ready>, new_ids: Vec<String>) -> Result<Self, Error> {
        let mut body = Vec::new();
        let ops: Vec<OpRef<'_>> = operations.iter().map(op).collect();
        encode_batch(&ops, 0, &mut body)?;
        Ok(Self {
            operations,
            body,
            new_ids,
        })
    }
}

fn ready(
    shared: &Shared,
    operation: Operation,
    scratch: &mut Analyzed,
    new_ids: &mut Vec<String>,
) -> Result<Ready, Refused> {
    match operation {
        Operation::Put { mut record, mode } => {
            if record.id.is_empty() && mode == PutMode::Insert {
                record.id = new_id(shared);
                new_ids.push(record.id.clone());
            }
            let prepared = shared.prepare(*record, scratch)?;
            Ok(Ready::Put {
                prepared: Box::new(prepared),
                mode,
                over_seq: None,
            })
        }
        Operation::Forget { scope, id } => {
            check_name("id", &id, limits::ID_BYTES_MAX)?;
            Ok(Ready::Forget { scope, id })
        }
        Operation::LinkTag(edge) => check_edge(&edge).map(|()| Ready::LinkTag(edge)),
        Operation::UnlinkTag(edge) => check_edge(&edge).map(|()| Ready::UnlinkTag(edge)),
    }
}

fn check_edge(edge: &TagEdge) -> Result<(), Refused> {
    check_name("tags", &edge.parent, limits::TAG_BYTES_MAX)?;
    check_name("tags", &edge.child, limits::TAG_BYTES_MAX)
}

fn check_name(field: &'static str, name: &str, bytes_max: usize) -> Result<(), Refused> {
    if name.is_empty() || name.len() > bytes_max {
        return Err(Refused::new(
            field,
            format!("must be 1 to {bytes_max} bytes long"),
        ));
    }
    Ok(())
}

/// A UUID v7 from the store's clock and seed.
fn new_id(shared: &Shared) -> String {
    let mut random = [0; 10];
    shared.env.entropy.fill(&mut random);
    let millis = u64::try_from(shared.env.clock.now_us() / 1000).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .to_string()
}

fn op(ready: &Ready) -> OpRef<'_> {
    match ready {
        Ready::Put { prepared, mode, .. } => {
            let mode = match mode {
                PutMode::Upsert => CodecMode::Upsert,
                PutMode::Insert => CodecMode::Insert,
            };
            OpRef::Put {
                mode,
                record: &prepared.record,
                vectors: &prepared.vectors,
                known_since_us: prepared.known_since_us,
            }
        }
        Ready::Forget { scope, id } => OpRef::Delete { scope, id },
        Ready::LinkTag(edge) => OpRef::LinkTag {
            scope: &edge.scope,
            parent: &edge.parent,
            child: &edge.child,
        },
        Ready::UnlinkTag(edge) => OpRef::UnlinkTag {
            scope: &edge.scope,
            parent: &edge.parent,
            child: &edge.child,
        },
    }
}

/// A batch as the log holds it, analysed again.
pub(crate) fn decode(shared: &Shared, body: &[u8]) -> Result<(i64, Vec<Ready>), Error> {
    let damaged = |why: String| {
        Error::Internal(format!(
            "a log frame passed its checksums but holds no batch: {why}"
        ))
    };
    let batch = decode_batch(body).map_err(|error| damaged(error.to_string()))?;
    check_spaces(shared, &batch.ops)?;
    let operations = shared.with_scratch(|scratch| -> Result<Vec<Ready>, Error> {
        let back =
            |op| ready_again(shared, op, scratch).map_err(|refused| damaged(refused.to_string()));
        batch.ops.into_iter().map(back).collect()
    })?;
    Ok((batch.commit_time_us, operations))
}

/// True where a batch has vectors of a space that the manifest knows nothing of.
pub(crate) fn names_unknown_space(shared: &Shared, body: &[u8]) -> bool {
    // Earlier versions have no spaces to name.
    body.first() == Some(&BATCH_VERSION)
        && decode_batch(body).is_ok_and(|batch| check_spaces(shared, &batch.ops).is_err())
}

/// A reader may meet a space that was added since it read the manifest: it opens anew. To a
/// writer it is damage.
fn check_spaces(shared: &Shared, ops: &[Op]) -> Result<(), Error> {
    let next = shared.spaces().set().next;
    for op in ops {
        let Op::Put { vectors, .. } = op else {
            continue;
        };
        if let Some((number, _)) = vectors.others().find(|(number, _)| *number >= next) {
            return Err(Error::Behind {
                file: shared.wal_dir(),
                found: format!(
                    "a commit has vectors of space {}, of which the manifest knows nothing",
                    number.get()
                ),
            });
        }
    }
    Ok(())
}

fn ready_again(shared: &Shared, op: Op, scratch: &mut Analyzed) -> Result<Ready, Refused> {
    Ok(match op {
        Op::Put {
            mode,
            record,
            vectors,
            known_since_us,
        } => {
            let mode = match mode {
                CodecMode::Upsert => PutMode::Upsert,
                CodecMode::Insert => PutMode::Insert,
            };
            let mut prepared = Box::new(shared.prepare_replayed(*record, vectors, scratch)?);
            prepared.known_since_us = known_since_us;
            Ready::Put {
                prepared,
                mode,
                over_seq: None,
            }
        }
        Op::Delete { scope, id } => Ready::Forget { scope, id },
        Op::LinkTag {
            scope,
            parent,
            child,
        } => Ready::LinkTag(TagEdge {
            scope,
            parent,
            child,
        }),
        Op::UnlinkTag {
            scope,
            parent,
            child,
        } => Ready::UnlinkTag(TagEdge {
            scope,
            parent,
            child,
        }),
    })
}
