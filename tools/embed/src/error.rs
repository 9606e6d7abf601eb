//! What can be wrong with a model's bytes?

/// A model that cannot be used. The built-in one is checked by a test; callers of
/// [`crate::Embedder::from_bytes`] learn which of their three files to fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The bytes are not a NumPy file of the one kind we read.
    #[error(
        "{file}: not a NumPy 1.0 array of {wanted}: {problem} at offset {offset}; export it again"
    )]
    Npy {
        /// Which of the files.
        file: &'static str,
        /// Element type we need, as NumPy writes it.
        wanted: &'static str,
        /// What does not fit.
        problem: &'static str,
        /// Where in the file, in bytes.
        offset: usize,
    },
    /// Two files disagree about the number of word pieces, or a row has the wrong width.
    #[error("{file}: {what} is {found}, expected {expected}; take the files of one model together")]
    Shape {
        /// Which of the files.
        file: &'static str,
        /// The figure that differs.
        what: &'static str,
        /// The figure found.
        found: usize,
        /// The figure the other files or this crate ask for.
        expected: usize,
    },
    /// The vocabulary is not one piece a line.
    #[error("vocabulary, line {line}: {problem}; give one distinct piece a line, [UNK] among them")]
    Vocabulary {
        /// Line, counted from 1; the number of lines if the problem is with all of them.
        line: usize,
        /// What does not fit.
        problem: &'static str,
    },
    /// A scale that is no number would spoil every vector it touches.
    #[error("scale, row {row}: not a finite number; export it again")]
    Scale {
        /// Row, counted from 0.
        row: usize,
    },
}
