//! Which rows have a vector in which space, and where is its code?
//!
//! Written by the one who inserts, before the row is published; a row's words never change.

use super::words::Words;
use super::{Body, Memtable, Writer};
use crate::prepared::Prepared;
use crate::space::{NumberedSpace, SpaceNumber};
use crate::vectors::Coder;

/// The rows of one space.
#[derive(Debug)]
pub(super) struct SpaceRows {
    own: NumberedSpace,
    /// Makes the codes; `None` without a seed.
    pub(super) coder: Option<Coder>,
    /// By row: how many rows below and at it have a vector.
    counts: Words,
    /// By place of the vector: words of the code, then its factor.
    pub(super) codes: Words,
}

impl SpaceRows {
    pub(super) fn new(own: NumberedSpace, code_seed: Option<u64>) -> Self {
        let coder = code_seed.map(|seed| Coder::new(&own.space, seed));
        Self {
            own,
            coder,
            counts: Words::new(),
            codes: Words::new(),
        }
    }

    pub(super) fn number(&self) -> SpaceNumber {
        self.own.number
    }

    /// Rows with a vector up to and with a row that is written.
    pub(super) fn count(&self, row: u32) -> u32 {
        self.counts.get(u64::from(row))
    }

    /// Rows with a vector below a row.
    fn count_below(&self, row: u32) -> u32 {
        row.checked_sub(1).map_or(0, |row| self.count(row))
    }

    /// Place of a row's vector among all; `None` where it has none.
    pub(super) fn place(&self, row: u32) -> Option<u32> {
        let before = self.count_below(row);
        (self.count(row) > before).then_some(before)
    }
}

impl Memtable {
    /// The rows of a space; `None` where the memtable has no such space.
    pub(super) fn space(&self, number: SpaceNumber) -> Option<&SpaceRows> {
        self.spaces.iter().find(|own| own.number() == number)
    }

    /// A record's vector in one of the memtable's spaces.
    ///
    /// # Panics
    /// If it is not of the space's size: it was checked when it was prepared.
    pub(super) fn own_vector<'p>(
        &self,
        prepared: &'p Prepared,
        number: SpaceNumber,
    ) -> Option<&'p [u8]> {
        let own = self.space(number)?;
        let vector = prepared.vectors.get(number)?;
        assert_eq!(
            vector.len(),
            own.own.space.vector_bytes(),
            "a vector has the form of its space"
        );
        Some(vector)
    }

    /// Counts the vectors of a row that is not yet published, and writes their codes.
    pub(super) fn write_vectors(&self, writer: &mut Writer, row: u32, prepared: &Prepared) {
        for own in &self.spaces {
            let (before, vector) = (
                own.count_below(row),
                self.own_vector(prepared, own.number()),
            );
            own.counts.reserve(u64::from(row) + 1);
            own.counts
                .set(u64::from(row), before + u32::from(vector.is_some()));
            if let (Some(coder), Some(vector)) = (&own.coder, vector) {
                self.write_code(writer, own, coder, before, vector);
            }
        }
    }
}

impl Body {
    /// The row's vector in a space.
    pub(super) fn vector(&self, number: SpaceNumber) -> Option<&[u8]> {
        if number.is_main() {
            return self.vector.as_deref();
        }
        let found = self.vectors.iter().find(|(own, _)| *own == number);
        found.map(|(_, vector)| &**vector)
    }
}
