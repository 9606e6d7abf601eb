//! How do sections become a file with a checksum for every block?

use std::sync::Arc;

use chronolith_vfs::VfsFile;
use chronolith_vfs::planted::{self, Bug};

use crate::error::SegmentError;
use crate::format::bytes::Put;
use crate::format::frame::{Trailer, header};
use crate::format::{
    BLOCK_BYTES, FILE_BYTES_MAX, FOOTER_BYTES_MAX, FileIdentity, SECTION_ALIGN, SectionEntry,
    SectionKind, SectionSink,
};
use crate::space::SpaceNumber;

type Result<T> = std::result::Result<T, SegmentError>;

/// Bytes gathered before the system is asked to write.
const WRITE_BYTES: usize = 256 << 10;

/// Writes a segment file from front to back.
pub(super) struct FileWriter<'w> {
    file: Arc<dyn VfsFile>,
    /// Asked before each write.
    goes_on: &'w dyn Fn() -> bool,
    name: String,
    version: u32,
    identity: FileIdentity,
    /// Bytes handed to the system.
    flushed: u64,
    /// Bytes after those.
    pending: Vec<u8>,
    sections: Vec<SectionEntry>,
    checksums: Vec<u32>,
}

impl<'w> FileWriter<'w> {
    /// Starts the file with its header.
    pub(super) fn new(
        file: Arc<dyn VfsFile>,
        name: String,
        (version, identity): (u32, FileIdentity),
        goes_on: &'w dyn Fn() -> bool,
    ) -> Result<Self> {
        let pending = header(version, &identity);
        Ok(Self {
            file,
            goes_on,
            name,
            version,
            identity,
            flushed: 0,
            pending,
            sections: Vec::new(),
            checksums: Vec::new(),
        })
    }

    /// Writes one section with `write`.
    pub(super) fn section<T>(
        &mut self,
        kind: SectionKind,
        write: impl FnOnce(&mut dyn SectionSink) -> Result<T>,
    ) -> Result<T> {
        self.numbered(kind as u16, write)
    }

    /// Writes one section of a space with `write`.
    pub(super) fn section_in<T>(
        &mut self,
        kind: SectionKind,
        space: SpaceNumber,
        write: impl FnOnce(&mut dyn SectionSink) -> Result<T>,
    ) -> Result<T> {
        self.numbered(kind.in_space(space), write)
    }

    fn numbered<T>(
        &mut self,
        number: u16,
        write: impl FnOnce(&mut dyn SectionSink) -> Result<T>,
    ) -> Result<T> {
        assert!(
            self.sections.iter().all(|entry| entry.kind != number),
            "a section stands once"
        );
        while !self.offset().is_multiple_of(SECTION_ALIGN) {
            self.pending.put_u8(0);
        }
        let offset = self.offset();
        let seed = self.identity.seed(number);
        let mut sink = FileSink {
            file: self,
            seed,
            block: Vec::with_capacity(BLOCK_BYTES),
            blocks: 0,
        };
        let written = write(&mut sink)?;
        let len = sink.position();
        sink.close_block()?;
        self.sections.push(SectionEntry {
            kind: number,
            offset,
            len,
        });
        Ok(written)
    }

    /// Writes one section that is in memory.
    pub(super) fn put_section(&mut self, kind: SectionKind, bytes: &[u8]) -> Result<()> {
        self.section(kind, |sink| sink.write(bytes))
    }

    /// The sections so far.
    pub(super) fn sections(&self) -> &[SectionEntry] {
        &self.sections
    }

    /// Writes checksums, footer and trailer and syncs; gives the file's length and digest.
    pub(super) fn finish(mut self, footer: &[u8]) -> Result<(u64, u128)> {
        let blocks: u64 = self.sections.iter().map(SectionEntry::blocks).sum();
        assert_eq!(blocks, self.checksums.len() as u64, "one checksum a block");
        let tail_offset = self.offset();
        let mut table = Vec::with_capacity(self.checksums.len() * 4);
        self.checksums.iter().for_each(|crc| table.put_u32(*crc));
        let bytes_of = |part: &[u8]| {
            u32::try_from(part.len()).map_err(|_| SegmentError::Limit("a footer of 4 GiB".into()))
        };
        let footer_bytes = bytes_of(footer)?;
        assert!(
            footer_bytes <= FOOTER_BYTES_MAX,
            "sections, lineage and names are bounded"
        );
        let digest = Trailer::digest_of(&header(self.version, &self.identity), &table, footer);
        let trailer = Trailer {
            tail_offset,
            table_bytes: bytes_of(&table)?,
            footer_bytes,
            digest,
            version: self.version,
        };
        for part in [&table[..], footer, &trailer.encode()] {
            self.append(part)?;
        }
        self.flush()?;
        if planted::is_on(Bug::SegmentNotSynced) {
            return Ok((self.flushed, digest));
        }
        self.file
            .sync_all()
            .map_err(|e| SegmentError::io("sync", &self.name, e))?;
        Ok((self.flushed, digest))
    }

    fn offset(&self) -> u64 {
        self.flushed + self.pending.len() as u64
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.put(bytes);
        if self.pending.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.offset() > FILE_BYTES_MAX {
            return Err(SegmentError::Limit(format!(
                "a segment of more than {FILE_BYTES_MAX} bytes"
            )));
        }
        if !(self.goes_on)() {
            return Err(SegmentError::Stopped);
        }
        self.file
            .write_all_at(&self.pending, self.flushed)
            .map_err(|e| SegmentError::io("write", &self.name, e))?;
        self.flushed += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// The section being written.
struct FileSink<'a, 'w> {
    file: &'a mut FileWriter<'w>,
    seed: crc32fast::Hasher,
    /// Start of the next block.
    block: Vec<u8>,
    blocks: u64,
}

impl FileSink<'_, '_> {
    fn close_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let crc = FileIdentity::block_crc(&self.seed, self.blocks, &self.block);
        self.file.checksums.push(crc);
        self.blocks += 1;
        self.file.append(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

impl SectionSink for FileSink<'_, '_> {
    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let take = bytes.len().min(BLOCK_BYTES - self.block.len());
            self.block.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.block.len() == BLOCK_BYTES {
                self.close_block()?;
            }
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64 + self.block.len() as u64
    }
}
