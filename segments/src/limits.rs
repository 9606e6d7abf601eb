//! The one table of what a record may hold. Checked before the log; nothing is cut silently.

/// Longest record id, bytes.
pub const ID_BYTES_MAX: usize = 1024;
/// Longest scope key, bytes.
pub const SCOPE_BYTES_MAX: usize = 1024;
/// Most components of a scope.
pub const SCOPE_DEPTH_MAX: usize = 32;
/// Longest text, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longest summary, bytes.
pub const SUMMARY_BYTES_MAX: usize = 64 << 10;
/// Longest speaker, source or source id, bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Most distinct tags of a record.
pub const TAGS_MAX: usize = 8192;
/// Longest tag, bytes.
pub const TAG_BYTES_MAX: usize = 1024;
/// Longest attributes, bytes of JSON.
pub const ATTRIBUTES_BYTES_MAX: usize = 256 << 10;
/// Largest vector dimension.
pub const DIM_MAX: usize = 4096;
/// Most vector spaces of a store at a time.
pub const SPACES_MAX: usize = 8;
/// Longest name of a vector space, bytes.
pub const SPACE_NAME_BYTES_MAX: usize = 64;
/// Norm below which a vector has no direction.
pub const NORM_MIN: f64 = 1e-12;
/// Largest encoded batch, bytes: one log frame.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// Longest term, bytes.
pub const TERM_BYTES_MAX: usize = 256;
/// Most rows of one partition.
pub const ROWS_MAX: u32 = 1 << 30;
