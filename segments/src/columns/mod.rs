//! What are the fixed-width fields of a row, read without touching any text?
//!
//! The section is a sequence of columns, each a kind (u16), six zero bytes and a packed
//! column (see `packed`); unknown kinds are skipped, a missing known one is damage. Times
//! are kept with the sign bit turned, so that their order is that of unsigned numbers.
//!
//! | value | range | verified by |
//! |---|---|---|
//! | event time, commit seq, source class | those of the zone | with each read |
//! | importance | 0 to 1, or none | with each read |
//! | length, tokens, cluster, source id | 32 bits | with each read |
//! | commit time, end of validity, expiry | 64 bits | every value is allowed |
//! | start of validity | 64 bits, as its distance from event time | every value is allowed |

mod packed;

pub(crate) use packed::{Packed, gallop_point, partition_point, write_packed};

use crate::error::SegmentError;
use crate::format::bytes::{Put, Take, index};
use crate::format::{Section, SectionSink};
use crate::read::{LENGTH_LONG, Zone};
use crate::record::RowFields;

type Result<T> = std::result::Result<T, SegmentError>;

/// A column's number on disk. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
enum Kind {
    EventTime = 1,
    CommitSeq = 2,
    CommitTime = 3,
    /// Event time minus start of validity: usually one constant.
    ValidLag = 4,
    ValidTo = 5,
    Expires = 6,
    SourceClass = 7,
    /// Bits of the f32; `u64::MAX` = none given.
    Importance = 8,
    Length = 9,
    TextTokens = 10,
    SummaryTokens = 11,
    Cluster = 12,
    /// 0 = none, else 1 + position in the source ids.
    SourceId = 13,
}

const KINDS: [Kind; 13] = [
    Kind::EventTime,
    Kind::CommitSeq,
    Kind::CommitTime,
    Kind::ValidLag,
    Kind::ValidTo,
    Kind::Expires,
    Kind::SourceClass,
    Kind::Importance,
    Kind::Length,
    Kind::TextTokens,
    Kind::SummaryTokens,
    Kind::Cluster,
    Kind::SourceId,
];

const PREFIX_BYTES: usize = 8;

/// Writes the section. `row` gives the fields and source id number of each row; it is called
/// once a row and column, so that one column at a time is in memory.
///
/// # Errors
/// The sink's and those of `row`.
pub(crate) fn write_columns(
    sink: &mut dyn SectionSink,
    rows: u32,
    mut row: impl FnMut(u32) -> Result<(RowFields, u32)>,
) -> Result<()> {
    let mut values = Vec::with_capacity(rows as usize);
    for kind in KINDS {
        values.clear();
        for at in 0..rows {
            let (fields, source_id) = row(at)?;
            values.push(column_value(kind, &fields, source_id));
        }
        let mut prefix = Vec::with_capacity(PREFIX_BYTES);
        prefix.put_u16(kind as u16);
        prefix.put(&[0; PREFIX_BYTES - 2]);
        sink.write(&prefix)?;
        write_packed(sink, &values)?;
    }
    Ok(())
}

fn column_value(kind: Kind, fields: &RowFields, source_id: u32) -> u64 {
    match kind {
        Kind::EventTime => ordered(fields.event_time_us),
        Kind::CommitSeq => fields.commit_seq,
        Kind::CommitTime => ordered(fields.commit_time_us),
        Kind::ValidLag => ordered(fields.event_time_us.wrapping_sub(fields.valid_from_us)),
        Kind::ValidTo => ordered(fields.valid_to_us),
        Kind::Expires => ordered(fields.expires_us),
        Kind::SourceClass => u64::from(fields.source_class),
        Kind::Importance if fields.importance.is_nan() => u64::MAX,
        Kind::Importance => u64::from(fields.importance.to_bits()),
        Kind::Length => u64::from(fields.length),
        Kind::TextTokens => u64::from(fields.text_tokens),
        Kind::SummaryTokens => u64::from(fields.summary_tokens),
        Kind::Cluster => u64::from(fields.cluster),
        Kind::SourceId => u64::from(source_id),
    }
}

/// Turns the sign bit: order of signed numbers becomes that of unsigned ones.
#[expect(clippy::cast_sign_loss, reason = "all 64 bits are kept")]
const fn ordered(value: i64) -> u64 {
    value as u64 ^ (1 << 63)
}

/// Undoes [`ordered`].
#[expect(clippy::cast_possible_wrap, reason = "all 64 bits are kept")]
const fn signed(value: u64) -> i64 {
    (value ^ (1 << 63)) as i64
}

/// The columns of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// In the order of [`KINDS`].
    columns: Vec<Packed>,
    /// What pruning goes by: no value may lie outside.
    zone: Zone,
}

impl Columns {
    /// Opens the section, whose columns have a value for each row of the zone.
    ///
    /// # Errors
    /// `Corrupt` where a column is missing, stands twice or leaves the section.
    pub(crate) fn open(section: &Section, zone: &Zone) -> Result<Self> {
        let rows = zone.rows;
        let mut found: [Option<Packed>; KINDS.len()] = Default::default();
        let mut at = 0;
        while at < section.len() {
            let prefix = section.get(at, PREFIX_BYTES)?;
            let kind = Take::new(section, at, &prefix).u16()?;
            let (column, end) = Packed::open(section, at + PREFIX_BYTES as u64)?;
            let slot = KINDS.iter().position(|known| *known as u16 == kind);
            if let Some(slot) = slot {
                if found[slot].is_some() || column.count() != rows {
                    return Err(section.corrupt(
                        at,
                        format!("column {kind} stands twice or has not {rows} values"),
                    ));
                }
                found[slot] = Some(column);
            }
            at = end;
        }
        let missing = |kind: &Kind| section.corrupt(0, format!("column {kind:?} is missing"));
        let columns = found
            .into_iter()
            .zip(&KINDS)
            .map(|(column, kind)| column.ok_or_else(|| missing(kind)))
            .collect::<Result<_>>()?;
        Ok(Self {
            columns,
            zone: *zone,
        })
    }

    fn value(&self, kind: Kind, row: u32) -> Result<u64> {
        self.column(kind).get(row)
    }

    fn column(&self, kind: Kind) -> &Packed {
        &self.columns[kind as usize - 1]
    }

    /// Smallest and largest event time, µs.
    pub(crate) fn event_times_us(&self) -> (i64, i64) {
        self.zone.event_time_us
    }

    /// Event time, µs.
    pub(crate) fn event_time_us(&self, row: u32) -> Result<i64> {
        let (first, last) = self.zone.event_time_us;
        let time_us = signed(self.value(Kind::EventTime, row)?);
        if time_us < first || time_us > last {
            return Err(self.outside(Kind::EventTime, row));
        }
        Ok(time_us)
    }

    /// Commit seq.
    pub(crate) fn commit_seq(&self, row: u32) -> Result<u64> {
        let (first, last) = self.zone.commit_seq;
        let seq = self.value(Kind::CommitSeq, row)?;
        if seq < first || seq > last {
            return Err(self.outside(Kind::CommitSeq, row));
        }
        Ok(seq)
    }

    /// Exact length in counted tokens.
    pub(crate) fn length(&self, row: u32) -> Result<u32> {
        self.column(Kind::Length).get_u32(row)
    }

    /// Every row's length as one byte; see [`crate::Partition::short_lengths`].
    pub(crate) fn short_lengths(&self) -> Result<Box<[u8]>> {
        let column = self.column(Kind::Length);
        let (mut bytes, mut longest) = (Vec::with_capacity(index(column.count())), 0);
        column.for_each(0..column.count(), |length| {
            longest = longest.max(length);
            bytes.push(u8::try_from(length).unwrap_or(LENGTH_LONG));
        })?;
        match u32::try_from(longest) {
            Ok(_) => Ok(bytes.into()),
            Err(_) => Err(column.corrupt(format!("a length of {longest}, more than 32 bits"))),
        }
    }

    /// Source class column value.
    pub(crate) fn source_class(&self, row: u32) -> Result<u8> {
        let value = self.value(Kind::SourceClass, row)?;
        u8::try_from(value)
            .ok()
            .filter(|class| *class <= self.zone.source_class_max)
            .ok_or_else(|| self.outside(Kind::SourceClass, row))
    }

    /// Position in the source ids.
    pub(crate) fn source_id(&self, row: u32) -> Result<Option<u32>> {
        Ok(self.column(Kind::SourceId).get_u32(row)?.checked_sub(1))
    }

    /// All fields of a row.
    pub(crate) fn fields(&self, row: u32) -> Result<RowFields> {
        let event_time_us = self.event_time_us(row)?;
        let lag = signed(self.value(Kind::ValidLag, row)?);
        Ok(RowFields {
            event_time_us,
            commit_seq: self.commit_seq(row)?,
            commit_time_us: signed(self.value(Kind::CommitTime, row)?),
            valid_from_us: event_time_us.wrapping_sub(lag),
            valid_to_us: signed(self.value(Kind::ValidTo, row)?),
            expires_us: signed(self.value(Kind::Expires, row)?),
            source_class: self.source_class(row)?,
            importance: self.importance(row)?,
            length: self.length(row)?,
            text_tokens: self.column(Kind::TextTokens).get_u32(row)?,
            summary_tokens: self.column(Kind::SummaryTokens).get_u32(row)?,
            cluster: self.column(Kind::Cluster).get_u32(row)?,
        })
    }

    pub(crate) fn importance(&self, row: u32) -> Result<f32> {
        match self.value(Kind::Importance, row)? {
            u64::MAX => Ok(f32::NAN),
            bits => u32::try_from(bits)
                .map(f32::from_bits)
                .ok()
                .filter(|importance| (0.0..=1.0).contains(importance))
                .ok_or_else(|| self.outside(Kind::Importance, row)),
        }
    }

    fn outside(&self, kind: Kind, row: u32) -> SegmentError {
        self.column(kind)
            .corrupt(format!("{kind:?} of row {row} is outside of its range"))
    }
}

// The kinds count from one without a gap: `column` finds them by number.
const _: () = {
    let mut at = 0;
    while at < KINDS.len() {
        assert!(KINDS[at] as usize == at + 1);
        at += 1;
    }
};
