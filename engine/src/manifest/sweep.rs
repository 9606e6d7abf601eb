//! Which files may go? Only what no reachable generation can name, and only our own names.
//!
//! Nothing here removes a file before a publish has returned, or what was loaded for writing was
//! proven: a pointer must be durable before anything it no longer names is unlinked. Unlinks are
//! not synced: one that is lost leaves an orphan for the next sweep.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::Vfs;

use super::model::Manifest;
use super::names::{CURRENT_TEMP, DataName, MANIFEST_DIR, ManifestName, SEGMENTS_DIR};

/// Names in the manifest directory that may go once `generation` is published: copies of
/// the generations before the one before it. The previous generation stays for readers that
/// have just read the old `CURRENT`.
pub fn obsolete<'a>(
    names: impl IntoIterator<Item = &'a str>,
    generation: u64,
) -> Vec<ManifestName> {
    let mut old: Vec<ManifestName> = names
        .into_iter()
        .filter_map(ManifestName::parse)
        .filter(|name| name.generation.saturating_add(2) <= generation)
        .collect();
    old.sort_unstable();
    old
}

/// Removes the manifest copies that `generation` made obsolete; returns how many.
///
/// # Errors
/// The system's error. What was not removed is an orphan for the next call.
pub fn remove_obsolete(vfs: &dyn Vfs, store: &Path, generation: u64) -> io::Result<usize> {
    let entries = vfs.list(&store.join(MANIFEST_DIR))?;
    let old = obsolete(entries.iter().map(|entry| entry.name.as_str()), generation);
    for name in &old {
        vfs.remove_file(&name.path(store))?;
    }
    Ok(old.len())
}

/// The first file number that neither the manifest nor any file on disk has taken. A writer
/// starts from it, so that a number of a flush that was cut short is not used again.
///
/// # Errors
/// The system's error.
pub fn first_free_file_number(vfs: &dyn Vfs, store: &Path, manifest: &Manifest) -> io::Result<u64> {
    let entries = vfs.list(&store.join(SEGMENTS_DIR))?;
    let taken = entries
        .iter()
        .filter_map(|entry| DataName::parse(&entry.name))
        .map(|name| name.file_number)
        .max();
    Ok(manifest
        .next_file_number
        .max(taken.map_or(0, |number| number.saturating_add(1))))
}

/// A file of ours that nobody names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Where it is.
    pub path: PathBuf,
    /// Its name, for people.
    pub shown: String,
}

/// What earlier processes left behind: temporaries, manifest copies other than `manifest`'s and
/// the one before it, and segments and side files that `manifest` does not name.
///
/// * `below`: what [`first_free_file_number`] said at this open. Files with this number or
///   above belong to a flush or compaction of this process and are left alone, so a sweep
///   may run beside them. It must not run beside a publish, since the temporaries of
///   manifest and pointer bear no such number.
///
/// # Errors
/// The system's error.
pub fn orphans(
    vfs: &dyn Vfs,
    store: &Path,
    manifest: &Manifest,
    below: u64,
) -> io::Result<Vec<Orphan>> {
    let mut found = Vec::new();
    let mut add = |path, shown| found.push(Orphan { path, shown });
    let generation = manifest.generation;
    for entry in vfs.list(&store.join(MANIFEST_DIR))? {
        let Some(name) = ManifestName::parse(&entry.name) else {
            continue;
        };
        let reachable =
            name.generation == generation || name.generation.checked_add(1) == Some(generation);
        if name.temp || !reachable {
            add(name.path(store), name.shown());
        }
    }
    let live = manifest.data_files();
    for entry in vfs.list(&store.join(SEGMENTS_DIR))? {
        let Some(name) = DataName::parse(&entry.name) else {
            continue;
        };
        if name.file_number < below && live.binary_search(&name).is_err() {
            add(name.path(store), name.shown());
        }
    }
    let temp = store.join(CURRENT_TEMP);
    match vfs.stat(&temp) {
        Ok(_) => add(temp, CURRENT_TEMP.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// Removes `orphans`, last in recovery and once the generation was proven; returns their names.
///
/// # Errors
/// The system's error. What was not removed is left for the next sweep.
pub fn sweep(vfs: &dyn Vfs, orphans: Vec<Orphan>) -> io::Result<Vec<String>> {
    let mut removed = Vec::with_capacity(orphans.len());
    for Orphan { path, shown } in orphans {
        vfs.remove_file(&path)?;
        removed.push(shown);
    }
    Ok(removed)
}
