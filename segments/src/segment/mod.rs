//! What is a segment to its readers?
//!
//! Opening verifies frame and footer, parses the scope directory and looks at the heads of
//! fixed-width sections. Dictionaries and texts are opened at their first use, and all else is
//! verified block by block when it is first read.

mod codes;
mod describe;
mod in_order;
mod lazy;
mod load;
mod partition;
mod salvage;
mod spaces;
mod stream;
mod verify;

use std::path::Path;

use chronolith_vfs::Vfs;
use chronolith_vfs::planted::{self, Bug};

pub use describe::{Description, SectionDescription};
pub use in_order::InOrder;
pub use salvage::{RowIdentity, SalvagedSegment};
pub use verify::{Finding, Scrub};

use crate::columns::Columns;
use crate::error::SegmentError;
use crate::format::{Bucket, Counts, ReadMode, SectionKind};
use crate::ids::{Ids, Names};
use crate::limits::NAME_BYTES_MAX;
use crate::prepared::TokenCounter;
use crate::scope_dir::ScopeDir;
use crate::tags::Tags;
use crate::terms::Terms;
use crate::text::{TextBlocks, TextDictionary};
use crate::timeline::Timeline;
use crate::writer::{SegmentMeta, SegmentRef};

use lazy::Lazy;
use load::Loaded;
use spaces::SpaceVectors;

type Result<T> = std::result::Result<T, SegmentError>;

/// One immutable file of rows with all their indexes. Stays readable when the file's name is
/// removed.
#[derive(Debug)]
pub struct Segment {
    loaded: Loaded,
    scopes: ScopeDir,
    columns: Columns,
    timeline: Timeline,
    ids: Ids,
    source_ids: Option<Names>,
    terms: Lazy<Terms>,
    /// See [`crate::Partition::short_lengths`].
    short_lengths: Lazy<Box<[u8]>>,
    tags: Lazy<Tags>,
    /// Of each space in which a row has a vector.
    spaces: Vec<SpaceVectors>,
    texts: Lazy<Texts>,
    in_order: in_order::Readers,
}

/// The texts of the rows.
#[derive(Debug)]
struct Texts {
    /// `None` where no row has a summary.
    distilled: Option<TextBlocks>,
    detailed: TextBlocks,
}

impl Segment {
    /// Opens the segment that `expected` refers to, in the store with this id.
    ///
    /// # Errors
    /// `Corrupt` where the file is damaged or not the one referred to; `Version` for another
    /// format; the system's error.
    pub fn open(
        vfs: &dyn Vfs,
        dir: &Path,
        expected: &SegmentRef,
        store_id: [u8; 16],
        mode: ReadMode,
    ) -> Result<Self> {
        let loaded = Loaded::read(vfs, dir, expected.file_number, mode)?;
        if loaded.identity.store_id != store_id {
            return Err(SegmentError::corrupt(
                &*loaded.name,
                "header",
                0,
                "the file belongs to another store",
            ));
        }
        if loaded.file != *expected && !planted::is_on(Bug::OtherSegmentPasses) {
            let message = format!(
                "{} bytes with digest {:032x}, expected {} with {:032x}",
                loaded.file.bytes, loaded.file.digest, expected.bytes, expected.digest
            );
            return Err(SegmentError::corrupt(
                &*loaded.name,
                "trailer",
                loaded.file.bytes,
                message,
            ));
        }
        Self::of(loaded)
    }

    /// Opens a segment that nothing refers to, for `inspect` and `repair`: what the file says
    /// of itself is believed once its checksums match.
    ///
    /// # Errors
    /// As [`Segment::open`].
    pub fn open_unreferenced(
        vfs: &dyn Vfs,
        dir: &Path,
        file_number: u64,
        mode: ReadMode,
    ) -> Result<Self> {
        Self::of(Loaded::read(vfs, dir, file_number, mode)?)
    }

    fn of(loaded: Loaded) -> Result<Self> {
        let section = |kind| loaded.section(kind);
        let (zone, footer) = (loaded.footer.zone, &loaded.footer);
        let scopes = ScopeDir::open(&section(SectionKind::Scopes)?, &zone)?;
        if scopes.length_sum() != footer.counts.length_sum {
            let message = format!(
                "lengths sum to {}, the footer has {}",
                scopes.length_sum(),
                footer.counts.length_sum
            );
            return Err(section(SectionKind::Scopes)?.corrupt(0, message));
        }
        let source_ids = loaded.optional(SectionKind::SourceIds);
        Ok(Self {
            columns: Columns::open(&section(SectionKind::Columns)?, &zone)?,
            timeline: Timeline::open(&section(SectionKind::Timeline)?, &scopes)?,
            ids: Ids::open(
                &section(SectionKind::Ids)?,
                &section(SectionKind::IdOrder)?,
                &section(SectionKind::IdFilter)?,
                zone.rows,
            )?,
            source_ids: source_ids
                .map(|section| Names::open(&section, NAME_BYTES_MAX))
                .transpose()?,
            terms: Lazy::new(),
            short_lengths: Lazy::new(),
            tags: Lazy::new(),
            texts: Lazy::new(),
            spaces: spaces::open_all(&loaded)?,
            scopes,
            in_order: in_order::Readers::default(),
            loaded,
        })
    }

    fn terms(&self) -> Result<&Terms> {
        let section = |kind| self.loaded.section(kind);
        self.terms.get(|| {
            Terms::open(
                section(SectionKind::Terms)?,
                section(SectionKind::Postings)?,
                section(SectionKind::PostingsSkip)?,
                self.scopes.rows(),
            )
        })
    }

    fn tags(&self) -> Result<&Tags> {
        let section = |kind| self.loaded.section(kind);
        self.tags.get(|| {
            Tags::open(
                section(SectionKind::Tags)?,
                section(SectionKind::TagSets)?,
                section(SectionKind::RowTags)?,
                self.scopes.rows(),
            )
        })
    }

    fn texts(&self) -> Result<&Texts> {
        self.texts.get(|| open_texts(&self.loaded))
    }

    /// What refers to this file, its bucket and its zone.
    pub fn meta(&self) -> SegmentMeta {
        SegmentMeta {
            file: self.loaded.file,
            bucket: self.loaded.footer.bucket,
            zone: self.loaded.footer.zone,
        }
    }

    /// File name inside the store.
    pub fn file_name(&self) -> &str {
        &self.loaded.name
    }

    /// Id of the store that the file belongs to.
    pub fn store_id(&self) -> [u8; 16] {
        self.loaded.identity.store_id
    }

    /// The analyzer that made the terms.
    pub fn analyzer_id(&self) -> &str {
        &self.loaded.footer.analyzer_id
    }

    /// The counter that made the token costs.
    pub fn token_counter(&self) -> TokenCounter {
        self.loaded.footer.token_counter
    }

    /// Its window of event time.
    pub fn bucket(&self) -> Bucket {
        self.loaded.footer.bucket
    }

    /// Numbers of the segments that it replaced.
    pub fn lineage(&self) -> &[u64] {
        &self.loaded.footer.lineage
    }

    /// Totals of rows' parts.
    pub fn counts(&self) -> Counts {
        self.loaded.footer.counts
    }

    /// Rows of the scopes that have `least` rows or more.
    pub fn rows_of_scopes(&self, least: u32) -> u32 {
        let scopes = (0..self.scopes.len()).map(|scope| self.scopes.rows_of(scope));
        let rows = scopes.map(|rows| rows.end - rows.start);
        rows.filter(|rows| *rows >= least).sum()
    }
}

fn open_texts(loaded: &Loaded) -> Result<Texts> {
    let section = |kind| loaded.section(kind);
    let dictionary = loaded.optional(SectionKind::TextDictionary);
    let dictionary = dictionary
        .map(|section| TextDictionary::open(&section))
        .transpose()?;
    let distilled = match loaded.footer.counts.summaries {
        0 => None,
        _ => Some(TextBlocks::open(
            &section(SectionKind::Distilled)?,
            &section(SectionKind::DistilledIndex)?,
            dictionary.clone(),
        )?),
    };
    let detailed = TextBlocks::open(
        &section(SectionKind::Detailed)?,
        &section(SectionKind::DetailedIndex)?,
        dictionary,
    )?;
    Ok(Texts {
        distilled,
        detailed,
    })
}
