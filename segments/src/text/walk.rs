//! How is the text of one row after the other read? A block is decompressed once.

use std::ops::Range;

use super::{RAW_BYTES_MAX, TextBlocks};
use crate::error::SegmentError;
use crate::format::bytes::Take;

type Result<T> = std::result::Result<T, SegmentError>;

/// A place among the rows of a pair of text sections.
#[derive(Debug)]
pub(crate) struct TextWalk<'a> {
    blocks: &'a TextBlocks,
    /// The block that is at hand; meaningless without rows.
    block: u32,
    /// Its rows.
    rows: Range<u32>,
    /// Its raw bytes.
    raw: Vec<u8>,
    /// Where the bytes of each of its rows lie in them.
    spans: Vec<Range<usize>>,
}

impl<'a> TextWalk<'a> {
    pub(crate) fn new(blocks: &'a TextBlocks) -> Self {
        Self {
            blocks,
            block: 0,
            rows: 0..0,
            raw: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// Appends the bytes of a row to `out` once `check` finds them sound.
    ///
    /// # Errors
    /// Damage in index or block, and the errors of `check`.
    pub(crate) fn push(
        &mut self,
        row: u32,
        check: impl FnOnce(Take<'_>) -> Result<()>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.rows.contains(&row) {
            self.enter(row)?;
        }
        let span = self.spans[(row - self.rows.start) as usize].clone();
        let bytes = &self.raw[span];
        check(self.blocks.take(self.block, bytes)?)?;
        out.extend_from_slice(bytes);
        Ok(())
    }

    /// Moves to the block of a row.
    fn enter(&mut self, row: u32) -> Result<()> {
        let next = self.block + 1;
        let is_next = row == self.rows.end && !self.rows.is_empty() && next < self.blocks.blocks();
        self.rows = 0..0;
        self.block = if is_next {
            next
        } else {
            self.blocks.block_of(row)?
        };
        self.blocks.read_block(self.block, &mut self.raw)?;
        let first = self.blocks.first_row(self.block)?;
        let mut take = self.blocks.take(self.block, &self.raw)?;
        self.spans.clear();
        while take.left() > 0 {
            let len = take.prefixed("length of a row", RAW_BYTES_MAX)?.len();
            let end = self.raw.len() - take.left();
            self.spans.push(end - len..end);
        }
        let rows = u32::try_from(self.spans.len()).unwrap_or(u32::MAX);
        let rows = first..first.saturating_add(rows);
        if !rows.contains(&row) {
            return Err(take.corrupt(format!("rows {rows:?} in a block that should hold {row}")));
        }
        self.rows = rows;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextWriter;
    use super::*;
    use crate::format::{Section, VecSink};

    #[test]
    fn rows_come_as_one_by_one_in_any_order() {
        let sizes = [0, 1, 5000, 300, 300, 0, 2000, 3000, 1 << 17, 7, 7, 7];
        let rows: Vec<Vec<u8>> = sizes
            .iter()
            .map(|size| (0_u32..*size).map(|i| i.to_le_bytes()[0] % 13).collect())
            .collect();
        let mut sink = VecSink::default();
        let mut writer = TextWriter::new(None).expect("memory");
        for row in &rows {
            writer.push(&mut sink, row).expect("memory");
        }
        let index = Section::in_memory("detailed_index", writer.finish(&mut sink).expect("memory"));
        let section = Section::in_memory("detailed", sink.bytes);
        let blocks = TextBlocks::open(&section, &index, None).expect("whole");
        let mut walk = TextWalk::new(&blocks);
        for at in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 2, 0, 5, 9, 10] {
            let mut read = Vec::new();
            let row = u32::try_from(at).expect("small");
            walk.push(row, |_| Ok(()), &mut read).expect("intact");
            assert_eq!(read, rows[at]);
        }
        assert!(walk.push(12, |_| Ok(()), &mut Vec::new()).is_err());
    }
}
