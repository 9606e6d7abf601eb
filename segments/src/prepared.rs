//! A record that passed all checks, in the form that log, memtable and segment share.

use half::f16;
use serde::{Deserialize, Serialize};

use crate::codec::RowTerms;
use crate::error::Refused;
use crate::limits::{DIM_MAX, NORM_MIN};
use crate::record::Record;
use crate::space::StoredVectors;

/// How vectors are stored; a store option, fixed for life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VectorFormat {
    /// IEEE half precision, two bytes a component, little-endian.
    F16,
    /// IEEE single precision, four bytes a component, little-endian.
    F32,
}

impl VectorFormat {
    /// Bytes of one component.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}

/// What the vectors of a space are: fixed for its life, named in manifest and segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorSpace {
    /// Who made the vectors: the embedder's id, or the caller's own name for it.
    pub model: String,
    /// Components of a vector, 1 to [`DIM_MAX`].
    pub dim: u32,
    /// Stored precision.
    pub format: VectorFormat,
    /// True: scaled to unit length in f32 before storing (cosine). False: dot product.
    pub normalised: bool,
}

impl VectorSpace {
    /// Bytes of one stored vector.
    pub fn vector_bytes(&self) -> usize {
        self.dim as usize * self.format.bytes()
    }
}

/// Checks a caller's vector and scales it as the space asks; f32, not yet narrowed.
///
/// # Errors
/// [`Refused`] on `vector`: wrong dimension, NaN or infinite, or a norm below 1e-12.
pub fn check_vector(space: &VectorSpace, vector: &[f32]) -> Result<Vec<f32>, Refused> {
    if vector.len() != space.dim as usize {
        let message = format!(
            "has {} components; this store takes {}",
            vector.len(),
            space.dim
        );
        return Err(Refused::new("vector", message));
    }
    debug_assert!(vector.len() <= DIM_MAX);
    if !vector.iter().all(|x| x.is_finite()) {
        return Err(Refused::new("vector", "holds NaN or infinity"));
    }
    // f64: squares of f32 neither overflow nor vanish.
    let norm = vector
        .iter()
        .map(|x| f64::from(*x) * f64::from(*x))
        .sum::<f64>()
        .sqrt();
    if norm < NORM_MIN {
        return Err(Refused::new(
            "vector",
            "has no direction: its norm is below 1e-12",
        ));
    }
    if !space.normalised {
        return Ok(vector.to_vec());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a unit vector's component fits f32"
    )]
    Ok(vector
        .iter()
        .map(|x| (f64::from(*x) / norm) as f32)
        .collect())
}

/// Checks a caller's vector and encodes it as the space stores it.
///
/// # Errors
/// [`Refused`] on `vector`, as [`check_vector`], and where a component does not fit f16.
pub fn prepare_vector(space: &VectorSpace, vector: &[f32]) -> Result<Vec<u8>, Refused> {
    let checked = check_vector(space, vector)?;
    match space.format {
        VectorFormat::F32 => Ok(checked.iter().flat_map(|x| x.to_le_bytes()).collect()),
        VectorFormat::F16 => {
            let halves: Vec<f16> = checked.iter().map(|x| f16::from_f32(*x)).collect();
            if !halves.iter().all(|x| x.is_finite()) {
                return Err(Refused::new(
                    "vector",
                    "holds a component beyond half precision",
                ));
            }
            Ok(halves.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
    }
}

/// How many tokens a text costs a caller's prompt; named and stored with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TokenCounter {
    /// ceil(bytes / 4).
    #[default]
    BytesOverFour,
    /// One a character: for CJK text.
    Characters,
}

impl TokenCounter {
    /// Token cost of `text`.
    pub fn cost(self, text: &str) -> u32 {
        let cost = match self {
            Self::BytesOverFour => text.len().div_ceil(4),
            Self::Characters => text.chars().count(),
        };
        u32::try_from(cost).unwrap_or(u32::MAX)
    }
}

/// A checked, analysed and encoded record, ready for the log and the memtable.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The record; its tags sorted and without duplicates, its vectors taken out.
    pub record: Record,
    /// Terms, frequencies and length of the indexed text.
    pub analyzed: RowTerms,
    /// The vectors as stored, see [`prepare_vector`].
    pub vectors: StoredVectors,
    /// When it became known, µs, where that was before its commit: the record stays what it
    /// was, and only gets vectors.
    pub known_since_us: Option<i64>,
    /// Token cost of the text.
    pub text_tokens: u32,
    /// Token cost of the summary, 0 without one.
    pub summary_tokens: u32,
}
