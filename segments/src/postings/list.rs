//! Where are the blocks of one list, and what is in them?

use std::borrow::Cow;

use bitpacking::{BitPacker, BitPacker4x};

use super::format::{
    BLOCK_LEN, BLOCK_RANKS, ENTRY_BYTES, Entry, HEADER_BYTES, ListPlace, WIDTH_MAX, u32_at,
};
use super::short::{self, SHORT_BYTES_MAX};
use crate::error::SegmentError;
use crate::format::Section;

type Result<T> = std::result::Result<T, SegmentError>;

/// The posting lists of one segment.
#[derive(Debug)]
pub(crate) struct PostingLists {
    postings: Section,
    skip: Section,
    /// Rows of the segment.
    rows: u32,
}

impl PostingLists {
    /// Sections `postings` and `postings_skip` of a segment with `rows` rows.
    pub(crate) fn new(postings: Section, skip: Section, rows: u32) -> Self {
        Self {
            postings,
            skip,
            rows,
        }
    }

    /// The list of a term with `df` postings.
    pub(super) fn open(&self, df: u32, place: ListPlace) -> Result<List<'_>> {
        if df == 0 || df > self.rows {
            let message = format!("a term in {df} of {} rows", self.rows);
            return Err(self.postings.corrupt(0, message));
        }
        let blocks = df / BLOCK_RANKS;
        let mut list = List {
            lists: self,
            df,
            blocks,
            place,
            data: (0, 0),
            skip: Cow::Borrowed(&[]),
        };
        let sound = match place {
            ListPlace::One { .. } => df == 1,
            ListPlace::Short { offset, bytes } => {
                list.data = (offset, bytes);
                bytes as usize <= SHORT_BYTES_MAX && df < BLOCK_RANKS
            }
            ListPlace::Long { skip_offset } => {
                let bytes = HEADER_BYTES + blocks as usize * ENTRY_BYTES;
                list.skip = self.skip.get(skip_offset, bytes)?;
                list.data = self.read_header(skip_offset, &list.skip)?;
                df >= BLOCK_RANKS
            }
        };
        if !sound {
            return Err(self
                .postings
                .corrupt(0, format!("{df} postings stored as {place:?}")));
        }
        Ok(list)
    }

    /// Offset and length of the list's bytes in `postings`.
    fn read_header(&self, skip_offset: u64, header: &[u8]) -> Result<(u64, u32)> {
        if header[12..HEADER_BYTES] != [0; 4] {
            // The flag for block bounds is among them: format 0 has none.
            let message = format!(
                "list header ends in {:?}, expected zeros",
                &header[12..HEADER_BYTES]
            );
            return Err(self.skip.corrupt(skip_offset, message));
        }
        let offset = u64::from(u32_at(header, 0)) | u64::from(u32_at(header, 4)) << 32;
        Ok((offset, u32_at(header, 8)))
    }
}

/// One term's list. Blocks 0 to `blocks` are whole; block `blocks` is the tail, maybe empty.
#[derive(Debug)]
pub(super) struct List<'a> {
    lists: &'a PostingLists,
    /// Postings: 1 to the segment's rows.
    pub(super) df: u32,
    /// Whole blocks.
    pub(super) blocks: u32,
    place: ListPlace,
    /// Offset and length of the list's bytes in section `postings`.
    data: (u64, u32),
    /// Header and one entry a whole block; empty for a short list.
    skip: Cow<'a, [u8]>,
}

impl<'a> List<'a> {
    /// Last row of a whole block. `index` is below `blocks`.
    pub(super) fn last_row(&self, index: u32) -> u32 {
        u32_at(&self.skip, entry_at(index))
    }

    /// First block from `from` on that may hold `row` or a later one; `blocks`, the tail,
    /// where no whole block does.
    ///
    /// Steps double, since most calls look a little ahead.
    pub(super) fn seek(&self, from: u32, row: u32) -> u32 {
        let (mut low, mut step) = (from, 1);
        while low + step <= self.blocks && self.last_row(low + step - 1) < row {
            low += step;
            step *= 2;
        }
        let mut high = self.blocks.min(low + step - 1);
        // All blocks below `low` end before `row`; block `high` does not, or is the tail.
        while low < high {
            let middle = low.midpoint(high);
            if self.last_row(middle) < row {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Postings of block `index`, the tail included.
    pub(super) fn block_len(&self, index: u32) -> usize {
        if index < self.blocks {
            BLOCK_LEN
        } else {
            (self.df % BLOCK_RANKS) as usize
        }
    }

    /// Rows of a whole block.
    pub(super) fn block_rows(&self, index: u32, rows: &mut [u32; BLOCK_LEN]) -> Result<()> {
        let (entry, bytes) = self.block(index)?;
        let before = self.row_before(index);
        let packed = &bytes[..entry.row_bytes() as usize];
        BitPacker4x::new().decompress_strictly_sorted(before, packed, rows, entry.row_width);
        let end = self.lists.rows;
        if !ascend(before, rows) || rows[BLOCK_LEN - 1] != entry.last_row || entry.last_row >= end {
            let message = format!(
                "rows of block {index} do not ascend to {} below {end}",
                entry.last_row
            );
            return Err(self.corrupt(entry.offset, message));
        }
        Ok(())
    }

    /// Frequencies of a whole block.
    pub(super) fn block_freqs(&self, index: u32, freqs: &mut [u32; BLOCK_LEN]) -> Result<()> {
        let (entry, bytes) = self.block(index)?;
        if entry.freq_width == 0 {
            freqs.fill(1);
            return Ok(());
        }
        let packed = &bytes[entry.row_bytes() as usize..];
        BitPacker4x::new().decompress(packed, freqs, entry.freq_width);
        for freq in freqs {
            // Only a frequency of 2^32, which no writer has, would wrap.
            *freq = freq.saturating_add(1);
        }
        Ok(())
    }

    /// Rows and frequencies of the tail: the first `block_len(blocks)` places are set.
    pub(super) fn tail(
        &self,
        rows: &mut [u32; BLOCK_LEN],
        freqs: &mut [u32; BLOCK_LEN],
    ) -> Result<()> {
        let len = self.block_len(self.blocks);
        let (rows, freqs) = (&mut rows[..len], &mut freqs[..len]);
        if let ListPlace::One { row, freq } = self.place {
            if row >= self.lists.rows || freq == 0 {
                let message = format!("the one posting is row {row}, frequency {freq}");
                return Err(self.corrupt(0, message));
            }
            (rows[0], freqs[0]) = (row, freq);
            return Ok(());
        }
        let from = match self.blocks.checked_sub(1) {
            Some(last) => {
                let entry = self.entry(last);
                entry.offset.checked_add(entry.block_bytes())
            }
            None => Some(0),
        };
        let place = from.and_then(|from| Some((from, self.data.1.checked_sub(from)?)));
        let Some((from, bytes)) = place.filter(|place| place.1 as usize <= SHORT_BYTES_MAX) else {
            return Err(self.corrupt(
                0,
                format!("tail ends at {} bytes, starts at {from:?}", self.data.1),
            ));
        };
        let bytes = self.bytes(from, bytes)?;
        let decoded = short::decode(
            self.row_before(self.blocks),
            &bytes,
            self.lists.rows,
            rows,
            freqs,
        );
        decoded.ok_or_else(|| {
            self.corrupt(
                from,
                format!("not {len} postings below row {}", self.lists.rows),
            )
        })
    }

    /// Entry and bytes of a whole block, their lengths checked against each other.
    fn block(&self, index: u32) -> Result<(Entry, Cow<'a, [u8]>)> {
        let entry = self.entry(index);
        let end = entry.offset.checked_add(entry.block_bytes());
        let sound = entry.row_width <= WIDTH_MAX
            && entry.freq_width <= WIDTH_MAX
            && entry.bounds == 0
            && end.is_some_and(|end| end <= self.data.1);
        if !sound {
            let message = format!(
                "block {index} of {} bytes of postings is {entry:?}",
                self.data.1
            );
            return Err(self.lists.skip.corrupt(self.skip_offset(index), message));
        }
        Ok((entry, self.bytes(entry.offset, entry.block_bytes())?))
    }

    fn entry(&self, index: u32) -> Entry {
        Entry::decode(&self.skip[entry_at(index)..entry_at(index) + ENTRY_BYTES])
    }

    fn row_before(&self, index: u32) -> Option<u32> {
        index.checked_sub(1).map(|before| self.last_row(before))
    }

    /// `len` bytes at `offset` of the list.
    fn bytes(&self, offset: u32, len: u32) -> Result<Cow<'a, [u8]>> {
        let at = self.data.0.checked_add(u64::from(offset));
        let Some(at) = at else {
            return Err(self.corrupt(offset, "list starts past the section"));
        };
        self.lists.postings.get(at, len as usize)
    }

    fn skip_offset(&self, index: u32) -> u64 {
        match self.place {
            ListPlace::Long { skip_offset } => skip_offset + entry_at(index) as u64,
            _ => 0,
        }
    }

    /// Damage at `offset` of the list.
    fn corrupt(&self, offset: u32, message: impl Into<String>) -> SegmentError {
        self.lists
            .postings
            .corrupt(self.data.0.saturating_add(u64::from(offset)), message)
    }
}

/// Offset of a block's entry in a list's skip data.
fn entry_at(index: u32) -> usize {
    HEADER_BYTES + index as usize * ENTRY_BYTES
}

/// Whether the rows ascend strictly, the first after `before`. Without a branch a row, so
/// that it costs little beside the decoding.
fn ascend(before: Option<u32>, rows: &[u32; BLOCK_LEN]) -> bool {
    let starts = before.is_none_or(|before| before < rows[0]);
    let steps = rows[..BLOCK_LEN - 1].iter().zip(&rows[1..]);
    steps.fold(starts, |sound, (a, b)| sound & (a < b))
}
