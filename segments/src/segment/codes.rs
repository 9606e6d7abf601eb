//! How does a segment compare the codes of rows with a query?
//!
//! Codes lie in the order of the vectors. Where every row has one, row and place are the same;
//! else the presence bits tell, for stretches at the start and the end, and for the few rows
//! whose estimate is kept.

use super::{Result, Segment};
use crate::read::{Accept, CodeRows, passing};
use crate::space::SpaceNumber;
use crate::vectors::{CodeQuery, Nearest, Vectors};

impl Segment {
    /// See [`crate::Partition::code`].
    pub(super) fn code_of(
        &self,
        space: SpaceNumber,
        row: u32,
        code: &mut Vec<u8>,
    ) -> Result<Option<f32>> {
        let Some(own) = self.space(space) else {
            return Ok(None);
        };
        let codes = self.codes_of(own)?;
        let Some(ordinal) = own.vectors.ordinal_of(row)? else {
            return Ok(None);
        };
        let (bits, factor) = codes.get(ordinal)?;
        code.extend_from_slice(&bits);
        Ok(Some(factor))
    }

    /// See [`crate::Partition::scan_codes`].
    pub(super) fn scan_codes_of(
        &self,
        space: SpaceNumber,
        query: &CodeQuery,
        rows: CodeRows<'_>,
        source: u32,
        mut accept: Option<Accept<'_>>,
        nearest: &mut Nearest,
    ) -> Result<u64> {
        let Some(own) = self.space(space) else {
            return Ok(0);
        };
        let (vectors, codes) = (&own.vectors, self.codes_of(own)?);
        match rows {
            CodeRows::Run(run) => {
                let ordinals = vectors.ordinals(run.rows.clone())?;
                let mut places = Places::new(vectors);
                codes.scan(query, ordinals.clone(), &mut |first, estimates| {
                    if accept.is_none() {
                        nearest.expect(estimates);
                    }
                    nearest.offer_all(source, estimates, |at| {
                        // No overflow: a stretch lies inside the places of rows.
                        let row = places.row_of(first + small(at))?;
                        passing(&mut accept, row)
                    })
                })?;
                Ok(ordinals.len() as u64)
            }
            CodeRows::Listed(rows) if vectors.is_full() => {
                if let Some(last) = rows.last() {
                    self.check_row(*last)?;
                }
                codes.scan_listed(query, rows, &mut |rows, estimates| {
                    if accept.is_none() {
                        nearest.expect(estimates);
                    }
                    nearest.offer_all(source, estimates, |at| passing(&mut accept, rows[at]))
                })?;
                Ok(rows.len() as u64)
            }
            CodeRows::Listed(rows) => {
                let mut ordinals = Vec::with_capacity(rows.len());
                for row in rows {
                    ordinals.extend(vectors.ordinal_of(*row)?);
                }
                let mut places = Places::new(vectors);
                codes.scan_listed(query, &ordinals, &mut |ordinals, estimates| {
                    if accept.is_none() {
                        nearest.expect(estimates);
                    }
                    nearest.offer_all(source, estimates, |at| {
                        let row = places.row_of(ordinals[at])?;
                        passing(&mut accept, row)
                    })
                })?;
                Ok(ordinals.len() as u64)
            }
        }
    }
}

/// An index into a stretch.
fn small(at: usize) -> u32 {
    u32::try_from(at).expect("a stretch is short")
}

/// Rows of ascending places.
#[derive(Debug)]
struct Places<'a> {
    vectors: &'a Vectors,
    /// First row of the presence block that holds the place asked for last.
    block: u32,
}

impl<'a> Places<'a> {
    fn new(vectors: &'a Vectors) -> Self {
        Self { vectors, block: 0 }
    }

    fn row_of(&mut self, ordinal: u32) -> Result<u32> {
        self.vectors.row_of(ordinal, &mut self.block)
    }
}
