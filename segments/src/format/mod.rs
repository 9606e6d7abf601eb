//! How are the bytes of a segment file laid out, and who checks them?
//!
//! ```text
//!  0            64                                                         bytes - 48   bytes
//!  +------------+-----------+-----------+ ... +-----------------+----------+------------+
//!  | header 64  | section   | section   |     | checksum table  | footer   | trailer 48 |
//!  +------------+-----------+-----------+ ... +-----------------+----------+------------+
//!                each starts at a multiple of 64, zeros between
//!                each is cut into blocks of 16 KiB, the last one short
//! ```
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | header: magic, version, store id, file number | 64 with crc | exact | `frame::read_header`, and the digest |
//! | section bytes | up to file size | - | [`Section::get`], block by block, before first use |
//! | zeros between sections | up to 63 | 0 | scrub; nothing else reads them |
//! | checksum table: crc32 of every block, in section table order | 4 each | - | the digest |
//! | footer: section table, identity of analyzer, vector space and counter, bucket, zone, lineage | up to 16 MiB | see `footer` | the digest, then `Footer::decode` |
//! | trailer: tail offset and lengths, digest, version, magic | 48 with crc | exact | `Trailer::read` |
//! | digest: xxh3-128 of header, checksum table and footer | 16 | - | the trailer, and whoever refers to the file |
//!
//! A block's crc32 starts from (store id, file number, section kind, block index), so a block
//! that is intact but in the wrong place is damage too. Everything is little-endian.
//!
//! A section's number on disk is its kind. The sections of vectors stand once for each space:
//! there the high byte is the number of the space, 0 for the main one.
//!
//! Readers ignore section kinds that they do not know; a missing section that they need is
//! damage.

use crate::space::SpaceNumber;

pub(crate) mod bytes;
mod footer;
pub(crate) mod frame;
mod section;
mod sink;
mod spaces;

pub use footer::{Bucket, Counts};
pub use section::{ReadMode, Section};
pub use sink::{SectionSink, VecSink};

pub(crate) use footer::{FOOTER_BYTES_MAX, Footer, FooterSpace, LINEAGE_MAX, SectionEntry};
pub(crate) use section::{FileIdentity, SectionPlace, Source};
pub(crate) use spaces::version_of;

/// The newest format version: of files with vectors in other spaces than the main one. All others
/// are of version [`ONE_SPACE`], as they always were; both are read. Version 0 had an FST over
/// terms and no bounds; in version 1 all postings outside blocks were varints; in version 2
/// vectors had no codes, and no runs.
pub const FORMAT_VERSION: u32 = 4;
/// The version of files whose vectors are all in the main space.
pub const ONE_SPACE: u32 = 3;
/// Unit of checksums inside a section, bytes.
pub const BLOCK_BYTES: usize = 16 << 10;
/// Sections start at multiples of this: a cache line.
pub const SECTION_ALIGN: u64 = 64;
/// Largest segment file, bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 40;

const _: () = assert!((BLOCK_BYTES as u64).is_multiple_of(SECTION_ALIGN));

/// What a section holds. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum SectionKind {
    /// Scope keys with their row ranges, length sums and time ranges.
    Scopes = 1,
    /// Rows by event time.
    Timeline = 2,
    /// Fixed-width columns.
    Columns = 3,
    /// Distinct source ids.
    SourceIds = 4,
    /// Record ids by row.
    Ids = 5,
    /// Rows by (scope, id, seq).
    IdOrder = 6,
    /// Split-block filter over (scope, id).
    IdFilter = 7,
    /// Term dictionary.
    Terms = 8,
    /// Postings of all terms.
    Postings = 9,
    /// Skip data of the postings, with bounds of lists and blocks.
    PostingsSkip = 10,
    /// Tag dictionary.
    Tags = 11,
    /// Roaring sets by tag, and the untagged rows.
    TagSets = 12,
    /// Tag ordinals by row.
    RowTags = 13,
    /// Full-precision vectors.
    Vectors = 14,
    /// Which rows have a vector.
    VectorRows = 15,
    /// Quantised codes of the vectors.
    VectorCodes = 16,
    /// Summaries in compressed blocks.
    Distilled = 17,
    /// Where the blocks of `Distilled` start.
    DistilledIndex = 18,
    /// Text, speaker, source and attributes in compressed blocks.
    Detailed = 19,
    /// Where the blocks of `Detailed` start.
    DetailedIndex = 20,
    /// Compression dictionary trained on this segment's rows.
    TextDictionary = 21,
    /// Bounds of runs of posting blocks as (higher frequency, lower length) pairs. Reserved.
    PostingsBounds = 22,
    /// Runs of rows whose vectors look alike, with centroids and radii.
    VectorRuns = 23,
}

impl SectionKind {
    /// Every kind, ascending.
    pub const ALL: [Self; 23] = [
        Self::Scopes,
        Self::Timeline,
        Self::Columns,
        Self::SourceIds,
        Self::Ids,
        Self::IdOrder,
        Self::IdFilter,
        Self::Terms,
        Self::Postings,
        Self::PostingsSkip,
        Self::Tags,
        Self::TagSets,
        Self::RowTags,
        Self::Vectors,
        Self::VectorRows,
        Self::VectorCodes,
        Self::Distilled,
        Self::DistilledIndex,
        Self::Detailed,
        Self::DetailedIndex,
        Self::TextDictionary,
        Self::PostingsBounds,
        Self::VectorRuns,
    ];

    /// The name in errors and in `inspect`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scopes => "scopes",
            Self::Timeline => "timeline",
            Self::Columns => "columns",
            Self::SourceIds => "source_ids",
            Self::Ids => "ids",
            Self::IdOrder => "id_order",
            Self::IdFilter => "id_filter",
            Self::Terms => "terms",
            Self::Postings => "postings",
            Self::PostingsSkip => "postings_skip",
            Self::Tags => "tags",
            Self::TagSets => "tag_sets",
            Self::RowTags => "row_tags",
            Self::Vectors => "vectors",
            Self::VectorRows => "vector_rows",
            Self::VectorCodes => "vector_codes",
            Self::Distilled => "distilled",
            Self::DistilledIndex => "distilled_index",
            Self::Detailed => "detailed",
            Self::DetailedIndex => "detailed_index",
            Self::TextDictionary => "text_dictionary",
            Self::PostingsBounds => "postings_bounds",
            Self::VectorRuns => "vector_runs",
        }
    }

    /// Reads the number on disk, of any space; unknown kinds are `None`.
    pub fn from_number(number: u16) -> Option<Self> {
        let [kind, space] = number.to_le_bytes();
        let known = Self::ALL.into_iter();
        let found = known
            .into_iter()
            .find(|known| *known as u16 == kind.into())?;
        (space == 0 || found.is_of_space()).then_some(found)
    }

    /// True where a space has such a section of its own.
    const fn is_of_space(self) -> bool {
        matches!(
            self,
            Self::Vectors | Self::VectorRows | Self::VectorCodes | Self::VectorRuns
        )
    }

    /// The number on disk of a space's section.
    pub(crate) const fn in_space(self, space: SpaceNumber) -> u16 {
        assert!(self.is_of_space());
        let [kind, _] = (self as u16).to_le_bytes();
        u16::from_le_bytes([kind, space.get()])
    }
}
