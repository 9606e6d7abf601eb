//! How do codes get into a segment?

use super::format::Trailer;
use crate::error::SegmentError;
use crate::format::SectionSink;
use crate::prepared::VectorSpace;

use super::padded_dim;

/// Writes the codes of one segment in the order of its vectors; 4 bytes a vector wait in
/// memory.
#[derive(Debug)]
pub(crate) struct CodesWriter {
    trailer: Trailer,
    factors: Vec<u8>,
}

impl CodesWriter {
    /// A writer for codes of this space and seed.
    pub(crate) fn new(space: &VectorSpace, seed: u64) -> Self {
        let padded_dim = u32::try_from(padded_dim(space.dim)).expect("at most DIM_MAX");
        let trailer = Trailer {
            vectors: 0,
            padded_dim,
            seed,
        };
        Self {
            trailer,
            factors: Vec::new(),
        }
    }

    /// Appends the next vector's code and factor.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn push(
        &mut self,
        sink: &mut dyn SectionSink,
        code: &[u8],
        factor: f32,
    ) -> Result<(), SegmentError> {
        let bytes = self.trailer.padded_dim as usize / 8;
        assert_eq!(code.len(), bytes, "a code of another space");
        self.factors.extend_from_slice(&factor.to_le_bytes());
        self.trailer.vectors += 1;
        sink.write(code)
    }

    /// Ends the section.
    ///
    /// # Errors
    /// The sink's.
    pub(crate) fn finish(self, sink: &mut dyn SectionSink) -> Result<(), SegmentError> {
        sink.write(&self.factors)?;
        sink.write(&self.trailer.encode())
    }
}
