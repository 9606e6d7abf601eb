//! Which files count? One generation of the manifest names every live file of a store.
//!
//! ```text
//! STORE/
//!   LOCK                              the writer's lock
//!   RESERVE                           space that is kept for a full disk
//!   CURRENT                           generation + digest of the manifest that counts
//!   manifest/MANIFEST-<16 hex>.a .b   two equal copies of one generation
//!   segments/<16 hex>.seg             segments
//!   segments/<16 hex>.del  .tags      side files: delete sets, tag graph
//!   wal/  catalog/                    other rooms
//! ```
//!
//! * [`Manifest`] is the plain value; [`Manifest::validate`] says what must hold in it.
//! * [`create`] makes a store; [`publish`] makes the next generation real, in the order
//!   data, copies, pointer; [`remove_obsolete`] comes only after it.
//! * [`load_read_only`] opens for other processes, and for a writer that calls [`prove`] before
//!   it writes; [`load`] does both. None ever falls back to another generation: what `CURRENT`
//!   names opens, or a named error says why not.
//! * [`orphans`] lists what nobody names, and [`sweep`] removes it.
//! * [`write_side_file`] and [`read_side_file`] hold what is too big for the list itself;
//!   [`deletes`] and [`tag_graph`] are their payloads.
//!
//! What this module does not do: it reads no segment, no log and no catalog, and it holds no
//! lock: at most one publisher at a time is the engine's duty.

pub mod deletes;
mod error;
mod format;
mod io;
mod load;
mod model;
pub mod names;
mod pointer;
mod publish;
mod side_file;
mod sweep;
pub mod tag_graph;
mod validate;

#[cfg(test)]
mod tests;

pub use error::{Finding, Invalid, ManifestError, PublishError, SideFileError};
pub use format::{FORMAT_VERSION, MANIFEST_BYTES_MAX};
pub use load::{Loaded, load, load_read_only, prove, read_copy, read_current, read_generation};
pub use model::{
    CatalogWitness, EPOCH_MAX, IndexOptions, LADDER_MAX, Manifest, NAME_BYTES_MAX, NamedSpace,
    SEGMENTS_MAX, SEQ_COUNTER_BITS, SPACES_MAX, SegmentEntry, Settings, SideFile, SpaceTable,
    Statistics, StoreId, VectorFormat, VectorSpace,
};
pub use pointer::Pointer;
pub use publish::{create, publish};
pub use side_file::{
    SIDE_FILE_BYTES_MAX, SIDE_FILE_FORMAT_VERSION, SideFileKind, read_side_file, write_side_file,
};
pub use sweep::{Orphan, first_free_file_number, obsolete, orphans, remove_obsolete, sweep};
