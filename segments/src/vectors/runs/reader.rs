//! How are the runs of a segment read?

use std::ops::Range;

use super::format::{RUN_BYTES, SCOPE_BYTES, TRAILER_BYTES, Trailer};
use super::{ProbeShares, SHARE_ALL, distance};
use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::{Take, index};
use crate::prepared::{VectorFormat, VectorSpace};
use crate::scope_dir::ScopeDir;
use crate::vectors::format::component_bytes;
use crate::vectors::{Vectors, dot_many, widen};

type Result<T> = std::result::Result<T, SegmentError>;

/// The runs of one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRuns {
    /// Rows of all its runs: the scope's, apart from those before that have no vector.
    pub rows: Range<u32>,
    /// Numbers of its runs in the segment.
    pub runs: Range<u32>,
    /// How much of it a search has to look at.
    pub shares: ProbeShares,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    end_row: u32,
    radius: f64,
}

/// The runs of one segment: few numbers a run in memory, centroids where they lie.
#[derive(Debug)]
pub struct VectorRuns {
    section: Section,
    scopes: Vec<ScopeRuns>,
    runs: Vec<Run>,
    centroids_at: u64,
    vector_bytes: usize,
    format: VectorFormat,
}

impl VectorRuns {
    /// Opens section `vector_runs` of a segment with these scopes.
    ///
    /// # Errors
    /// `Corrupt` where it contradicts itself, the space or the scope directory.
    pub(crate) fn open(section: Section, space: &VectorSpace, dir: &ScopeDir) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES as u64);
        let found = section.get(at, TRAILER_BYTES)?;
        let mut take = Take::new(&section, at, &found);
        let rows = take.u32()?;
        let trailer = Trailer {
            rows: dir.rows(),
            scopes: take.u32()?,
            runs: take.u32()?,
            dim: space.dim,
            component_bytes: component_bytes(space.format),
        };
        let (vector_bytes, none) = (space.vector_bytes(), trailer.scopes == 0);
        let fits = trailer.trailer_at(vector_bytes) == at && rows == dir.rows();
        if *found != trailer.encode() || none || !fits || trailer.runs > rows {
            let message = format!("trailer is {found:?}, expected {trailer:?} at {at}");
            return Err(section.corrupt(at, message));
        }
        drop(found);
        let mut runs = Self {
            scopes: Vec::with_capacity(index(trailer.scopes)),
            runs: Vec::with_capacity(index(trailer.runs)),
            centroids_at: trailer.centroids_at(),
            vector_bytes,
            format: space.format,
            section,
        };
        runs.read_scopes(&trailer, dir)?;
        Ok(runs)
    }

    /// Reads the entries of scopes and runs, which lie before the trailer.
    fn read_scopes(&mut self, trailer: &Trailer, dir: &ScopeDir) -> Result<()> {
        let section = self.section.clone();
        let scopes = section.get(0, index(trailer.scopes) * SCOPE_BYTES)?;
        let runs = section.get(trailer.runs_at(), index(trailer.runs) * RUN_BYTES)?;
        let mut scopes = Take::new(&section, 0, &scopes);
        let mut runs = Take::new(&section, trailer.runs_at(), &runs);
        let mut scope_min = 0;
        while scopes.left() > 0 {
            let number = index(scopes.u32()?);
            if number < scope_min || number >= dir.len() {
                return Err(scopes.corrupt(format!("scope {number} of {}", dir.len())));
            }
            scope_min = number + 1;
            let own = dir.rows_of(number);
            let scope = self.read_scope(&mut scopes, &mut runs, own)?;
            self.scopes.push(scope);
        }
        match runs.left() {
            0 => Ok(()),
            left => Err(runs.corrupt(format!("{left} bytes of runs that no scope has"))),
        }
    }

    /// Reads one scope's entry behind its number, and its runs, which lie in the rows `own`.
    fn read_scope(
        &mut self,
        scopes: &mut Take<'_>,
        runs: &mut Take<'_>,
        own: Range<u32>,
    ) -> Result<ScopeRuns> {
        let (first, count) = (scopes.u32()?, scopes.u32()?);
        let shares = ProbeShares {
            share_95: scopes.u32()?,
            share_99: scopes.u32()?,
        };
        let in_range = |share| (1..=SHARE_ALL).contains(&share);
        let good_shares = in_range(shares.share_95) && in_range(shares.share_99);
        if scopes.u32()? != 0 || !own.contains(&first) || count == 0 || !good_shares {
            let message = format!("{count} runs from row {first} in rows {own:?}, {shares:?}");
            return Err(scopes.corrupt(message));
        }
        let (before, mut end) = (self.runs.len(), first);
        for left in (0..count).rev() {
            let (end_row, zeros, radius) = (runs.u32()?, runs.u32()?, f64::from_bits(runs.u64()?));
            let right_end = match left {
                0 => end_row == own.end,
                _ => end_row < own.end,
            };
            if end_row <= end || !right_end || zeros != 0 || !(0.0..f64::INFINITY).contains(&radius)
            {
                let message =
                    format!("a run of rows {end}..{end_row} in {own:?} with radius {radius}");
                return Err(runs.corrupt(message));
            }
            self.runs.push(Run { end_row, radius });
            end = end_row;
        }
        let number = |len: usize| u32::try_from(len).expect("fewer runs than rows");
        Ok(ScopeRuns {
            rows: first..end,
            runs: number(before)..number(self.runs.len()),
            shares,
        })
    }

    /// The scopes with runs whose rows in runs meet `rows`, ascending.
    pub fn scopes_in(&self, rows: &Range<u32>) -> &[ScopeRuns] {
        let from = self
            .scopes
            .partition_point(|scope| scope.rows.end <= rows.start);
        let len = self.scopes[from..].partition_point(|scope| scope.rows.start < rows.end);
        &self.scopes[from..from + len]
    }

    /// Runs of all scopes.
    pub fn count(&self) -> u32 {
        self.scopes.last().map_or(0, |scope| scope.runs.end)
    }

    /// Rows of a run of `scope`.
    ///
    /// # Panics
    /// If the scope has no such run.
    pub fn rows_of(&self, scope: &ScopeRuns, run: u32) -> Range<u32> {
        assert!(scope.runs.contains(&run), "a run of this scope");
        let start = match run == scope.runs.start {
            true => scope.rows.start,
            false => self.runs[index(run) - 1].end_row,
        };
        start..self.runs[index(run)].end_row
    }

    /// How far from its centroid a vector of the run lies at most.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn radius(&self, run: u32) -> f64 {
        self.runs[index(run)].radius
    }

    /// Appends the dot products of `query` and the centroids of `runs`.
    ///
    /// # Errors
    /// Damage, or runs that there are not.
    ///
    /// # Panics
    /// If the query is not of the space's dimension.
    pub fn score(&self, query: &[f32], runs: Range<u32>, scores: &mut Vec<f32>) -> Result<()> {
        dot_many(query, &self.stored(runs)?, self.format, scores);
        Ok(())
    }

    /// The centroids of `runs`, one after the other.
    ///
    /// # Errors
    /// Damage, or runs that there are not.
    pub fn centroids(&self, runs: Range<u32>) -> Result<Vec<f32>> {
        Ok(widen(&self.stored(runs)?, self.format))
    }

    fn stored(&self, runs: Range<u32>) -> Result<std::borrow::Cow<'_, [u8]>> {
        if runs.start > runs.end || runs.end > self.count() {
            let message = format!("runs {runs:?} asked for, {} stored", self.count());
            return Err(self.section.corrupt(0, message));
        }
        let at = self.centroids_at + u64::from(runs.start) * self.vector_bytes as u64;
        self.section.get(at, runs.len() * self.vector_bytes)
    }

    /// What of the runs contradicts the rows: a run with a row that has no vector, or one that
    /// lies further from the centroid than the radius says. For a scrub.
    ///
    /// # Errors
    /// Damage.
    pub(crate) fn contradictions(&self, vectors: &Vectors) -> Result<Vec<String>> {
        let (mut found, mut scratch) = (Vec::new(), Vec::new());
        for scope in &self.scopes {
            for run in scope.runs.clone() {
                let (rows, centroid) = (self.rows_of(scope, run), self.centroids(run..run + 1)?);
                if !centroid.iter().all(|x| x.is_finite()) {
                    found.push(format!("the centroid of run {run} is not finite"));
                    continue;
                }
                for row in rows {
                    let Some(stored) = vectors.get(row)? else {
                        found.push(format!("row {row} of run {run} has no vector"));
                        continue;
                    };
                    let apart = distance(&centroid, &stored, self.format, &mut scratch);
                    if apart > self.radius(run) {
                        let radius = self.radius(run);
                        found.push(format!(
                            "row {row} lies {apart} from the centroid of run {run}, whose radius is {radius}"
                        ));
                    }
                }
            }
        }
        Ok(found)
    }
}
