//! Do the sections of vectors agree, in each space: vectors, presence, codes and runs?

use super::Found;
use crate::format::SectionKind;
use crate::read::Partition;
use crate::segment::spaces::SpaceVectors;
use crate::segment::{Result, Segment};
use crate::vectors::{CodeScratch, Coder, widen};

/// How far from 1 the length of a stored unit vector may be: half precision rounds each
/// component by up to 2^-11.
const NORM_SLACK: f64 = 0.01;

impl Segment {
    /// As many vectors as the footer says.
    pub(super) fn check_vector_rows(&self, found: &mut Found) -> Result<()> {
        for (own, expected) in self.describe().spaces {
            let (mut vectors, number) = (0, own.number);
            for row in 0..self.scopes.rows() {
                vectors += u32::from(self.vector(number, row)?.is_some());
            }
            if vectors != expected {
                let message = format!("{vectors} vectors, the footer has {expected}");
                found.damage_in(self, (SectionKind::VectorRows, number), message);
            }
        }
        Ok(())
    }

    /// Runs hold rows with a vector alone, and their radii bound.
    pub(super) fn check_vector_runs(&self, found: &mut Found) -> Result<()> {
        for own in &self.spaces {
            let number = own.own.number;
            let Some(runs) = self.runs_of(number)? else {
                continue;
            };
            for message in runs.contradictions(&own.vectors)? {
                found.damage_in(self, (SectionKind::VectorRuns, number), message);
            }
        }
        Ok(())
    }

    /// There is a code for every vector, of its space and the store.
    pub(super) fn check_code_rows(&self, _: &mut Found) -> Result<()> {
        let mut spaces = self.spaces.iter();
        spaces.try_for_each(|own| self.codes_of(own).map(|_| ()))
    }

    /// Vectors are of finite numbers and, where the space asks for it, of unit length.
    pub(super) fn check_vectors(&self, found: &mut Found) -> Result<()> {
        for own in &self.spaces {
            self.check_vectors_of(own, found)?;
        }
        Ok(())
    }

    fn check_vectors_of(&self, own: &SpaceVectors, found: &mut Found) -> Result<()> {
        let (number, space) = (own.own.number, &own.own.space);
        for row in 0..self.scopes.rows() {
            let Some(stored) = self.vector(number, row)? else {
                continue;
            };
            let squares = widen(&stored, space.format)
                .into_iter()
                .map(|x| f64::from(x) * f64::from(x));
            let norm = squares.sum::<f64>().sqrt();
            if !norm.is_finite() || (space.normalised && (norm - 1.0).abs() > NORM_SLACK) {
                let message = format!("the vector of row {row} has length {norm}");
                found.damage_in(self, (SectionKind::Vectors, number), message);
            }
        }
        Ok(())
    }

    /// Codes and factors are those of the vectors.
    pub(super) fn check_codes(&self, found: &mut Found) -> Result<()> {
        for own in &self.spaces {
            self.check_codes_of(own, found)?;
        }
        Ok(())
    }

    fn check_codes_of(&self, own: &SpaceVectors, found: &mut Found) -> Result<()> {
        let (number, codes) = (own.own.number, self.codes_of(own)?);
        let coder = Coder::new(&own.own.space, codes.seed());
        let (mut stored, mut made, mut scratch) = (Vec::new(), Vec::new(), CodeScratch::default());
        for row in 0..self.scopes.rows() {
            let Some(vector) = self.vector(number, row)? else {
                continue;
            };
            stored.clear();
            made.clear();
            let stored_factor = self.code(number, row, &mut stored)?;
            let factor = coder.encode_with(&vector, &mut made, &mut scratch);
            // By bits: a factor without a value differs from every factor that is made.
            if stored_factor.map(f32::to_bits) != Some(factor.to_bits()) || stored != made {
                let message = format!("the code of row {row} is not that of its vector");
                found.damage_in(self, (SectionKind::VectorCodes, number), message);
            }
        }
        Ok(())
    }
}
