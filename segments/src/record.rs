//! What a memory is: the record a caller writes and the fixed-width fields of its row.

use serde::{Deserialize, Serialize};

use crate::error::Refused;
use crate::impacts::check_impacts;
use crate::limits;
use crate::scope::Scope;

/// Earliest event time: 0001-01-01T00:00:00Z, the first year that prints as RFC 3339.
pub const TIME_MIN_US: i64 = -62_135_596_800_000_000;
/// First event time that is refused: 10000-01-01T00:00:00Z does not print as RFC 3339.
pub const TIME_MAX_US: i64 = 253_402_300_800_000_000;

/// Where a memory comes from, weakest first. The order is the authority order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SourceClass {
    /// Made by a model from other records.
    ModelSummary = 1,
    /// Read on the web.
    Web = 2,
    /// A file of the project.
    ProjectFile = 3,
    /// Output of a tool.
    ToolOutput = 4,
    /// Confirmed by the user.
    UserConfirmed = 5,
}

impl SourceClass {
    /// All classes, weakest first.
    pub const ALL: [Self; 5] = [
        Self::ModelSummary,
        Self::Web,
        Self::ProjectFile,
        Self::ToolOutput,
        Self::UserConfirmed,
    ];

    /// The column value: 0 is "none given", which fails every floor.
    pub fn to_column(class: Option<Self>) -> u8 {
        class.map_or(0, |class| class as u8)
    }

    /// Reads a column value back; unknown values are `None`.
    pub fn from_column(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| *class as u8 == value)
    }

    /// The name in the interchange format.
    pub fn name(self) -> &'static str {
        match self {
            Self::ModelSummary => "model_summary",
            Self::Web => "web",
            Self::ProjectFile => "project_file",
            Self::ToolOutput => "tool_output",
            Self::UserConfirmed => "user_confirmed",
        }
    }

    /// Parses an interchange name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A vector with the space it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceVector {
    /// Name of the space.
    pub space: String,
    /// Who made the vector, where the caller says so: another one than the space's is refused,
    /// also where the dimension is the same.
    pub model: Option<String>,
    /// The vector, of the space's dimension.
    pub vector: Vec<f32>,
}

/// One memory as a caller writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Unique within its scope; not empty, no NUL.
    pub id: String,
    /// Who may see it.
    pub scope: Scope,
    /// When it happened, µs since the epoch; may lie in the future.
    pub event_time_us: i64,
    /// The full text that is evidence. May be empty.
    pub text: String,
    /// A short text that routes.
    pub summary: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// Tag names; duplicates are dropped, order is not kept.
    pub tags: Vec<String>,
    /// The caller's vector in the store's default vector space.
    pub vector: Option<Vec<f32>>,
    /// The caller's vectors in spaces that are named; see [`Record::vector_in`].
    pub vectors: Vec<SpaceVector>,
    /// Where it comes from, in the caller's words.
    pub source: Option<String>,
    /// How far it can be trusted.
    pub source_class: Option<SourceClass>,
    /// In [0, 1].
    pub importance: Option<f32>,
    /// The document it is a part of; `distinct` counts by it.
    pub source_id: Option<String>,
    /// A JSON object as text, or empty.
    pub attributes: String,
    /// Tokens with weights of a learned-sparse model, for
    /// [`Request::impact`](https://docs.rs/chronolith): each token once, at most
    /// [`IMPACTS_MAX`](crate::IMPACTS_MAX); weights above 0 and at most
    /// [`IMPACT_MAX`](crate::IMPACT_MAX), kept in steps of 1/256. No part of the text or its
    /// length.
    pub impacts: Vec<(String, f32)>,
}

impl Record {
    /// A record with text and time, everything else absent.
    pub fn new(
        scope: Scope,
        id: impl Into<String>,
        event_time_us: i64,
        text: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            scope,
            event_time_us,
            text: text.into(),
            summary: None,
            speaker: None,
            tags: Vec::new(),
            vector: None,
            vectors: Vec::new(),
            source: None,
            source_class: None,
            importance: None,
            source_id: None,
            attributes: String::new(),
            impacts: Vec::new(),
        }
    }

    /// Adds a vector in a named space of the store. A record may lack any.
    #[must_use]
    pub fn vector_in(mut self, space: impl Into<String>, vector: Vec<f32>) -> Self {
        self.vectors.push(SpaceVector {
            space: space.into(),
            model: None,
            vector,
        });
        self
    }

    /// Checks every limit but the vectors' (see [`crate::prepare_vector`]).
    ///
    /// # Errors
    /// [`Refused`] naming the first field at fault.
    pub fn check(&self) -> Result<(), Refused> {
        check_id(&self.id)?;
        if !(TIME_MIN_US..TIME_MAX_US).contains(&self.event_time_us) {
            return Err(Refused::new(
                "ts",
                "lies outside the years 1 to 9999 (µs since the epoch)",
            ));
        }
        check_len("text", &self.text, limits::TEXT_BYTES_MAX)?;
        check_opt(
            "summary",
            self.summary.as_deref(),
            limits::SUMMARY_BYTES_MAX,
        )?;
        check_opt("speaker", self.speaker.as_deref(), limits::NAME_BYTES_MAX)?;
        check_opt("source", self.source.as_deref(), limits::NAME_BYTES_MAX)?;
        check_opt(
            "source_id",
            self.source_id.as_deref(),
            limits::NAME_BYTES_MAX,
        )?;
        check_len("attributes", &self.attributes, limits::ATTRIBUTES_BYTES_MAX)?;
        check_tags(&self.tags)?;
        check_impacts(&self.impacts)?;
        match self.importance {
            Some(value) if !(0.0..=1.0).contains(&value) => {
                Err(Refused::new("importance", "must be a number from 0 to 1"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks a record id: not empty, no NUL, not too long.
///
/// # Errors
/// [`Refused`] on `id`.
pub(crate) fn check_id(id: &str) -> Result<(), Refused> {
    if id.is_empty() {
        return Err(Refused::new("id", "is empty"));
    }
    if id.contains('\0') {
        return Err(Refused::new("id", "holds a NUL character"));
    }
    check_len("id", id, limits::ID_BYTES_MAX)
}

fn check_len(field: &'static str, value: &str, bytes_max: usize) -> Result<(), Refused> {
    if value.len() > bytes_max {
        return Err(Refused::new(
            field,
            format!("is {} bytes long; at most {bytes_max}", value.len()),
        ));
    }
    Ok(())
}

fn check_opt(field: &'static str, value: Option<&str>, bytes_max: usize) -> Result<(), Refused> {
    value.map_or(Ok(()), |value| check_len(field, value, bytes_max))
}

fn check_tags(tags: &[String]) -> Result<(), Refused> {
    if tags.len() > limits::TAGS_MAX {
        return Err(Refused::new(
            "tags",
            format!("has {} entries; at most {}", tags.len(), limits::TAGS_MAX),
        ));
    }
    for tag in tags {
        if tag.is_empty() {
            return Err(Refused::new("tags", "holds an empty tag"));
        }
        check_len("tags", tag, limits::TAG_BYTES_MAX)?;
    }
    Ok(())
}

/// The fixed-width fields of a row: all that ranking, pruning and a hit need without text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowFields {
    /// When it happened, µs.
    pub event_time_us: i64,
    /// The engine's order of commits.
    pub commit_seq: u64,
    /// When it became known, µs.
    pub commit_time_us: i64,
    /// Start of validity, µs; the earlier of event time and commit time unless given.
    pub valid_from_us: i64,
    /// End of validity, µs; `i64::MAX` = open.
    pub valid_to_us: i64,
    /// When it expires, µs; `i64::MAX` = never.
    pub expires_us: i64,
    /// [`SourceClass`] as a column value; 0 = none.
    pub source_class: u8,
    /// In [0, 1]; NaN = none given.
    pub importance: f32,
    /// Counted tokens of the indexed text.
    pub length: u32,
    /// Token cost of the text by the store's counter.
    pub text_tokens: u32,
    /// Token cost of the summary by the store's counter; 0 = no summary.
    pub summary_tokens: u32,
    /// Semantic cluster inside the scope; 0 until rows are laid out by meaning.
    pub cluster: u32,
}
