//! What are the bytes of a put?

use super::super::bytes::{Input, put_bytes, put_varint};
use super::{CodecError, Op, PutMode, TAG_PUT, TAG_PUT_MORE, refuse, scope};
use crate::impacts::{
    IMPACT_FREQ_MAX, IMPACT_TOKEN_BYTES_MAX, IMPACTS_MAX, impact_freq, impact_weight,
};
use crate::limits::{
    ATTRIBUTES_BYTES_MAX, DIM_MAX, ID_BYTES_MAX, NAME_BYTES_MAX, SPACES_MAX, SUMMARY_BYTES_MAX,
    TAG_BYTES_MAX, TAGS_MAX, TEXT_BYTES_MAX,
};
use crate::record::{Record, SourceClass};
use crate::space::{SpaceNumber, StoredVectors};

/// Smallest tag: its length and one byte.
const STORED_TAG_BYTES_MIN: usize = 2;
/// Smallest impact: its token's length, one byte and a weight.
const STORED_IMPACT_BYTES_MIN: usize = 3;
/// Smallest vector in a space: the space's number and a length.
const STORED_VECTOR_BYTES_MIN: usize = 2;
const VECTOR_BYTES_MAX: usize = DIM_MAX * 4;

/// Bits of a put's presence byte.
struct Presence;

impl Presence {
    const SUMMARY: u8 = 1;
    const SPEAKER: u8 = 1 << 1;
    const SOURCE: u8 = 1 << 2;
    const SOURCE_CLASS: u8 = 1 << 3;
    const IMPORTANCE: u8 = 1 << 4;
    const SOURCE_ID: u8 = 1 << 5;
    const VECTOR: u8 = 1 << 6;
    const IMPACTS: u8 = 1 << 7;
}

/// Bits of the flags of a put that has more.
struct More;

impl More {
    const SPACES: u8 = 1;
    const KNOWN_SINCE: u8 = 1 << 1;
    const ALL: u8 = Self::SPACES | Self::KNOWN_SINCE;
}

/// The flags of a put; 0 = it has no more.
pub(super) fn flags_of(vectors: &StoredVectors, known_since_us: Option<i64>) -> u8 {
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    bit(vectors.others().next().is_some(), More::SPACES)
        | bit(known_since_us.is_some(), More::KNOWN_SINCE)
}

pub(super) fn encode_put(
    out: &mut Vec<u8>,
    mode: PutMode,
    record: &Record,
    vectors: &StoredVectors,
    known_since_us: Option<i64>,
) {
    let (vector, others) = (vectors.get(SpaceNumber::MAIN), vectors.others().count());
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    let presence = bit(record.summary.is_some(), Presence::SUMMARY)
        | bit(record.speaker.is_some(), Presence::SPEAKER)
        | bit(record.source.is_some(), Presence::SOURCE)
        | bit(record.source_class.is_some(), Presence::SOURCE_CLASS)
        | bit(record.importance.is_some(), Presence::IMPORTANCE)
        | bit(record.source_id.is_some(), Presence::SOURCE_ID)
        | bit(vector.is_some(), Presence::VECTOR)
        | bit(!record.impacts.is_empty(), Presence::IMPACTS);
    match flags_of(vectors, known_since_us) {
        0 => out.push(TAG_PUT),
        flags => out.extend_from_slice(&[TAG_PUT_MORE, flags]),
    }
    out.extend_from_slice(&[mode as u8, presence]);
    put_bytes(out, record.scope.key());
    put_bytes(out, record.id.as_bytes());
    out.extend_from_slice(&record.event_time_us.to_le_bytes());
    put_bytes(out, record.text.as_bytes());
    for text in [&record.summary, &record.speaker, &record.source]
        .into_iter()
        .flatten()
    {
        put_bytes(out, text.as_bytes());
    }
    out.extend(record.source_class.map(|class| class as u8));
    out.extend(record.importance.into_iter().flat_map(f32::to_le_bytes));
    if let Some(source_id) = &record.source_id {
        put_bytes(out, source_id.as_bytes());
    }
    put_bytes(out, record.attributes.as_bytes());
    put_varint(out, record.tags.len() as u64);
    for tag in &record.tags {
        put_bytes(out, tag.as_bytes());
    }
    if let Some(vector) = vector {
        put_bytes(out, vector);
    }
    if !record.impacts.is_empty() {
        put_varint(out, record.impacts.len() as u64);
    }
    for (token, weight) in &record.impacts {
        put_bytes(out, token.as_bytes());
        put_varint(out, u64::from(impact_freq(*weight)));
    }
    if others > 0 {
        put_varint(out, others as u64);
    }
    for (number, vector) in vectors.others() {
        out.push(number.get());
        put_bytes(out, vector);
    }
    out.extend(known_since_us.into_iter().flat_map(i64::to_le_bytes));
}

pub(super) fn put_more(input: &mut Input<'_>, offset: usize) -> Result<Op, CodecError> {
    let flags = input.byte("flags")?;
    if flags == 0 || flags & !More::ALL != 0 {
        return Err(input.damaged(format!("{flags} are no flags of a put")));
    }
    let mut op = put(input, offset)?;
    if let Op::Put {
        vectors,
        known_since_us,
        ..
    } = &mut op
    {
        if flags & More::SPACES != 0 {
            spaces(input, vectors)?;
        }
        if flags & More::KNOWN_SINCE != 0 {
            *known_since_us = Some(i64::from_le_bytes(input.array("known since")?));
        }
    }
    Ok(op)
}

pub(super) fn put(input: &mut Input<'_>, offset: usize) -> Result<Op, CodecError> {
    let mode = match input.byte("mode")? {
        1 => PutMode::Upsert,
        2 => PutMode::Insert,
        other => return Err(input.damaged(format!("{other} is no mode"))),
    };
    let presence = input.byte("presence")?;
    let has = |bit: u8| presence & bit != 0;
    let optional = |input: &mut Input<'_>, bit, bytes_max, what| {
        if has(bit) {
            input.string(bytes_max, what).map(Some)
        } else {
            Ok(None)
        }
    };
    let scope = scope(input)?;
    let id = input.string(ID_BYTES_MAX, "id")?;
    let event_time_us = i64::from_le_bytes(input.array("event time")?);
    let text = input.string(TEXT_BYTES_MAX, "text")?;
    let mut record = Record::new(scope, id, event_time_us, text);
    record.summary = optional(input, Presence::SUMMARY, SUMMARY_BYTES_MAX, "summary")?;
    record.speaker = optional(input, Presence::SPEAKER, NAME_BYTES_MAX, "speaker")?;
    record.source = optional(input, Presence::SOURCE, NAME_BYTES_MAX, "source")?;
    if has(Presence::SOURCE_CLASS) {
        record.source_class = Some(source_class(input)?);
    }
    if has(Presence::IMPORTANCE) {
        record.importance = Some(f32::from_le_bytes(input.array("importance")?));
    }
    record.source_id = optional(input, Presence::SOURCE_ID, NAME_BYTES_MAX, "source id")?;
    record.attributes = input.string(ATTRIBUTES_BYTES_MAX, "attributes")?;
    record.tags = tags(input)?;
    let vector = match has(Presence::VECTOR) {
        true => Some(input.bytes(VECTOR_BYTES_MAX, "vector")?.to_vec()),
        false => None,
    };
    if has(Presence::IMPACTS) {
        record.impacts = impacts(input)?;
    }
    record.check().map_err(|refused| refuse(offset, &refused))?;
    Ok(Op::Put {
        mode,
        record: Box::new(record),
        vectors: StoredVectors::main(vector),
        known_since_us: None,
    })
}

/// Vectors in other spaces than the main one: there are some, ascending by space.
fn spaces(input: &mut Input<'_>, vectors: &mut StoredVectors) -> Result<(), CodecError> {
    let most = SPACES_MAX.min(input.left() / STORED_VECTOR_BYTES_MIN);
    let count = input.varint(most, "number of spaces")?;
    let mut last = SpaceNumber::MAIN;
    for _ in 0..count {
        let number = SpaceNumber::new(input.byte("space")?);
        if number <= last {
            return Err(input.damaged("a space out of order before this"));
        }
        last = number;
        let vector = input.bytes(VECTOR_BYTES_MAX, "vector")?;
        vectors.put(number, vector.to_vec());
    }
    match count {
        0 => Err(input.damaged("a list of no spaces before this")),
        _ => Ok(()),
    }
}

fn source_class(input: &mut Input<'_>) -> Result<SourceClass, CodecError> {
    let value = input.byte("source class")?;
    SourceClass::from_column(value)
        .ok_or_else(|| input.damaged(format!("{value} is no source class")))
}

fn tags(input: &mut Input<'_>) -> Result<Vec<String>, CodecError> {
    let count = input.varint(
        TAGS_MAX.min(input.left() / STORED_TAG_BYTES_MIN),
        "number of tags",
    )?;
    (0..count)
        .map(|_| input.string(TAG_BYTES_MAX, "tag"))
        .collect()
}

/// As a prepared record has them: there are some, ascending by token.
fn impacts(input: &mut Input<'_>) -> Result<Vec<(String, f32)>, CodecError> {
    let most = IMPACTS_MAX.min(input.left() / STORED_IMPACT_BYTES_MIN);
    let count = input.varint(most, "number of impacts")?;
    let mut impacts: Vec<(String, f32)> = Vec::with_capacity(count);
    for _ in 0..count {
        let token = input.string(IMPACT_TOKEN_BYTES_MAX, "token")?;
        let freq = input.varint(IMPACT_FREQ_MAX as usize, "impact")?;
        let freq = u32::try_from(freq).unwrap_or_default();
        if freq == 0 || impacts.last().is_some_and(|(last, _)| *last >= token) {
            return Err(input.damaged("an impact of 0 or out of order before this"));
        }
        impacts.push((token, impact_weight(freq)));
    }
    match impacts.is_empty() {
        true => Err(input.damaged("a list of no impacts before this")),
        false => Ok(impacts),
    }
}
