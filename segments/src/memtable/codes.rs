//! How are the vectors of recent rows compared with a query? By their codes, which are made
//! when a row is inserted, so that rows are found at once and a flush copies them.

use super::spaces::SpaceRows;
use super::{Memtable, Writer};
use crate::error::SegmentError;
use crate::prepared::VectorFormat;
use crate::read::{Accept, passing};
use crate::space::SpaceNumber;
use crate::vectors::{CodeQuery, Coder, Nearest, dot, dot_four};

type Result<T> = std::result::Result<T, SegmentError>;

/// Codes that are copied out of the words and compared at a time.
const BLOCK: usize = 64;

impl Memtable {
    /// Writes the code of a row's vector, at its place among all of the space.
    pub(super) fn write_code(
        &self,
        writer: &mut Writer,
        own: &SpaceRows,
        coder: &Coder,
        place: u32,
        vector: &[u8],
    ) {
        writer.code.clear();
        let factor = coder.encode_with(vector, &mut writer.code, &mut writer.code_scratch);
        let words = coder.code_bytes() as u64 / 4 + 1;
        let mut at = u64::from(place) * words;
        own.codes.reserve(at + words);
        for word in writer.code.as_chunks().0 {
            own.codes.set(at, u32::from_le_bytes(*word));
            at += 1;
        }
        own.codes.set(at, factor.to_bits());
        self.account(coder.code_bytes() + 4);
    }

    /// See [`crate::Partition::code`].
    pub(super) fn push_code(&self, own: &SpaceRows, row: u32, code: &mut Vec<u8>) -> Option<f32> {
        assert!(row < self.rows(), "row {row} is not in the memtable");
        let coder = own.coder.as_ref()?;
        let words = coder.code_bytes() as u64 / 4;
        let at = u64::from(own.place(row)?) * (words + 1);
        match own.codes.together(at, coder.code_bytes() / 4) {
            Some(together) => {
                for word in together {
                    let word = word.load(super::Ordering::Relaxed);
                    code.extend_from_slice(&word.to_le_bytes());
                }
            }
            None => (at..at + words)
                .for_each(|at| code.extend_from_slice(&own.codes.get(at).to_le_bytes())),
        }
        Some(f32::from_bits(own.codes.get(at + words)))
    }

    /// The rows of a space that has codes, and who makes them.
    pub(super) fn coded(&self, space: SpaceNumber) -> Option<(&SpaceRows, &Coder)> {
        let own = self.space(space)?;
        Some((own, own.coder.as_ref()?))
    }

    /// See [`crate::Partition::scan_codes`].
    pub(super) fn scan_rows(
        &self,
        space: SpaceNumber,
        query: &CodeQuery,
        rows: impl Iterator<Item = u32>,
        source: u32,
        mut accept: Option<Accept<'_>>,
        nearest: &mut Nearest,
    ) -> Result<u64> {
        let Some((own, coder)) = self.coded(space) else {
            return Ok(0);
        };
        assert_eq!(
            (query.seed(), query.code_bytes()),
            (coder.seed(), coder.code_bytes()),
            "a query of another space or store"
        );
        let (mut codes, mut factors) = (Vec::with_capacity(BLOCK * coder.code_bytes()), Vec::new());
        let (mut found, mut estimates) = (Vec::with_capacity(BLOCK), Vec::new());
        let mut compared = 0;
        let mut rows = rows.peekable();
        while let Some(row) = rows.next() {
            if let Some(factor) = self.push_code(own, row, &mut codes) {
                factors.extend_from_slice(&factor.to_le_bytes());
                found.push(row);
            }
            if found.len() < BLOCK && rows.peek().is_some() {
                continue;
            }
            query.estimate_many(&codes, &factors, &mut estimates);
            nearest.offer_all(source, &estimates, |at| passing(&mut accept, found[at]))?;
            compared += found.len() as u64;
            codes.clear();
            factors.clear();
            found.clear();
        }
        Ok(compared)
    }

    /// See [`crate::Partition::score_rows`].
    pub(super) fn score_vectors(
        &self,
        space: SpaceNumber,
        query: &[f32],
        format: VectorFormat,
        rows: &[u32],
        found: &mut Vec<u32>,
        scores: &mut Vec<f32>,
    ) {
        for rows in rows.chunks(4) {
            let mut stored = [&[][..]; 4];
            let mut filled = 0;
            for row in rows {
                if let Some(vector) = self.body(*row).vector(space) {
                    stored[filled] = vector;
                    filled += 1;
                    found.push(*row);
                }
            }
            if filled == 4 {
                scores.extend_from_slice(&dot_four(query, stored, format));
            } else {
                let some = stored[..filled].iter();
                scores.extend(some.map(|one| dot(query, one, format)));
            }
        }
    }
}
