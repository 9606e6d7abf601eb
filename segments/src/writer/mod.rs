//! How do rows become a segment file?
//!
//! One path for flush and compaction: the inputs answer [`Partition`], the kept rows are put
//! in (scope, cluster, event time, seq) order, and each section is written from them in turn.
//! The file is written under a temporary name, synced, sealed and renamed; the caller syncs
//! the directory before it refers to the file.

mod cluster;
mod file;
mod order;
mod sections;
mod terms;
mod vectors;

use std::path::Path;

use chronolith_vfs::Vfs;
use roaring::RoaringBitmap;

use crate::error::SegmentError;
use crate::format::{Bucket, FORMAT_VERSION, FileIdentity, Footer, LINEAGE_MAX, ONE_SPACE};
use crate::limits::NAME_BYTES_MAX;
use crate::prepared::TokenCounter;
use crate::read::{Partition, Zone};
use crate::space::{NumberedSpace, SpaceNumber};

use cluster::Clusterer;
use file::FileWriter;
use order::Merge;

pub use cluster::{ClusterRows, Clustering, VectorRows};

type Result<T> = std::result::Result<T, SegmentError>;

/// In [`Written::remap`]: the row was not kept.
pub const ROW_DROPPED: u32 = u32::MAX;

/// Name of a segment file.
pub fn segment_file_name(file_number: u64) -> String {
    format!("{file_number:016x}.seg")
}

/// Name of a segment file that is still being written.
pub fn segment_temporary_name(file_number: u64) -> String {
    format!("{file_number:016x}.seg.tmp")
}

/// The number in a segment file's name; `None` for every other name.
pub fn parse_segment_file_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (segment_file_name(number) == name).then_some(number)
}

/// What a new segment is, apart from its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSpec {
    /// The store's id.
    pub store_id: [u8; 16],
    /// The file's number, never used before in the store.
    pub file_number: u64,
    /// The analyzer that made the terms.
    pub analyzer_id: String,
    /// The store's vector spaces, ascending by number: vectors of others are left out.
    pub spaces: Vec<NumberedSpace>,
    /// The space by whose vectors rows are laid out, where they are.
    pub layout: SpaceNumber,
    /// The counter that made the token costs.
    pub token_counter: TokenCounter,
    /// Window of event time that holds every row.
    pub bucket: Bucket,
    /// Numbers of the segments that this one replaces; empty for a flush.
    pub lineage: Vec<u64>,
    /// True: train a compression dictionary where there is enough text. False for a flush.
    pub train_dictionary: bool,
}

/// One source of rows.
#[derive(Debug)]
pub struct MergeInput<'a> {
    /// A sealed memtable or a segment.
    pub partition: &'a dyn Partition,
    /// Its rows to take.
    pub keep: RoaringBitmap,
}

/// What refers to a segment file: length and digest as they were when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentRef {
    /// The file's number, which is its name.
    pub file_number: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// xxh3-128 over header, checksums and footer, and so over every byte that is read.
    pub digest: u128,
}

/// A new segment as the manifest knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMeta {
    /// What refers to the file.
    pub file: SegmentRef,
    /// Its window of event time.
    pub bucket: Bucket,
    /// What pruning may know.
    pub zone: Zone,
}

/// A segment file that was written, synced and renamed; its name is not yet durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The new segment.
    pub meta: SegmentMeta,
    /// Of each input: old row to new row, or [`ROW_DROPPED`].
    pub remap: Vec<Vec<u32>>,
}

/// Writes the kept rows of all inputs as one segment file in `dir`.
///
/// # Errors
/// Damage in an input, the system's refusal, or a passed limit (no rows at all is one). The
/// temporary file is removed as far as the system lets us.
///
/// # Panics
/// If a row lies outside the bucket, or the inputs break the promises of [`Partition`].
pub fn write_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    spec: &SegmentSpec,
    inputs: &[MergeInput<'_>],
) -> Result<Written> {
    write_segment_while(vfs, dir, spec, inputs, &|| true)
}

/// As [`write_segment`], as long as `goes_on` says so, which is asked before each write.
///
/// # Errors
/// As [`write_segment`]; [`SegmentError::Stopped`].
///
/// # Panics
/// As [`write_segment`].
pub fn write_segment_while(
    vfs: &dyn Vfs,
    dir: &Path,
    spec: &SegmentSpec,
    inputs: &[MergeInput<'_>],
    goes_on: &dyn Fn() -> bool,
) -> Result<Written> {
    write(vfs, dir, spec, inputs, goes_on, None)
}

/// As [`write_segment_while`], with the rows of each scope laid out by what `rows` says of
/// their vectors.
///
/// # Errors
/// As [`write_segment_while`].
///
/// # Panics
/// As [`write_segment`].
pub fn write_segment_clustered(
    vfs: &dyn Vfs,
    dir: &Path,
    spec: &SegmentSpec,
    inputs: &[MergeInput<'_>],
    goes_on: &dyn Fn() -> bool,
    rows: &dyn ClusterRows,
) -> Result<Written> {
    write(vfs, dir, spec, inputs, goes_on, Some(rows))
}

fn write(
    vfs: &dyn Vfs,
    dir: &Path,
    spec: &SegmentSpec,
    inputs: &[MergeInput<'_>],
    goes_on: &dyn Fn() -> bool,
    rows: Option<&dyn ClusterRows>,
) -> Result<Written> {
    if spec.lineage.len() > LINEAGE_MAX || spec.analyzer_id.len() > NAME_BYTES_MAX {
        let message = format!(
            "{} replaced segments (at most {LINEAGE_MAX}), or too long an analyzer id",
            spec.lineage.len()
        );
        return Err(SegmentError::Limit(message));
    }
    let mut spaces = spec.spaces.iter();
    let space = spaces.find(|own| own.number == spec.layout && own.space.dim > 0);
    let clusterer = rows.zip(space).map(|(rows, space)| Clusterer {
        space,
        rows,
        goes_on,
    });
    let merge = Merge::new(inputs, &spec.bucket, clusterer)?;
    let temporary = dir.join(segment_temporary_name(spec.file_number));
    let name = segment_file_name(spec.file_number);
    let file = vfs
        .create_new(&temporary)
        .map_err(|e| SegmentError::io("create", &name, e))?;
    let identity = FileIdentity {
        store_id: spec.store_id,
        file_number: spec.file_number,
    };
    let version = match sections::further_spaces(spec, &merge).next() {
        Some(_) => FORMAT_VERSION,
        None => ONE_SPACE,
    };
    let written = FileWriter::new(file, name.clone(), (version, identity), goes_on)
        .and_then(|file| write_file(file, spec, &merge))
        .and_then(|meta| {
            vfs.seal(&temporary)
                .map_err(|e| SegmentError::io("seal", &name, e))?;
            vfs.rename(&temporary, &dir.join(&name))
                .map_err(|e| SegmentError::io("rename", &name, e))?;
            Ok(meta)
        });
    match written {
        Ok(meta) => Ok(Written {
            meta,
            remap: merge.into_remap(),
        }),
        Err(error) => {
            // Best effort: the sweep at the next open removes what is left.
            let _ = vfs.remove_file(&temporary);
            Err(error)
        }
    }
}

fn write_file(
    mut file: FileWriter<'_>,
    spec: &SegmentSpec,
    merge: &Merge<'_>,
) -> Result<SegmentMeta> {
    let sections::Summed {
        zone,
        counts,
        spaces,
    } = sections::write_sections(&mut file, spec, merge)?;
    let footer = Footer {
        sections: file.sections().to_vec(),
        analyzer_id: spec.analyzer_id.clone(),
        spaces,
        token_counter: spec.token_counter,
        bucket: spec.bucket,
        zone,
        counts,
        lineage: spec.lineage.clone(),
    };
    let (bytes, digest) = file.finish(&footer.encode())?;
    let file = SegmentRef {
        file_number: spec.file_number,
        bytes,
        digest,
    };
    Ok(SegmentMeta {
        file,
        bucket: spec.bucket,
        zone,
    })
}
