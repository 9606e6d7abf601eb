//! What does one generation say? The manifest as a plain value.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use chronolith_segments::SpaceNumber;

use super::names::{DataKind, DataName};

/// Identity of a store, drawn once at its creation; salts every digest.
pub type StoreId = [u8; 16];

/// Most segments of one generation.
pub const SEGMENTS_MAX: usize = 1 << 16;
/// Most levels of the bucket ladder below "all time".
pub const LADDER_MAX: usize = 16;
/// Longest analyzer, model or counter name, bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Most vector spaces at a time.
pub const SPACES_MAX: usize = chronolith_segments::limits::SPACES_MAX;
/// A commit seq is `epoch << SEQ_COUNTER_BITS | counter`.
pub const SEQ_COUNTER_BITS: u32 = 40;
/// Highest epoch: what is left of 64 bits.
pub const EPOCH_MAX: u32 = (1 << (u64::BITS - SEQ_COUNTER_BITS)) - 1;

/// Which files count, and what is settled about the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Rises by one with every publish; the first is 1.
    pub generation: u64,
    /// The store.
    pub store_id: StoreId,
    /// When the store was made, µs since the epoch.
    pub created_us: i64,
    /// What was chosen at creation; equal in every generation, but for the vector spaces.
    pub settings: Settings,
    /// Highest epoch known when this generation was made; a log file may carry a higher one.
    pub epoch: u32,
    /// Operations up to this seq are in segments or side files; replay begins after it.
    pub flushed_seq: u64,
    /// When the operation of `flushed_seq` became known, µs; `i64::MIN` before the first. The
    /// known-time clock of the next writer does not go back behind it.
    pub flushed_time_us: i64,
    /// Lowest log file still needed; files below it may go.
    pub floor_file: u64,
    /// Above every file number ever named; numbers are never reused.
    pub next_file_number: u64,
    /// Live segments, ascending by file number.
    #[serde(deserialize_with = "bounded_vec::<SEGMENTS_MAX, _, _>")]
    pub segments: Vec<SegmentEntry>,
    /// The tag graph; none while the store has no edge.
    pub tag_graph: Option<SideFile>,
    /// What the catalog must be able to show.
    pub witness: CatalogWitness,
    /// Sums that are wanted without opening a segment.
    pub statistics: Statistics,
}

/// Choices that hold for the life of a store, but for its vector spaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Version of the log format that log files were last begun in.
    pub log_format: u32,
    /// Version of the segment format.
    pub segment_format: u32,
    /// Version of the side files.
    pub side_file_format: u32,
    /// Analyzer id with its version.
    pub analyzer: String,
    /// The vector space that the store was made with; none where it was made without vectors.
    pub vector_space: Option<VectorSpace>,
    /// The vector spaces as they are now; none as long as `vector_space` says it all. No part of
    /// version 0.
    #[serde(skip)]
    pub spaces: Option<SpaceTable>,
    /// Token counter id.
    pub token_counter: String,
    /// Width of a bucket of level 0, µs.
    pub bucket_base_us: i64,
    /// Width of each level in units of the base: begins with 1 and ascends. The level after
    /// the last is "all time".
    #[serde(deserialize_with = "bounded_vec::<LADDER_MAX, _, _>")]
    pub bucket_ladder: Vec<u32>,
    /// Which parts of a record are searchable words.
    pub index: IndexOptions,
    /// Share of dense in the convex combination, millionths.
    pub dense_weight_ppm: u32,
    /// Seed of everything that is random but must repeat.
    pub seed: u64,
}

/// Where vectors live and how they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorSpace {
    /// Embedder id.
    pub model: String,
    /// Dimension.
    pub dim: u32,
    /// Stored number format.
    pub format: VectorFormat,
    /// True where vectors are scaled to unit length (cosine).
    pub normalised: bool,
}

impl Settings {
    /// The vector space that is meant where none is named; none in a store without vectors.
    pub fn default_space(&self) -> Option<&VectorSpace> {
        match &self.spaces {
            None => self.vector_space.as_ref(),
            Some(table) => {
                let mut spaces = table.spaces.iter();
                let found = spaces.find(|own| own.number == table.default);
                found.map(|own| &own.space)
            }
        }
    }

    /// The vector space of this name.
    pub fn space_named(&self, name: &str) -> Option<&VectorSpace> {
        match &self.spaces {
            None if name == SpaceNumber::MAIN_NAME => self.vector_space.as_ref(),
            None => None,
            Some(table) => {
                let found = table.spaces.iter().find(|own| own.name == name);
                found.map(|own| &own.space)
            }
        }
    }
}

/// The vector spaces of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceTable {
    /// Number of the space that is meant where none is named.
    pub default: u8,
    /// The lowest number that no space ever had.
    pub next: u8,
    /// Ascending by number.
    #[serde(deserialize_with = "bounded_vec::<SPACES_MAX, _, _>")]
    pub spaces: Vec<NamedSpace>,
}

/// A vector space with what it is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedSpace {
    /// Known by it in log and segments; never given twice.
    pub number: u8,
    /// Known by it to callers.
    pub name: String,
    /// What its vectors are.
    pub space: VectorSpace,
}

/// Stored number format of full-precision vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VectorFormat {
    /// Half precision.
    F16,
    /// Single precision.
    F32,
}

/// Which parts of a record, beyond its text, are searchable words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IndexOptions {
    /// Words of the summary.
    pub summary_words: bool,
    /// The speaker's name.
    pub speaker_words: bool,
    /// Words of the event date.
    pub date_words: bool,
}

/// One live segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// Names the file.
    pub file_number: u64,
    /// Its length.
    pub bytes: u64,
    /// Digest in its footer.
    pub digest: u128,
    /// Level of its bucket on the ladder.
    pub level: u8,
    /// Start of its bucket, µs, inclusive.
    pub bucket_start_us: i64,
    /// End of its bucket, µs, exclusive; `i64::MAX` means no end.
    pub bucket_end_us: i64,
    /// Rows, dead ones included.
    pub rows: u32,
    /// Lowest commit seq of a row.
    pub first_seq: u64,
    /// Highest commit seq of a row.
    pub last_seq: u64,
    /// Lowest event time of a row, µs.
    pub event_time_min_us: i64,
    /// Highest event time of a row, µs.
    pub event_time_max_us: i64,
    /// Its durable delete set, complete up to `flushed_seq`; none while nothing in it died.
    pub deletes: Option<SideFile>,
}

/// A reference to an immutable side file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// Names the file; shares the numbers of segments.
    pub file_number: u64,
    /// Its length.
    pub bytes: u64,
    /// Digest at its end.
    pub digest: u128,
    /// Entries in it.
    pub entries: u64,
}

/// What a catalog that opened cleanly must be able to show, or it went back in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CatalogWitness {
    /// The generation the catalog last followed.
    pub generation: u64,
    /// The seq it had caught up with.
    pub watermark: u64,
    /// Id locators in it.
    pub locators: u64,
    /// Content hashes in it.
    pub content_hashes: u64,
}

/// Sums over the live segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Rows that count.
    pub live_rows: u64,
    /// Rows in a delete set.
    pub dead_rows: u64,
}

impl Statistics {
    /// Adds up the segments.
    pub fn of(segments: &[SegmentEntry]) -> Self {
        let rows: u64 = segments.iter().map(|segment| u64::from(segment.rows)).sum();
        let dead_rows = segments
            .iter()
            .filter_map(|segment| segment.deletes)
            .fold(0u64, |sum, deletes| sum.saturating_add(deletes.entries));
        Self {
            live_rows: rows.saturating_sub(dead_rows),
            dead_rows,
        }
    }
}

impl Manifest {
    /// The first generation of a new, empty store.
    pub fn first(store_id: StoreId, created_us: i64, settings: Settings) -> Self {
        Self {
            generation: 1,
            store_id,
            created_us,
            settings,
            epoch: 0,
            flushed_seq: 0,
            flushed_time_us: i64::MIN,
            floor_file: 0,
            next_file_number: 1,
            segments: Vec::new(),
            tag_graph: None,
            witness: CatalogWitness::default(),
            statistics: Statistics::default(),
        }
    }

    /// A copy to be edited and published next: the generation is one higher.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            generation: self.generation + 1,
            ..self.clone()
        }
    }

    /// Takes the next file number.
    pub fn take_file_number(&mut self) -> u64 {
        let number = self.next_file_number;
        self.next_file_number += 1;
        number
    }

    /// Every file of the segments directory that this generation names, ascending.
    pub fn data_files(&self) -> Vec<DataName> {
        let mut names: Vec<DataName> = Vec::with_capacity(self.segments.len() * 2 + 1);
        for segment in &self.segments {
            names.push(DataName::new(segment.file_number, DataKind::Segment));
            names.extend(
                segment
                    .deletes
                    .map(|side| DataName::new(side.file_number, DataKind::Deletes)),
            );
        }
        names.extend(
            self.tag_graph
                .map(|side| DataName::new(side.file_number, DataKind::TagGraph)),
        );
        names.sort_unstable();
        names
    }

    /// Files that this generation names and `later` does not. They may go once a generation
    /// after `later` is published, and no reader holds a version with them.
    pub fn retired_by(&self, later: &Self) -> Vec<DataName> {
        let kept = later.data_files();
        self.data_files()
            .into_iter()
            .filter(|name| kept.binary_search(name).is_err())
            .collect()
    }
}

/// Reads a list of at most `N` items: a hostile count ends the decoding, not the memory.
fn bounded_vec<'de, const N: usize, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Bounded<const N: usize, T>(PhantomData<T>);
    impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for Bounded<N, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {N} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            // Grown by what was really there; a count read from the file reserves nothing.
            let mut list = Vec::new();
            while let Some(item) = items.next_element()? {
                if list.len() == N {
                    return Err(A::Error::custom("too many items"));
                }
                list.push(item);
            }
            Ok(list)
        }
    }
    deserializer.deserialize_seq(Bounded::<N, T>(PhantomData))
}
