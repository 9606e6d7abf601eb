//! How are the codes of a segment read?

use std::borrow::Cow;
use std::ops::Range;

use super::format::{FACTOR_BYTES, TRAILER_BYTES, Trailer};
use super::{CodeQuery, padded_dim};
use crate::error::SegmentError;
use crate::format::Section;
use crate::prepared::VectorSpace;

type Result<T> = std::result::Result<T, SegmentError>;

/// Gets places and their estimates, as many.
type EachListed<'e> = dyn FnMut(&[u32], &[f32]) -> Result<()> + 'e;

/// Codes that a scan asks of the section at a time.
const STEP: u32 = 4096;
/// Listed codes that are read together, and the widest stretch that they may be spread over.
const LISTED: usize = 1024;
const SPREAD: u32 = 8192;

/// The codes of one segment, by place of the vector in section `vectors`.
#[derive(Debug)]
pub struct Codes {
    section: Section,
    count: u32,
    code_bytes: usize,
    seed: u64,
}

impl Codes {
    /// Opens section `vector_codes` of a segment with `count` vectors of `space`, in the store
    /// whose codes have this seed.
    ///
    /// # Errors
    /// `Corrupt` where length and trailer do not fit each other, the space or the seed.
    pub fn open(section: Section, space: &VectorSpace, count: u32, seed: u64) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES as u64);
        let padded = padded_dim(space.dim);
        let expected = Trailer {
            vectors: count,
            padded_dim: u32::try_from(padded).unwrap_or(u32::MAX),
            seed,
        };
        let found = section.get(at, TRAILER_BYTES)?;
        if *found != expected.encode() {
            let message = format!("trailer is {found:?}, expected {expected:?}");
            return Err(section.corrupt(at, message));
        }
        drop(found);
        if at != expected.body_bytes() {
            let message = format!("{at} bytes of codes, expected {}", expected.body_bytes());
            return Err(section.corrupt(0, message));
        }
        Ok(Self {
            section,
            count,
            code_bytes: padded / 8,
            seed,
        })
    }

    /// Vectors with a code: all of them.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Seed of the rotation.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of one code.
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Code and factor of the vector at `ordinal`.
    ///
    /// # Errors
    /// Damage, or a place behind the last.
    ///
    /// # Panics
    /// Never: a section gives as many bytes as it is asked for.
    pub fn get(&self, ordinal: u32) -> Result<(Cow<'_, [u8]>, f32)> {
        let (codes, factors) = self.range(ordinal..ordinal.saturating_add(1))?;
        let factor = factors.first_chunk().expect("four bytes were asked for");
        Ok((codes, f32::from_le_bytes(*factor)))
    }

    /// Codes and factors of the vectors at `ordinals`, one after the other each.
    ///
    /// # Errors
    /// Damage, or places behind the last.
    #[expect(clippy::type_complexity, reason = "two byte strings")]
    pub fn range(&self, ordinals: Range<u32>) -> Result<(Cow<'_, [u8]>, Cow<'_, [u8]>)> {
        if ordinals.start > ordinals.end || ordinals.end > self.count {
            let message = format!("codes {ordinals:?} asked for, {} stored", self.count);
            return Err(self.section.corrupt(0, message));
        }
        let (start, n) = (u64::from(ordinals.start), ordinals.len());
        let factors = u64::from(self.count) * self.code_bytes as u64;
        let codes = self
            .section
            .get(start * self.code_bytes as u64, n * self.code_bytes)?;
        let factors = self
            .section
            .get(factors + start * FACTOR_BYTES as u64, n * FACTOR_BYTES)?;
        Ok((codes, factors))
    }

    /// Estimates of all vectors at `ordinals`, in stretches: `each` gets the place of the first
    /// of a stretch and the estimates from there on.
    ///
    /// # Errors
    /// Damage; places behind the last; those of `each`.
    ///
    /// # Panics
    /// If the query is of another dimension or seed.
    pub fn scan(
        &self,
        query: &CodeQuery,
        ordinals: Range<u32>,
        each: &mut dyn FnMut(u32, &[f32]) -> Result<()>,
    ) -> Result<()> {
        self.check_query(query);
        let mut estimates = Vec::new();
        let mut start = ordinals.start;
        while start < ordinals.end {
            // No overflow: places are those of rows, at most 2^30.
            let end = ordinals.end.min(start + STEP);
            let (codes, factors) = self.range(start..end)?;
            query.estimate_many(&codes, &factors, &mut estimates);
            each(start, &estimates)?;
            start = end;
        }
        Ok(())
    }

    /// As [`Codes::scan`] of listed places, ascending: `each` gets those of a stretch and their
    /// estimates.
    ///
    /// # Errors
    /// As [`Codes::scan`].
    ///
    /// # Panics
    /// As [`Codes::scan`].
    pub fn scan_listed(
        &self,
        query: &CodeQuery,
        ordinals: &[u32],
        each: &mut EachListed<'_>,
    ) -> Result<()> {
        self.check_query(query);
        let (mut estimates, mut own_factors) = (Vec::new(), Vec::new());
        let mut rest = ordinals;
        while let Some(first) = rest.first().copied() {
            let within = |at: &u32| (first..first.saturating_add(SPREAD)).contains(at);
            let n = rest.iter().take(LISTED).take_while(|at| within(at)).count();
            let (some, later) = rest.split_at(n.max(1));
            rest = later;
            let last = some[some.len() - 1];
            let (codes, factors) = self.range(first..last.saturating_add(1))?;
            let bytes = self.code_bytes;
            own_factors.clear();
            let factors = factors.as_chunks::<FACTOR_BYTES>().0;
            own_factors.extend(some.iter().map(|at| factors[(at - first) as usize]));
            let code_at = |at: usize| {
                let from = (some[at] - first) as usize * bytes;
                &codes[from..from + bytes]
            };
            query.estimate(&own_factors, code_at, &mut estimates);
            each(some, &estimates)?;
        }
        Ok(())
    }

    fn check_query(&self, query: &CodeQuery) {
        assert_eq!(
            (query.seed(), query.code_bytes()),
            (self.seed, self.code_bytes),
            "a query of another space or store"
        );
    }
}
