//! How does a sealed memtable become segments?
//!
//! Cut by bucket, written and synced, then published in one generation that also settles
//! every death up to its last seq; only then does the version lose the memtable. Deaths that
//! arrived meanwhile are carried over to the new rows.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use chronolith_compaction::{Bucket, Clusterer, RowAge, choose_buckets};
use chronolith_segments::{
    Bucket as TimeBucket, Death, DeathLog, DeleteSet, MergeInput, Partition, Segment, SegmentError,
    SegmentMeta, SegmentRef, SegmentSpec, segment_file_name, write_segment_clustered,
    write_segment_while,
};
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::{Mutex, MutexGuard};
use roaring::RoaringBitmap;

use super::publish::Publisher;
use crate::error::Error;
use crate::manifest::SegmentEntry;
use crate::settings::Shared;
use crate::version::{Current, LiveMemtable, LiveSegment, Version};
use crate::write::Pipeline;

/// Frames that make a log file worth a successor at a flush: below that a new file would cost
/// more than the old one holds.
const RETIRE_BYTES: u64 = 1 << 20;

/// A segment on disk that no manifest names yet, with the way from old rows to its rows.
pub(crate) struct Fresh {
    pub(crate) meta: SegmentMeta,
    pub(crate) bucket: Bucket,
    pub(crate) segment: Arc<Segment>,
    /// Per input: old row to new row, `u32::MAX` = dropped.
    pub(crate) remap: Vec<Vec<u32>>,
}

pub(crate) fn lock(publisher: &Mutex<Publisher>) -> MutexGuard<'_, Publisher> {
    // The publisher is valid after every statement; an unknown outcome is recorded in it.
    publisher.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Proves the manifest that the open has found, unless that was done.
pub(crate) fn prove_found(
    shared: &Shared,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
) -> Result<(), Error> {
    let proven = lock(publisher).prove(shared);
    proven.inspect_err(|error| fail_if_unknown(pipeline, error))
}

/// Flushes the oldest sealed memtable; false where there is none.
pub(crate) fn flush_oldest(
    shared: &Shared,
    current: &Current,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
) -> Result<bool, Error> {
    let version = current.version();
    let next = match planted::is_on(Bug::NewestMemtableFirst) {
        true => version.sealed().last(),
        false => version.sealed().first(),
    };
    let Some(sealed) = next.map(Arc::clone) else {
        return Ok(false);
    };
    // After a failed or half-applied batch memory is no longer what the log says.
    pipeline.check_failed()?;
    let flushed_seq = sealed.last_seq();
    // What the manifest will call flushed must be proven durable in the log first.
    pipeline
        .log()
        .sync_upto(flushed_seq)
        .inspect_err(|error| pipeline.fail(&error.to_string()))?;

    let mut fresh = Vec::new();
    let written = write_buckets(shared, publisher, &sealed, flushed_seq, &mut fresh);
    if let Err(error) = written.and_then(|()| retire_log(pipeline)) {
        discard(shared, &fresh);
        return Err(error);
    }
    let mut publisher = lock(publisher);
    if let Err(error) = publish_flush(shared, current, pipeline, &mut publisher, &sealed, &fresh) {
        fail_if_unknown(pipeline, &error);
        if !is_unknown(&error) {
            discard(shared, &fresh);
        }
        return Err(error);
    }
    swap_in(current, pipeline, &sealed, fresh);
    let floor = publisher.manifest().floor_file;
    drop(publisher);
    // The catalog catches up from segments, so nobody needs what lies below.
    pipeline.log().remove_below(floor)?;
    Ok(true)
}

/// Lets the log go on in a new file where the current one holds much, or something that was
/// forgotten: then it goes with the publish that makes it redundant. Not done is no harm.
fn retire_log(pipeline: &Pipeline) -> Result<(), Error> {
    let has_forgotten = pipeline.lock_applier()?.take_forgotten();
    let bytes_min = if has_forgotten { 0 } else { RETIRE_BYTES };
    match pipeline.log().retire(bytes_min) {
        Err(error) if error.is_final() => {
            pipeline.fail(&error.to_string());
            Err(error.into())
        }
        Err(_) if has_forgotten => {
            pipeline.lock_applier()?.note_forgotten();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Publishes a floor above the log files that nothing needs, without a flush, and removes them.
pub(crate) fn release_log(
    shared: &Shared,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
) -> Result<(), Error> {
    pipeline.check_failed()?;
    let mut publisher = lock(publisher);
    let mut manifest = publisher.successor();
    let floor = pipeline.log().floor_for(manifest.flushed_seq);
    if floor == manifest.floor_file {
        return Ok(());
    }
    manifest.floor_file = floor;
    manifest.epoch = pipeline.log().epoch();
    publisher
        .publish(shared, manifest)
        .inspect_err(|error| fail_if_unknown(pipeline, error))?;
    drop(publisher);
    pipeline.log().remove_below(floor)?;
    Ok(())
}

fn publish_flush(
    shared: &Shared,
    current: &Current,
    pipeline: &Pipeline,
    publisher: &mut Publisher,
    sealed: &LiveMemtable,
    fresh: &[Fresh],
) -> Result<(), Error> {
    let flushed_seq = sealed.last_seq();
    let mut manifest = publisher.successor();
    manifest.flushed_seq = flushed_seq + u64::from(planted::is_on(Bug::FlushedSeqTooHigh))
        - u64::from(planted::is_on(Bug::FlushedSeqTooLow));
    let flushed_time_us = sealed.last_time_us.load(Ordering::Acquire);
    manifest.flushed_time_us = manifest.flushed_time_us.max(flushed_time_us);
    manifest.epoch = pipeline.log().epoch();
    manifest.floor_file = pipeline.log().floor_for(flushed_seq);
    manifest
        .segments
        .extend(fresh.iter().map(|fresh| entry_of(fresh, None)));
    let graph = sealed.tag_graph();
    let settled = publisher
        .settle_deaths(shared, &mut manifest, &current.version().segments)
        .and_then(|()| publisher.settle_tags(shared, &mut manifest, &graph));
    if let Err(error) = settled {
        publisher.discard(shared, &manifest);
        return Err(error);
    }
    publisher.publish(shared, manifest)?;
    publisher.tags_published(graph);
    Ok(())
}

/// Unlinks segments that no manifest will name: the next try writes new ones, and a full disk
/// must not fill up further. What stays is swept by the next open.
pub(crate) fn discard<'a>(shared: &Shared, fresh: impl IntoIterator<Item = &'a Fresh>) {
    for fresh in fresh {
        let name = segment_file_name(fresh.meta.file.file_number);
        let _ = shared
            .env
            .vfs
            .remove_file(&shared.segments_dir().join(name));
    }
}

pub(crate) fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Publish(publish) if publish.is_outcome_unknown())
}

pub(crate) fn fail_if_unknown(pipeline: &Pipeline, error: &Error) {
    if is_unknown(error) || matches!(error, Error::Poisoned { .. }) {
        pipeline.fail(&error.to_string());
    }
}

fn write_buckets(
    shared: &Shared,
    publisher: &Mutex<Publisher>,
    sealed: &LiveMemtable,
    flushed_seq: u64,
    fresh: &mut Vec<Fresh>,
) -> Result<(), Error> {
    let table = &sealed.table;
    let dead = sealed.deaths.dead_at(flushed_seq);
    let mut rows = Vec::new();
    for row in (0..table.zone().rows).filter(|row| !dead.contains(*row)) {
        let bytes = u64::from(table.fields(row)?.text_tokens) * 4;
        rows.push(RowAge {
            row,
            event_time_us: table.event_time_us(row)?,
            bytes,
        });
    }
    let ladder = (
        shared.settings.bucket_base_us,
        shared.settings.bucket_ladder.as_slice(),
    );
    for (bucket, rows) in choose_buckets(&rows, ladder.0, ladder.1) {
        let keep: RoaringBitmap = rows.into_iter().collect();
        let input = MergeInput {
            partition: &**table,
            keep,
        };
        fresh.push(write_fresh(
            shared,
            publisher,
            bucket,
            Vec::new(),
            &[input],
            &|| true,
        )?);
    }
    Ok(())
}

/// Writes one segment under a new number, as long as `goes_on` says so, and opens it.
pub(crate) fn write_fresh(
    shared: &Shared,
    publisher: &Mutex<Publisher>,
    bucket: Bucket,
    lineage: Vec<u64>,
    inputs: &[MergeInput<'_>],
    goes_on: &dyn Fn() -> bool,
) -> Result<Fresh, Error> {
    let file_number = lock(publisher).take_file_number();
    let now = shared.spaces();
    let spaces = now.set();
    let spec = SegmentSpec {
        store_id: shared.store_id,
        file_number,
        analyzer_id: shared.analyzer_id.clone(),
        spaces: spaces.spaces.clone(),
        layout: spaces.default,
        token_counter: shared.token_counter,
        bucket: TimeBucket {
            level: bucket.level,
            start_us: bucket.start_us,
            end_us: bucket.end_us,
        },
        // No dictionary at flush: one is trained only where much text is rewritten.
        train_dictionary: !lineage.is_empty(),
        lineage,
    };
    let (vfs, dir) = (&*shared.env.vfs, shared.segments_dir());
    // A flush must be over soon, and its rows are soon merged.
    let written = match spec.lineage.is_empty() {
        true => write_segment_while(vfs, &dir, &spec, inputs, goes_on),
        false => {
            let clusterer = Clusterer::new(shared.runs, shared.settings.seed);
            write_segment_clustered(vfs, &dir, &spec, inputs, goes_on, &clusterer)
        }
    }?;
    let segment = open_segment(shared, &written.meta.file)?;
    Ok(Fresh {
        meta: written.meta,
        bucket,
        segment: Arc::new(segment),
        remap: written.remap,
    })
}

/// Opens a segment and checks that it is this store's in every named thing.
pub(crate) fn open_segment(
    shared: &Shared,
    reference: &SegmentRef,
) -> Result<Segment, SegmentError> {
    let segment = Segment::open(
        &*shared.env.vfs,
        &shared.segments_dir(),
        reference,
        shared.store_id,
        shared.read_mode,
    )?;
    let message = match segment.analyzer_id() == shared.analyzer_id {
        true => shared.spaces().contradiction(segment.spaces()),
        false => Some("names another analyzer than the store".to_owned()),
    };
    match message {
        Some(message) => {
            let name = segment.file_name();
            Err(SegmentError::corrupt(name, "footer", 0, message))
        }
        None => Ok(segment),
    }
}

/// A fresh segment as the manifest lists it.
pub(crate) fn entry_of(fresh: &Fresh, deletes: Option<crate::manifest::SideFile>) -> SegmentEntry {
    let zone = &fresh.meta.zone;
    SegmentEntry {
        file_number: fresh.meta.file.file_number,
        bytes: fresh.meta.file.bytes,
        digest: fresh.meta.file.digest,
        level: fresh.bucket.level,
        bucket_start_us: fresh.bucket.start_us,
        bucket_end_us: fresh.bucket.end_us,
        rows: zone.rows,
        first_seq: zone.commit_seq.0,
        last_seq: zone.commit_seq.1,
        event_time_min_us: zone.event_time_us.0,
        event_time_max_us: zone.event_time_us.1,
        deletes,
    }
}

/// Deaths of old rows as deaths of the new ones, ascending by seq; dropped rows have none.
pub(crate) fn carry_over(remap: &[u32], deaths: Vec<Death>) -> impl Iterator<Item = Death> {
    deaths.into_iter().filter_map(|death| {
        let row = *remap.get(death.row as usize)?;
        (row != u32::MAX).then_some(Death { row, ..death })
    })
}

/// Puts the fresh segments in the memtable's place, with the deaths that arrived meanwhile.
fn swap_in(current: &Current, pipeline: &Pipeline, sealed: &LiveMemtable, fresh: Vec<Fresh>) {
    // What is published must be swapped in: flushed again, its rows would be there twice.
    let applier = pipeline.lock_to_swap();
    let mut version: Version = (*current.version()).clone();
    version
        .memtables
        .retain(|live| live.number != sealed.number);
    let deaths = match planted::is_on(Bug::FlushForgetsDeaths) {
        true => Vec::new(),
        false => sealed.deaths.entries_at(u64::MAX),
    };
    for fresh in fresh {
        let log = DeathLog::new(&DeleteSet::default());
        for death in carry_over(&fresh.remap[0], deaths.clone()) {
            log.push(death);
        }
        let entry = entry_of(&fresh, None);
        version.segments.push(Arc::new(LiveSegment {
            segment: fresh.segment,
            entry,
            deaths: log,
        }));
    }
    version
        .segments
        .sort_unstable_by_key(|live| live.entry.file_number);
    current.replace(version);
    drop(applier);
}
