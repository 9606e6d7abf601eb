//! How are whole numbers kept in few bits, each at a place that is computed and not searched?
//!
//! A value is `min + raw * step`; `raw` takes `width` bits. `u64::MAX` ("open", "never",
//! "none") may stand for itself as the one raw value after the largest, so that it does not
//! widen the others. Equal values take no bits at all.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | width | u8 | 0 to 56, or 64: a value never spans more than 8 bytes | [`Packed::open`] |
//! | has top, zero | u8, u16 | 0 or 1 | [`Packed::open`] |
//! | count | u32 | up to 2^30 + 1; the bits end inside the section | [`Packed::open`] |
//! | min, step, top raw | u64 each | sums checked at every read | [`Packed::get`] |
//! | bits, lowest first, then 8 zero bytes | ceil(count * width / 8) + 8 | - | - |

use crate::error::SegmentError;
use crate::format::bytes::{Put, Take, index};
use crate::format::{Section, SectionSink};
use crate::kernels::bytes;
use crate::limits::ROWS_MAX;

type Result<T> = std::result::Result<T, SegmentError>;

const HEADER_BYTES: usize = 32;
const _: () = assert!(HEADER_BYTES == 1 + 1 + 2 + 4 + 8 + 8 + 8);
/// Zero bytes after the bits: the last value is read with one load of eight bytes.
const PAD_BYTES: u64 = 8;
const _: () = assert!(PAD_BYTES == bytes::PAD_BYTES as u64);
/// Widest value that one load of eight bytes holds at any bit of its first byte.
const WIDTH_ANY_MAX: u8 = 56;

/// Writes a column.
///
/// # Errors
/// The sink's.
pub(crate) fn write_packed(sink: &mut dyn SectionSink, values: &[u64]) -> Result<()> {
    let shape = Shape::of(values);
    let mut out = Vec::with_capacity(1 << 16);
    out.put_u8(shape.width);
    out.put_u8(u8::from(shape.top.is_some()));
    out.put_u16(0);
    let count = u32::try_from(values.len())
        .map_err(|_| SegmentError::Limit("2^32 values in a column".into()))?;
    out.put_u32(count);
    out.put_u64(shape.min);
    out.put_u64(shape.step);
    out.put_u64(shape.top.unwrap_or(0));
    debug_assert_eq!(out.len(), HEADER_BYTES);
    if shape.width > 0 {
        pack(sink, &mut out, values, &shape)?;
        out.put_u64(0);
    }
    sink.write(&out)
}

fn pack(
    sink: &mut dyn SectionSink,
    out: &mut Vec<u8>,
    values: &[u64],
    shape: &Shape,
) -> Result<()> {
    let (mut held, mut held_bits) = (0_u128, 0_u32);
    for value in values {
        held |= u128::from(shape.raw(*value)) << held_bits;
        held_bits += u32::from(shape.width);
        if held_bits >= u64::BITS {
            let [low, high] = halves(held);
            out.put_u64(low);
            held = u128::from(high);
            held_bits -= u64::BITS;
        }
        if out.len() >= 1 << 16 {
            sink.write(out)?;
            out.clear();
        }
    }
    let left = held_bits.div_ceil(8) as usize;
    out.put(&held.to_le_bytes()[..left]);
    Ok(())
}

/// Low and high half.
fn halves(value: u128) -> [u64; 2] {
    let bytes = value.to_le_bytes();
    let (halves, _) = bytes.as_chunks();
    [0, 1].map(|half| u64::from_le_bytes(halves[half]))
}

/// What all values of a column have in common.
#[derive(Debug)]
struct Shape {
    min: u64,
    step: u64,
    top: Option<u64>,
    width: u8,
}

impl Shape {
    fn of(values: &[u64]) -> Self {
        let finite = || values.iter().copied().filter(|value| *value != u64::MAX);
        let has_top = values.contains(&u64::MAX);
        let Some(min) = finite().min() else {
            // Only tops, or nothing: a constant.
            return Self {
                min: if has_top { u64::MAX } else { 0 },
                step: 1,
                top: None,
                width: 0,
            };
        };
        let step = step_of(finite(), min);
        let raw_max = finite().max().map_or(0, |max| (max - min) / step);
        let top = if has_top {
            raw_max.checked_add(1)
        } else {
            None
        };
        // Without room for a top the column is 64 bits wide and holds it as it is.
        if has_top && top.is_none() {
            return Self {
                min: 0,
                step: 1,
                top: None,
                width: 64,
            };
        }
        let bits = u64::BITS - top.unwrap_or(raw_max).leading_zeros();
        let width = u8::try_from(bits).expect("64 bits at most");
        Self {
            min,
            step,
            top,
            width: if width > WIDTH_ANY_MAX { 64 } else { width },
        }
    }

    fn raw(&self, value: u64) -> u64 {
        match self.top {
            Some(top) if value == u64::MAX => top,
            _ if self.step == 1 => value - self.min,
            _ => (value - self.min) / self.step,
        }
    }
}

/// The largest number that divides the distance of every value from the least one; 1 where all
/// are equal.
fn step_of(values: impl Iterator<Item = u64>, min: u64) -> u64 {
    let mut step = 0;
    for value in values {
        step = gcd(step, value - min);
        if step == 1 {
            break;
        }
    }
    step.max(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A column as its readers see it.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    section: Section,
    bits_at: u64,
    count: u32,
    width: u8,
    min: u64,
    step: u64,
    top: Option<u64>,
}

impl Packed {
    /// Opens the column at `at`; also gives the offset behind it.
    ///
    /// # Errors
    /// `Corrupt` where a field is out of its range or the bits leave the section.
    pub(crate) fn open(section: &Section, at: u64) -> Result<(Self, u64)> {
        let header = section.get(at, HEADER_BYTES)?;
        let mut take = Take::new(section, at, &header);
        let (width, has_top) = (take.u8()?, take.u8()?);
        take.u16()?;
        let count = take.u32()?;
        let (min, step, top) = (take.u64()?, take.u64()?, take.u64()?);
        if (width > WIDTH_ANY_MAX && width != 64) || has_top > 1 || count > ROWS_MAX + 1 {
            return Err(section.corrupt(
                at,
                format!("column of width {width}, top {has_top}, count {count}"),
            ));
        }
        let bits_at = at + HEADER_BYTES as u64;
        let bits = u64::from(count) * u64::from(width);
        let bytes = if width == 0 {
            0
        } else {
            bits.div_ceil(8) + PAD_BYTES
        };
        let end = bits_at + bytes;
        if end > section.len() {
            return Err(section.corrupt(at, format!("column ends at {end} of {}", section.len())));
        }
        let top = (has_top == 1).then_some(top);
        Ok((
            Self {
                section: section.clone(),
                bits_at,
                count,
                width,
                min,
                step,
                top,
            },
            end,
        ))
    }

    /// Opens the only column of a section, which must have `count` values.
    ///
    /// # Errors
    /// As [`Packed::open`].
    pub(crate) fn open_counted(section: &Section, at: u64, count: u32) -> Result<(Self, u64)> {
        let (column, end) = Self::open(section, at)?;
        if column.count != count {
            return Err(section.corrupt(
                at,
                format!("column of {} values, expected {count}", column.count),
            ));
        }
        Ok((column, end))
    }

    /// Values.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The value at `at`.
    ///
    /// # Errors
    /// `Corrupt` where `at` is outside, a checksum fails or the value overflows.
    pub(crate) fn get(&self, at: u32) -> Result<u64> {
        if at >= self.count {
            let message = format!("value {at} asked for in a column of {}", self.count);
            return Err(self.section.corrupt(self.bits_at, message));
        }
        if self.width == 0 {
            return Ok(self.min);
        }
        let bit = u64::from(at) * u64::from(self.width);
        let word = self.section.word(self.bits_at + bit / 8)?;
        let raw = (word >> (bit % 8)) & (u64::MAX >> (64 - u32::from(self.width)));
        if self.top == Some(raw) {
            return Ok(u64::MAX);
        }
        raw.checked_mul(self.step)
            .and_then(|offset| self.min.checked_add(offset))
            .ok_or_else(|| {
                self.section
                    .corrupt(self.bits_at + bit / 8, format!("value {at} overflows"))
            })
    }

    /// Calls `each` with the values at `range`, in order: about a nanosecond a value.
    ///
    /// # Errors
    /// As [`Packed::get`].
    pub(crate) fn for_each(
        &self,
        range: std::ops::Range<u32>,
        mut each: impl FnMut(u64),
    ) -> Result<()> {
        let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else {
            return Ok(());
        };
        if last >= self.count {
            let message = format!("value {last} asked for in a column of {}", self.count);
            return Err(self.section.corrupt(self.bits_at, message));
        }
        if self.width == 0 {
            range.for_each(|_| each(self.min));
            return Ok(());
        }
        let mask = u64::MAX >> (64 - u32::from(self.width));
        let largest = mask.checked_mul(self.step);
        if self.top.is_some() || largest.is_none_or(|most| most.checked_add(self.min).is_none()) {
            for at in range {
                each(self.get(at)?);
            }
            return Ok(());
        }
        let width = u64::from(self.width);
        let first = u64::from(range.start) * width / 8;
        let bytes = u64::from(last) * width / 8 - first + 8;
        // A column inside a section that is in memory or bounded by its file.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = self.section.get(self.bits_at + first, bytes)?;
        let mut bit = u64::from(range.start) * width - first * 8;
        for _ in range {
            let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
            let word = bytes[at..].first_chunk().copied().unwrap_or_default();
            let raw = u64::from_le_bytes(word) >> (bit % 8) & mask;
            each(self.min + raw * self.step);
            bit += width;
        }
        Ok(())
    }

    /// All values as a byte each, 255 for a larger one, where they are so narrow that they need
    /// not be looked at one by one. `None` where they are not, or may be above `most`.
    ///
    /// # Errors
    /// As [`Packed::get`].
    pub(crate) fn all_bytes(&self, most: u64) -> Result<Option<Box<[u8]>>> {
        let width = u32::from(self.width);
        let widest = 1_u64.checked_shl(width).map_or(u64::MAX, |end| end - 1);
        let is_plain = (1..=bytes::WIDTH_MAX).contains(&width)
            && self.step == 1
            && self.top.is_none()
            && self.min.checked_add(widest).is_some_and(|end| end <= most);
        if !is_plain {
            return Ok(None);
        }
        let len = (index(self.count) * width as usize).div_ceil(8) + bytes::PAD_BYTES;
        let bits = self.section.get(self.bits_at, len)?;
        let mut out = vec![0; index(self.count)];
        bytes::unpack(&bits, width, self.min, &mut out);
        Ok(Some(out.into()))
    }

    /// The value at `at`, at most u32.
    ///
    /// # Errors
    /// As [`Packed::get`].
    pub(crate) fn get_u32(&self, at: u32) -> Result<u32> {
        let value = self.get(at)?;
        u32::try_from(value).map_err(|_| {
            self.section.corrupt(
                self.bits_at,
                format!("value {at} is {value}, more than 32 bits"),
            )
        })
    }

    /// Damage in this column.
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> SegmentError {
        self.section.corrupt(self.bits_at, message)
    }

    /// First position in `range` whose value does not satisfy `before`; values for which it
    /// holds come first.
    ///
    /// # Errors
    /// As [`Packed::get`].
    pub(crate) fn partition_point(
        &self,
        range: std::ops::Range<u32>,
        mut before: impl FnMut(u64) -> bool,
    ) -> Result<u32> {
        partition_point(range, |at| self.get(at).map(&mut before))
    }
}

/// First position in `range` for which `before` is false; it must hold for a prefix.
///
/// # Errors
/// Those of `before`.
pub(crate) fn partition_point(
    range: std::ops::Range<u32>,
    mut before: impl FnMut(u32) -> Result<bool>,
) -> Result<u32> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// As [`partition_point`]; steps double from the start, for a point that is near it.
///
/// # Errors
/// Those of `before`.
pub(crate) fn gallop_point(
    range: std::ops::Range<u32>,
    mut before: impl FnMut(u32) -> Result<bool>,
) -> Result<u32> {
    let (mut low, mut step) = (range.start, 1_u32);
    while step <= range.end - low && before(low + step - 1)? {
        low += step;
        step = step.saturating_mul(2);
    }
    partition_point(low..range.end.min(low.saturating_add(step)), before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::VecSink;

    fn round_trip(values: &[u64]) -> usize {
        let mut sink = VecSink::default();
        sink.write(&[1, 2, 3]).expect("memory");
        write_packed(&mut sink, values).expect("memory");
        let bytes = sink.bytes.len() - 3;
        let section = Section::in_memory("columns", sink.bytes);
        let count = u32::try_from(values.len()).expect("small");
        let (column, end) = Packed::open_counted(&section, 3, count).expect("whole");
        assert_eq!(end, section.len());
        let back: Vec<u64> = (0..count)
            .map(|at| column.get(at).expect("inside"))
            .collect();
        assert_eq!(back, values);
        for range in [
            0..count,
            0..count / 2,
            count / 3..count,
            1..1,
            count / 2..count / 2 + 1,
        ] {
            if range.end > count {
                continue;
            }
            let mut read = Vec::new();
            column
                .for_each(range.clone(), |value| read.push(value))
                .expect("inside");
            assert_eq!(read, values[range.start as usize..range.end as usize]);
        }
        assert!(column.for_each(0..count + 1, |_| ()).is_err());
        assert!(column.get(count).is_err());
        let most = values.iter().copied().max().unwrap_or(0).saturating_mul(2);
        if let Some(read) = column.all_bytes(most).expect("inside") {
            let capped = values
                .iter()
                .map(|value| u8::try_from(*value).unwrap_or(255));
            assert_eq!(*read, *capped.collect::<Vec<_>>());
        }
        bytes
    }

    #[test]
    fn equal_values_take_no_bits() {
        assert_eq!(round_trip(&[7; 1000]), HEADER_BYTES);
        assert_eq!(round_trip(&[u64::MAX; 1000]), HEADER_BYTES);
        assert_eq!(round_trip(&[]), HEADER_BYTES);
    }

    #[test]
    fn narrow_values_are_read_as_bytes_and_others_are_not() {
        let open = |values: &[u64]| {
            let mut sink = VecSink::default();
            write_packed(&mut sink, values).expect("memory");
            let section = Section::in_memory("columns", sink.bytes);
            Packed::open(&section, 0).expect("whole").0
        };
        let read = |values: &[u64], most| open(values).all_bytes(most).expect("inside");
        let lengths = [3, 300, 17, 254, 255, 256, 9, 8, 7, 1];
        let bytes = [3, 255, 17, 254, 255, 255, 9, 8, 7, 1];
        assert_eq!(read(&lengths, 600).as_deref(), Some(&bytes[..]));
        assert_eq!(read(&lengths, 511), None, "9 bits over 1 may be more");
        assert_eq!(read(&[1, 1 << 14, 1 << 15], u64::MAX), None, "wide");
        assert_eq!(read(&[10, 20, 30], u64::MAX), None, "a step");
        assert_eq!(read(&[1, 2, u64::MAX], u64::MAX), None, "a top");
        assert_eq!(read(&[5, 5], u64::MAX), None, "no bits");
    }

    #[test]
    fn a_common_step_and_a_top_save_bits() {
        let seconds: Vec<u64> = (0..64)
            .map(|i| 1_700_000_000_000_000 + i * 1_000_000)
            .collect();
        assert_eq!(round_trip(&seconds), HEADER_BYTES + 64 * 6 / 8 + 8);
        let mut with_top = seconds;
        with_top[3] = u64::MAX;
        assert_eq!(round_trip(&with_top), HEADER_BYTES + 64 * 7 / 8 + 8);
    }

    proptest! {
        #[test]
        fn any_values_come_back(
            values in prop_oneof![
                prop::collection::vec(any::<u64>(), 0..50),
                prop::collection::vec(prop_oneof![Just(u64::MAX), Just(u64::MAX - 1), Just(0), 0..9_u64], 0..50),
                prop::collection::vec((0..1000_u64).prop_map(|v| v * 3600 + 17), 0..300),
                (0_u32..63).prop_flat_map(|bits| prop::collection::vec(0..(2_u64 << bits), 1..40)),
            ]
        ) {
            round_trip(&values);
        }

        #[test]
        fn a_point_is_found_from_both_ends(start in 0_u32..50, len in 0_u32..200, place in 0_u32..300) {
            let range = start..start + len;
            let expected = place.clamp(range.start, range.end);
            let before = |at: u32| Ok(at < place);
            prop_assert_eq!(partition_point(range.clone(), before).expect("sound"), expected);
            prop_assert_eq!(gallop_point(range, before).expect("sound"), expected);
        }

        #[test]
        fn hostile_columns_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), width in 0_u8..70) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = width;
            }
            let section = Section::in_memory("columns", bytes);
            if let Ok((column, _)) = Packed::open(&section, 0) {
                let mut got = Vec::new();
                for at in 0..column.count().min(9) {
                    got.extend(column.get(at).ok());
                }
                let mut read = Vec::new();
                if column.for_each(0..column.count().min(9), |value| read.push(value)).is_ok() {
                    prop_assert_eq!(read, got);
                }
                let _ = column.all_bytes(u64::MAX);
            }
        }
    }
}
