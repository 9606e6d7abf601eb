//! Which segments count, and which of their rows are dead?
//!
//! With a manifest: those it lists. Without: every file that no whole footer says it replaced.
//! Delete sets are facts wherever they lie and whoever named them: their operations were
//! durable in the log before they were written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chronolith_segments::{DeathKind, NumberedSpace, SalvagedSegment, SegmentError};
use chronolith_vfs::is_refusal;

use super::RepairOptions;
use super::few_files::FewFiles;
use super::identity::{Origin, data_names};
use super::report::{DeletesAtRisk, RepairReport};
use crate::error::Error;
use crate::manifest::deletes::read_unreferenced_deletes;
use crate::manifest::names::{DataKind, DataName, SEGMENTS_DIR};
use crate::manifest::{SegmentEntry, SideFileError};
use crate::spaces::set_of;

/// Seq and kind of the death of each dead row.
pub(super) type Deaths = BTreeMap<u32, (u64, DeathKind)>;

/// One segment on disk, or listed and not there.
#[derive(Debug)]
pub(super) struct SourceSegment {
    pub(super) number: u64,
    /// `None` where nothing of it can be proved.
    pub(super) rows: Option<SalvagedSegment>,
    /// What a manifest says of it.
    pub(super) entry: Option<SegmentEntry>,
    /// True where its rows count.
    pub(super) is_live: bool,
    pub(super) deaths: Deaths,
}

impl SourceSegment {
    pub(super) fn name(&self) -> String {
        DataName::new(self.number, DataKind::Segment).shown()
    }
}

/// Opens every segment and reads every delete set.
pub(super) fn open_segments(
    source: &Path,
    files: &FewFiles,
    origin: &Origin,
    options: &RepairOptions,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<SourceSegment>, Error> {
    let names = data_names(&options.env, source)?;
    let mut deaths = read_deaths(source, origin, options, &names, report)?;
    let manifest = origin.listed.as_ref().or(origin.older.as_ref());
    let entries = manifest.map_or(&[][..], |manifest| &manifest.segments);
    let on_disk = names.iter().filter(|name| name.kind == DataKind::Segment);
    let mut numbers: BTreeSet<u64> = on_disk.map(|name| name.file_number).collect();
    let on_disk = numbers.clone();
    numbers.extend(entries.iter().map(|entry| entry.file_number));
    // A delete set outlives its segment only where that is lost, or was just retired.
    if origin.listed.is_none() {
        numbers.extend(deaths.keys());
    }
    let mut segments = Vec::with_capacity(numbers.len());
    for (done, number) in numbers.iter().enumerate() {
        progress(done as u64, numbers.len() as u64);
        let entry = entries.iter().find(|entry| entry.file_number == *number);
        let rows = match on_disk.contains(number) {
            true => open_one(source, *number, files, origin, report)?,
            false => None,
        };
        segments.push(SourceSegment {
            number: *number,
            rows,
            entry: entry.cloned(),
            is_live: false,
            deaths: deaths.remove(number).unwrap_or_default(),
        });
    }
    mark_live(&mut segments, origin, &on_disk, report);
    risks_of_named(&segments, &names, report);
    Ok(segments)
}

fn open_one(
    store: &Path,
    number: u64,
    files: &FewFiles,
    origin: &Origin,
    report: &mut RepairReport,
) -> Result<Option<SalvagedSegment>, Error> {
    let dir = store.join(SEGMENTS_DIR);
    match SalvagedSegment::open(files, &dir, number, origin.store_id) {
        Ok(segment) => {
            for error in segment.damage() {
                note(report, number, error);
            }
            let (analyzer, spaces) = {
                let described = segment.describe();
                (described.analyzer_id, described.spaces)
            };
            let set = set_of(&origin.settings);
            let fits = |own: &NumberedSpace| match set.get(own.number) {
                Some(known) => known == own,
                // Dropped since: its vectors are left out. A store without any takes none.
                None => own.number < set.next,
            };
            if !spaces.iter().all(|(own, _)| fits(own)) {
                let file = DataName::new(number, DataKind::Segment).shown();
                report.damage(file, "footer", None, "its vectors are of another space");
                return Ok(None);
            }
            if analyzer != origin.settings.analyzer {
                // Terms are made anew, so this costs nothing.
                report
                    .notes
                    .push(format!("segment {number:016x} names another analyzer"));
            }
            Ok(Some(segment))
        }
        Err(error @ SegmentError::Version { .. }) => Err(error.into()),
        Err(SegmentError::Io { source, .. }) if is_refusal(&source) => {
            let path = DataName::new(number, DataKind::Segment).path(store);
            Err(Error::io("open", path, source))
        }
        Err(error) => {
            note(report, number, &error);
            Ok(None)
        }
    }
}

fn note(report: &mut RepairReport, number: u64, error: &SegmentError) {
    let file = DataName::new(number, DataKind::Segment).shown();
    match error {
        SegmentError::Corrupt {
            section,
            offset,
            message,
            ..
        } => report.damage(file, section, Some(*offset), message.clone()),
        error => report.damage(file, "file", None, error.to_string()),
    }
}

/// Every readable delete set, by segment.
fn read_deaths(
    source: &Path,
    origin: &Origin,
    options: &RepairOptions,
    names: &[DataName],
    report: &mut RepairReport,
) -> Result<BTreeMap<u64, Deaths>, Error> {
    let mut deaths: BTreeMap<u64, Deaths> = BTreeMap::new();
    for name in names.iter().filter(|name| name.kind == DataKind::Deletes) {
        let vfs = &*options.env.vfs;
        match read_unreferenced_deletes(vfs, source, &origin.store_id, name.file_number) {
            Ok((segment, rows)) => {
                let own = deaths.entry(segment).or_default();
                for row in rows {
                    let kind = DeathKind::from_byte(row.kind).unwrap_or(DeathKind::Deleted);
                    own.insert(row.row, (row.seq, kind));
                }
            }
            Err(error @ SideFileError::NewerFormat { .. }) => return Err(Error::SideFile(error)),
            Err(SideFileError::Io { source, path, .. }) if is_refusal(&source) => {
                return Err(Error::io("read", path, source));
            }
            Err(error) => {
                report.damage(name.shown(), "deletes", None, error.to_string());
                if origin.listed.is_none() {
                    // Whose rows they were is lost with it.
                    report.deletes_at_risk.push(DeletesAtRisk {
                        file: Some(name.shown()),
                        count: None,
                        first_seq: None,
                        last_seq: None,
                        why: "a delete set is damaged".into(),
                    });
                }
            }
        }
    }
    Ok(deaths)
}

fn mark_live(
    segments: &mut [SourceSegment],
    origin: &Origin,
    on_disk: &BTreeSet<u64>,
    report: &mut RepairReport,
) {
    if origin.listed.is_some() {
        for segment in segments.iter_mut() {
            let Some(entry) = &segment.entry else {
                continue;
            };
            segment.is_live = true;
            let name = DataName::new(segment.number, DataKind::Segment).shown();
            if !on_disk.contains(&segment.number) {
                report.damage(name, "file", None, "is missing");
            } else if let Some(rows) = &segment.rows
                && (rows.meta().file.digest, rows.meta().file.bytes) != (entry.digest, entry.bytes)
            {
                report.damage(name, "digest", None, "is not the file the manifest names");
                segment.rows = None;
            }
        }
        return;
    }
    let replaced: BTreeSet<u64> = segments
        .iter()
        .filter_map(|segment| segment.rows.as_ref())
        .flat_map(|rows| rows.lineage().iter().copied())
        .collect();
    for segment in segments {
        segment.is_live = !replaced.contains(&segment.number);
        if segment.is_live && !on_disk.contains(&segment.number) {
            report.damage(segment.name(), "file", None, "is missing");
        }
    }
}

/// Delete sets that a manifest names and that cannot be read in full. What an older manifest
/// names may rightly be gone: then a newer set of the segment says as much.
fn risks_of_named(segments: &[SourceSegment], names: &[DataName], report: &mut RepairReport) {
    for segment in segments.iter().filter(|segment| segment.is_live) {
        let Some(side) = segment.entry.as_ref().and_then(|entry| entry.deletes) else {
            continue;
        };
        let known = segment.deaths.len() as u64;
        if known >= side.entries {
            continue;
        }
        let name = DataName::new(side.file_number, DataKind::Deletes);
        if !names.contains(&name) {
            report.damage(name.shown(), "deletes", None, "is missing");
        }
        report.deletes_at_risk.push(DeletesAtRisk {
            file: Some(name.shown()),
            count: Some(side.entries - known),
            first_seq: segment.entry.as_ref().map(|entry| entry.first_seq),
            last_seq: None,
            why: format!("the delete set of {} cannot be read", segment.name()),
        });
    }
}
