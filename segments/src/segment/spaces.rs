//! What has a segment of each vector space? Vectors at once; codes and runs when first needed.

use super::lazy::Lazy;
use super::load::Loaded;
use super::{Result, Segment};
use crate::format::{FooterSpace, SectionKind};
use crate::prepared::VectorSpace;
use crate::space::{NumberedSpace, SpaceNumber};
use crate::vectors::{Codes, VectorRuns, Vectors, code_seed};

/// The vectors of one space.
#[derive(Debug)]
pub(super) struct SpaceVectors {
    pub(super) own: NumberedSpace,
    pub(super) vectors: Vectors,
    codes: Lazy<Codes>,
    runs: Lazy<Option<VectorRuns>>,
}

/// Opens the vectors of every space that has some.
pub(super) fn open_all(loaded: &Loaded) -> Result<Vec<SpaceVectors>> {
    let spaces = loaded.footer.spaces.iter();
    let opened = spaces.filter_map(|space| {
        let vectors = open_vectors(loaded, space).transpose()?;
        Some(vectors.map(|vectors| SpaceVectors {
            own: space.own.clone(),
            vectors,
            codes: Lazy::new(),
            runs: Lazy::new(),
        }))
    });
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let main = loaded.footer.zone.vectors;
    if main > 0
        && !loaded
            .footer
            .spaces
            .iter()
            .any(|space| space.own.number.is_main())
    {
        let section = loaded.section(SectionKind::Vectors)?;
        return Err(section.corrupt(0, "vectors without a vector space"));
    }
    Ok(opened)
}

/// Opens the vectors of a space; `None` where no row has one.
pub(super) fn open_vectors(loaded: &Loaded, space: &FooterSpace) -> Result<Option<Vectors>> {
    if space.vectors == 0 {
        return Ok(None);
    }
    let (number, rows) = (space.own.number, loaded.footer.zone.rows);
    let vectors = loaded.section_in(SectionKind::Vectors, number)?;
    let presence = loaded.section_in(SectionKind::VectorRows, number)?;
    let opened = Vectors::open(vectors, presence.clone(), &space.own.space, rows)?;
    if opened.count() != space.vectors {
        let (found, expected) = (opened.count(), space.vectors);
        let message = format!("{found} vectors, the footer has {expected}");
        return Err(presence.corrupt(0, message));
    }
    Ok(Some(opened))
}

impl Segment {
    /// The spaces that its footer names, ascending by number.
    pub fn spaces(&self) -> impl Iterator<Item = &NumberedSpace> {
        let spaces = self.loaded.footer.spaces.iter();
        spaces.map(|space| &space.own)
    }

    /// What the vectors of a space are.
    pub fn vector_space(&self, space: SpaceNumber) -> Option<&VectorSpace> {
        let mut spaces = self.spaces();
        let found = spaces.find(|own| own.number == space);
        found.map(|own| &own.space)
    }

    /// The vectors of a space, for scans; `None` where no row has one.
    pub fn vectors_of(&self, space: SpaceNumber) -> Option<&Vectors> {
        self.space(space).map(|own| &own.vectors)
    }

    /// The vectors of a space with what belongs to them; `None` where no row has one.
    pub(super) fn space(&self, number: SpaceNumber) -> Option<&SpaceVectors> {
        let mut spaces = self.spaces.iter();
        spaces.find(|space| space.own.number == number)
    }

    /// The codes of the vectors of a space; `None` where no row has one.
    ///
    /// # Errors
    /// `Corrupt` where they do not fit the vectors, the space or the store.
    pub fn codes(&self, space: SpaceNumber) -> Result<Option<&Codes>> {
        let own = self.space(space).map(|own| self.codes_of(own));
        own.transpose()
    }

    /// As [`Segment::codes`], of a space that has vectors.
    pub(super) fn codes_of<'s>(&self, own: &'s SpaceVectors) -> Result<&'s Codes> {
        own.codes.get(|| {
            let number = own.own.number;
            let section = self.loaded.section_in(SectionKind::VectorCodes, number)?;
            let (count, seed) = (own.vectors.count(), code_seed(&self.store_id()));
            Codes::open(section, &own.own.space, count, seed)
        })
    }

    /// See [`crate::Partition::vector_runs`].
    pub(super) fn runs_of(&self, space: SpaceNumber) -> Result<Option<&VectorRuns>> {
        let Some(own) = self.space(space) else {
            return Ok(None);
        };
        let runs = own.runs.get(|| {
            let section = self.loaded.optional_in(SectionKind::VectorRuns, space);
            let section =
                section.map(|section| VectorRuns::open(section, &own.own.space, &self.scopes));
            section.transpose()
        })?;
        Ok(runs.as_ref())
    }
}
