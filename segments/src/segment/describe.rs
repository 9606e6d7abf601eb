//! What does a segment hold, for a person who inspects it?

use std::path::Path;

use chronolith_vfs::Vfs;

use super::load::Loaded;
use super::{Result, Segment};
use crate::format::{Counts, ReadMode, SectionKind};
use crate::prepared::TokenCounter;
use crate::space::NumberedSpace;
use crate::writer::SegmentMeta;

/// One section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionDescription {
    /// Name; `unknown` for a kind that this build does not know.
    pub name: &'static str,
    /// Number of the kind, in the low byte; in the high one the number of the vector space that
    /// the section belongs to.
    pub kind: u16,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Checksum blocks.
    pub blocks: u64,
}

/// A segment in figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// File, bucket and zone.
    pub meta: SegmentMeta,
    /// Format version of the file.
    pub format_version: u32,
    /// Id of the store that the file belongs to.
    pub store_id: [u8; 16],
    /// The analyzer that made the terms.
    pub analyzer_id: String,
    /// What its vectors are, ascending by number, with how many rows have one.
    pub spaces: Vec<(NumberedSpace, u32)>,
    /// The counter that made the token costs.
    pub token_counter: TokenCounter,
    /// Totals of rows' parts.
    pub counts: Counts,
    /// Numbers of the segments that it replaced.
    pub lineage: Vec<u64>,
    /// Sections in file order.
    pub sections: Vec<SectionDescription>,
}

impl Segment {
    /// Describes the segment from its footer alone.
    pub fn describe(&self) -> Description {
        Description::of(&self.loaded)
    }
}

impl Description {
    /// Describes segment `file_number` of `dir` without opening its sections: for `repair`
    /// and `inspect`, which must see a file even where a section is damaged.
    ///
    /// # Errors
    /// `Corrupt` where the frame or the footer is damaged; `Version` for another format; the
    /// system's error.
    pub fn read(vfs: &dyn Vfs, dir: &Path, file_number: u64) -> Result<Self> {
        Ok(Self::of(&Loaded::read(
            vfs,
            dir,
            file_number,
            ReadMode::Positioned,
        )?))
    }

    pub(super) fn of(loaded: &Loaded) -> Self {
        let footer = &loaded.footer;
        let sections = footer.sections.iter().map(|entry| SectionDescription {
            name: SectionKind::from_number(entry.kind).map_or("unknown", SectionKind::name),
            kind: entry.kind,
            offset: entry.offset,
            bytes: entry.len,
            blocks: entry.blocks(),
        });
        let spaces = footer.spaces.iter();
        let spaces = spaces.map(|space| (space.own.clone(), space.vectors));
        Self {
            meta: SegmentMeta {
                file: loaded.file,
                bucket: footer.bucket,
                zone: footer.zone,
            },
            format_version: loaded.version,
            store_id: loaded.identity.store_id,
            analyzer_id: footer.analyzer_id.clone(),
            spaces: spaces.collect(),
            token_counter: footer.token_counter,
            counts: footer.counts,
            lineage: footer.lineage.clone(),
            sections: sections.collect(),
        }
    }
}
