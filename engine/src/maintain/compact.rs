//! How do segments become fewer? The policy picks from metadata; this module does it.
//!
//! Only deaths that the manifest has settled are dropped; later ones are carried over, so a
//! crash at any point replays to the same state.

use std::sync::Arc;

use chronolith_compaction::{Bucket, Candidate, LOOSE_ROWS_MIN, Pick, pick};
use chronolith_segments::{
    Death, DeathLog, DeleteSet, InOrder, MergeInput, Partition, SegmentError, SpaceNumber, SpaceSet,
};
use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::sync::Mutex;
use roaring::RoaringBitmap;

use super::flush::{
    Fresh, carry_over, discard, entry_of, fail_if_unknown, is_unknown, lock, write_fresh,
};
use super::publish::Publisher;
use crate::error::Error;
use crate::manifest::SideFile;
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

/// Picks and runs one compaction; `None` where none pays, or where `goes_on` said no before all
/// was written. `force` takes all segments that can be merged or have dead rows.
pub(crate) fn compact_once(
    shared: &Shared,
    current: &Current,
    pipeline: &Pipeline,
    publisher: &Mutex<Publisher>,
    (force, goes_on): (bool, &dyn Fn() -> bool),
) -> Result<Option<Compacted>, Error> {
    let flushed_seq = lock(publisher).manifest().flushed_seq;
    let now = shared.spaces();
    let spaces = now.set();
    let version = current.version();
    let candidates: Vec<Candidate> = version
        .segments
        .iter()
        .map(|live| candidate(live, flushed_seq, spaces))
        .collect();
    let (base_us, ladder) = (
        shared.settings.bucket_base_us,
        shared.settings.bucket_ladder.as_slice(),
    );
    let now_us = shared.env.clock.now_us();
    let Some(pick) = pick(&candidates, base_us, ladder, now_us, force) else {
        return Ok(None);
    };
    let inputs: Vec<Arc<LiveSegment>> = version
        .segments
        .iter()
        .filter(|live| pick.inputs.contains(&live.entry.file_number))
        .map(Arc::clone)
        .collect();
    let fresh = match merge(shared, publisher, &pick, &inputs, flushed_seq, goes_on) {
        Err(Error::Segment(SegmentError::Stopped)) => return Ok(None),
        fresh => fresh?,
    };
    let merged = Merged {
        fresh,
        pick: &pick,
        inputs: &inputs,
    };
    merged.land(shared, current, pipeline, publisher).map(Some)
}

/// True if a compaction would be picked now.
pub(crate) fn would_pick(
    version: &Version,
    (flushed_seq, spaces): (u64, &SpaceSet),
    base_us: i64,
    ladder: &[u32],
    now_us: i64,
) -> bool {
    let candidates: Vec<Candidate> = version
        .segments
        .iter()
        .map(|live| candidate(live, flushed_seq, spaces))
        .collect();
    pick(&candidates, base_us, ladder, now_us, false).is_some()
}

fn candidate(live: &LiveSegment, flushed_seq: u64, spaces: &SpaceSet) -> Candidate {
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
        loose_rows: loose_rows(live, spaces.default),
        dropped_rows: dropped_rows(live, spaces),
    }
}

/// Vectors in spaces that the store no longer has.
fn dropped_rows(live: &LiveSegment, spaces: &SpaceSet) -> u32 {
    let segment = &live.segment;
    let gone = segment
        .spaces()
        .filter(|own| spaces.get(own.number).is_none());
    let vectors = gone.map(|own| segment.vectors(own.number));
    vectors.fold(0, u32::saturating_add)
}

/// Rows of large scopes with vectors, where a flush wrote the segment: a merge names what it
/// replaced, and has laid them out as far as they can be.
fn loose_rows(live: &LiveSegment, layout: SpaceNumber) -> u32 {
    let segment = &live.segment;
    match segment.lineage().is_empty() && segment.vectors(layout) >= LOOSE_ROWS_MIN {
        true => segment.rows_of_scopes(LOOSE_ROWS_MIN),
        false => 0,
    }
}

/// Writes the inputs' live rows as one segment; `None` where no row is left.
fn merge(
    shared: &Shared,
    publisher: &Mutex<Publisher>,
    pick: &Pick,
    inputs: &[Arc<LiveSegment>],
    flushed_seq: u64,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<Fresh>, Error> {
    let segments = inputs.iter().map(|live| &live.segment);
    let _in_order: Vec<InOrder<'_>> = segments.map(|s| s.read_in_order()).collect();
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
        goes_on,
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

/// A merge that is written and that no manifest names yet.
struct Merged<'a> {
    pick: &'a Pick,
    inputs: &'a [Arc<LiveSegment>],
    /// `None` where no row was left.
    fresh: Option<Fresh>,
}

impl Merged<'_> {
    /// Makes it the truth on disk, then in memory.
    fn land(
        self,
        shared: &Shared,
        current: &Current,
        pipeline: &Pipeline,
        publisher: &Mutex<Publisher>,
    ) -> Result<Compacted, Error> {
        let mut publisher = lock(publisher);
        let published = self.publish(shared, &mut publisher);
        let deletes = published.inspect_err(|error| {
            fail_if_unknown(pipeline, error);
            if !is_unknown(error) {
                discard(shared, &self.fresh);
            }
        })?;
        let compacted = self.account();
        // A flush is kept out until the version has what the manifest has.
        let settled_seq = publisher.manifest().flushed_seq;
        self.swap_in(current, pipeline, deletes, settled_seq);
        drop(publisher);
        Ok(compacted)
    }

    /// Publishes the new segment in the place of the old ones; gives its delete set.
    fn publish(
        &self,
        shared: &Shared,
        publisher: &mut Publisher,
    ) -> Result<Option<SideFile>, Error> {
        let mut manifest = publisher.successor();
        manifest
            .segments
            .retain(|entry| !self.pick.inputs.contains(&entry.file_number));
        let mut deletes = None;
        if let Some(fresh) = &self.fresh {
            // A flush may have settled deaths since the pick: they must be settled for the new
            // rows.
            let settled = match planted::is_on(Bug::SettledDeathsLost) {
                true => Vec::new(),
                false => carried(fresh, self.inputs, manifest.flushed_seq),
            };
            let segment = fresh.meta.file.file_number;
            deletes = publisher.write_deletes(shared, segment, &settled)?;
            manifest.segments.push(entry_of(fresh, deletes));
        }
        publisher.publish(shared, manifest)?;
        Ok(deletes)
    }

    /// What was there before and what is there now.
    fn account(&self) -> Compacted {
        let entries = || self.inputs.iter().map(|live| &live.entry);
        let fresh = self.fresh.as_ref().map(|fresh| &fresh.meta);
        Compacted {
            inputs: self.pick.inputs.clone(),
            output: fresh.map(|meta| meta.file.file_number),
            rows_before: entries().map(|entry| u64::from(entry.rows)).sum(),
            rows_after: fresh.map_or(0, |meta| u64::from(meta.zone.rows)),
            bytes_before: entries().map(|entry| entry.bytes).sum(),
            bytes_after: fresh.map_or(0, |meta| meta.file.bytes),
            reason: self.pick.reason.to_string(),
        }
    }

    /// Puts the new segment in the place of the old ones, with every death so far: of those
    /// above `settled_seq` no delete set knows.
    fn swap_in(
        self,
        current: &Current,
        pipeline: &Pipeline,
        deletes: Option<SideFile>,
        settled_seq: u64,
    ) {
        let applier = pipeline.lock_to_swap();
        let mut version: Version = (*current.version()).clone();
        version
            .segments
            .retain(|live| !self.pick.inputs.contains(&live.entry.file_number));
        if let Some(fresh) = self.fresh {
            let deaths = DeathLog::new(&DeleteSet::default());
            let upto = match planted::is_on(Bug::CompactionForgetsDeaths) {
                true => settled_seq,
                false => u64::MAX,
            };
            for death in carried(&fresh, self.inputs, upto) {
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
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chronolith_segments::Scope;
    use chronolith_vfs::Env;

    use crate::{Batch, Maintenance, Options, Record, Setup, Store};

    #[test]
    fn a_merge_is_given_up_when_the_store_closes() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options {
            maintenance: Maintenance::Manual,
            ..Options::create(Setup::default())
        };
        let store = Store::open(dir.path(), options).expect("opens");
        for id in ["a", "b"] {
            let mut batch = Batch::new();
            batch.upsert(Record::new(
                Scope::parse("s").expect("a scope"),
                id,
                7,
                "text",
            ));
            store.write(batch).expect("written");
            store.flush().expect("flushed");
        }
        let files = || {
            let entries = Env::real().vfs.list(&dir.path().join("segments"));
            let names = entries.expect("lists").into_iter().map(|entry| entry.name);
            names.collect::<BTreeSet<_>>()
        };
        let before = files();
        let compact = |goes_on| store.core().compact_while(true, &|| goes_on);
        assert_eq!(compact(false).expect("stops"), None);
        assert_eq!(files(), before, "nothing is left of it");
        let done = compact(true)
            .expect("compacts")
            .expect("there is something");
        assert_eq!(done.rows_after, 2);
    }
}
