//! What rows of a damaged segment can still be proved? For `repair` alone.
//!
//! A segment opens as a whole or not at all; here every section is opened by itself, and a row
//! counts if each block that holds a part of it does. Postings, timeline, id order and tag sets
//! are not needed: whoever writes the row again makes them anew. The footer is needed, since
//! the checksums of all blocks hang on it; the header is not, since it says nothing that the
//! caller does not know.

use std::path::Path;

use chronolith_vfs::Vfs;

use super::Result;
use super::describe::Description;
use super::load::Loaded;
use super::spaces::open_vectors;
use crate::columns::Columns;
use crate::error::SegmentError;
use crate::format::{ReadMode, SectionKind};
use crate::ids::Names;
use crate::limits::{ID_BYTES_MAX, NAME_BYTES_MAX};
use crate::read::Stored;
use crate::record::{Record, SourceClass};
use crate::scope::Scope;
use crate::scope_dir::ScopeDir;
use crate::space::{SpaceNumber, StoredVectors};
use crate::tags::Tags;
use crate::text::{TextBlocks, TextDictionary, decode_detailed, decode_distilled};
use crate::vectors::Vectors;
use crate::writer::SegmentMeta;

/// What is known of a row; `None` where the bytes are damaged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowIdentity {
    /// Where it belongs.
    pub scope: Option<Scope>,
    /// Which it is.
    pub id: Option<String>,
    /// Seq of the operation that wrote it.
    pub commit_seq: Option<u64>,
    /// When it happened, µs.
    pub event_time_us: Option<i64>,
}

/// A part that a segment has or not, or has lost.
#[derive(Debug)]
enum Part<T> {
    None,
    Whole(T),
    Lost,
}

/// A segment of which any part may be damaged.
#[derive(Debug)]
pub struct SalvagedSegment {
    loaded: Loaded,
    scopes: Option<ScopeDir>,
    columns: Option<Columns>,
    ids: Option<Names>,
    tags: Option<Tags>,
    detailed: Option<TextBlocks>,
    distilled: Part<TextBlocks>,
    source_ids: Part<Names>,
    /// Of each space that the footer names.
    vectors: Vec<(SpaceNumber, Part<Vectors>)>,
    damage: Vec<SegmentError>,
}

impl SalvagedSegment {
    /// Opens segment `file_number` of the store with this id, as far as it can be read, and
    /// verifies every block of it.
    ///
    /// # Errors
    /// `Corrupt` where trailer, checksums or footer are damaged, so that nothing can be
    /// proved; `Version` for another format; the system's error.
    pub fn open(vfs: &dyn Vfs, dir: &Path, file_number: u64, store_id: [u8; 16]) -> Result<Self> {
        // Never mapped: a bad sector under a mapping is a signal and not an error.
        let mode = ReadMode::Positioned;
        let (loaded, header) = match Loaded::read(vfs, dir, file_number, mode) {
            Ok(loaded) => (loaded, None),
            Err(error) => match Loaded::read_as(vfs, dir, file_number, mode, Some(store_id)) {
                Ok(loaded) => (loaded, Some(error)),
                Err(_) => return Err(error),
            },
        };
        if loaded.identity.store_id != store_id {
            let message = "the file belongs to another store";
            return Err(SegmentError::corrupt(&*loaded.name, "header", 0, message));
        }
        let mut damage: Vec<SegmentError> = header.into_iter().collect();
        for section in &loaded.sections {
            damage.extend((0..section.blocks()).filter_map(|b| section.scrub_block(b).err()));
        }
        Ok(Self::of(loaded, damage))
    }

    fn of(loaded: Loaded, mut damage: Vec<SegmentError>) -> Self {
        let zone = loaded.footer.zone;
        let mut lost = |error| damage.push(error);
        let scopes = loaded
            .section(SectionKind::Scopes)
            .and_then(|section| ScopeDir::open(&section, &zone));
        let columns = loaded
            .section(SectionKind::Columns)
            .and_then(|section| Columns::open(&section, &zone));
        let tags = loaded.section(SectionKind::Tags).and_then(|tags| {
            let row_tags = loaded.section(SectionKind::RowTags)?;
            Tags::open_by_row(tags, row_tags, zone.rows)
        });
        let source_ids = loaded.optional(SectionKind::SourceIds);
        let source_ids = source_ids.map(|section| Names::open(&section, NAME_BYTES_MAX));
        let (detailed, distilled) = open_texts(&loaded);
        let parts = Self {
            scopes: scopes.map_err(&mut lost).ok(),
            columns: columns.map_err(&mut lost).ok(),
            ids: open_ids(&loaded).map_err(&mut lost).ok(),
            tags: tags.map_err(&mut lost).ok(),
            detailed: detailed.map_err(&mut lost).ok(),
            distilled: part(distilled, &mut lost),
            source_ids: part(source_ids.transpose(), &mut lost),
            vectors: (loaded.footer.spaces.iter())
                .map(|space| {
                    (
                        space.own.number,
                        part(open_vectors(&loaded, space), &mut lost),
                    )
                })
                .collect(),
            loaded,
            damage: Vec::new(),
        };
        Self { damage, ..parts }
    }

    /// What the footer says.
    pub fn describe(&self) -> Description {
        Description::of(&self.loaded)
    }

    /// What refers to this file, its bucket and its zone.
    pub fn meta(&self) -> SegmentMeta {
        SegmentMeta {
            file: self.loaded.file,
            bucket: self.loaded.footer.bucket,
            zone: self.loaded.footer.zone,
        }
    }

    /// Numbers of the segments that it replaced.
    pub fn lineage(&self) -> &[u64] {
        &self.loaded.footer.lineage
    }

    /// Everything that is damaged; empty for a whole file.
    pub fn damage(&self) -> &[SegmentError] {
        &self.damage
    }

    /// What can be told of a row below [`crate::Zone::rows`].
    pub fn identity(&self, row: u32) -> RowIdentity {
        let scope = self.scopes.as_ref().map(|dir| dir.key(dir.of_row(row)));
        let columns = self.columns.as_ref();
        RowIdentity {
            scope: scope.and_then(Scope::from_key),
            id: self.ids.as_ref().and_then(|ids| ids.get(row).ok()),
            commit_seq: columns.and_then(|columns| columns.commit_seq(row).ok()),
            event_time_us: columns.and_then(|columns| columns.event_time_us(row).ok()),
        }
    }

    /// The whole row: the record without its vectors, the vectors as stored, and its seq.
    ///
    /// # Errors
    /// `Corrupt` where any part of it is damaged.
    pub fn record(&self, row: u32) -> Result<(Record, StoredVectors, u64)> {
        let fields = self.columns()?.fields(row)?;
        let identity = self.identity(row);
        let (Some(scope), Some(id)) = (identity.scope, identity.id) else {
            return Err(self.lost("ids"));
        };
        let stored = self.stored(row)?;
        let tags = self.tags.as_ref().ok_or_else(|| self.lost("tags"))?;
        let mut vectors = StoredVectors::default();
        for (number, part) in &self.vectors {
            let vector = match part {
                Part::None => None,
                Part::Whole(vectors) => vectors.get(row)?,
                Part::Lost => return Err(self.lost("vectors")),
            };
            if let Some(vector) = vector {
                vectors.put(*number, vector.into_owned());
            }
        }
        let record = Record {
            id,
            scope,
            event_time_us: fields.event_time_us,
            text: stored.text,
            summary: stored.summary,
            speaker: stored.speaker,
            tags: tags.of_row(row)?,
            vector: None,
            vectors: Vec::new(),
            source: stored.source,
            source_class: SourceClass::from_column(fields.source_class),
            importance: Some(fields.importance).filter(|value| !value.is_nan()),
            source_id: self.source_id(row)?,
            attributes: stored.attributes,
            impacts: stored.impacts,
        };
        Ok((record, vectors, fields.commit_seq))
    }

    fn columns(&self) -> Result<&Columns> {
        self.columns.as_ref().ok_or_else(|| self.lost("columns"))
    }

    fn stored(&self, row: u32) -> Result<Stored> {
        let detailed = self.detailed.as_ref();
        let detailed = detailed.ok_or_else(|| self.lost("detailed"))?;
        let mut stored = detailed.row(row, decode_detailed)?;
        stored.summary = match &self.distilled {
            Part::None => None,
            Part::Whole(distilled) => distilled.row(row, decode_distilled)?,
            Part::Lost => return Err(self.lost("distilled")),
        };
        Ok(stored)
    }

    fn source_id(&self, row: u32) -> Result<Option<String>> {
        match (self.columns()?.source_id(row)?, &self.source_ids) {
            (None, _) => Ok(None),
            (Some(at), Part::Whole(names)) => names.get(at).map(Some),
            (Some(_), _) => Err(self.lost("source_ids")),
        }
    }

    fn lost(&self, section: &'static str) -> SegmentError {
        SegmentError::corrupt(&*self.loaded.name, section, 0, "the section is damaged")
    }
}

fn part<T>(opened: Result<Option<T>>, lost: &mut impl FnMut(SegmentError)) -> Part<T> {
    match opened {
        Ok(None) => Part::None,
        Ok(Some(whole)) => Part::Whole(whole),
        Err(error) => {
            lost(error);
            Part::Lost
        }
    }
}

fn open_ids(loaded: &Loaded) -> Result<Names> {
    let section = loaded.section(SectionKind::Ids)?;
    let names = Names::open(&section, ID_BYTES_MAX)?;
    let rows = loaded.footer.zone.rows;
    if names.count() == rows {
        return Ok(names);
    }
    Err(section.corrupt(0, format!("{} ids for {rows} rows", names.count())))
}

/// Texts and, where there are any, summaries. A lost dictionary loses both.
fn open_texts(loaded: &Loaded) -> (Result<TextBlocks>, Result<Option<TextBlocks>>) {
    let open = |blocks, index| {
        let dictionary = loaded.optional(SectionKind::TextDictionary);
        let dictionary = dictionary
            .map(|section| TextDictionary::open(&section))
            .transpose()?;
        TextBlocks::open(
            &loaded.section(blocks)?,
            &loaded.section(index)?,
            dictionary,
        )
    };
    let distilled = match loaded.footer.counts.summaries {
        0 => Ok(None),
        _ => open(SectionKind::Distilled, SectionKind::DistilledIndex).map(Some),
    };
    let detailed = open(SectionKind::Detailed, SectionKind::DetailedIndex);
    (detailed, distilled)
}
