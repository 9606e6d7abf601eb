//! How are the vectors of recent rows compared with a query? By their codes, which are made
//! when a row is inserted, so that rows are found at once and a flush copies them.

use super::{Memtable, VECTORS, Writer};
use crate::error::SegmentError;
use crate::prepared::{Prepared, VectorFormat};
use crate::read::{Accept, passing};
use crate::vectors::{CodeQuery, Nearest, dot, dot_four};

type Result<T> = std::result::Result<T, SegmentError>;

/// Codes that are copied out of the words and compared at a time.
const BLOCK: usize = 64;

impl Memtable {
    /// Writes the code of a row whose columns are written.
    pub(super) fn write_code(&self, writer: &mut Writer, row: u32, prepared: &Prepared) {
        let (Some(coder), Some(vector)) = (&self.coder, &prepared.vector) else {
            return;
        };
        writer.code.clear();
        let factor = coder.encode_with(vector, &mut writer.code, &mut writer.code_scratch);
        let own = coder.code_bytes() as u64 / 4 + 1;
        // The row counts itself; it is not yet published.
        let vectors = self
            .columns
            .get(u64::from(row) * super::ROW_WORDS + VECTORS);
        let mut at = u64::from(vectors - 1) * own;
        self.codes.reserve(at + own);
        for word in writer.code.as_chunks().0 {
            self.codes.set(at, u32::from_le_bytes(*word));
            at += 1;
        }
        self.codes.set(at, factor.to_bits());
        self.account(coder.code_bytes() + 4);
    }

    /// Place of a row's vector among all; `None` where it has none.
    fn vector_place(&self, row: u32) -> Option<u32> {
        let upto = self.column(row, VECTORS);
        let before = row
            .checked_sub(1)
            .map_or(0, |row| self.column(row, VECTORS));
        (upto > before).then_some(before)
    }

    /// See [`crate::Partition::code`].
    pub(super) fn push_code(&self, row: u32, code: &mut Vec<u8>) -> Option<f32> {
        let coder = self.coder.as_ref()?;
        let words = coder.code_bytes() as u64 / 4;
        let at = u64::from(self.vector_place(row)?) * (words + 1);
        match self.codes.together(at, coder.code_bytes() / 4) {
            Some(together) => {
                for word in together {
                    let word = word.load(super::Ordering::Relaxed);
                    code.extend_from_slice(&word.to_le_bytes());
                }
            }
            None => (at..at + words)
                .for_each(|at| code.extend_from_slice(&self.codes.get(at).to_le_bytes())),
        }
        Some(f32::from_bits(self.codes.get(at + words)))
    }

    /// See [`crate::Partition::scan_codes`].
    pub(super) fn scan_rows(
        &self,
        query: &CodeQuery,
        rows: impl Iterator<Item = u32>,
        source: u32,
        mut accept: Option<Accept<'_>>,
        nearest: &mut Nearest,
    ) -> Result<u64> {
        let Some(coder) = &self.coder else {
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
            if let Some(factor) = self.push_code(row, &mut codes) {
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
                if let Some(vector) = self.body(*row).vector.as_deref() {
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
