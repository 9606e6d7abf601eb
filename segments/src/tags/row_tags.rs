//! Which tag ordinals does a row carry? (Most rows have none to three.)

use std::borrow::Cow;

use super::format::{
    BLOCK_ROWS, BYTES_A_BIT, ENTRY_BYTES, TRAILER_BYTES, WIDTH_MAX, pack, packed_bytes, trailer,
    unpack, width_of,
};
use crate::error::SegmentError;
use crate::format::Section;
use crate::limits::TAGS_MAX;
use crate::postings::u32_at;

type Result<T> = std::result::Result<T, SegmentError>;

/// The bytes of section `row_tags`: row `i` has the next `counts[i]` of `ordinals`, which are
/// below `tags`.
pub(super) fn encode(counts: &[u32], ordinals: &[u32], tags: u32) -> Result<Vec<u8>> {
    let limit = |_| SegmentError::Limit("2^32 tags on the rows of a segment".into());
    let rows = u32::try_from(counts.len()).map_err(limit)?;
    let entries = u32::try_from(ordinals.len()).map_err(limit)?;
    let ordinal_width = width_of(tags.saturating_sub(1));
    let mut bytes = Vec::new();
    pack(ordinals, ordinal_width, &mut bytes);
    let counts_start = bytes.len();
    let mut directory = Vec::new();
    let mut before = 0_u32;
    for block in counts.chunks(BLOCK_ROWS as usize) {
        let width = width_of(block.iter().copied().max().unwrap_or(0));
        let offset = u32::try_from(bytes.len() - counts_start).map_err(limit)?;
        directory.extend_from_slice(&before.to_le_bytes());
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(&[width, 0, 0, 0]);
        let mut whole = [0; BLOCK_ROWS as usize];
        whole[..block.len()].copy_from_slice(block);
        pack(&whole, width, &mut bytes);
        before += block.iter().sum::<u32>();
    }
    assert_eq!(before, entries, "counts are counts of the ordinals");
    let counts_bytes = u32::try_from(bytes.len() - counts_start).map_err(limit)?;
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(&trailer([rows, entries, counts_bytes], ordinal_width));
    Ok(bytes)
}

/// Reads section `row_tags`.
#[derive(Debug)]
pub(super) struct RowTags {
    section: Section,
    rows: u32,
    tags: u32,
    entries: u32,
    ordinal_width: u8,
    /// Where the counts start; the ordinals come before.
    counts_start: u64,
    counts_bytes: u32,
}

impl RowTags {
    /// Opens the section of a segment with `rows` rows and `tags` tags.
    pub(super) fn open(section: Section, rows: u32, tags: u32) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES as u64);
        let found = section.get(at, TRAILER_BYTES)?;
        let (entries, counts_bytes) = (u32_at(&found, 4), u32_at(&found, 8));
        let ordinal_width = width_of(tags.saturating_sub(1));
        let expected = trailer([rows, entries, counts_bytes], ordinal_width);
        let counts_start = packed_bytes(u64::from(entries), ordinal_width);
        let directory = u64::from(rows.div_ceil(BLOCK_ROWS)) * ENTRY_BYTES as u64;
        let end = counts_start + u64::from(counts_bytes) + directory;
        if *found != expected || end != at {
            let message = format!("trailer is {found:?} at {at}, expected {expected:?} at {end}");
            return Err(section.corrupt(at, message));
        }
        drop(found);
        Ok(Self {
            section,
            rows,
            tags,
            entries,
            ordinal_width,
            counts_start,
            counts_bytes,
        })
    }

    /// Tag ordinals of a row, ascending.
    pub(super) fn ordinals(&self, row: u32) -> Result<Vec<u32>> {
        let mut ordinals = Vec::new();
        self.check(row)?;
        self.push_ordinals(row, self.place(row)?, &mut ordinals)?;
        Ok(ordinals)
    }

    fn check(&self, row: u32) -> Result<()> {
        if row < self.rows {
            return Ok(());
        }
        let message = format!("row {row} asked for, {} stored", self.rows);
        Err(self.section.corrupt(0, message))
    }

    /// Appends the `count` ordinals from `first` on, which are those of a row.
    fn push_ordinals(
        &self,
        row: u32,
        (first, count): (u32, u32),
        out: &mut Vec<u32>,
    ) -> Result<()> {
        // `place` checked that `first + count` is at most `entries`.
        let bit = u64::from(first) * u64::from(self.ordinal_width);
        let start = bit / 8;
        let end = packed_bytes(u64::from(first) + u64::from(count), self.ordinal_width);
        let len = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let bytes = self.section.get(start, len)?;
        let skip = usize::from(bit.to_le_bytes()[0] & 7);
        let before = out.len();
        out.extend((0..count as usize).map(|i| unpack(&bytes, skip, self.ordinal_width, i)));
        let ordinals = &out[before..];
        let sound = ordinals.is_sorted_by(|a, b| a < b)
            && ordinals.last().is_none_or(|last| *last < self.tags);
        if !sound {
            let message = format!("tags of row {row} are {ordinals:?} of {}", self.tags);
            return Err(self.section.corrupt(start, message));
        }
        Ok(())
    }

    /// Place of the row's first tag among all, and how many it has.
    fn place(&self, row: u32) -> Result<(u32, u32)> {
        let within = (row % BLOCK_ROWS) as usize;
        let (before, width, counts) = self.counts(row / BLOCK_ROWS)?;
        let sum: u64 = (0..within)
            .map(|i| u64::from(unpack(&counts, 0, width, i)))
            .sum();
        let first = u64::from(before) + sum;
        self.checked_place(row, first, unpack(&counts, 0, width, within))
    }

    /// Tags of all rows before a block of rows, and the packed counts of its rows.
    fn counts(&self, block: u32) -> Result<(u32, u8, Cow<'_, [u8]>)> {
        let counts_end = self.counts_start + u64::from(self.counts_bytes);
        let at = counts_end + u64::from(block) * ENTRY_BYTES as u64;
        let entry = self.section.get(at, ENTRY_BYTES)?;
        let (before, offset, width) = (u32_at(&entry, 0), u32_at(&entry, 4), entry[8]);
        let counts_at = self.counts_start + u64::from(offset);
        let counts_len = u32::from(width) * BYTES_A_BIT;
        if width > WIDTH_MAX
            || entry[9..] != [0; 3]
            || counts_at + u64::from(counts_len) > counts_end
        {
            return Err(self
                .section
                .corrupt(at, format!("directory entry is {entry:?}")));
        }
        let counts = self.section.get(counts_at, counts_len as usize)?;
        Ok((before, width, counts))
    }

    /// A row's place, if there are so many tags.
    fn checked_place(&self, row: u32, first: u64, count: u32) -> Result<(u32, u32)> {
        let fits = first + u64::from(count) <= u64::from(self.entries)
            && count <= self.tags
            && count as usize <= TAGS_MAX;
        let place = u32::try_from(first).ok().filter(|_| fits);
        let message = || {
            format!(
                "row {row} has {count} tags from {first} of {}",
                self.entries
            )
        };
        place
            .map(|first| (first, count))
            .ok_or_else(|| self.section.corrupt(self.counts_start, message()))
    }
}

/// Reads the tags of one row after the other: the counts of each block once.
#[derive(Debug)]
pub(super) struct RowTagsWalk<'a> {
    tags: &'a RowTags,
    /// The block whose places are at hand.
    block: Option<u32>,
    /// First tag of each of its rows, then the end.
    firsts: Vec<u64>,
}

impl<'a> RowTagsWalk<'a> {
    pub(super) fn new(tags: &'a RowTags) -> Self {
        Self {
            tags,
            block: None,
            firsts: Vec::new(),
        }
    }

    /// Appends the ordinals of a row's tags, ascending.
    pub(super) fn push(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()> {
        self.tags.check(row)?;
        let block = row / BLOCK_ROWS;
        if self.block != Some(block) {
            self.enter(block)?;
        }
        let within = (row % BLOCK_ROWS) as usize;
        let (first, end) = (self.firsts[within], self.firsts[within + 1]);
        let count = u32::try_from(end - first).unwrap_or(u32::MAX);
        let place = self.tags.checked_place(row, first, count)?;
        self.tags.push_ordinals(row, place, out)
    }

    fn enter(&mut self, block: u32) -> Result<()> {
        self.block = None;
        let (before, width, counts) = self.tags.counts(block)?;
        let mut first = u64::from(before);
        self.firsts.clear();
        self.firsts.push(first);
        self.firsts.extend((0..BLOCK_ROWS as usize).map(|within| {
            first += u64::from(unpack(&counts, 0, width, within));
            first
        }));
        self.block = Some(block);
        Ok(())
    }
}
