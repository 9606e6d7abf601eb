//! How do posting lists get into a segment?

use bitpacking::{BitPacker, BitPacker4x};

use super::bounds::{Front, byte_pair};
use super::format::{BLOCK_LEN, BytePair, Entry, HEADER_BYTES, Header, ONE_FREQ_MAX, WIDTH_MAX};
use super::short;
use crate::error::SegmentError;
use crate::format::SectionSink;

/// Writes posting lists one after the other; keeps their skip data until the end.
#[derive(Debug, Default)]
pub(crate) struct PostingsWriter {
    /// Section `postings_skip`.
    skip: Vec<u8>,
    /// The long list being written.
    scratch: Vec<u8>,
    /// Short lists that are not yet written.
    short: Vec<u8>,
}

/// What a list became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// The only posting: nothing was written.
    One {
        /// Its row.
        row: u32,
        /// Its frequency, at most [`ONE_FREQ_MAX`].
        freq: u32,
        /// The row's length.
        length: u32,
    },
    /// Less than 128 postings, behind the short lists that wait for
    /// [`PostingsWriter::flush_short`].
    Short {
        /// Postings.
        df: u32,
        /// Their bytes.
        bytes: u32,
        /// What bounds them.
        bounds: BytePair,
    },
    /// 128 postings or more.
    Long {
        /// Offset of the header in section `postings_skip`.
        skip_offset: u64,
    },
}

impl PostingsWriter {
    /// Writes one list. A long one goes to `sink`, the sink of section `postings`, at once; a
    /// short one waits. Rows ascend strictly, frequencies are 1 or more, lengths are those of
    /// the rows, and there is at least one posting.
    pub(crate) fn add(
        &mut self,
        sink: &mut dyn SectionSink,
        rows: &[u32],
        freqs: &[u32],
        lengths: &[u32],
    ) -> Result<Added, SegmentError> {
        assert!(
            !rows.is_empty() && rows.len() == freqs.len() && rows.len() == lengths.len(),
            "a posting is a frequency in a row, which has a length"
        );
        assert!(freqs.iter().all(|freq| *freq > 0), "a posting occurs");
        debug_assert!(rows.is_sorted_by(|a, b| a < b), "rows ascend");
        if let ([row], [freq], [length]) = (rows, freqs, lengths)
            && *freq <= ONE_FREQ_MAX
        {
            return Ok(Added::One {
                row: *row,
                freq: *freq,
                length: *length,
            });
        }
        if rows.len() < BLOCK_LEN {
            let start = self.short.len();
            short::encode(None, rows, freqs, &mut self.short);
            return Ok(Added::Short {
                df: list_bytes(rows.len())?,
                bytes: list_bytes(self.short.len() - start)?,
                bounds: byte_pair(pairs(freqs, lengths)),
            });
        }
        let added = self.add_long(sink.position(), rows, freqs, lengths)?;
        sink.write(&self.scratch)?;
        Ok(added)
    }

    /// Writes the short lists that wait; gives the offset of the first in section `postings`.
    pub(crate) fn flush_short(&mut self, sink: &mut dyn SectionSink) -> Result<u64, SegmentError> {
        let offset = sink.position();
        sink.write(&self.short)?;
        self.short.clear();
        Ok(offset)
    }

    /// The bytes of section `postings_skip`.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.skip
    }

    fn add_long(
        &mut self,
        offset: u64,
        rows: &[u32],
        freqs: &[u32],
        lengths: &[u32],
    ) -> Result<Added, SegmentError> {
        self.scratch.clear();
        let header_at = self.skip.len();
        self.skip.resize(header_at + HEADER_BYTES, 0);
        let (row_blocks, tail_rows) = rows.as_chunks::<BLOCK_LEN>();
        let (freq_blocks, tail_freqs) = freqs.as_chunks::<BLOCK_LEN>();
        let (length_blocks, tail_lengths) = lengths.as_chunks::<BLOCK_LEN>();
        let mut before = None;
        let blocks = row_blocks.iter().zip(freq_blocks).zip(length_blocks);
        for ((rows, freqs), lengths) in blocks {
            self.add_block(before, rows, freqs, byte_pair(pairs(freqs, lengths)))?;
            before = rows.last().copied();
        }
        short::encode(before, tail_rows, tail_freqs, &mut self.scratch);
        let header = Header {
            offset,
            bytes: list_bytes(self.scratch.len())?,
            df: list_bytes(rows.len())?,
            tail: byte_pair(pairs(tail_freqs, tail_lengths)),
            pairs: Front::of(pairs(freqs, lengths)).pairs(),
        };
        self.skip[header_at..header_at + HEADER_BYTES].copy_from_slice(&header.encode());
        Ok(Added::Long {
            skip_offset: header_at as u64,
        })
    }

    fn add_block(
        &mut self,
        before: Option<u32>,
        rows: &[u32; BLOCK_LEN],
        freqs: &[u32; BLOCK_LEN],
        bounds: BytePair,
    ) -> Result<(), SegmentError> {
        let packer = BitPacker4x::new();
        let freqs = freqs.map(|freq| freq - 1);
        let entry = Entry {
            last_row: rows[BLOCK_LEN - 1],
            offset: list_bytes(self.scratch.len())?,
            row_width: packer.num_bits_strictly_sorted(before, rows),
            freq_width: packer.num_bits(&freqs),
            bounds,
        };
        assert!(
            entry.row_width <= WIDTH_MAX && entry.freq_width <= WIDTH_MAX,
            "a u32 has 32 bits"
        );
        let start = self.scratch.len();
        let freqs_start = start + entry.row_bytes() as usize;
        self.scratch.resize(start + entry.block_bytes() as usize, 0);
        let out = &mut self.scratch[start..freqs_start];
        packer.compress_strictly_sorted(before, rows, out, entry.row_width);
        packer.compress(&freqs, &mut self.scratch[freqs_start..], entry.freq_width);
        self.skip.extend_from_slice(&entry.encode());
        Ok(())
    }
}

/// Frequency and length of each posting.
fn pairs(freqs: &[u32], lengths: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    freqs.iter().copied().zip(lengths.iter().copied())
}

fn list_bytes(len: usize) -> Result<u32, SegmentError> {
    u32::try_from(len).map_err(|_| {
        SegmentError::Limit("a term's postings pass 4 GiB; merge fewer rows at once".into())
    })
}
