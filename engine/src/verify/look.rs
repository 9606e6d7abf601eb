//! Which files belong together? Everything that one generation names, opened by name.
//!
//! Beside a running writer a name may go between the look at `CURRENT` and the open; then
//! `CURRENT` has moved, and all begins again from the new generation, for a bounded time. All
//! files but the log's are immutable and no number is used twice: a generation whose files
//! were all opened is consistent, even where a later one was published meanwhile, and open
//! handles stay readable whatever is unlinked. The log grows under the reader, so what is
//! wrong with it counts only once several looks in a row said the same.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronolith_segments::{Segment, SegmentError, SegmentRef};
use chronolith_vfs::is_unreadable;

use super::log::{self, LogLook};
use super::report::{FindingKind, VerifyFinding};
use crate::error::Error;
use crate::manifest::deletes::{DeadRow, read_deletes};
use crate::manifest::names::{CURRENT, DataKind, DataName, MANIFEST_DIR, SEGMENTS_DIR};
use crate::manifest::tag_graph::{StoredEdge, read_tag_graph};
use crate::manifest::{self, Manifest, ManifestError, Pointer, SegmentEntry, SideFileError};
use crate::options::Options;
use crate::settings::Shared;
use crate::write::names_unknown_space;

/// How long a scrub tries to get a consistent set of files from a busy writer.
const WAIT: Duration = Duration::from_secs(10);
/// Looks in a row that must agree on what is wrong with files that a writer changes.
const LOOKS: u32 = 4;
/// Pause before the next look; doubles.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(160);

/// A segment that the manifest names.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) entry: SegmentEntry,
    /// `None` where it cannot be opened; why is among the findings.
    pub(super) segment: Option<Arc<Segment>>,
    /// Its settled deaths; none where they cannot be read.
    pub(super) dead: Vec<DeadRow>,
}

/// The files of one generation.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) manifest: Manifest,
    pub(super) shared: Shared,
    pub(super) segments: Vec<Looked>,
    pub(super) edges: Vec<StoredEdge>,
    pub(super) log: LogLook,
}

/// What one look saw.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// `None` where pointer or manifest cannot be read.
    pub(super) generation: Option<Generation>,
    pub(super) findings: Vec<VerifyFinding>,
    /// True where a file was not there.
    is_missing: bool,
}

/// Opens what counts now.
///
/// # Errors
/// No store, another release's store, the system's errors; `Busy` where the writer publishes
/// faster than its files can be opened.
pub(super) fn consistent(options: &Options, dir: &Path) -> Result<Look, Error> {
    let clock = &*options.env.clock;
    let start_ns = clock.monotonic_ns();
    let (mut pause, mut looks) = (PAUSE, 0);
    let mut agreed: Option<Vec<VerifyFinding>> = None;
    loop {
        let before = read_pointer(options, dir)?;
        let mut look = Look::at(options, dir, &before)?;
        let is_torn = look.has_missing() || look.has_unknown_space();
        let is_moved = is_torn && read_pointer(options, dir)?.ok() != before.ok();
        if !is_moved {
            looks += 1;
            let doubts = look.take_doubts();
            let still = match agreed {
                None => doubts,
                Some(agreed) => seen_again(doubts, &agreed),
            };
            if looks == LOOKS || still.is_empty() {
                look.findings.extend(still);
                return Ok(look);
            }
            agreed = Some(still);
        } else if Duration::from_nanos(clock.monotonic_ns().saturating_sub(start_ns)) > WAIT {
            return Err(Error::Busy {
                what: "the writer publishes faster than its files can be opened".into(),
            });
        }
        clock.sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// What the look before found, too. By place: how far damage reaches, and so the message, may
/// change with every batch that a writer appends.
fn seen_again(now: Vec<VerifyFinding>, before: &[VerifyFinding]) -> Vec<VerifyFinding> {
    let place = |f: &VerifyFinding| (f.kind, f.file.clone(), f.section.clone(), f.offset);
    let before: Vec<_> = before.iter().map(place).collect();
    let mut now = now;
    now.retain(|finding| before.contains(&place(finding)));
    now
}

/// `CURRENT`, or what is wrong with it; anything but damage ends the run.
fn read_pointer(options: &Options, dir: &Path) -> Result<Result<Pointer, VerifyFinding>, Error> {
    match manifest::read_current(&*options.env.vfs, dir) {
        Ok(pointer) => Ok(Ok(pointer)),
        Err(ManifestError::CurrentDamaged(finding)) => Ok(Err(of_manifest(finding))),
        Err(error @ ManifestError::CurrentMissing { .. }) => Ok(Err(VerifyFinding::damage(
            CURRENT,
            "file",
            error.to_string(),
        ))),
        Err(ManifestError::Io { source, .. }) if is_unreadable(&source) => {
            Ok(Err(unreadable(CURRENT, &source)))
        }
        Err(error) => Err(error.into()),
    }
}

/// A file that is there and cannot be read: it may be whole, and nothing vouches for it.
pub(super) fn unreadable(file: impl Into<String>, error: &std::io::Error) -> VerifyFinding {
    VerifyFinding::damage(file, "file", format!("cannot be read: {error}"))
}

fn of_manifest(finding: manifest::Finding) -> VerifyFinding {
    VerifyFinding::new(
        FindingKind::Damage,
        finding.file,
        finding.section,
        Some(finding.offset),
        finding.message,
    )
}

impl Look {
    fn at(
        options: &Options,
        dir: &Path,
        pointer: &Result<Pointer, VerifyFinding>,
    ) -> Result<Self, Error> {
        let mut look = Self::default();
        let pointer = match pointer {
            Ok(pointer) => pointer,
            Err(finding) => {
                look.findings.push(finding.clone());
                return Ok(look);
            }
        };
        let Some(manifest) = look.read_manifest(options, dir, pointer)? else {
            return Ok(look);
        };
        let shared = Shared::new(options, dir, manifest.store_id, &manifest.settings)?;
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            segments.push(Looked {
                entry: entry.clone(),
                segment: look.open_segment(&shared, entry)?.map(Arc::new),
                dead: look.read_dead(&shared, entry)?,
            });
        }
        let edges = look.read_edges(&shared, &manifest)?;
        let log = log::look(&options.env, dir, &manifest)?;
        look.generation = Some(Generation {
            manifest,
            shared,
            segments,
            edges,
            log,
        });
        Ok(look)
    }

    /// True where the log names a vector space that the manifest does not: it was read after one
    /// was added.
    fn has_unknown_space(&self) -> bool {
        let generation = self.generation.iter();
        let mut frames = generation.flat_map(|generation| {
            let frames = generation.log.replay.iter();
            frames.map(|(_, frame)| names_unknown_space(&generation.shared, &frame.body))
        });
        frames.any(|is_unknown| is_unknown)
    }

    fn has_missing(&self) -> bool {
        self.is_missing || self.generation.as_ref().is_some_and(|g| g.log.is_missing)
    }

    /// Takes out what the next look may see otherwise.
    fn take_doubts(&mut self) -> Vec<VerifyFinding> {
        let log = self
            .generation
            .as_mut()
            .map(|generation| &mut generation.log);
        log.map(|log| std::mem::take(&mut log.findings))
            .unwrap_or_default()
    }

    fn read_manifest(
        &mut self,
        options: &Options,
        dir: &Path,
        pointer: &Pointer,
    ) -> Result<Option<Manifest>, Error> {
        match manifest::read_generation(&*options.env.vfs, dir, pointer) {
            Ok(loaded) => {
                if let Some(finding) = loaded.damaged_copy {
                    // Gone because two publishes passed, or gone for good: `CURRENT` tells.
                    self.is_missing |= finding.section == "file";
                    self.findings.push(VerifyFinding {
                        kind: FindingKind::Degraded,
                        ..of_manifest(finding)
                    });
                }
                Ok(Some(loaded.manifest))
            }
            Err(ManifestError::BothCopiesDamaged { a, b, .. }) => {
                self.is_missing |= a.section == "file" || b.section == "file";
                self.findings
                    .extend([a, b].map(|finding| of_manifest(*finding)));
                Ok(None)
            }
            Err(error @ ManifestError::GenerationMissing { generation }) => {
                self.is_missing = true;
                let file = format!("{MANIFEST_DIR}/MANIFEST-{generation:016x}");
                let finding = VerifyFinding::damage(file, "file", error.to_string());
                self.findings.push(finding);
                Ok(None)
            }
            Err(ManifestError::Io { path, source, .. }) if is_unreadable(&source) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let file = format!("{MANIFEST_DIR}/{name}");
                self.findings.push(unreadable(file, &source));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn open_segment(
        &mut self,
        shared: &Shared,
        entry: &SegmentEntry,
    ) -> Result<Option<Segment>, Error> {
        let reference = SegmentRef {
            file_number: entry.file_number,
            bytes: entry.bytes,
            digest: entry.digest,
        };
        let opened = Segment::open(
            &*shared.env.vfs,
            &shared.segments_dir(),
            &reference,
            shared.store_id,
            shared.read_mode,
        );
        match opened {
            Ok(segment) => Ok(Some(segment)),
            Err(error) => {
                self.note_segment(entry, error)?;
                Ok(None)
            }
        }
    }

    /// Notes why a segment does not open, and what else is wrong with its blocks.
    fn note_segment(&mut self, entry: &SegmentEntry, error: SegmentError) -> Result<(), Error> {
        let file = DataName::new(entry.file_number, DataKind::Segment).shown();
        match error {
            SegmentError::Corrupt {
                section,
                offset,
                message,
                ..
            } => {
                let (kind, offset) = (FindingKind::Damage, Some(offset));
                let finding = VerifyFinding::new(kind, file, section, offset, message);
                self.findings.push(finding);
            }
            SegmentError::Io { source, .. } if source.kind() == IoKind::NotFound => {
                self.is_missing = true;
                let message = "the manifest names this file and it is missing";
                self.findings
                    .push(VerifyFinding::damage(file, "file", message));
            }
            SegmentError::Io { source, .. } if source.kind() == IoKind::UnexpectedEof => {
                let message = "ends before its own length says";
                self.findings
                    .push(VerifyFinding::damage(file, "file", message));
            }
            SegmentError::Io { source, .. } if is_unreadable(&source) => {
                self.findings.push(unreadable(file, &source));
            }
            error => return Err(error.into()),
        }
        Ok(())
    }

    fn read_dead(&mut self, shared: &Shared, entry: &SegmentEntry) -> Result<Vec<DeadRow>, Error> {
        let Some(side) = &entry.deletes else {
            return Ok(Vec::new());
        };
        let (vfs, store_id) = (&*shared.env.vfs, &shared.store_id);
        let name = DataName::new(side.file_number, DataKind::Deletes);
        let (number, rows) = (entry.file_number, entry.rows);
        let read = read_deletes(vfs, &shared.dir, store_id, side, number, rows);
        self.side_file(name, read)
    }

    fn read_edges(
        &mut self,
        shared: &Shared,
        manifest: &Manifest,
    ) -> Result<Vec<StoredEdge>, Error> {
        let Some(side) = &manifest.tag_graph else {
            return Ok(Vec::new());
        };
        let name = DataName::new(side.file_number, DataKind::TagGraph);
        let read = read_tag_graph(&*shared.env.vfs, &shared.dir, &shared.store_id, side);
        self.side_file(name, read)
    }

    fn side_file<T: Default>(
        &mut self,
        name: DataName,
        read: Result<T, SideFileError>,
    ) -> Result<T, Error> {
        match read {
            Ok(content) => return Ok(content),
            Err(SideFileError::Damaged(finding)) => self.findings.push(of_manifest(finding)),
            Err(error @ SideFileError::Missing { .. }) => {
                self.is_missing = true;
                let finding = VerifyFinding::damage(name.shown(), "file", error.to_string());
                self.findings.push(finding);
            }
            Err(SideFileError::Io { source, .. }) if is_unreadable(&source) => {
                self.findings.push(unreadable(name.shown(), &source));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(T::default())
    }
}

/// Segment files in the store, for a scrub without a manifest.
pub(super) fn segment_files(options: &Options, dir: &Path) -> Result<Vec<u64>, Error> {
    let path = dir.join(SEGMENTS_DIR);
    let entries = match options.env.vfs.list(&path) {
        Ok(entries) => entries,
        // What cannot be listed is a finding of its own, among the names.
        Err(error) if error.kind() == IoKind::NotFound || is_unreadable(&error) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(Error::io("list", path, error)),
    };
    let names = entries
        .iter()
        .filter_map(|entry| DataName::parse(&entry.name));
    Ok(names
        .filter(|name| name.kind == DataKind::Segment && !name.temp)
        .map(|name| name.file_number)
        .collect())
}
