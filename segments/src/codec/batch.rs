//! What are the bytes of one batch, as the log stores it in one frame?
//!
//! ```text
//!   batch   version u8 | commit time i64 | ops varint | op ...
//!   put     1 u8 | mode u8 | presence u8 | scope | id | event time i64 | text
//!           [summary] [speaker] [source] [source class u8] [importance f32] [source id]
//!           attributes | tags varint, tag ... | [vector] [impacts varint, impact ...]
//!   impact  token | weight in steps varint
//!   more    5 u8 | flags u8 | as put from its mode on
//!           [spaces varint, (space u8, vector) ...] [known since i64]
//!   delete  2 u8 | scope | id
//!   link    3 u8 | scope | parent | child
//!   unlink  4 u8 | scope | parent | child
//! ```
//!
//! | field | form | range | who checks |
//! | --- | --- | --- | --- |
//! | version | u8 | 3 where a put has more, else 2 where one has impacts, else 1 | `decode_batch` |
//! | commit time, event time | i64 LE, µs | event time: years 1 to 9999 | `Record::check` |
//! | scope | length, key | [`Scope::from_key`] | `scope` |
//! | texts, tags | length, UTF-8 | `limits` | `Input::string`, `Record::check` |
//! | mode | u8 | [`PutMode`] | `put` |
//! | presence | u8 | bits of [`Presence`] | `put` |
//! | impacts | ascending by token, each once | see `impacts`; at least one | `impacts` |
//! | vector | length, bytes | the space's size | `prepare_replayed` |
//! | flags | u8 | bits of [`More`], at least one | `put_more` |
//! | spaces | ascending by number, without the main one; at least one | see `spaces` | `spaces` |
//!
//! A length is a varint, at most its limit and at most what is left. Whatever is accepted is
//! the one encoding of its value: encoding it again gives the same bytes. The frame around a
//! batch has the checksum; this layer still trusts nothing.

use super::bytes::{Input, put_bytes, put_varint};
use crate::error::Refused;
use crate::limits::{BATCH_BYTES_MAX, ID_BYTES_MAX, SCOPE_BYTES_MAX, TAG_BYTES_MAX};
use crate::record::{Record, check_id};
use crate::scope::Scope;
use crate::space::StoredVectors;

mod put;

use put::{encode_put, flags_of, put, put_more};

/// The newest version this build writes and reads. Only batches with a put that has more (vectors
/// in other spaces than the main one, or a known time of its own) are of it; all others are of
/// the version that they always were, and earlier builds read them.
pub const BATCH_VERSION: u8 = 3;
/// The version of a batch with impacts that needs no newer one.
const IMPACTS: u8 = 2;
/// The version of a batch without either.
const PLAIN: u8 = 1;

/// First byte of an op. 6 to 15 are kept for later ops; decoding one names it.
const TAG_PUT: u8 = 1;
const TAG_DELETE: u8 = 2;
const TAG_LINK: u8 = 3;
const TAG_UNLINK: u8 = 4;
const TAG_PUT_MORE: u8 = 5;
const TAG_RESERVED_MAX: u8 = 15;

/// Where the commit time lies: behind the version.
const COMMIT_TIME_AT: usize = 1;
/// Smallest op: a delete of a one-byte id in a one-byte scope.
const OP_BYTES_MIN: usize = 1 + 3 + 2;
/// Ops for which there is room before the first one is read.
const OPS_CAPACITY_MAX: usize = 1024;

/// What a put may replace. "Insert only" was checked before the log; the mode is kept so
/// that the log says what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PutMode {
    /// Takes the place of an older record with the same (scope, id).
    Upsert = 1,
    /// There was none.
    Insert = 2,
}

/// One operation of a batch, owned.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Writes a record.
    Put {
        /// What it may replace.
        mode: PutMode,
        /// The record; its vectors are beside it.
        record: Box<Record>,
        /// The vectors as their spaces store them, unchecked until `prepare_replayed`.
        vectors: StoredVectors,
        /// When it became known, µs, where that was before the batch.
        known_since_us: Option<i64>,
    },
    /// Forgets a record by id.
    Delete {
        /// Where.
        scope: Scope,
        /// Which.
        id: String,
    },
    /// Makes one tag count as another, in a scope and below.
    LinkTag {
        /// Where.
        scope: Scope,
        /// The wider tag.
        parent: String,
        /// The narrower tag.
        child: String,
    },
    /// Takes such an edge back.
    UnlinkTag {
        /// Where.
        scope: Scope,
        /// The wider tag.
        parent: String,
        /// The narrower tag.
        child: String,
    },
}

impl Op {
    /// The op as `encode_batch` takes it.
    pub fn borrowed(&self) -> OpRef<'_> {
        match self {
            Self::Put {
                mode,
                record,
                vectors,
                known_since_us,
            } => OpRef::Put {
                mode: *mode,
                record,
                vectors,
                known_since_us: *known_since_us,
            },
            Self::Delete { scope, id } => OpRef::Delete { scope, id },
            Self::LinkTag {
                scope,
                parent,
                child,
            } => OpRef::LinkTag {
                scope,
                parent,
                child,
            },
            Self::UnlinkTag {
                scope,
                parent,
                child,
            } => OpRef::UnlinkTag {
                scope,
                parent,
                child,
            },
        }
    }
}

/// One operation of a batch, borrowed from where it was prepared.
#[derive(Debug, Clone, Copy)]
pub enum OpRef<'a> {
    /// See [`Op::Put`].
    Put {
        /// What it may replace.
        mode: PutMode,
        /// A checked record; vectors inside it are not written.
        record: &'a Record,
        /// The vectors as their spaces store them.
        vectors: &'a StoredVectors,
        /// When it became known, µs, where that was before the batch.
        known_since_us: Option<i64>,
    },
    /// See [`Op::Delete`].
    Delete {
        /// Where.
        scope: &'a Scope,
        /// Which; checked.
        id: &'a str,
    },
    /// See [`Op::LinkTag`].
    LinkTag {
        /// Where.
        scope: &'a Scope,
        /// The wider tag; checked.
        parent: &'a str,
        /// The narrower tag; checked.
        child: &'a str,
    },
    /// See [`Op::UnlinkTag`].
    UnlinkTag {
        /// Where.
        scope: &'a Scope,
        /// The wider tag; checked.
        parent: &'a str,
        /// The narrower tag; checked.
        child: &'a str,
    },
}

/// A batch as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// When it became known, µs.
    pub commit_time_us: i64,
    /// Its operations, in seq order.
    pub ops: Vec<Op>,
}

/// Why the bytes of a batch could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Written by another format.
    #[error(
        "the batch has format version {found}, this build reads up to {BATCH_VERSION}; use the release that wrote it"
    )]
    Version {
        /// Version in the bytes.
        found: u8,
    },
    /// An operation of a later release.
    #[error(
        "the batch holds operation {tag} at offset {offset}, which this build does not know; use the release that wrote it"
    )]
    UnknownOp {
        /// Its tag.
        tag: u8,
        /// Byte offset in the batch.
        offset: usize,
    },
    /// Bytes that no release wrote.
    #[error(
        "damaged batch, offset {offset}: {message}; run `chronolith verify`, then restore or `repair`"
    )]
    Damaged {
        /// Byte offset in the batch.
        offset: usize,
        /// Found against expected. Never holds content.
        message: String,
    },
}

/// Appends the bytes of a batch to `out`.
///
/// Records and ids must have passed their checks; this one only refuses a batch that is too
/// big for a frame, and then leaves `out` as it was.
///
/// # Errors
/// [`Refused`] on `batch` above [`BATCH_BYTES_MAX`].
pub fn encode_batch(
    ops: &[OpRef<'_>],
    commit_time_us: i64,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let start = out.len();
    out.push(version_of(ops.iter().copied()));
    out.extend_from_slice(&commit_time_us.to_le_bytes());
    put_varint(out, ops.len() as u64);
    for op in ops {
        match op {
            OpRef::Put {
                mode,
                record,
                vectors,
                known_since_us,
            } => encode_put(out, *mode, record, vectors, *known_since_us),
            OpRef::Delete { scope, id } => {
                out.push(TAG_DELETE);
                put_bytes(out, scope.key());
                put_bytes(out, id.as_bytes());
            }
            OpRef::LinkTag {
                scope,
                parent,
                child,
            } => encode_edge(out, TAG_LINK, scope, parent, child),
            OpRef::UnlinkTag {
                scope,
                parent,
                child,
            } => encode_edge(out, TAG_UNLINK, scope, parent, child),
        }
        let size = out.len() - start;
        if size > BATCH_BYTES_MAX {
            out.truncate(start);
            let message =
                format!("is larger than {BATCH_BYTES_MAX} bytes; write fewer records at once");
            return Err(Refused::new("batch", message));
        }
    }
    Ok(())
}

/// The oldest version that has all of these.
fn version_of<'a>(ops: impl Iterator<Item = OpRef<'a>>) -> u8 {
    let version = |op: OpRef<'_>| match op {
        OpRef::Put {
            record,
            vectors,
            known_since_us,
            ..
        } => match (flags_of(vectors, known_since_us), record.impacts.is_empty()) {
            (0, true) => PLAIN,
            (0, false) => IMPACTS,
            _ => BATCH_VERSION,
        },
        _ => PLAIN,
    };
    ops.map(version).max().unwrap_or(PLAIN)
}

fn encode_edge(out: &mut Vec<u8>, tag: u8, scope: &Scope, parent: &str, child: &str) {
    out.push(tag);
    for part in [scope.key(), parent.as_bytes(), child.as_bytes()] {
        put_bytes(out, part);
    }
}

/// Fills in the commit time of a batch that `encode_batch` wrote: it is known only once the
/// batch has its place in the log.
///
/// # Panics
/// If `batch` is too short to be one.
pub fn set_commit_time(batch: &mut [u8], commit_time_us: i64) {
    batch[COMMIT_TIME_AT..COMMIT_TIME_AT + 8].copy_from_slice(&commit_time_us.to_le_bytes());
}

/// Reads the bytes of a batch back, all of them.
///
/// # Errors
/// [`CodecError`]; never a panic and never more memory than a few times the input.
pub fn decode_batch(bytes: &[u8]) -> Result<Batch, CodecError> {
    let mut input = Input::new(bytes);
    if bytes.len() > BATCH_BYTES_MAX {
        return Err(input.damaged(format!("{} bytes; at most {BATCH_BYTES_MAX}", bytes.len())));
    }
    let version = input.byte("version")?;
    if !(PLAIN..=BATCH_VERSION).contains(&version) {
        return Err(CodecError::Version { found: version });
    }
    let commit_time_us = i64::from_le_bytes(input.array("commit time")?);
    let count = input.varint(input.left() / OP_BYTES_MIN, "number of operations")?;
    // An op in memory is larger than the smallest one in bytes: what a count claims is not
    // allocated before the ops are there.
    let mut ops = Vec::with_capacity(count.min(OPS_CAPACITY_MAX));
    for _ in 0..count {
        ops.push(op(&mut input)?);
    }
    if version_of(ops.iter().map(Op::borrowed)) != version {
        return Err(input.damaged(format!("version {version} does not fit what is inside")));
    }
    if input.left() > 0 {
        return Err(input.damaged(format!("{} bytes behind the last operation", input.left())));
    }
    Ok(Batch {
        commit_time_us,
        ops,
    })
}

fn op(input: &mut Input<'_>) -> Result<Op, CodecError> {
    let offset = input.offset();
    match input.byte("operation")? {
        TAG_PUT => put(input, offset),
        TAG_PUT_MORE => put_more(input, offset),
        TAG_DELETE => {
            let scope = scope(input)?;
            let id = input.string(ID_BYTES_MAX, "id")?;
            check_id(&id).map_err(|refused| refuse(offset, &refused))?;
            Ok(Op::Delete { scope, id })
        }
        tag @ (TAG_LINK | TAG_UNLINK) => {
            let scope = scope(input)?;
            let parent = tag_name(input)?;
            let child = tag_name(input)?;
            Ok(match tag {
                TAG_LINK => Op::LinkTag {
                    scope,
                    parent,
                    child,
                },
                _ => Op::UnlinkTag {
                    scope,
                    parent,
                    child,
                },
            })
        }
        tag if (1..=TAG_RESERVED_MAX).contains(&tag) => Err(CodecError::UnknownOp { tag, offset }),
        tag => Err(CodecError::Damaged {
            offset,
            message: format!("{tag} is no operation"),
        }),
    }
}

fn tag_name(input: &mut Input<'_>) -> Result<String, CodecError> {
    let name = input.string(TAG_BYTES_MAX, "tag")?;
    if name.is_empty() {
        return Err(input.damaged("an empty tag in an edge".to_owned()));
    }
    Ok(name)
}

fn scope(input: &mut Input<'_>) -> Result<Scope, CodecError> {
    let key = input.bytes(SCOPE_BYTES_MAX, "scope")?;
    Scope::from_key(key).ok_or_else(|| input.damaged("the bytes before this are no scope's key"))
}

fn refuse(offset: usize, refused: &Refused) -> CodecError {
    CodecError::Damaged {
        offset,
        message: format!("an operation that no release writes: {refused}"),
    }
}

#[cfg(test)]
mod tests;
