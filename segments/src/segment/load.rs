//! How does a file become verified facts and sections that can be read?

use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{Vfs, VfsFile};

use crate::error::SegmentError;
use crate::format::bytes::Take;
use crate::format::frame::{
    HEADER_BYTES, TRAILER_BYTES, Trailer, check_file_bytes, header, read_header,
};
use crate::format::{
    FOOTER_BYTES_MAX, FileIdentity, Footer, ReadMode, Section, SectionKind, SectionPlace, Source,
};
use crate::writer::{SegmentRef, segment_file_name};

type Result<T> = std::result::Result<T, SegmentError>;

/// A file whose frame and footer were verified.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) name: Arc<str>,
    pub(super) identity: FileIdentity,
    pub(super) file: SegmentRef,
    pub(super) footer: Footer,
    /// In the order of the footer's table; unknown kinds too.
    pub(super) sections: Vec<Section>,
}

impl Loaded {
    /// Reads and verifies header, trailer, checksums and footer of segment `file_number`.
    pub(super) fn read(
        vfs: &dyn Vfs,
        dir: &Path,
        file_number: u64,
        mode: ReadMode,
    ) -> Result<Self> {
        Self::read_as(vfs, dir, file_number, mode, None)
    }

    /// As [`Loaded::read`]; with a store's id the header is not read but made, as it must have
    /// been: the digest tells whether it was.
    pub(super) fn read_as(
        vfs: &dyn Vfs,
        dir: &Path,
        file_number: u64,
        mode: ReadMode,
        store_id: Option<[u8; 16]>,
    ) -> Result<Self> {
        let name: Arc<str> = segment_file_name(file_number).into();
        let file = vfs
            .open_read(&dir.join(&*name))
            .map_err(|e| SegmentError::io("open", &*name, e))?;
        let bytes = file
            .len()
            .map_err(|e| SegmentError::io("measure", &*name, e))?;
        check_file_bytes(&name, bytes)?;
        let header = match store_id {
            None => read(&*file, &name, 0, HEADER_BYTES)?,
            Some(store_id) => header(&FileIdentity {
                store_id,
                file_number,
            }),
        };
        let identity = read_header(&name, &header)?;
        if identity.file_number != file_number {
            let message = format!(
                "file number {:016x} under the name {name}",
                identity.file_number
            );
            return Err(SegmentError::corrupt(&*name, "header", 0, message));
        }
        let trailer = read(&*file, &name, bytes - TRAILER_BYTES as u64, TRAILER_BYTES)?;
        let trailer = Trailer::read(&name, bytes, &trailer)?;
        if trailer.footer_bytes > FOOTER_BYTES_MAX {
            let message = format!(
                "footer of {} bytes; at most {FOOTER_BYTES_MAX}",
                trailer.footer_bytes
            );
            return Err(SegmentError::corrupt(&*name, "trailer", bytes, message));
        }
        // The lengths add up to the file's, which bounds the allocation.
        let table = read(
            &*file,
            &name,
            trailer.tail_offset,
            trailer.table_bytes as usize,
        )?;
        let footer_at = trailer.tail_offset + u64::from(trailer.table_bytes);
        let footer = read(&*file, &name, footer_at, trailer.footer_bytes as usize)?;
        let digest = Trailer::digest_of(&header, &table, &footer);
        if digest != trailer.digest {
            let message = format!("digest is {digest:032x}, expected {:032x}", trailer.digest);
            return Err(SegmentError::corrupt(&*name, "footer", footer_at, message));
        }
        let footer = Footer::decode(
            &name,
            footer_at,
            &footer,
            trailer.tail_offset,
            trailer.table_bytes,
        )?;
        let sections = sections(&name, file, bytes, mode, &identity, &footer, &table)?;
        let file = SegmentRef {
            file_number,
            bytes,
            digest,
        };
        Ok(Self {
            name,
            identity,
            file,
            footer,
            sections,
        })
    }

    /// The section of this kind, if the file has it.
    pub(super) fn optional(&self, kind: SectionKind) -> Option<Section> {
        let at = self
            .footer
            .sections
            .iter()
            .position(|entry| entry.kind == kind as u16)?;
        Some(self.sections[at].clone())
    }

    /// The section of this kind.
    pub(super) fn section(&self, kind: SectionKind) -> Result<Section> {
        self.optional(kind).ok_or_else(|| {
            SegmentError::corrupt(
                &*self.name,
                kind.name(),
                self.file.bytes,
                "the section is missing",
            )
        })
    }
}

fn sections(
    name: &Arc<str>,
    file: Arc<dyn VfsFile>,
    bytes: u64,
    mode: ReadMode,
    identity: &FileIdentity,
    footer: &Footer,
    table: &[u8],
) -> Result<Vec<Section>> {
    let source = match mode {
        ReadMode::Mapped => Source::Mapped(
            file.map(bytes)
                .map_err(|e| SegmentError::io("map", &**name, e))?,
        ),
        ReadMode::Positioned => Source::Positioned(file),
    };
    if let Source::Mapped(map) = &source {
        // The file was measured before it was mapped; sections are bounded by that length.
        if map.len() as u64 != bytes {
            let message = format!("mapping of {} bytes, expected {bytes}", map.len());
            return Err(SegmentError::corrupt(&**name, "header", 0, message));
        }
    }
    let mut checksums = Take::of_file(name, "checksum table", 0, table);
    let mut sections = Vec::with_capacity(footer.sections.len());
    for entry in &footer.sections {
        let crcs = (0..entry.blocks())
            .map(|_| checksums.u32())
            .collect::<Result<Vec<u32>>>()?;
        let kind = SectionKind::from_number(entry.kind);
        let section_name = kind.map_or("unknown", SectionKind::name);
        let place = SectionPlace {
            kind: entry.kind,
            offset: entry.offset,
            len: entry.len,
            checksums: crcs.into(),
        };
        sections.push(Section::new(
            Arc::clone(name),
            section_name,
            source.clone(),
            identity,
            place,
        ));
    }
    Ok(sections)
}

fn read(file: &dyn VfsFile, name: &str, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)
        .map_err(|e| SegmentError::io("read", name, e))?;
    Ok(bytes)
}
