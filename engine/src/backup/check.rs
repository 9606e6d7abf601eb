//! Is what was brought a store that opens, with every byte as it was written?
//!
//! The same judges as a store's own: manifest, segments block by block, side files, log.

use std::path::Path;

use chronolith_segments::{ReadMode, Segment, SegmentRef};
use chronolith_vfs::Env;
use chronolith_wal::{Log, LogOptions};

use super::error::BackupError;
use super::index::{Index, Kind, Name};
use super::source::data_files;
use super::transfer::Ticker;
use crate::error::Error;
use crate::manifest::deletes::read_deletes;
use crate::manifest::names::{CURRENT, SEGMENTS_DIR, WAL_DIR};
use crate::manifest::tag_graph::read_tag_graph;
use crate::manifest::{self, Manifest, SegmentEntry, SideFile};

/// Where the parts of a store lie. In a store both are the same directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image<'a> {
    /// Holds `segments/`.
    pub(super) data: &'a Path,
    /// Holds `CURRENT`, `manifest/` and `wal/`.
    pub(super) point: &'a Path,
}

/// Verifies pointer, manifest and log of an image against its index, and returns the manifest.
pub(super) fn check_point(env: &Env, image: Image<'_>, index: &Index) -> Result<Manifest, Error> {
    let loaded = manifest::load_read_only(&*env.vfs, image.point)?;
    let manifest = loaded.manifest;
    if let Some(finding) = loaded.damaged_copy {
        let (section, offset) = (finding.section, finding.offset);
        return Err(BackupError::damaged(finding.file, section, offset, finding.message).into());
    }
    let contradiction = |what: String| Error::from(BackupError::damaged(CURRENT, "store", 0, what));
    if manifest.store_id != index.store_id {
        return Err(contradiction(
            "belongs to another store than the index".into(),
        ));
    }
    check_names(&manifest, index)?;
    let last_seq = match manifest.generation {
        1 => manifest.flushed_seq,
        _ => check_log(env, image.point, &manifest)?,
    };
    if last_seq != index.last_seq {
        let what = format!(
            "ends with seq {last_seq}, the index says {}",
            index.last_seq
        );
        return Err(contradiction(what));
    }
    Ok(manifest)
}

/// The data files of the index are those that the manifest names.
fn check_names(manifest: &Manifest, index: &Index) -> Result<(), Error> {
    let named = data_files(manifest);
    let data = index.items.iter().filter(|item| item.name.kind.is_data());
    let indexed: Vec<_> = data
        .map(|item| (item.name, item.bytes, item.origin))
        .collect();
    let named: Vec<_> = named
        .iter()
        .map(|file| (file.name, file.bytes, file.origin))
        .collect();
    let logs = index.items.iter().any(|item| item.name.kind == Kind::Log);
    if indexed == named && logs == (manifest.generation > 1) {
        return Ok(());
    }
    let odd = indexed.iter().find(|file| !named.contains(file));
    let odd = odd.or_else(|| named.iter().find(|file| !indexed.contains(file)));
    let shown = odd.map_or_else(|| WAL_DIR.to_owned(), |(name, ..)| name.shown());
    let message = "index and manifest do not name the same files";
    Err(BackupError::damaged(shown, "file", 0, message).into())
}

/// A copied log ends behind a frame: a torn end is damage here. Returns its last seq.
fn check_log(env: &Env, point: &Path, manifest: &Manifest) -> Result<u64, Error> {
    let options = LogOptions {
        floor_file: manifest.floor_file,
        flushed_seq: manifest.flushed_seq,
        strict_tail: true,
        ..LogOptions::new(manifest.store_id)
    };
    let recovered = Log::recover(env, &point.join(WAL_DIR), &options)?;
    Ok(recovered.report().last_seq)
}

/// Verifies each data file for which `wanted` says so.
pub(super) fn check_data(
    env: &Env,
    image: Image<'_>,
    manifest: &Manifest,
    wanted: &dyn Fn(Name) -> bool,
    ticker: &mut Ticker<'_>,
) -> Result<(), Error> {
    for entry in &manifest.segments {
        if wanted(Name::new(Kind::Segment, entry.file_number)) {
            check_segment(env, image, manifest, entry)?;
            ticker.done(entry.bytes);
        }
        if let Some(side) = wanted_side(&entry.deletes, Kind::Deletes, wanted) {
            read_deletes(
                &*env.vfs,
                image.data,
                &manifest.store_id,
                side,
                entry.file_number,
                entry.rows,
            )?;
            ticker.done(side.bytes);
        }
    }
    if let Some(side) = wanted_side(&manifest.tag_graph, Kind::TagGraph, wanted) {
        read_tag_graph(&*env.vfs, image.data, &manifest.store_id, side)?;
        ticker.done(side.bytes);
    }
    Ok(())
}

fn wanted_side<'a>(
    side: &'a Option<SideFile>,
    kind: Kind,
    wanted: &dyn Fn(Name) -> bool,
) -> Option<&'a SideFile> {
    let side = side.as_ref();
    side.filter(|side| wanted(Name::new(kind, side.file_number)))
}

fn check_segment(
    env: &Env,
    image: Image<'_>,
    manifest: &Manifest,
    entry: &SegmentEntry,
) -> Result<(), Error> {
    let reference = SegmentRef {
        file_number: entry.file_number,
        bytes: entry.bytes,
        digest: entry.digest,
    };
    let dir = image.data.join(SEGMENTS_DIR);
    // Never mapped: what lies in a backup is not the engine's alone.
    let mode = ReadMode::Positioned;
    let segment = Segment::open(&*env.vfs, &dir, &reference, manifest.store_id, mode)?;
    match segment.verify_all().findings.into_iter().next() {
        None => Ok(()),
        Some(found) => {
            let (file, section) = (found.file, found.section);
            let message = format!("{section}: {}", found.message);
            Err(BackupError::damaged(file, "segment", found.offset, message).into())
        }
    }
}
