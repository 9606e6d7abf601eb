//! How do rows become compressed blocks?

use std::io;

use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::RAW_BYTES_MAX;
use crate::columns::write_packed;
use crate::error::SegmentError;
use crate::format::bytes::Put;
use crate::format::{SectionSink, VecSink};

type Result<T> = std::result::Result<T, SegmentError>;

/// With a dictionary level 2 makes blocks of this size as small as level 3, and quicker. Without
/// one, which is after a flush, all is soon written again, and level 1 is quickest.
const LEVEL_WITH_DICTIONARY: i32 = 2;
const LEVEL_WITHOUT: i32 = 1;
/// A block is closed at this size. One random row costs little time in a small block, and a
/// dictionary makes up for what small blocks cannot repeat; without one they are larger. Half as
/// much takes 3 % more room, twice as much 1.5 % less.
const RAW_BYTES_WITH_DICTIONARY: usize = 2 << 10;
const RAW_BYTES_WITHOUT: usize = 4 << 10;

/// Writes one pair of text sections.
pub(crate) struct TextWriter {
    compressor: Compressor<'static>,
    raw_bytes: usize,
    raw: Vec<u8>,
    compressed: Vec<u8>,
    rows: u64,
    first_rows: Vec<u64>,
    offsets: Vec<u64>,
    raw_lens: Vec<u64>,
}

impl TextWriter {
    /// A writer of blocks that refer to `dictionary`.
    ///
    /// # Errors
    /// Out of memory inside the compressor.
    pub(crate) fn new(dictionary: Option<&[u8]>) -> Result<Self> {
        let (level, raw_bytes) = match dictionary {
            Some(_) => (LEVEL_WITH_DICTIONARY, RAW_BYTES_WITH_DICTIONARY),
            None => (LEVEL_WITHOUT, RAW_BYTES_WITHOUT),
        };
        let compressor = new_compressor(level, dictionary.unwrap_or(&[]))
            .map_err(|e| SegmentError::io("prepare compression of", "text", e))?;
        Ok(Self {
            compressor,
            raw_bytes,
            raw: Vec::new(),
            compressed: Vec::new(),
            rows: 0,
            first_rows: Vec::new(),
            offsets: Vec::new(),
            raw_lens: Vec::new(),
        })
    }

    /// Appends the next row.
    ///
    /// # Errors
    /// The sink's, or the compressor's.
    pub(crate) fn push(&mut self, sink: &mut dyn SectionSink, row: &[u8]) -> Result<()> {
        // A row that does not fit gets a block of its own, so others stay cheap to read.
        if !self.raw.is_empty() && self.raw.len() + row.len() > self.raw_bytes {
            self.close_block(sink)?;
        }
        if self.raw.is_empty() {
            self.first_rows.push(self.rows);
        }
        self.raw.put_prefixed(row);
        self.rows += 1;
        if self.raw.len() >= self.raw_bytes {
            self.close_block(sink)?;
        }
        Ok(())
    }

    /// Writes what is left; gives the bytes of the index.
    ///
    /// # Errors
    /// As [`TextWriter::push`].
    pub(crate) fn finish(mut self, sink: &mut dyn SectionSink) -> Result<Vec<u8>> {
        if !self.raw.is_empty() {
            self.close_block(sink)?;
        }
        self.offsets.push(sink.position());
        let mut index = VecSink::default();
        for column in [&self.first_rows, &self.offsets, &self.raw_lens] {
            write_packed(&mut index, column)?;
        }
        Ok(index.bytes)
    }

    fn close_block(&mut self, sink: &mut dyn SectionSink) -> Result<()> {
        assert!(
            self.raw.len() <= RAW_BYTES_MAX,
            "limits bound a row, rows are checked before the log"
        );
        self.offsets.push(sink.position());
        self.raw_lens.push(self.raw.len() as u64);
        self.compressed.clear();
        self.compressed
            .reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        self.compressor
            .compress_to_buffer(&self.raw, &mut self.compressed)
            .map_err(|e| SegmentError::io("compress", "text", e))?;
        let smaller = self.compressed.len() < self.raw.len();
        sink.write(if smaller { &self.compressed } else { &self.raw })?;
        self.raw.clear();
        Ok(())
    }
}

/// A compressor whose blocks do not name their dictionary: the segment does, once, and a name
/// would take four bytes of each.
fn new_compressor(level: i32, dictionary: &[u8]) -> io::Result<Compressor<'static>> {
    let mut compressor = Compressor::with_dictionary(level, dictionary)?;
    compressor.set_parameter(CParameter::DictIdFlag(false))?;
    Ok(compressor)
}
