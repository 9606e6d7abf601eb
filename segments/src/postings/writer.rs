//! How do posting lists get into a segment?

use bitpacking::{BitPacker, BitPacker4x};

use super::format::{BLOCK_LEN, Entry, HEADER_BYTES, ListPlace, WIDTH_MAX};
use super::short;
use crate::error::SegmentError;
use crate::format::SectionSink;

/// Writes posting lists one after the other; keeps their skip data until the end.
#[derive(Debug, Default)]
pub(crate) struct PostingsWriter {
    /// Section `postings_skip`.
    skip: Vec<u8>,
    /// The list being written.
    scratch: Vec<u8>,
}

impl PostingsWriter {
    /// Writes one list to `sink`, the sink of section `postings`. Rows ascend strictly,
    /// frequencies are 1 or more, and there is at least one posting.
    pub(crate) fn add(
        &mut self,
        sink: &mut dyn SectionSink,
        rows: &[u32],
        freqs: &[u32],
    ) -> Result<ListPlace, SegmentError> {
        assert!(
            !rows.is_empty() && rows.len() == freqs.len(),
            "a posting is a row and a frequency"
        );
        assert!(freqs.iter().all(|freq| *freq > 0), "a posting occurs");
        debug_assert!(rows.is_sorted_by(|a, b| a < b), "rows ascend");
        if let ([row], [freq]) = (rows, freqs) {
            return Ok(ListPlace::One {
                row: *row,
                freq: *freq,
            });
        }
        self.scratch.clear();
        let offset = sink.position();
        let place = if rows.len() < BLOCK_LEN {
            short::encode(None, rows, freqs, &mut self.scratch);
            ListPlace::Short {
                offset,
                bytes: list_bytes(&self.scratch)?,
            }
        } else {
            self.add_long(offset, rows, freqs)?
        };
        sink.write(&self.scratch)?;
        Ok(place)
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
    ) -> Result<ListPlace, SegmentError> {
        let place = ListPlace::Long {
            skip_offset: self.skip.len() as u64,
        };
        let header = self.skip.len();
        self.skip.resize(header + HEADER_BYTES, 0);
        let (row_blocks, tail_rows) = rows.as_chunks::<BLOCK_LEN>();
        let (freq_blocks, tail_freqs) = freqs.as_chunks::<BLOCK_LEN>();
        let mut before = None;
        for (rows, freqs) in row_blocks.iter().zip(freq_blocks) {
            self.add_block(before, rows, freqs)?;
            before = rows.last().copied();
        }
        short::encode(before, tail_rows, tail_freqs, &mut self.scratch);
        let bytes = list_bytes(&self.scratch)?;
        self.skip[header..header + 8].copy_from_slice(&offset.to_le_bytes());
        self.skip[header + 8..header + 12].copy_from_slice(&bytes.to_le_bytes());
        Ok(place)
    }

    fn add_block(
        &mut self,
        before: Option<u32>,
        rows: &[u32; BLOCK_LEN],
        freqs: &[u32; BLOCK_LEN],
    ) -> Result<(), SegmentError> {
        let packer = BitPacker4x::new();
        let freqs = freqs.map(|freq| freq - 1);
        let entry = Entry {
            last_row: rows[BLOCK_LEN - 1],
            offset: list_bytes(&self.scratch)?,
            row_width: packer.num_bits_strictly_sorted(before, rows),
            freq_width: packer.num_bits(&freqs),
            bounds: 0,
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

fn list_bytes(list: &[u8]) -> Result<u32, SegmentError> {
    u32::try_from(list.len()).map_err(|_| {
        SegmentError::Limit("a term's postings pass 4 GiB; merge fewer rows at once".into())
    })
}
