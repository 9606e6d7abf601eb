//! How do segments become fewer? The policy picks from metadata; this module does it.
//!
//! Only deaths that the manifest has settled are dropped; later ones are carried over, so a
//! crash at any point replays to the same state.

use std::sync::Arc;

use chronolith_compaction::{Bucket, Candidate, Pick, pick};
use chronolith_segments::{Death, DeathLog, DeleteSet, MergeInput, Partition, SegmentError};
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::Mutex;
use roaring::RoaringBitmap;

use super::flush::{
    Fresh, carry_over, discard, entry_of, fail_if_unknown, is_unknown, lock, write_fresh,
};
use super::publish::Publisher;
use crate::error::Error;
use crate::settings::Shared;
use crate::version::{Current, LiveSegment, Version};
use crate::write::Pipeline;

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// File numbers that went.
    pub inputs: Vec<u64>,
    /// The file number that came; `None` where no row was left.
    pub output: Option<u64>,
    /// Rows before.
    pub rows_before: u64,
    /// Rows after.
    pub rows_after: u64,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Why these.
    pub reason: String,
}

/// Picks and runs one compaction; `None` where none pays. `force` takes all segments that can
/// be merged or have dead rows.
pub(crate) fn compact_once(
    shared: &Shared,
    current: &Current,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
    force: bool,
) -> Result<Option<Compacted>, Error> {
    let flushed_seq = lock(publisher).manifest().flushed_seq;
    let version = current.version();
    let candidates: Vec<Candidate> = version
        .segments
        .iter()
        .map(|live| candidate(live, flushed_seq))
        .collect();
    let (base_us, ladder) = (
        shared.settings.bucket_base_us,
        shared.settings.bucket_ladder.as_slice(),
    );
    let Some(pick) = pick(&candidates, base_us, ladder, force) else {
        return Ok(None);
    };
    let inputs: Vec<Arc<LiveSegment>> = version
        .segments
        .iter()
        .filter(|live| pick.inputs.contains(&live.entry.file_number))
        .map(Arc::clone)
        .collect();
    let fresh = merge(shared, publisher, &pick, &inputs, flushed_seq)?;
    land(shared, current, pipeline, publisher, &pick, &inputs, fresh).map(Some)
}

/// True if a compaction would be picked now.
pub(crate) fn would_pick(
    version: &Version,
    flushed_seq: u64,
    base_us: i64,
    ladder: &[u32],
) -> bool {
    let candidates: Vec<Candidate> = version
        .segments
        .iter()
        .map(|live| candidate(live, flushed_seq))
        .collect();
    pick(&candidates, base_us, ladder, false).is_some()
}

fn candidate(live: &LiveSegment, flushed_seq: u64) -> Candidate {
    let entry = &live.entry;
    Candidate {
        file_number: entry.file_number,
        bucket: Bucket {
            level: entry.level,
            start_us: entry.bucket_start_us,
            end_us: entry.bucket_end_us,
        },
        rows: entry.rows,
        dead_rows: u32::try_from(live.deaths.dead_at(flushed_seq).len()).unwrap_or(u32::MAX),
        bytes: entry.bytes,
    }
}

/// Writes the inputs' live rows as one segment; `None` where no row is left.
fn merge(
    shared: &Shared,
    publisher: &Mutex<Publisher>,
    pick: &Pick,
    inputs: &[Arc<LiveSegment>],
    flushed_seq: u64,
) -> Result<Option<Fresh>, Error> {
    let merge_inputs: Vec<MergeInput<'_>> = inputs
        .iter()
        .map(|live| {
            let mut keep = RoaringBitmap::new();
            keep.insert_range(0..live.segment.zone().rows);
            keep -= &*live
                .deaths
                .dead_at(match planted::is_on(Bug::DeadDroppedEarly) {
                    true => u64::MAX,
                    false => flushed_seq,
                });
            MergeInput {
                partition: &*live.segment,
                keep,
            }
        })
        .collect();
    if merge_inputs.iter().all(|input| input.keep.is_empty()) {
        return Ok(None);
    }
    for (live, input) in inputs.iter().zip(&merge_inputs) {
        check_inside(live, &input.keep, pick.bucket)?;
    }
    write_fresh(
        shared,
        publisher,
        pick.bucket,
        pick.inputs.clone(),
        &merge_inputs,
    )
    .map(Some)
}

/// The writer of a segment takes it for granted that rows lie in the bucket. Here they come
/// from a file that another hand may have made, or a manifest that misplaces it.
fn check_inside(
    live: &LiveSegment,
    keep: &RoaringBitmap,
    bucket: Bucket,
) -> Result<(), SegmentError> {
    for row in keep {
        let event_time_us = live.segment.event_time_us(row)?;
        if !bucket.contains(event_time_us) {
            let message = format!(
                "row {row} of time {event_time_us} lies outside its bucket [{}, {})",
                bucket.start_us, bucket.end_us
            );
            let file = live.segment.file_name();
            return Err(SegmentError::corrupt(file, "columns", 0, message));
        }
    }
    Ok(())
}

fn land(
    shared: &Shared,
    current: &Current,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
    pick: &Pick,
    inputs: &[Arc<LiveSegment>],
    fresh: Option<Fresh>,
) -> Result<Compacted, Error> {
    let mut publisher = lock(publisher);
    let mut manifest = publisher.successor();
    manifest
        .segments
        .retain(|entry| !pick.inputs.contains(&entry.file_number));
    // A flush may have settled deaths since the pick: they must be settled for the new rows.
    let settled = fresh
        .as_ref()
        .filter(|_| !planted::is_on(Bug::SettledDeathsLost))
        .map(|fresh| carried(fresh, inputs, manifest.flushed_seq))
        .unwrap_or_default();
    let segment = fresh.as_ref().map_or(0, |f| f.meta.file.file_number);
    let published = publisher
        .write_deletes(shared, segment, &settled)
        .and_then(|deletes| {
            manifest
                .segments
                .extend(fresh.as_ref().map(|fresh| entry_of(fresh, deletes)));
            publisher.publish(shared, manifest).map(|()| deletes)
        });
    let deletes = match published {
        Ok(deletes) => deletes,
        Err(error) => {
            fail_if_unknown(pipeline, &error);
            if !is_unknown(&error) {
                discard(shared, &fresh);
            }
            return Err(error);
        }
    };

    let rows = |entry: &crate::manifest::SegmentEntry| u64::from(entry.rows);
    let compacted = Compacted {
        inputs: pick.inputs.clone(),
        output: fresh.as_ref().map(|fresh| fresh.meta.file.file_number),
        rows_before: inputs.iter().map(|live| rows(&live.entry)).sum(),
        rows_after: fresh
            .as_ref()
            .map_or(0, |fresh| u64::from(fresh.meta.zone.rows)),
        bytes_before: inputs.iter().map(|live| live.entry.bytes).sum(),
        bytes_after: fresh.as_ref().map_or(0, |fresh| fresh.meta.file.bytes),
        reason: pick.reason.to_string(),
    };
    let applier = pipeline.lock_to_swap();
    let mut version: Version = (*current.version()).clone();
    version
        .segments
        .retain(|live| !pick.inputs.contains(&live.entry.file_number));
    if let Some(fresh) = fresh {
        let deaths = DeathLog::new(&DeleteSet::default());
        let upto = match planted::is_on(Bug::CompactionForgetsDeaths) {
            true => publisher.manifest().flushed_seq,
            false => u64::MAX,
        };
        for death in carried(&fresh, inputs, upto) {
            deaths.push(death);
        }
        let entry = entry_of(&fresh, deletes);
        version.segments.push(Arc::new(LiveSegment {
            segment: fresh.segment,
            entry,
            deaths,
        }));
        version
            .segments
            .sort_unstable_by_key(|live| live.entry.file_number);
    }
    current.replace(version);
    drop(applier);
    Ok(compacted)
}

/// Deaths of kept rows up to `at_seq`, as deaths of the new segment's rows, ascending by seq.
fn carried(fresh: &Fresh, inputs: &[Arc<LiveSegment>], at_seq: u64) -> Vec<Death> {
    let per_input = inputs.iter().zip(&fresh.remap);
    let mut deaths: Vec<Death> = per_input
        .flat_map(|(live, remap)| carry_over(remap, live.deaths.entries_at(at_seq)))
        .collect();
    deaths.sort_unstable_by_key(|death| (death.seq, death.row));
    deaths
}
