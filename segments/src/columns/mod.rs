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

/// A fixed-width field of a row, as a whole number. The discriminant is its number on disk:
/// numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Column {
    /// Event time, µs; the sign bit is turned.
    EventTime = 1,
    /// Commit seq.
    CommitSeq = 2,
    /// Commit time, µs; the sign bit is turned.
    CommitTime = 3,
    /// Event time minus start of validity, µs, usually one constant; the sign bit is turned.
    ValidLag = 4,
    /// End of validity, µs; the sign bit is turned.
    ValidTo = 5,
    /// Expiry, µs; the sign bit is turned.
    Expires = 6,
    /// Source class column value.
    SourceClass = 7,
    /// Bits of the f32; `u64::MAX` = none given.
    Importance = 8,
    /// Exact length in counted tokens.
    Length = 9,
    /// Token cost of the text.
    TextTokens = 10,
    /// Token cost of the summary.
    SummaryTokens = 11,
    /// Semantic cluster.
    Cluster = 12,
    /// 0 = none, else a number of the source id: in a segment 1 + its position among them.
    SourceId = 13,
}

const COLUMNS: [Column; 13] = [
    Column::EventTime,
    Column::CommitSeq,
    Column::CommitTime,
    Column::ValidLag,
    Column::ValidTo,
    Column::Expires,
    Column::SourceClass,
    Column::Importance,
    Column::Length,
    Column::TextTokens,
    Column::SummaryTokens,
    Column::Cluster,
    Column::SourceId,
];

const PREFIX_BYTES: usize = 8;

/// Writes the section. `fill` sets the values of a column, one for each of `rows` rows: one
/// column at a time is in memory.
///
/// # Errors
/// The sink's and those of `fill`.
pub(crate) fn write_columns(
    sink: &mut dyn SectionSink,
    rows: u32,
    mut fill: impl FnMut(Column, &mut [u64]) -> Result<()>,
) -> Result<()> {
    let mut values = vec![0; index(rows)];
    for column in COLUMNS {
        fill(column, &mut values)?;
        let mut prefix = Vec::with_capacity(PREFIX_BYTES);
        prefix.put_u16(column as u16);
        prefix.put(&[0; PREFIX_BYTES - 2]);
        sink.write(&prefix)?;
        write_packed(sink, &values)?;
    }
    Ok(())
}

impl Column {
    /// The value of a row with these fields, which do not tell a source id.
    pub(crate) fn value(self, fields: &RowFields) -> u64 {
        match self {
            Self::EventTime => ordered(fields.event_time_us),
            Self::CommitSeq => fields.commit_seq,
            Self::CommitTime => ordered(fields.commit_time_us),
            Self::ValidLag => ordered(fields.event_time_us.wrapping_sub(fields.valid_from_us)),
            Self::ValidTo => ordered(fields.valid_to_us),
            Self::Expires => ordered(fields.expires_us),
            Self::SourceClass => u64::from(fields.source_class),
            Self::Importance if fields.importance.is_nan() => u64::MAX,
            Self::Importance => u64::from(fields.importance.to_bits()),
            Self::Length => u64::from(fields.length),
            Self::TextTokens => u64::from(fields.text_tokens),
            Self::SummaryTokens => u64::from(fields.summary_tokens),
            Self::Cluster => u64::from(fields.cluster),
            Self::SourceId => 0,
        }
    }
}

/// Turns the sign bit: order of signed numbers becomes that of unsigned ones.
#[expect(clippy::cast_sign_loss, reason = "all 64 bits are kept")]
pub(crate) const fn ordered(value: i64) -> u64 {
    value as u64 ^ (1 << 63)
}

/// Undoes [`ordered`].
#[expect(clippy::cast_possible_wrap, reason = "all 64 bits are kept")]
pub(crate) const fn signed(value: u64) -> i64 {
    (value ^ (1 << 63)) as i64
}

/// The columns of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// In the order of [`COLUMNS`].
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
        let mut found: [Option<Packed>; COLUMNS.len()] = Default::default();
        let mut at = 0;
        while at < section.len() {
            let prefix = section.get(at, PREFIX_BYTES)?;
            let kind = Take::new(section, at, &prefix).u16()?;
            let (column, end) = Packed::open(section, at + PREFIX_BYTES as u64)?;
            let slot = COLUMNS.iter().position(|known| *known as u16 == kind);
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
        let missing = |column: &Column| section.corrupt(0, format!("column {column:?} is missing"));
        let columns = found
            .into_iter()
            .zip(&COLUMNS)
            .map(|(found, column)| found.ok_or_else(|| missing(column)))
            .collect::<Result<_>>()?;
        Ok(Self {
            columns,
            zone: *zone,
        })
    }

    fn value(&self, column: Column, row: u32) -> Result<u64> {
        self.column(column).get(row)
    }

    fn column(&self, column: Column) -> &Packed {
        &self.columns[column as usize - 1]
    }

    /// Calls `visit` with every row and its value, checked as for one row: what a column may
    /// not hold is not shown to it.
    ///
    /// # Errors
    /// As [`Columns::fields`].
    pub(crate) fn each_value(&self, column: Column, visit: &mut dyn FnMut(u32, u64)) -> Result<()> {
        let (least, most) = self.range_of(column);
        let (mut row, mut outside) = (0, None);
        self.column(column).for_each(0..self.zone.rows, |value| {
            if (value < least || value > most)
                && (column != Column::Importance || importance_of(value).is_none())
            {
                outside = outside.or(Some(row));
            } else {
                visit(row, value);
            }
            row += 1;
        })?;
        match outside {
            Some(row) => Err(self.outside(column, row)),
            None => Ok(()),
        }
    }

    /// Least and largest value of a column, outside of which only an importance may be sound.
    fn range_of(&self, column: Column) -> (u64, u64) {
        let zone = &self.zone;
        match column {
            Column::EventTime => (ordered(zone.event_time_us.0), ordered(zone.event_time_us.1)),
            Column::CommitSeq => zone.commit_seq,
            Column::CommitTime | Column::ValidLag | Column::ValidTo | Column::Expires => {
                (0, u64::MAX)
            }
            Column::SourceClass => (0, u64::from(zone.source_class_max)),
            Column::Importance => (0, u64::from(1.0_f32.to_bits())),
            Column::Length
            | Column::TextTokens
            | Column::SummaryTokens
            | Column::Cluster
            | Column::SourceId => (0, u64::from(u32::MAX)),
        }
    }

    /// Smallest and largest event time, µs.
    pub(crate) fn event_times_us(&self) -> (i64, i64) {
        self.zone.event_time_us
    }

    /// Event time, µs.
    pub(crate) fn event_time_us(&self, row: u32) -> Result<i64> {
        let (first, last) = self.zone.event_time_us;
        let time_us = signed(self.value(Column::EventTime, row)?);
        if time_us < first || time_us > last {
            return Err(self.outside(Column::EventTime, row));
        }
        Ok(time_us)
    }

    /// Commit seq.
    pub(crate) fn commit_seq(&self, row: u32) -> Result<u64> {
        let (first, last) = self.zone.commit_seq;
        let seq = self.value(Column::CommitSeq, row)?;
        if seq < first || seq > last {
            return Err(self.outside(Column::CommitSeq, row));
        }
        Ok(seq)
    }

    /// Exact length in counted tokens.
    pub(crate) fn length(&self, row: u32) -> Result<u32> {
        self.column(Column::Length).get_u32(row)
    }

    /// Every row's length as one byte; see [`crate::Partition::short_lengths`].
    pub(crate) fn short_lengths(&self) -> Result<Box<[u8]>> {
        let column = self.column(Column::Length);
        if let Some(bytes) = column.all_bytes(u64::from(u32::MAX))? {
            return Ok(bytes);
        }
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
        let value = self.value(Column::SourceClass, row)?;
        u8::try_from(value)
            .ok()
            .filter(|class| *class <= self.zone.source_class_max)
            .ok_or_else(|| self.outside(Column::SourceClass, row))
    }

    /// Position in the source ids.
    pub(crate) fn source_id(&self, row: u32) -> Result<Option<u32>> {
        Ok(self.column(Column::SourceId).get_u32(row)?.checked_sub(1))
    }

    /// All fields of a row.
    pub(crate) fn fields(&self, row: u32) -> Result<RowFields> {
        let event_time_us = self.event_time_us(row)?;
        let lag = signed(self.value(Column::ValidLag, row)?);
        Ok(RowFields {
            event_time_us,
            commit_seq: self.commit_seq(row)?,
            commit_time_us: signed(self.value(Column::CommitTime, row)?),
            valid_from_us: event_time_us.wrapping_sub(lag),
            valid_to_us: signed(self.value(Column::ValidTo, row)?),
            expires_us: signed(self.value(Column::Expires, row)?),
            source_class: self.source_class(row)?,
            importance: self.importance(row)?,
            length: self.length(row)?,
            text_tokens: self.column(Column::TextTokens).get_u32(row)?,
            summary_tokens: self.column(Column::SummaryTokens).get_u32(row)?,
            cluster: self.column(Column::Cluster).get_u32(row)?,
        })
    }

    pub(crate) fn importance(&self, row: u32) -> Result<f32> {
        let value = self.value(Column::Importance, row)?;
        importance_of(value).ok_or_else(|| self.outside(Column::Importance, row))
    }

    fn outside(&self, column: Column, row: u32) -> SegmentError {
        self.column(column)
            .corrupt(format!("{column:?} of row {row} is outside of its range"))
    }
}

/// The importance that a value stands for; NaN = none given.
fn importance_of(value: u64) -> Option<f32> {
    if value == u64::MAX {
        return Some(f32::NAN);
    }
    let importance = f32::from_bits(u32::try_from(value).ok()?);
    (0.0..=1.0).contains(&importance).then_some(importance)
}

// The columns count from one without a gap: `column` finds them by number.
const _: () = {
    let mut at = 0;
    while at < COLUMNS.len() {
        assert!(COLUMNS[at] as usize == at + 1);
        at += 1;
    }
};
