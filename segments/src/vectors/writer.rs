//! How do vectors get into a segment?

use super::format::{PRESENCE_BYTES, PRESENCE_ROWS, RANK_BYTES, Trailer, component_bytes};
use crate::error::SegmentError;
use crate::format::SectionSink;
use crate::prepared::VectorSpace;

/// Writes the vectors of one segment, row by row.
#[derive(Debug)]
pub(crate) struct VectorsWriter {
    dim: u32,
    component_bytes: u8,
    vector_bytes: usize,
    rows: u32,
    vectors: u32,
    /// Whole presence blocks, the last one still growing.
    presence: Vec<u8>,
}

impl VectorsWriter {
    /// A writer for vectors of this space.
    pub(crate) fn new(space: &VectorSpace) -> Self {
        Self {
            dim: space.dim,
            component_bytes: component_bytes(space.format),
            vector_bytes: space.vector_bytes(),
            rows: 0,
            vectors: 0,
            presence: Vec::new(),
        }
    }

    /// Appends the next row: its vector as the space stores it goes to `vectors`, the sink of
    /// section `vectors`.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the vector is not of this space: the record was checked when it was prepared.
    pub(crate) fn push(
        &mut self,
        vectors: &mut dyn SectionSink,
        vector: Option<&[u8]>,
    ) -> Result<(), SegmentError> {
        let within = self.rows % PRESENCE_ROWS;
        if within == 0 {
            self.presence.extend_from_slice(&self.vectors.to_le_bytes());
            self.presence
                .resize(self.presence.len() + PRESENCE_BYTES - RANK_BYTES, 0);
        }
        if let Some(vector) = vector {
            assert_eq!(
                vector.len(),
                self.vector_bytes,
                "stored vector of another space"
            );
            vectors.write(vector)?;
            let block = self.presence.len() - PRESENCE_BYTES;
            self.presence[block + RANK_BYTES + within as usize / 8] |= 1 << (within % 8);
            self.vectors += 1;
        }
        self.rows += 1;
        Ok(())
    }

    /// Rows with a vector so far.
    pub(crate) fn vectors(&self) -> u32 {
        self.vectors
    }

    /// The bytes of section `vector_rows`.
    pub(crate) fn finish(self) -> Vec<u8> {
        let trailer = Trailer {
            rows: self.rows,
            vectors: self.vectors,
            dim: self.dim,
            component_bytes: self.component_bytes,
        };
        let mut bytes = if self.vectors == self.rows {
            Vec::new()
        } else {
            self.presence
        };
        bytes.extend_from_slice(&trailer.encode());
        bytes
    }
}
