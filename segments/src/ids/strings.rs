//! How is a list of names kept small and still read at any position?
//!
//! Names stand in groups of 16. Inside a group each one shares a prefix with the one before;
//! a UUID in its usual form takes 16 bytes.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | a name: shared prefix * 2, rest length, rest | varints + bytes | name up to the list's limit, UTF-8 | [`Names::get`] |
//! | a UUID: 1, its bytes | varint + 16 | - | [`Names::get`] |
//! | group offsets, then the end of the last | packed column | ascending, before the column | [`Names::get`] |
//! | offset of that column, count, zero | u64, u32, u32 | inside the section; no name takes less than two bytes | [`Names::open`] |

use std::borrow::Cow;
use std::ops::Range;

use crate::columns::{Packed, write_packed};
use crate::error::SegmentError;
use crate::format::bytes::{Put, Take};
use crate::format::{Section, SectionSink};
use crate::scope_dir::shared_prefix;

type Result<T> = std::result::Result<T, SegmentError>;

const GROUP_LEN: u32 = 16;
const TRAILER_BYTES: u64 = 16;
const UUID_BYTES: usize = 36;
const UUID_PACKED_BYTES: usize = 16;
/// Least bytes of a name: what it shares, and how much follows.
const NAME_BYTES_MIN: u64 = 2;
/// Where a UUID has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Writes the section.
///
/// # Errors
/// The sink's.
pub(crate) fn write_names<'a>(
    sink: &mut dyn SectionSink,
    names: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let (mut offsets, mut count, mut out, mut before) = (Vec::new(), 0_u32, Vec::new(), "");
    for name in names {
        if count.is_multiple_of(GROUP_LEN) {
            offsets.push(sink.position() + out.len() as u64);
            before = "";
        }
        if let Some(uuid) = pack_uuid(name) {
            out.put_varint(1);
            out.put(&uuid);
        } else {
            let shared = shared_prefix(before.as_bytes(), name.as_bytes());
            out.put_varint(shared as u64 * 2);
            out.put_prefixed(&name.as_bytes()[shared..]);
        }
        if out.len() >= 1 << 14 {
            sink.write(&out)?;
            out.clear();
        }
        (count, before) = (count + 1, name);
    }
    sink.write(&out)?;
    let column_at = sink.position();
    offsets.push(column_at);
    write_packed(sink, &offsets)?;
    let mut trailer = Vec::new();
    trailer.put_u64(column_at);
    trailer.put_u32(count);
    trailer.put_u32(0);
    sink.write(&trailer)
}

/// A list of names.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    section: Section,
    offsets: Packed,
    count: u32,
    bytes_max: usize,
}

impl Names {
    /// Opens the section; no name is longer than `bytes_max`.
    ///
    /// # Errors
    /// `Corrupt` where the offsets do not fit the section.
    pub(crate) fn open(section: &Section, bytes_max: usize) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES);
        let trailer = section.get(at, 16)?;
        let mut take = Take::new(section, at, &trailer);
        let (column_at, count) = (take.u64()?, take.u32()?);
        if column_at > at {
            return Err(take.corrupt(format!("offsets at {column_at} of {at}")));
        }
        // With the ids this bounds the rows of a segment by the bytes of its file, and so all
        // that is ever allocated or walked by rows: columns of equal values take no bytes.
        if u64::from(count) * NAME_BYTES_MIN > column_at {
            return Err(take.corrupt(format!("{count} names in {column_at} bytes")));
        }
        let (offsets, end) =
            Packed::open_counted(section, column_at, count.div_ceil(GROUP_LEN) + 1)?;
        if end != at {
            return Err(section.corrupt(end, "bytes left over"));
        }
        Ok(Self {
            section: section.clone(),
            offsets,
            count,
            bytes_max,
        })
    }

    /// Names.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The name at a position.
    ///
    /// # Errors
    /// `Corrupt` outside the list, or where the group is damaged.
    pub(crate) fn get(&self, at: u32) -> Result<String> {
        if at >= self.count {
            return Err(self.section.corrupt(
                0,
                format!("name {at} asked for in a list of {}", self.count),
            ));
        }
        let (start, bytes) = self.group(at / GROUP_LEN)?;
        let mut take = Take::new(&self.section, start, &bytes);
        let mut name = Group::default();
        for _ in 0..=at % GROUP_LEN {
            self.take_name(&mut take, &mut name)?;
        }
        String::from_utf8(name.into_text()).map_err(|_| take.corrupt("a name is not UTF-8"))
    }

    /// Where the bytes of a group start, and the bytes.
    fn group(&self, group: u32) -> Result<(u64, Cow<'_, [u8]>)> {
        let (start, end) = (self.offsets.get(group)?, self.offsets.get(group + 1)?);
        let len = end
            .checked_sub(start)
            .and_then(|len| usize::try_from(len).ok());
        // A name takes at most two varints of ten bytes more than itself.
        let len_max = (self.bytes_max + 20) * GROUP_LEN as usize;
        let Some(len) = len.filter(|len| *len <= len_max) else {
            return Err(self
                .section
                .corrupt(start, format!("a group from {start} to {end}")));
        };
        Ok((start, self.section.get(start, len)?))
    }

    fn take_name<'a>(&self, take: &mut Take<'a>, name: &mut Group<'a>) -> Result<()> {
        let head = take.varint()?;
        if head == 1 {
            name.uuid = Some(take.bytes(UUID_PACKED_BYTES)?);
            return Ok(());
        }
        let shared = usize::try_from(head / 2).unwrap_or(usize::MAX);
        if head % 2 != 0 || shared > name.len() {
            return Err(take.corrupt(format!("a name starts with {head}")));
        }
        let rest = take.prefixed("rest of a name", self.bytes_max - shared)?;
        name.replace(shared, rest);
        Ok(())
    }
}

/// Reads the names of a list one after the other: each group once.
#[derive(Debug)]
pub(crate) struct NameWalk<'a> {
    names: &'a Names,
    /// Positions of the names that are at hand.
    at_hand: Range<u32>,
    /// They, one behind the other.
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl<'a> NameWalk<'a> {
    pub(crate) fn new(names: &'a Names) -> Self {
        Self {
            names,
            at_hand: 0..0,
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Appends the name at a position.
    ///
    /// # Errors
    /// As [`Names::get`].
    pub(crate) fn push(&mut self, at: u32, out: &mut String) -> Result<()> {
        if !self.at_hand.contains(&at) {
            self.enter(at)?;
        }
        let place = (at - self.at_hand.start) as usize;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        let name = std::str::from_utf8(&self.text[start..self.ends[place]]);
        let damaged = |_| {
            self.names
                .section
                .corrupt(0, format!("name {at} is not UTF-8"))
        };
        out.push_str(name.map_err(damaged)?);
        Ok(())
    }

    /// Reads the group of a position.
    fn enter(&mut self, at: u32) -> Result<()> {
        let names = self.names;
        if at >= names.count {
            let message = format!("name {at} asked for in a list of {}", names.count);
            return Err(names.section.corrupt(0, message));
        }
        let first = at - at % GROUP_LEN;
        let (start, bytes) = names.group(at / GROUP_LEN)?;
        let mut take = Take::new(&names.section, start, &bytes);
        self.at_hand = 0..0;
        self.text.clear();
        self.ends.clear();
        let mut name = Group::default();
        for _ in first..names.count.min(first + GROUP_LEN) {
            names.take_name(&mut take, &mut name)?;
            name.push_to(&mut self.text);
            self.ends.push(self.text.len());
        }
        self.at_hand = first..names.count.min(first + GROUP_LEN);
        Ok(())
    }
}

/// The name that was read last. A UUID becomes text only where that is asked for.
#[derive(Default)]
struct Group<'a> {
    text: Vec<u8>,
    /// In place of the text.
    uuid: Option<&'a [u8]>,
}

impl Group<'_> {
    fn len(&self) -> usize {
        match self.uuid {
            Some(_) => UUID_BYTES,
            None => self.text.len(),
        }
    }

    /// The next name, which shares `shared` bytes, at most all, with this one.
    fn replace(&mut self, shared: usize, rest: &[u8]) {
        if let Some(uuid) = self.uuid.take() {
            self.text.clear();
            if shared > 0 {
                unpack_uuid(uuid, &mut self.text);
            }
        }
        self.text.truncate(shared);
        self.text.extend_from_slice(rest);
    }

    fn push_to(&self, text: &mut Vec<u8>) {
        match self.uuid {
            Some(uuid) => unpack_uuid(uuid, text),
            None => text.extend_from_slice(&self.text),
        }
    }

    fn into_text(mut self) -> Vec<u8> {
        if let Some(uuid) = self.uuid {
            self.text.clear();
            unpack_uuid(uuid, &mut self.text);
        }
        self.text
    }
}

/// The bytes of a UUID in lower case with hyphens; `None` for every other text.
fn pack_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != UUID_BYTES || HYPHENS.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut packed = [0; 16];
    let mut digits = text
        .iter()
        .enumerate()
        .filter(|(at, _)| !HYPHENS.contains(at))
        .map(|(_, byte)| *byte);
    for byte in &mut packed {
        *byte = digit(digits.next()?)? << 4 | digit(digits.next()?)?;
    }
    Some(packed)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Appends the text of a packed UUID.
fn unpack_uuid(packed: &[u8], text: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = [b'-'; UUID_BYTES];
    let places = (0..UUID_BYTES).filter(|at| !HYPHENS.contains(at));
    let digits = packed.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (place, digit) in places.zip(digits) {
        out[place] = DIGITS[usize::from(digit)];
    }
    text.extend_from_slice(&out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::VecSink;

    fn list(names: &[String]) -> Section {
        let mut sink = VecSink::default();
        write_names(&mut sink, names.iter().map(String::as_str)).expect("memory");
        Section::in_memory("ids", sink.bytes)
    }

    #[test]
    fn a_uuid_takes_seventeen_bytes_and_any_other_form_stays_text() {
        let uuid = "0190163d-8694-739b-aea5-966c26f8ad91";
        let mut text = Vec::new();
        unpack_uuid(&pack_uuid(uuid).expect("a UUID"), &mut text);
        assert_eq!(text, uuid.as_bytes());
        for other in [
            uuid.to_uppercase(),
            uuid.replace('-', "_"),
            format!("{uuid}0"),
            "é".repeat(18),
        ] {
            assert_eq!(pack_uuid(&other), None, "{other}");
        }
        let names: Vec<String> = (0..64)
            .map(|i| format!("0190163d-8694-739b-aea5-966c26f8ad{i:02x}"))
            .collect();
        assert_eq!(
            list(&names).len(),
            64 * 17 + 32 + 5 + 8 + 16 - 5 + (5_u64 * 3).div_ceil(8)
        );
    }

    #[test]
    fn more_names_than_their_bytes_can_hold_are_refused() {
        let mut sink = VecSink::default();
        // A column of equal offsets takes no bytes, however many it claims.
        write_packed(&mut sink, &[0; 3]).expect("memory");
        let mut bytes = sink.bytes;
        let groups = (1_u32 << 29).div_ceil(GROUP_LEN) + 1;
        bytes[4..8].copy_from_slice(&groups.to_le_bytes());
        bytes.put_u64(0);
        bytes.put_u32(1 << 29);
        bytes.put_u32(0);
        let refused = Names::open(&Section::in_memory("ids", bytes), 1024);
        let message = refused.expect_err("too many").to_string();
        assert!(message.contains("536870912 names in 0 bytes"), "{message}");
    }

    proptest! {
        #[test]
        fn any_names_come_back(names in prop::collection::vec(prop_oneof![
            "[a-c]{1,5}", "\\PC{1,9}", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        ], 0..70)) {
            let names_read = Names::open(&list(&names), 1024).expect("whole");
            for (at, name) in names.iter().enumerate() {
                prop_assert_eq!(&names_read.get(u32::try_from(at).expect("small")).expect("inside"), name);
            }
            let mut walk = NameWalk::new(&names_read);
            for (at, name) in names.iter().enumerate().rev().chain(names.iter().enumerate()) {
                let mut read = "x".to_owned();
                walk.push(u32::try_from(at).expect("small"), &mut read).expect("inside");
                prop_assert_eq!(&read[1..], name);
            }
            prop_assert!(walk.push(u32::try_from(names.len()).expect("small"), &mut String::new()).is_err());
            prop_assert!(names_read.get(u32::try_from(names.len()).expect("small")).is_err());
        }
    }
}
