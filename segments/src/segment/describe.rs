//! What does a segment hold, for a person who inspects it?

use super::Segment;
use crate::format::{FORMAT_VERSION, SectionKind};
use crate::writer::SegmentMeta;

/// One section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionDescription {
    /// Name; `unknown` for a kind that this build does not know.
    pub name: &'static str,
    /// Number of the kind.
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
    /// Distinct terms.
    pub terms: u64,
    /// (term, row) pairs.
    pub postings: u64,
    /// Rows with a summary.
    pub summaries: u32,
    /// Sum of exact lengths.
    pub length_sum: u64,
    /// Numbers of the segments that it replaced.
    pub lineage: Vec<u64>,
    /// Sections in file order.
    pub sections: Vec<SectionDescription>,
}

impl Segment {
    /// Describes the segment from its footer alone.
    pub fn describe(&self) -> Description {
        let counts = self.counts();
        let sections = self.loaded.footer.sections.iter().map(|entry| SectionDescription {
            name: SectionKind::from_number(entry.kind).map_or("unknown", SectionKind::name),
            kind: entry.kind,
            offset: entry.offset,
            bytes: entry.len,
            blocks: entry.blocks(),
        });
        Description {
            meta: self.meta(),
            format_version: FORMAT_VERSION,
            terms: counts.terms,
            postings: counts.postings,
            summaries: counts.summaries,
            length_sum: counts.length_sum,
            lineage: self.lineage().to_vec(),
            sections: sections.collect(),
        }
    }
}
