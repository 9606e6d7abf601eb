//! What can be saved of a damaged store? Everything that can be proved, into a new one.
//!
//! ```text
//!   source (never written)                                   destination
//!   CURRENT, manifests ---> which store, how made, what counts     |
//!   segments, delete sets --> rows and deaths ---+                 |
//!   log, frame by frame ----> operations --------+--> ledger ------+--> new store, renamed
//!                                                     by seq       |     into place at the end
//!                                                                  +--> report: what is missing
//! ```
//!
//! * Never automatic, never destructive: only [`repair`] does this, and the source keeps every
//!   byte. A store that a writer has open is refused.
//! * Of each (scope, id) the newest version counts that is known to have been. Where that one
//!   is damaged, no older one takes its place: it is reported as lost.
//! * Rows of segments that were replaced, and frames that were flushed, come back only where
//!   the file that counts is damaged (see `gather`); where that leaves it open whether a record
//!   had been deleted, the report says so.
//! * The new store has an id of its own, and new seqs and commit times in the old order. Event
//!   times, ids, scopes, texts, tags, attributes and vectors are bit by bit the old ones; terms
//!   are made anew, the catalog is built by the first open.
//!
//! What a repair cannot know: with every manifest lost, a segment file or delete set that is
//! lost too leaves no trace but its part of the log (so without a log from the first commit on
//! no such repair calls itself complete); and where a power cut brought back
//! files that a compaction without output had just unlinked, their rows count again.
//!
//! Doing: `identity`, `sources` (segments and delete sets, through `few_files`), `doubt` (what may be gone without
//! a trace), `gather` (the ledger and its holes), `site` (where the new store is built), `write`
//! (the new store). Values: `ledger`, `report`, `error`.

mod doubt;
mod error;
mod few_files;
mod gather;
mod identity;
mod ledger;
mod report;
mod site;
mod sources;
mod write;

use std::io;
use std::path::Path;

use chronolith_vfs::{Env, is_refusal};
use chronolith_wal::{LogSalvage, salvage_log};

pub use error::RepairError;
pub use report::{DamagedFile, DeletesAtRisk, LostId, ManifestState, Missing, RepairReport};

use crate::error::Error;
use crate::manifest::names::{BACKUP, CURRENT, DataKind, DataName, WAL_DIR};
use crate::manifest::tag_graph::{StoredEdge, read_unreferenced_tag_graph};
use crate::options::Setup;
use crate::settings::LOCK_NAME;
use crate::tag_graph::{TagEdge, TagGraph};
use few_files::FewFiles;
use identity::{Origin, data_names, log_numbers};
use site::Site;
use write::{Contents, hex};

/// How a store is repaired.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// How the store was made, for what no file says any more. Where a manifest is whole it is
    /// not looked at; where only segments are, they win in what they hold (analyzer, vectors,
    /// token counter, usually the bucket).
    pub setup: Option<Setup>,
    /// Most ids in [`RepairReport::lost_ids`]; all are counted.
    pub lost_ids_max: usize,
    /// A memtable of the new store over this is flushed.
    pub memtable_bytes_max: u64,
    /// Files, clock, seed and threads.
    pub env: Env,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self {
            setup: None,
            lost_ids_max: 1000,
            memtable_bytes_max: 64 << 20,
            env: Env::real(),
        }
    }
}

/// How far a repair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairProgress {
    /// What is being done.
    pub stage: RepairStage,
    /// Done of `total`: segments, or records.
    pub done: u64,
    /// All there are.
    pub total: u64,
}

/// What a repair is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStage {
    /// Reading and verifying segments.
    Segments,
    /// Walking the log.
    Log,
    /// Writing the new store.
    Writing,
}

/// Writes a new store at `dest` from what can be proved of the damaged one at `source`.
///
/// `dest` must not exist or be empty; until the whole new store is durable nothing is there.
/// The source is not written to and no lock of it is held; a writer that has it open, before or
/// at the end, is a reason to refuse. Memory: about the size of all ids and scope keys.
///
/// # Errors
/// `Locked`: close the store first. [`Error::Repair`]: see [`RepairError`]. A newer format is
/// refused as `WrongVersion`. Failures of the destination's file system. What cannot be read of
/// the source is no error but in the report, unless a directory of it cannot be listed, or the
/// system refuses for want of rights, memory or descriptors, of which about 64 are needed
/// however many segments there are.
pub fn repair(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &RepairOptions,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairReport, Error> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    refuse_backup(source, options)?;
    refuse_live(source, options)?;
    let mut report = RepairReport::default();
    let origin = Origin::find(source, options, &mut report)?;
    let site = Site::prepare(source, dest, &origin.store_id, options)?;
    match salvage(source, &origin, &site, options, &mut report, progress) {
        Ok(lost) => report.lost_ids = lost,
        Err(error) => {
            site.abandon(options);
            return Err(error);
        }
    }
    report.lost_ids.sort();
    report.lost_ids.dedup();
    report.lost_ids_total = report.lost_ids.len() as u64;
    report.lost_ids.truncate(options.lost_ids_max);
    Ok(report)
}

/// Reads the source, writes the new store and gives it its name; returns the records that are
/// known to be lost, some of them twice.
fn salvage(
    source: &Path,
    origin: &Origin,
    site: &Site,
    options: &RepairOptions,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<Vec<LostId>, Error> {
    report.source_id = hex(&origin.store_id);
    if origin.listed.is_none() {
        report.manifest = ManifestState::Rebuilt;
        report.notes.push(
            "no manifest says which files count: a segment file that is lost too may have left \
             no trace"
                .into(),
        );
    }
    let at = |stage| move |done, total| RepairProgress { stage, done, total };
    let stage = at(RepairStage::Segments);
    let mut step = |done, total| progress(stage(done, total));
    let files = FewFiles::new(&options.env.vfs);
    let segments = sources::open_segments(source, &files, origin, options, report, &mut step)?;
    progress(at(RepairStage::Log)(0, 1));
    let log = read_log(source, origin, options)?;
    if !log.end_is_proven {
        let last = log
            .frames
            .last()
            .map_or(0, chronolith_wal::SalvagedFrame::last_seq);
        report.log_unproven_after = Some(last);
        report.notes.push(
            "neither wal/STATUS nor the header of the newest log file can be read: were a later \
             log file missing, nothing would say so"
                .into(),
        );
    }
    let graph = read_graph(source, origin, options, report)?;
    let log_files = log_numbers(&options.env, source)?;
    let lost_begin = doubt::lost_begin(origin, &segments, &log, &log_files);
    let at_risk = doubt::lost_deletes(origin, &segments, &log, &log_files);
    report.deletes_at_risk.extend(at_risk);
    let gathered = gather::gather(origin, &segments, &log, lost_begin, graph, report);

    let mut lost = gathered.settle(report);
    let mut contents = Contents::new(&segments, &log, origin);
    let stage = at(RepairStage::Writing);
    let mut step = |done, total| progress(stage(done, total));
    let damaged = site.build(origin, &gathered, &mut contents, options, report, &mut step)?;
    if let Some((path, error)) = files.take_refusal() {
        // Rows that could not be read are not known to be damaged.
        return Err(Error::io("open", path, error));
    }
    refuse_live(source, options)?;
    site.publish(options)?;
    lost.extend(damaged);
    Ok(lost)
}

/// Refuses a backup: what it holds stands in places of its own, and `restore` knows them.
fn refuse_backup(source: &Path, options: &RepairOptions) -> Result<(), Error> {
    let is_there = |name: &str| options.env.vfs.stat(&source.join(name)).is_ok();
    if is_there(BACKUP) && !is_there(CURRENT) {
        let path = source.to_path_buf();
        return Err(RepairError::IsBackup { path }.into());
    }
    Ok(())
}

/// Refuses a store that a writer has open. Asks the lock, and lets go of it at once.
fn refuse_live(source: &Path, options: &RepairOptions) -> Result<(), Error> {
    let vfs = &*options.env.vfs;
    let lock = source.join(LOCK_NAME);
    if vfs.stat(&lock).is_err() {
        // Asking would make the file: without one nobody has the store open.
        return Ok(());
    }
    match vfs.try_lock(&lock) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::Locked {
            path: source.to_path_buf(),
        }),
        // On media that cannot be written nobody writes.
        _ => Ok(()),
    }
}

fn read_log(source: &Path, origin: &Origin, options: &RepairOptions) -> Result<LogSalvage, Error> {
    let dir = source.join(WAL_DIR);
    let listed = origin.listed.as_ref();
    // The first generation is published before the log begins.
    let floor = listed
        .filter(|manifest| manifest.generation > 1)
        .map_or(0, |manifest| manifest.floor_file);
    Ok(salvage_log(&options.env, &dir, origin.store_id, floor)?)
}

/// The tag graph that counts: the listed one, or the newest there is.
fn read_graph(
    source: &Path,
    origin: &Origin,
    options: &RepairOptions,
    report: &mut RepairReport,
) -> Result<TagGraph, Error> {
    let number = match &origin.listed {
        Some(manifest) => manifest.tag_graph.map(|side| side.file_number),
        None => {
            let names = data_names(&options.env, source)?;
            let graphs = names.iter().filter(|name| name.kind == DataKind::TagGraph);
            graphs.map(|name| name.file_number).max()
        }
    };
    let Some(number) = number else {
        return Ok(TagGraph::default());
    };
    let vfs = &*options.env.vfs;
    let edges = match read_unreferenced_tag_graph(vfs, source, &origin.store_id, number) {
        Ok(edges) => edges,
        Err(error @ crate::manifest::SideFileError::NewerFormat { .. }) => {
            return Err(Error::SideFile(error));
        }
        Err(crate::manifest::SideFileError::Io { source, path, .. }) if is_refusal(&source) => {
            return Err(Error::io("read", path, source));
        }
        Err(error) => {
            // An older file may hold edges that were taken back: none is better.
            let file = DataName::new(number, DataKind::TagGraph).shown();
            report.damage(&file, "tag graph", None, error.to_string());
            let listed = origin.listed.as_ref().and_then(|m| m.tag_graph);
            report.missing.push(Missing {
                file: Some(file),
                first_seq: None,
                last_seq: origin.listed.as_ref().map(|m| m.flushed_seq),
                records: Some(0),
                why: match listed {
                    Some(side) => format!("{} tag edges; those in the log are kept", side.entries),
                    None => "the tag edges; those in the log are kept".into(),
                },
            });
            return Ok(TagGraph::default());
        }
    };
    let edge = |stored: StoredEdge| {
        Some(TagEdge {
            scope: chronolith_segments::Scope::from_key(&stored.scope_key)?,
            parent: stored.parent,
            child: stored.child,
        })
    };
    Ok(TagGraph::new(edges.into_iter().filter_map(edge)))
}
