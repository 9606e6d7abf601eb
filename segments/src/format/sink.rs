//! Where does a section's writer put its bytes?

use crate::error::SegmentError;

/// Takes the bytes of one section in order.
pub trait SectionSink {
    /// Appends bytes.
    ///
    /// # Errors
    /// The file's refusal, or a passed limit.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError>;

    /// Bytes taken so far: the offset, from the section's start, of the next write.
    fn position(&self) -> u64;
}

/// A section in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VecSink {
    /// What was written.
    pub bytes: Vec<u8>,
}

impl SectionSink for VecSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn position(&self) -> u64 {
        self.bytes.len() as u64
    }
}
