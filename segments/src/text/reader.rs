//! How is one row's text found and decompressed?

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use zstd::zstd_safe::DCtx;

use super::{RAW_BYTES_MAX, TextDictionary};
use crate::columns::Packed;
use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::Take;

type Result<T> = std::result::Result<T, SegmentError>;

thread_local! {
    /// Decompression state is large and holds nothing between calls.
    static DECOMPRESSION: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Largest raw block that is kept for the next call, bytes.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// One pair of text sections.
#[derive(Debug)]
pub(crate) struct TextBlocks {
    section: Section,
    first_rows: Packed,
    offsets: Packed,
    raw_lens: Packed,
    dictionary: Option<TextDictionary>,
    /// The block decompressed last: those who read rows one after the other ask for it again.
    last_block: Mutex<Option<(u32, Arc<[u8]>)>>,
}

impl TextBlocks {
    /// Opens the pair.
    ///
    /// # Errors
    /// `Corrupt` where the columns of the index do not agree.
    pub(crate) fn open(
        section: &Section,
        index: &Section,
        dictionary: Option<TextDictionary>,
    ) -> Result<Self> {
        let (first_rows, at) = Packed::open(index, 0)?;
        let blocks = first_rows.count();
        let (offsets, at) = Packed::open_counted(index, at, blocks.saturating_add(1))?;
        let (raw_lens, end) = Packed::open_counted(index, at, blocks)?;
        if end != index.len() || offsets.get(blocks)? != section.len() {
            return Err(index.corrupt(end, "the index does not end where its section does"));
        }
        Ok(Self {
            section: section.clone(),
            first_rows,
            offsets,
            raw_lens,
            dictionary,
            last_block: Mutex::new(None),
        })
    }

    /// Blocks of compressed text.
    pub(crate) fn blocks(&self) -> u32 {
        self.first_rows.count()
    }

    /// Reads the bytes of a row with `read`.
    ///
    /// # Errors
    /// Damage in index or block, and the errors of `read`.
    pub(crate) fn row<T>(&self, row: u32, read: impl FnOnce(Take<'_>) -> Result<T>) -> Result<T> {
        let block = self.block_of(row)?;
        let offset = self.offsets.get(block)?;
        let raw = self.kept_block(block)?;
        let mut take = Take::new(&self.section, offset, &raw);
        for _ in self.first_rows.get(block)?..u64::from(row) {
            take.prefixed("length of a row", RAW_BYTES_MAX)?;
        }
        let bytes = take.prefixed("length of a row", RAW_BYTES_MAX)?;
        // Offsets inside compressed text mean nothing in the file: errors name the block.
        read(Take::new(&self.section, offset, bytes))
    }

    /// The block that holds a row.
    pub(super) fn block_of(&self, row: u32) -> Result<u32> {
        let after = self
            .first_rows
            .partition_point(0..self.blocks(), |first| first <= u64::from(row))?;
        after
            .checked_sub(1)
            .ok_or_else(|| self.first_rows.corrupt(format!("no block holds row {row}")))
    }

    /// First row of a block.
    pub(super) fn first_row(&self, block: u32) -> Result<u32> {
        self.first_rows.get_u32(block)
    }

    /// Reads `bytes` of a block; errors name where it starts.
    pub(super) fn take<'a>(&'a self, block: u32, bytes: &'a [u8]) -> Result<Take<'a>> {
        Ok(Take::new(&self.section, self.offsets.get(block)?, bytes))
    }

    /// A block's raw bytes, from the last call where it read the same block.
    fn kept_block(&self, block: u32) -> Result<Arc<[u8]>> {
        let lock = || {
            self.last_block
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((kept, raw)) = &*lock()
            && *kept == block
        {
            return Ok(Arc::clone(raw));
        }
        let mut raw = Vec::new();
        self.read_block(block, &mut raw)?;
        let raw: Arc<[u8]> = raw.into();
        if raw.len() <= KEPT_BYTES_MAX {
            *lock() = Some((block, Arc::clone(&raw)));
        }
        Ok(raw)
    }

    /// Replaces `raw` by a block's raw bytes.
    pub(super) fn read_block(&self, block: u32, raw: &mut Vec<u8>) -> Result<()> {
        let (start, end) = (self.offsets.get(block)?, self.offsets.get(block + 1)?);
        let raw_len = self.raw_lens.get(block)?;
        let raw_len = usize::try_from(raw_len)
            .ok()
            .filter(|len| *len <= RAW_BYTES_MAX);
        let len = end
            .checked_sub(start)
            .and_then(|len| usize::try_from(len).ok());
        let (Some(raw_len), Some(len)) = (raw_len, len) else {
            return Err(self.section.corrupt(
                start,
                format!("block {block} has a length beyond {RAW_BYTES_MAX}"),
            ));
        };
        // Bounds the read too: no block is kept larger than it was.
        if len > raw_len {
            return Err(self.section.corrupt(
                start,
                format!("block {block} takes {len} bytes for {raw_len}"),
            ));
        }
        let bytes = self.section.get(start, len)?;
        raw.clear();
        if len == raw_len {
            raw.extend_from_slice(&bytes);
            return Ok(());
        }
        raw.resize(raw_len, 0);
        let written = DECOMPRESSION.with_borrow_mut(|context| match &self.dictionary {
            Some(dictionary) => {
                context.decompress_using_ddict(&mut raw[..], &bytes, dictionary.get())
            }
            None => context.decompress(&mut raw[..], &bytes),
        });
        match written {
            Ok(written) if written == raw_len => Ok(()),
            Ok(written) => Err(self.section.corrupt(
                start,
                format!("block {block} gives {written} bytes, not {raw_len}"),
            )),
            Err(code) => {
                let reason = zstd::zstd_safe::get_error_name(code);
                Err(self.section.corrupt(
                    start,
                    format!("block {block} does not decompress: {reason}"),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TextWriter, train};
    use super::*;
    use crate::format::VecSink;

    fn blocks(rows: &[Vec<u8>], dictionary: Option<&[u8]>) -> TextBlocks {
        let mut sink = VecSink::default();
        let mut writer = TextWriter::new(dictionary).expect("memory");
        for row in rows {
            writer.push(&mut sink, row).expect("memory");
        }
        let index = Section::in_memory("detailed_index", writer.finish(&mut sink).expect("memory"));
        let dictionary =
            dictionary.map(|bytes| Section::in_memory("text_dictionary", bytes.to_vec()));
        let dictionary = dictionary.map(|section| TextDictionary::open(&section).expect("whole"));
        TextBlocks::open(
            &Section::in_memory("detailed", sink.bytes),
            &index,
            dictionary,
        )
        .expect("whole")
    }

    fn check(blocks: &TextBlocks, rows: &[Vec<u8>]) {
        for (at, row) in rows.iter().enumerate() {
            let at = u32::try_from(at).expect("small");
            let read = blocks
                .row(at, |mut take| Ok(take.bytes(take.left())?.to_vec()))
                .expect("intact");
            assert_eq!(&read, row);
        }
    }

    #[test]
    fn rows_of_all_sizes_come_back() {
        let sizes = [0, 1, 5000, 300, 300, 0, 2000, 3000, 1 << 20, 7];
        let rows: Vec<Vec<u8>> = sizes
            .iter()
            .map(|size| (0_u32..*size).map(|i| i.to_le_bytes()[0] % 13).collect())
            .collect();
        check(&blocks(&rows, None), &rows);
        check(&blocks(&rows[..1], None), &rows[..1]);
    }

    #[test]
    fn a_dictionary_makes_small_blocks_smaller() {
        let rows: Vec<Vec<u8>> = (0..20_000_u64)
            .map(|i| {
                format!(
                    "the user asked about order {i} and was told to wait {} days",
                    i * 7919 % 31
                )
                .into()
            })
            .collect();
        let text_bytes = rows.iter().map(|row| row.len() as u64).sum();
        let dictionary = train(&rows, text_bytes).expect("enough text");
        assert!(dictionary.len() as u64 * 32 <= text_bytes);
        let with = blocks(&rows, Some(&dictionary));
        check(&with, &rows);
        assert!(train(&rows[..100], 5000).is_none(), "too little text");
    }

    #[test]
    fn a_declared_size_beyond_the_limit_allocates_nothing() {
        let mut index = VecSink::default();
        for column in [[0].as_slice(), &[0, 4], &[u64::MAX / 2]] {
            crate::columns::write_packed(&mut index, column).expect("memory");
        }
        let section = Section::in_memory("detailed", vec![1, 2, 3, 4]);
        let blocks = TextBlocks::open(
            &section,
            &Section::in_memory("detailed_index", index.bytes),
            None,
        )
        .expect("whole");
        assert!(blocks.row(0, |_| Ok(())).is_err());
    }
}
