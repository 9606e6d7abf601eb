//! Which strings do a segment's rows share, so that small blocks need not repeat them?

use std::sync::Arc;

use zstd::zstd_safe::DDict;

use crate::error::SegmentError;
use crate::format::Section;

/// Largest dictionary, bytes.
pub(crate) const DICTIONARY_BYTES_MAX: usize = 64 << 10;
/// Least text for which one is trained, bytes.
const TEXT_BYTES_MIN: u64 = 1 << 20;
/// A dictionary takes at most this share of the text.
const TEXT_SHARE: u64 = 32;
/// About one sample, bytes.
pub(crate) const SAMPLE_BYTES: u64 = 1 << 10;
/// Bytes of samples, about: eight times the largest dictionary. The trainer compresses all of them
/// several times, so that of more it costs more than the text's compression; twice as much made
/// nothing smaller.
pub(crate) const SAMPLES_BYTES: u64 = 8 * DICTIONARY_BYTES_MAX as u64;

/// Trains a dictionary on `samples` of `text_bytes` bytes of text; `None` where there is too
/// little text, or nothing in common.
pub(crate) fn train(samples: &[Vec<u8>], text_bytes: u64) -> Option<Vec<u8>> {
    if text_bytes < TEXT_BYTES_MIN {
        return None;
    }
    let share = usize::try_from(text_bytes / TEXT_SHARE).unwrap_or(usize::MAX);
    // The trainer fails where the samples share too little; the segment does without.
    let dictionary = zstd::dict::from_samples(samples, share.min(DICTIONARY_BYTES_MAX)).ok()?;
    assert!(dictionary.len() <= share, "the trainer keeps to its limit");
    Some(dictionary)
}

/// A dictionary made ready for decompression.
#[derive(Clone)]
pub(crate) struct TextDictionary(Arc<DDict<'static>>);

impl TextDictionary {
    /// Reads the section.
    ///
    /// # Errors
    /// `Corrupt` where it is too long or no dictionary.
    pub(crate) fn open(section: &Section) -> Result<Self, SegmentError> {
        if section.len() > DICTIONARY_BYTES_MAX as u64 {
            return Err(section.corrupt(
                0,
                format!("{} bytes; at most {DICTIONARY_BYTES_MAX}", section.len()),
            ));
        }
        let bytes = section.all()?;
        let dictionary = DDict::try_create(&bytes);
        dictionary
            .map(|dictionary| Self(Arc::new(dictionary)))
            .ok_or_else(|| section.corrupt(0, "not a dictionary"))
    }

    pub(super) fn get(&self) -> &DDict<'static> {
        &self.0
    }
}

impl std::fmt::Debug for TextDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TextDictionary")
    }
}
