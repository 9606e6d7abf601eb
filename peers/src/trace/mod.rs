//! What would a power cut leave? A child runs under `strace`; its file operations become a list;
//! any prefix of that list, less what was not synced, becomes a directory again.
//!
//! ```text
//! strace -> parse (lines to calls) -> disk (calls to operations on files) -> cut (an image)
//! ```
//!
//! Two models of what an unsynced name is worth, see [`cut::Model`]. What the trace cannot show:
//! stores through a shared writable mapping (the files are named in [`disk::Recorded::mapped`]),
//! and a drive that lies.

pub mod cut;
pub mod disk;
pub mod parse;
