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
    version_of,
};
use crate::space::SpaceNumber;
use crate::writer::{SegmentRef, segment_file_name};

type Result<T> = std::result::Result<T, SegmentError>;

/// A file whose frame and footer were verified.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) name: Arc<str>,
    pub(super) identity: FileIdentity,
    /// Format version.
    pub(super) version: u32,
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
        let read_trailer = || {
            let trailer = read(&*file, &name, bytes - TRAILER_BYTES as u64, TRAILER_BYTES)?;
            Trailer::read(&name, bytes, &trailer)
        };
        let header = match store_id {
            None => read(&*file, &name, 0, HEADER_BYTES)?,
            Some(store_id) => {
                let identity = FileIdentity {
                    store_id,
                    file_number,
                };
                header(read_trailer()?.version, &identity)
            }
        };
        let identity = read_header(&name, &header)?;
        if identity.file_number != file_number {
            let message = format!(
                "file number {:016x} under the name {name}",
                identity.file_number
            );
            return Err(SegmentError::corrupt(&*name, "header", 0, message));
        }
        let trailer = read_trailer()?;
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
        if version_of(&footer.spaces) != trailer.version {
            let message = format!(
                "its vector spaces are not those of version {}",
                trailer.version
            );
            return Err(SegmentError::corrupt(&*name, "footer", footer_at, message));
        }
        let sections = sections(&name, file, bytes, mode, &identity, &footer, &table)?;
        let file = SegmentRef {
            file_number,
            bytes,
            digest,
        };
        Ok(Self {
            name,
            identity,
            version: trailer.version,
            file,
            footer,
            sections,
        })
    }

    /// The section of this kind, if the file has it.
    pub(super) fn optional(&self, kind: SectionKind) -> Option<Section> {
        self.numbered(kind as u16)
    }

    /// The section of this kind of a space, if the file has it.
    pub(super) fn optional_in(&self, kind: SectionKind, space: SpaceNumber) -> Option<Section> {
        self.numbered(kind.in_space(space))
    }

    fn numbered(&self, number: u16) -> Option<Section> {
        let mut sections = self.footer.sections.iter();
        let at = sections.position(|entry| entry.kind == number)?;
        Some(self.sections[at].clone())
    }

    /// The section of this kind.
    pub(super) fn section(&self, kind: SectionKind) -> Result<Section> {
        self.optional(kind).ok_or_else(|| self.missing(kind))
    }

    /// The section of this kind of a space.
    pub(super) fn section_in(&self, kind: SectionKind, space: SpaceNumber) -> Result<Section> {
        self.optional_in(kind, space)
            .ok_or_else(|| self.missing(kind))
    }

    fn missing(&self, kind: SectionKind) -> SegmentError {
        let (name, bytes) = (&*self.name, self.file.bytes);
        SegmentError::corrupt(name, kind.name(), bytes, "the section is missing")
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
