//! How does a store come back? In PROTOCOL's order: lock, manifest, segments, log, replay.
//!
//! Nothing is written before everything was read and judged; then what `CURRENT` names is proven,
//! the log begins a new file with a higher epoch, and the sweep comes last. A crash at any point
//! repeats to the same state.
//!
//! A store that was closed cleanly needs none of that before it answers: its log is settled, and
//! nothing was replayed. There the log begins at the first append, and the proof is due before
//! the first append, publish or removal of a file, whichever is first. Until then nothing was
//! written that could depend on either, and a crash finds the store as it was closed. The price:
//! a disk that is full by then says so at the first write and not at the open.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use chronolith_segments::{
    Death, DeathKind, DeathLog, DeleteSet, Scope, SegmentError, SegmentRef, segment_file_name,
};
use chronolith_vfs::planted::{self, Bug};
use chronolith_wal::{Log, LogOptions, Recovered, log_name};

use crate::error::Error;
use crate::maintain::{Publisher, open_segment};
use crate::manifest::deletes::read_deletes;
use crate::manifest::tag_graph::read_tag_graph;
use crate::manifest::{self, Finding, Manifest, SideFileError};
use crate::options::Options;
use crate::settings::Shared;
use crate::tag_graph::{TagEdge, TagGraph};
use crate::version::{Current, LiveSegment, LostSegment, Version};
use crate::write::{Applier, Probed, decode};

/// What an open found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Generation of the manifest that was opened.
    pub generation: u64,
    /// Batches replayed from the log.
    pub batches_replayed: u64,
    /// Operations in them.
    pub operations_replayed: u64,
    /// Bytes behind the last whole frame that were dropped.
    pub bytes_dropped: u64,
    /// True where the dropped tail may have been acknowledged as `Synced`.
    pub ambiguous: bool,
    /// Last commit seq that was acknowledged (as `Buffered`) and that is lost, with all behind
    /// the last commit replayed. `None`: no such loss is known of.
    pub acked_lost_upto: Option<u64>,
    /// True where the log ended with a seal: the store was closed cleanly.
    pub sealed: bool,
    /// What is wrong with one of the two manifest copies; the other one was used.
    pub damaged_manifest_copy: Option<String>,
    /// Files of earlier processes that were removed.
    pub swept: Vec<String>,
}

/// Everything that an open produced.
pub(crate) struct Opened {
    pub(crate) shared: Shared,
    pub(crate) current: Current,
    pub(crate) log: Log,
    pub(crate) applier: Applier,
    pub(crate) publisher: Publisher,
    pub(crate) commit_time_us: i64,
    pub(crate) report: RecoveryReport,
}

/// Where the log goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogPlace {
    /// In a file of its own.
    New,
    /// In the newest file there is: for a disk that has no file to give.
    Newest,
}

/// Opens an existing store for writing. The caller holds the lock.
pub(crate) fn recover(options: &Options, dir: &Path, place: LogPlace) -> Result<Opened, Error> {
    let vfs = &*options.env.vfs;
    let loaded = manifest::load_read_only(vfs, dir)?;
    let mut manifest = loaded.manifest;
    let shared = Shared::new(options, dir, manifest.store_id, &manifest.settings)?;
    let version = open_version(&shared, &manifest)?;
    let log_options = log_options(options, &manifest);
    if manifest.generation == 1 {
        manifest::prove(vfs, dir)?;
        return begin(shared, version, manifest, &log_options);
    }
    let mut recovered = Log::recover(&shared.env, &shared.wal_dir(), &log_options)?;
    if recovered.base_seq() > manifest.flushed_seq {
        return Err(Error::Internal(format!(
            "{} begins behind seq {}, and the segments end at seq {}: commits between are in no file",
            log_name(manifest.floor_file),
            recovered.base_seq(),
            manifest.flushed_seq
        )));
    }

    // Edges that are replayed below are in the log alone until a flush settles them.
    let settled_graph = Arc::clone(&version.tag_graph);
    let mut replay = Replay::new(&shared, version, manifest.flushed_seq);
    replay.run(&shared, &recovered)?;
    let mut report = report_of(&recovered, loaded.damaged_copy, &replay);
    report.generation = manifest.generation;

    let highest = recovered.report().epoch_highest.max(manifest.epoch);
    // One too many is refused by name.
    let epoch = highest.saturating_add(u32::from(!planted::is_on(Bug::EpochNotRaised)));
    let io = |source| Error::io("list", dir, source);
    let free = manifest::first_free_file_number(vfs, dir, &manifest).map_err(io)?;
    let orphans = manifest::orphans(vfs, dir, &manifest, free).map_err(io)?;
    let is_late = replay.batches == 0 && place == LogPlace::New && recovered.is_settled();
    let is_proven = !is_late || !orphans.is_empty();
    if is_proven {
        manifest::prove(vfs, dir)?;
    }
    let log = match place {
        LogPlace::New if is_late => recovered.start_late(epoch)?,
        LogPlace::New => recovered.start(epoch)?,
        LogPlace::Newest => recovered.take_over(epoch)?,
    };
    report.swept = manifest::sweep(vfs, orphans).map_err(|e| Error::io("sweep", dir, e))?;
    chronolith_wal::sweep_temps(&shared.env, &shared.wal_dir())?;
    let Replay {
        current,
        applier,
        commit_time_us,
        ..
    } = replay;
    let commit_time_us = match planted::is_on(Bug::TimeNotKept) {
        true => commit_time_us,
        false => commit_time_us.max(manifest.flushed_time_us),
    };
    // What is appended from here on is in it, whatever the store was made in.
    let log_format = &mut manifest.settings.log_format;
    *log_format = chronolith_wal::FORMAT_NEWEST.max(*log_format);
    let publisher = Publisher::new(manifest, free, settled_graph, is_proven);
    Ok(Opened {
        shared,
        current,
        log,
        applier,
        publisher,
        commit_time_us,
        report,
    })
}

/// The first open after a creation: the log begins, and the second generation names it. Until
/// that is published nothing can have been written, so a log found here holds nothing.
fn begin(
    shared: Shared,
    version: Version,
    manifest: Manifest,
    log_options: &LogOptions,
) -> Result<Opened, Error> {
    let log = Log::create(
        &shared.env,
        &shared.wal_dir(),
        log_options,
        manifest.epoch + 1,
    )?;
    let replay = Replay::new(&shared, version, manifest.flushed_seq);
    let free = manifest.next_file_number;
    let mut publisher = Publisher::new(
        manifest,
        free,
        Arc::clone(&replay.current.version().tag_graph),
        true,
    );
    let mut second = publisher.successor();
    second.epoch = log.epoch();
    second.floor_file = log.current_file();
    publisher.publish(&shared, second)?;
    let report = RecoveryReport {
        generation: publisher.manifest().generation,
        sealed: true,
        ..Default::default()
    };
    let Replay {
        current,
        applier,
        commit_time_us,
        ..
    } = replay;
    Ok(Opened {
        shared,
        current,
        log,
        applier,
        publisher,
        commit_time_us,
        report,
    })
}

fn report_of(recovered: &Recovered, damaged: Option<Finding>, replay: &Replay) -> RecoveryReport {
    let log = recovered.report();
    RecoveryReport {
        batches_replayed: replay.batches,
        operations_replayed: replay.operations,
        bytes_dropped: log.bytes_dropped,
        ambiguous: log.ambiguous,
        acked_lost_upto: log.acked_lost_upto,
        sealed: log.sealed,
        damaged_manifest_copy: damaged.map(|finding| finding.to_string()),
        ..RecoveryReport::default()
    }
}

/// Options of the log as store and manifest want them.
pub(crate) fn log_options(options: &Options, manifest: &Manifest) -> LogOptions {
    LogOptions {
        floor_file: manifest.floor_file,
        flushed_seq: manifest.flushed_seq,
        strict_tail: options.strict_tail,
        preallocate_bytes: options.log_preallocate_bytes,
        leader_wait: options.leader_wait,
        file_bytes_max: options.log_file_bytes_max,
        ..LogOptions::new(manifest.store_id)
    }
}

/// Opens every segment and side file that the manifest names. No memtable yet.
pub(crate) fn open_version(shared: &Shared, manifest: &Manifest) -> Result<Version, Error> {
    let version = open_version_partly(shared, manifest, Absent::Lost)?;
    match version.lost.first() {
        Some(lost) => Err(lost.error().into()),
        None => Ok(version),
    }
}

/// What a file is that the manifest names and nobody finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Perhaps removed by a writer that published since: the system's error.
    Moved,
    /// Damage: no writer can have removed it.
    Lost,
}

/// As [`open_version`]; a segment that is damaged, or whose delete set is, is listed as lost.
pub(crate) fn open_version_partly(
    shared: &Shared,
    manifest: &Manifest,
    absent: Absent,
) -> Result<Version, Error> {
    let mut lost = Vec::new();
    let mut segments = Vec::with_capacity(manifest.segments.len());
    for entry in &manifest.segments {
        let reference = SegmentRef {
            file_number: entry.file_number,
            bytes: entry.bytes,
            digest: entry.digest,
        };
        let segment = match open_segment(shared, &reference) {
            Err(SegmentError::Corrupt {
                file,
                section,
                offset,
                message,
            }) => {
                lost.push(Arc::new(LostSegment {
                    file_number: entry.file_number,
                    damage: (file, section, offset, message),
                }));
                continue;
            }
            Err(SegmentError::Io { file, source, .. })
                if absent == Absent::Lost && source.kind() == ErrorKind::NotFound =>
            {
                lost.push(Arc::new(LostSegment {
                    file_number: entry.file_number,
                    damage: (file, "file", 0, "it is missing".into()),
                }));
                continue;
            }
            opened => opened?,
        };
        let dead = match delete_set(shared, entry, manifest.flushed_seq) {
            Err(Error::SideFile(error @ SideFileError::Missing { .. }))
                if absent == Absent::Lost =>
            {
                let file = segment_file_name(entry.file_number);
                lost.push(Arc::new(LostSegment {
                    file_number: entry.file_number,
                    damage: (file, "delete set", 0, error.to_string()),
                }));
                continue;
            }
            // Without its deaths a row that was forgotten would be back.
            Err(Error::SideFile(SideFileError::Damaged(found))) => {
                lost.push(Arc::new(LostSegment {
                    file_number: entry.file_number,
                    damage: (found.file, found.section, found.offset, found.message),
                }));
                continue;
            }
            read => read?,
        };
        segments.push(Arc::new(LiveSegment {
            segment: Arc::new(segment),
            entry: entry.clone(),
            deaths: DeathLog::new(&dead),
        }));
    }
    let tag_graph = Arc::new(tag_graph(shared, manifest)?);
    Ok(Version {
        segments,
        lost,
        memtables: Vec::new(),
        tag_graph,
        tag_graph_before: None,
    })
}

/// The settled deaths of a segment. All of them are at or below `flushed_seq`: later ones are
/// found again from the log.
fn delete_set(
    shared: &Shared,
    entry: &manifest::SegmentEntry,
    flushed_seq: u64,
) -> Result<DeleteSet, Error> {
    let Some(side) = &entry.deletes else {
        return Ok(DeleteSet::default());
    };
    let rows = read_deletes(
        &*shared.env.vfs,
        &shared.dir,
        &shared.store_id,
        side,
        entry.file_number,
        entry.rows,
    )?;
    let death = |row: manifest::deletes::DeadRow| {
        if row.seq > flushed_seq {
            return Err(Error::Internal(format!(
                "the delete set of {} holds a death at seq {}, above the flushed seq {flushed_seq}",
                segment_file_name(entry.file_number),
                row.seq
            )));
        }
        let kind = DeathKind::from_byte(row.kind).ok_or_else(|| {
            Error::Internal(format!("a delete set holds the unknown kind {}", row.kind))
        })?;
        Ok(Death {
            row: row.row,
            seq: row.seq,
            kind,
            valid_to_us: row.valid_to_us,
        })
    };
    Ok(DeleteSet::new(
        rows.into_iter().map(death).collect::<Result<_, Error>>()?,
    ))
}

fn tag_graph(shared: &Shared, manifest: &Manifest) -> Result<TagGraph, Error> {
    let Some(side) = &manifest.tag_graph else {
        return Ok(TagGraph::default());
    };
    let stored = read_tag_graph(&*shared.env.vfs, &shared.dir, &shared.store_id, side)?;
    let edge = |stored: manifest::tag_graph::StoredEdge| {
        let scope = Scope::from_key(&stored.scope_key).ok_or_else(|| {
            Error::Internal("the tag graph holds a scope key that is none".into())
        })?;
        Ok(TagEdge {
            scope,
            parent: stored.parent,
            child: stored.child,
        })
    };
    Ok(TagGraph::new(
        stored
            .into_iter()
            .map(edge)
            .collect::<Result<Vec<_>, Error>>()?,
    ))
}

/// A version that grows by the batches of a log: at open, and in reading processes.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) current: Current,
    pub(crate) applier: Applier,
    pub(crate) commit_time_us: i64,
    pub(crate) batches: u64,
    pub(crate) operations: u64,
    flushed_seq: u64,
}

impl Replay {
    /// Starts from the segments of a manifest with an empty memtable.
    pub(crate) fn new(shared: &Shared, mut version: Version, flushed_seq: u64) -> Self {
        let mut applier = Applier::new(0);
        version
            .memtables
            .push(applier.new_memtable(shared, flushed_seq));
        let current = Current::new(version, flushed_seq);
        Self {
            current,
            applier,
            commit_time_us: i64::MIN,
            batches: 0,
            operations: 0,
            flushed_seq,
        }
    }

    fn run(&mut self, shared: &Shared, recovered: &Recovered) -> Result<(), Error> {
        for frame in recovered.frames() {
            let frame = frame?;
            self.apply(shared, &frame)?;
        }
        Ok(())
    }

    /// Applies one frame; those at or below the flushed seq are in segments already.
    pub(crate) fn apply(
        &mut self,
        shared: &Shared,
        frame: &chronolith_wal::Frame,
    ) -> Result<(), Error> {
        if frame.last_seq() <= self.flushed_seq {
            return Ok(());
        }
        let (commit_time_us, mut operations) = decode(shared, &frame.body)?;
        if operations.len() != frame.ops as usize || frame.first_seq <= self.current.visible_seq() {
            return Err(Error::Internal(
                "a log frame contradicts its batch or the order of seqs".into(),
            ));
        }
        self.commit_time_us = self.commit_time_us.max(commit_time_us);
        if planted::is_on(Bug::ReplayInPart) && operations.len() > 1 {
            operations.pop();
        }
        self.applier.apply(
            shared,
            &self.current,
            (&operations, &Probed::default()),
            frame.first_seq,
            commit_time_us,
        )?;
        self.current.show_upto(frame.last_seq());
        self.batches += 1;
        self.operations += u64::from(frame.ops);
        Ok(())
    }
}
