//! What can go wrong with a row or a file of rows, and what to do about it.

use std::io;

/// A record or request that was refused before anything was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Refused {
    /// The field at fault, as it is called in the interchange format.
    pub field: &'static str,
    /// What is wrong and what is allowed. Never holds content of the record.
    pub message: String,
}

impl Refused {
    /// A refusal of `field` with what is allowed instead.
    pub fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self {
            field,
            message: message.into(),
        }
    }
}

/// Why a file of rows could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// Bytes on disk are not what was written. Restore the file or run `repair`.
    #[error(
        "damaged data in {file}, section {section}, offset {offset}: {message}; run `chronolith verify`, then restore or `repair`"
    )]
    Corrupt {
        /// File name inside the store.
        file: String,
        /// Named part of the file.
        section: &'static str,
        /// Byte offset in the file.
        offset: u64,
        /// Found against expected.
        message: String,
    },
    /// The file was written by a format this build does not read.
    #[error(
        "{file} has format version {found}, this build reads {supported}; use the release that wrote it"
    )]
    Version {
        /// File name inside the store.
        file: String,
        /// Version in the file.
        found: u32,
        /// Version this build reads.
        supported: u32,
    },
    /// The operating system refused.
    #[error("{operation} {file}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// File name inside the store.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A segment would pass one of the format's limits; flush or merge less at once.
    #[error("segment limit passed: {0}")]
    Limit(String),
    /// The caller of `write_segment_while` no longer wanted the file. Nothing of it is left.
    #[error("writing a segment was stopped by its caller")]
    Stopped,
}

impl SegmentError {
    /// Damage at `offset` of `section` in `file`.
    pub fn corrupt(
        file: impl Into<String>,
        section: &'static str,
        offset: u64,
        message: impl Into<String>,
    ) -> Self {
        Self::Corrupt {
            file: file.into(),
            section,
            offset,
            message: message.into(),
        }
    }

    /// The system's refusal of `operation` on `file`.
    pub fn io(operation: &'static str, file: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            operation,
            file: file.into(),
            source,
        }
    }
}
