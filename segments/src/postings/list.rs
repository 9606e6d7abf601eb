//! Where are the blocks of one list, and what is in them?

use std::borrow::Cow;

use bitpacking::{BitPacker, BitPacker4x};

use super::format::{
    BLOCK_LEN, BLOCK_RANKS, ENTRY_BYTES, Entry, HEADER_BYTES, Header, ListPlace, TermInfo,
    WIDTH_MAX, u32_at, widen,
};
use super::short::{self, SHORT_BYTES_MAX};
use crate::error::SegmentError;
use crate::format::Section;
use crate::read::TermBounds;

type Result<T> = std::result::Result<T, SegmentError>;

/// Widest gap of which 128 cannot lead from a row of a segment past 2^32.
const STEADY_WIDTH_MAX: u8 = 24;
const _: () =
    assert!(crate::limits::ROWS_MAX as u64 + ((BLOCK_LEN as u64) << STEADY_WIDTH_MAX) <= 1 << 32);

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

    /// Brings near the first bytes of a list, without waiting.
    pub(crate) fn bring_near(&self, place: ListPlace) {
        match place {
            ListPlace::One { .. } => {}
            ListPlace::Short { offset, bytes } => self.postings.prefetch(offset, bytes as usize),
            ListPlace::Long { skip_offset } => {
                self.skip.prefetch(skip_offset, HEADER_BYTES + ENTRY_BYTES);
            }
        }
    }

    /// Rows of the segment.
    #[inline]
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// Postings of a long list, and what bounds them.
    ///
    /// # Errors
    /// Damage in the header.
    pub(crate) fn read_header(&self, skip_offset: u64) -> Result<(u32, TermBounds)> {
        let header = self.header(skip_offset, &self.skip.get(skip_offset, HEADER_BYTES)?)?;
        Ok((header.df, header.bounds()))
    }

    /// The bounds of each block of a long list and of its tail; none for other lists.
    ///
    /// # Errors
    /// Damage in the skip data.
    pub(crate) fn block_bounds(&self, info: &TermInfo) -> Result<Vec<TermBounds>> {
        let ListPlace::Long { skip_offset } = info.place else {
            return Ok(Vec::new());
        };
        let list = self.open_long(info.df, skip_offset)?;
        let bounds = (0..=list.blocks).map(|index| {
            let (freq, length) = list.bounds(index);
            TermBounds::one(freq, length)
        });
        Ok(bounds.collect())
    }

    /// A list of blocks with `df` postings.
    pub(super) fn open_long(&self, df: u32, skip_offset: u64) -> Result<List<'_>> {
        let blocks = df / BLOCK_RANKS;
        let bytes = HEADER_BYTES + blocks as usize * ENTRY_BYTES;
        let skip = self.skip.get(skip_offset, bytes)?;
        let header = self.header(skip_offset, &skip)?;
        if header.df != df || blocks == 0 || df > self.rows {
            let message = format!("{df} postings in {} rows, {header:?}", self.rows);
            return Err(self.skip.corrupt(skip_offset, message));
        }
        Ok(List {
            lists: self,
            df,
            blocks,
            data: (header.offset, header.bytes),
            tail_bounds: widen(header.tail),
            skip_offset,
            skip,
        })
    }

    /// The bytes of a short list of `df` postings.
    pub(super) fn open_short(&self, df: u32, offset: u64, bytes: u32) -> Result<Cow<'_, [u8]>> {
        if df == 0 || df > self.rows || df >= BLOCK_RANKS || bytes as usize > SHORT_BYTES_MAX {
            let message = format!("{df} postings in {} rows and {bytes} bytes", self.rows);
            return Err(self.short_corrupt(offset, message));
        }
        self.postings.get(offset, bytes as usize)
    }

    /// Damage in a short list, or in the one posting of an entry.
    pub(super) fn short_corrupt(&self, offset: u64, message: impl Into<String>) -> SegmentError {
        self.postings.corrupt(offset, message)
    }

    fn header(&self, skip_offset: u64, bytes: &[u8]) -> Result<Header> {
        let header = bytes.first_chunk().and_then(Header::decode);
        header.ok_or_else(|| {
            let message = format!("{:?} is no list header", &bytes[..HEADER_BYTES]);
            self.skip.corrupt(skip_offset, message)
        })
    }
}

/// One term's list of blocks. Blocks 0 to `blocks` are whole; block `blocks` is the tail, maybe
/// empty.
#[derive(Debug)]
pub(super) struct List<'a> {
    lists: &'a PostingLists,
    /// Postings: 128 to the segment's rows.
    pub(super) df: u32,
    /// Whole blocks.
    pub(super) blocks: u32,
    /// Offset and length of the list's bytes in section `postings`.
    data: (u64, u32),
    tail_bounds: (u32, u32),
    skip_offset: u64,
    /// Header and one entry a whole block.
    skip: Cow<'a, [u8]>,
}

/// A whole block of a list.
#[derive(Debug)]
pub(super) struct Block<'a> {
    index: u32,
    entry: Entry,
    bytes: Cow<'a, [u8]>,
}

impl<'a> List<'a> {
    /// Last row of a whole block. `index` is below `blocks`.
    #[inline]
    pub(super) fn last_row(&self, index: u32) -> u32 {
        u32_at(&self.skip, entry_at(index))
    }

    /// First block from `from` on that may hold `row` or a later one; `blocks`, the tail,
    /// where no whole block does.
    ///
    /// Steps double, since most calls look a little ahead.
    #[inline]
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

    /// Rows of the segment.
    #[inline]
    pub(super) fn rows_end(&self) -> u32 {
        self.lists.rows
    }

    /// Postings of block `index`, the tail included.
    #[inline]
    pub(super) fn block_len(&self, index: u32) -> usize {
        if index < self.blocks {
            BLOCK_LEN
        } else {
            (self.df % BLOCK_RANKS) as usize
        }
    }

    /// What bounds block `index`, the tail included: a frequency and a length.
    #[inline]
    pub(super) fn bounds(&self, index: u32) -> (u32, u32) {
        if index < self.blocks {
            widen(self.entry(index).bounds)
        } else {
            self.tail_bounds
        }
    }

    /// Rows and frequencies of a whole block.
    pub(super) fn read_block(
        &self,
        index: u32,
        rows: &mut [u32; BLOCK_LEN],
        freqs: &mut [u32; BLOCK_LEN],
    ) -> Result<()> {
        let (entry, bytes) = self.block(index)?;
        self.unpack_rows(index, &entry, &bytes, rows)?;
        unpack_freqs(&entry, &bytes, freqs);
        Ok(())
    }

    /// Rows of a whole block.
    pub(super) fn block_rows(&self, index: u32, rows: &mut [u32; BLOCK_LEN]) -> Result<()> {
        let (entry, bytes) = self.block(index)?;
        self.unpack_rows(index, &entry, &bytes, rows)
    }

    /// Frequencies of a whole block.
    pub(super) fn block_freqs(&self, index: u32, freqs: &mut [u32; BLOCK_LEN]) -> Result<()> {
        let (entry, bytes) = self.block(index)?;
        unpack_freqs(&entry, &bytes, freqs);
        Ok(())
    }

    /// As [`List::block_rows`], of a block that was opened.
    #[inline]
    pub(super) fn read_rows(&self, block: &Block<'_>, rows: &mut [u32; BLOCK_LEN]) -> Result<()> {
        self.unpack_rows(block.index, &block.entry, &block.bytes, rows)
    }

    /// As [`List::block_freqs`], of a block that was opened; but true, and nothing set, where
    /// every one is 1.
    #[inline]
    pub(super) fn read_freqs(block: &Block<'_>, freqs: &mut [u32; BLOCK_LEN]) -> bool {
        let once = block.entry.freq_width == 0;
        if !once {
            unpack_freqs(&block.entry, &block.bytes, freqs);
        }
        once
    }

    /// Finds a whole block, of which more than one thing is read.
    #[inline]
    pub(super) fn open_block(&self, index: u32) -> Result<Block<'a>> {
        let (entry, bytes) = self.block(index)?;
        Ok(Block {
            index,
            entry,
            bytes,
        })
    }

    /// Frequency at one place of a whole block.
    pub(super) fn block_freq(&self, index: u32, place: usize) -> Result<u32> {
        let (entry, bytes) = self.block(index)?;
        let packed = &bytes[entry.row_bytes() as usize..];
        Ok(unpack_one(packed, entry.freq_width, place).saturating_add(1))
    }

    /// Rows and frequencies of the tail: the first `block_len(blocks)` places are set.
    pub(super) fn tail(
        &self,
        rows: &mut [u32; BLOCK_LEN],
        freqs: &mut [u32; BLOCK_LEN],
    ) -> Result<()> {
        let len = self.block_len(self.blocks);
        let (rows, freqs) = (&mut rows[..len], &mut freqs[..len]);
        let last = self.entry(self.blocks - 1);
        let from = last.offset.checked_add(last.block_bytes());
        let place = from.and_then(|from| Some((from, self.data.1.checked_sub(from)?)));
        let Some((from, bytes)) = place.filter(|place| place.1 as usize <= SHORT_BYTES_MAX) else {
            return Err(self.corrupt(
                0,
                format!("tail ends at {} bytes, starts at {from:?}", self.data.1),
            ));
        };
        let bytes = self.bytes(from, bytes)?;
        let end = self.lists.rows;
        let decoded = short::decode(self.row_before(self.blocks), &bytes, end, rows, freqs);
        match decoded {
            Some(_) => Ok(()),
            None => Err(self.corrupt(from, format!("not {len} postings below row {end}"))),
        }
    }

    fn unpack_rows(
        &self,
        index: u32,
        entry: &Entry,
        bytes: &[u8],
        rows: &mut [u32; BLOCK_LEN],
    ) -> Result<()> {
        let (before, end) = (self.row_before(index), self.lists.rows);
        let packed = &bytes[..entry.row_bytes() as usize];
        BitPacker4x::new().decompress_strictly_sorted(before, packed, rows, entry.row_width);
        // Gaps are 1 or more: rows ascend unless their sum passes 2^32.
        let ascends = entry.row_width <= STEADY_WIDTH_MAX || ascend(before, rows);
        if before.is_some_and(|before| before >= end)
            || rows[BLOCK_LEN - 1] != entry.last_row
            || entry.last_row >= end
            || !ascends
        {
            let message = format!(
                "rows of block {index} do not ascend to {} below {end}",
                entry.last_row
            );
            return Err(self.corrupt(entry.offset, message));
        }
        Ok(())
    }

    /// Entry and bytes of a whole block, their lengths checked against each other.
    #[inline]
    fn block(&self, index: u32) -> Result<(Entry, Cow<'a, [u8]>)> {
        let entry = self.entry(index);
        let end = entry.offset.checked_add(entry.block_bytes());
        let sound = entry.row_width <= WIDTH_MAX
            && entry.freq_width <= WIDTH_MAX
            && end.is_some_and(|end| end <= self.data.1);
        if !sound {
            let message = format!(
                "block {index} of {} bytes of postings is {entry:?}",
                self.data.1
            );
            let at = self.skip_offset + entry_at(index) as u64;
            return Err(self.lists.skip.corrupt(at, message));
        }
        Ok((entry, self.bytes(entry.offset, entry.block_bytes())?))
    }

    #[inline]
    fn entry(&self, index: u32) -> Entry {
        let entry = self.skip[entry_at(index)..].first_chunk();
        Entry::decode(entry.expect("one entry a whole block was asked for"))
    }

    #[inline]
    fn row_before(&self, index: u32) -> Option<u32> {
        index.checked_sub(1).map(|before| self.last_row(before))
    }

    /// `len` bytes at `offset` of the list.
    #[inline]
    fn bytes(&self, offset: u32, len: u32) -> Result<Cow<'a, [u8]>> {
        // An offset of 40 bits: no overflow.
        let at = self.data.0 + u64::from(offset);
        self.lists.postings.get(at, len as usize)
    }

    /// Damage at `offset` of the list.
    fn corrupt(&self, offset: u32, message: impl Into<String>) -> SegmentError {
        self.lists
            .postings
            .corrupt(self.data.0 + u64::from(offset), message)
    }
}

/// Offset of a block's entry in a list's skip data.
#[inline]
fn entry_at(index: u32) -> usize {
    HEADER_BYTES + index as usize * ENTRY_BYTES
}

fn unpack_freqs(entry: &Entry, bytes: &[u8], freqs: &mut [u32; BLOCK_LEN]) {
    if entry.freq_width == 0 {
        freqs.fill(1);
        return;
    }
    let packed = &bytes[entry.row_bytes() as usize..];
    BitPacker4x::new().decompress(packed, freqs, entry.freq_width);
    if entry.freq_width < WIDTH_MAX {
        freqs.iter_mut().for_each(|freq| *freq += 1);
    } else {
        // Only a frequency of 2^32, which no writer has, would wrap.
        freqs
            .iter_mut()
            .for_each(|freq| *freq = freq.saturating_add(1));
    }
}

/// The value at one place of a block of `width` bits a value. Values go round four lanes of
/// words, so that a lane holds every fourth value in consecutive bits.
fn unpack_one(packed: &[u8], width: u8, place: usize) -> u32 {
    let width = u32::from(width);
    let (lane, bit) = (place % 4, (place / 4) * width as usize);
    let word = |at: usize| {
        let at = (at * 4 + lane) * 4;
        packed.get(at..at + 4).map_or(0, |word| u32_at(word, 0))
    };
    let (first, shift) = (bit / 32, bit % 32);
    let both = u64::from(word(first)) | u64::from(word(first + 1)) << 32;
    let value = both >> shift & ((1_u64 << width) - 1);
    u32::try_from(value).expect("at most 32 bits")
}

/// Whether the rows ascend strictly, the first after `before`. Without a branch a row, so
/// that it costs little beside the decoding.
fn ascend(before: Option<u32>, rows: &[u32; BLOCK_LEN]) -> bool {
    let starts = before.is_none_or(|before| before < rows[0]);
    let steps = rows[..BLOCK_LEN - 1].iter().zip(&rows[1..]);
    steps.fold(starts, |sound, (a, b)| sound & (a < b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn one_value_is_that_of_the_whole_block(
            width in 0_u8..=32, seed in any::<u64>(),
        ) {
            let packer = BitPacker4x::new();
            let mut state = seed;
            let values = [(); BLOCK_LEN].map(|()| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let word = (state >> 32) & ((1_u64 << width) - 1);
                u32::try_from(word).expect("32 bits")
            });
            let mut packed = vec![0; usize::from(width) * 16];
            packer.compress(&values, &mut packed, width);
            for (place, value) in values.iter().enumerate() {
                prop_assert_eq!(unpack_one(&packed, width, place), *value);
            }
        }
    }
}
