//! What may be gone without a trace of its own? Said wherever nothing proves the contrary.
//!
//! * Log files: a manifest names the oldest one that must be there; without a manifest the log
//!   must begin where the segments end.
//! * Delete sets: only a manifest says which ones there are. Without one, a row counts as not
//!   deleted for certain only where the log holds every operation since the store's first.

use chronolith_wal::{FileNumber, LogSalvage, SalvagedFrame, log_name};

use super::identity::Origin;
use super::report::{DeletesAtRisk, Missing};
use super::sources::SourceSegment;

/// The begin of the log, where a file that must have held it is gone.
pub(super) fn lost_begin(
    origin: &Origin,
    segments: &[SourceSegment],
    log: &LogSalvage,
    log_files: &[FileNumber],
) -> Option<Missing> {
    let (file, flushed_seq) = match &origin.listed {
        // No commit is taken before the second generation is published.
        Some(manifest) if manifest.generation == 1 && origin.is_pointed => return None,
        Some(manifest) if manifest.generation == 1 => (None, manifest.flushed_seq),
        Some(manifest) => (Some(manifest.floor_file), manifest.flushed_seq),
        None => (None, settled_seq(origin, segments)),
    };
    let is_there = match file {
        Some(floor) => log_files.contains(&floor),
        None => !log_files.is_empty() && log.base_seq() <= flushed_seq,
    };
    if is_there {
        return None;
    }
    let first_seq = flushed_seq.saturating_add(1);
    let mut later = log.frames.iter();
    let next = later.find(|frame| file.is_none_or(|floor| frame.file > floor));
    let last_seq = next.map(|frame| frame.first_seq.saturating_sub(1));
    last_seq
        .is_none_or(|last| last >= first_seq)
        .then(|| Missing {
            file: file.map(|floor| format!("wal/{}", log_name(floor))),
            first_seq: Some(first_seq),
            last_seq,
            records: None,
            why: match file {
                Some(_) => "the manifest names this log file and it is missing".into(),
                None => "the log does not begin where the segments end".into(),
            },
        })
}

/// Deletes that stand in no delete set that is left, and in no frame of the log.
pub(super) fn lost_deletes(
    origin: &Origin,
    segments: &[SourceSegment],
    log: &LogSalvage,
    log_files: &[FileNumber],
) -> Option<DeletesAtRisk> {
    if origin.listed.is_some() {
        return None;
    }
    let live = segments.iter().filter(|segment| segment.is_live);
    let rows = live.filter_map(|segment| segment.rows.as_ref());
    let first_row = rows.map(|rows| rows.meta().zone.commit_seq.0).min()?;
    let newest = log.frames.last().map_or(0, SalvagedFrame::last_seq);
    let last = settled_seq(origin, segments).max(newest);
    // A gap without bytes is a file that is not there, a gap with seqs lost frames.
    let mut gaps = log.gaps.iter();
    let has_all_files = gaps.all(|gap| gap.bytes > 0 && gap.seqs.is_none());
    if has_all_files && log.covers(1, last) {
        return None;
    }
    let base_seq = log.base_seq();
    let is_known = has_all_files && !log_files.is_empty() && base_seq >= first_row;
    Some(DeletesAtRisk {
        file: None,
        count: None,
        first_seq: Some(first_row),
        last_seq: is_known.then_some(base_seq),
        why: "no manifest says which delete sets there were, and the log does not reach back to \
              the first commit"
            .into(),
    })
}

/// Up to here something beside the log is known of the store.
fn settled_seq(origin: &Origin, segments: &[SourceSegment]) -> u64 {
    let rows = segments.iter().filter_map(|segment| segment.rows.as_ref());
    let rows = rows.map(|rows| rows.meta().zone.commit_seq.1);
    let entries = segments
        .iter()
        .filter_map(|segment| segment.entry.as_ref().map(|entry| entry.last_seq));
    let deaths = segments.iter().flat_map(|segment| segment.deaths.values());
    let flushed = origin.older.as_ref().map(|manifest| manifest.flushed_seq);
    rows.chain(entries)
        .chain(deaths.map(|(seq, _)| *seq))
        .chain(flushed)
        .max()
        .unwrap_or(0)
}
