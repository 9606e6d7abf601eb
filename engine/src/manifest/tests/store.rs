//! The few generations that every test writes.

use std::path::{Path, PathBuf};

use chronolith_vfs::Vfs;

use super::super::deletes::{DeadRow, read_deletes, write_deletes};
use super::super::names::{DataKind, DataName};
use super::super::tag_graph::{StoredEdge, read_tag_graph, write_tag_graph};
use super::super::{
    CatalogWitness, IndexOptions, Manifest, SegmentEntry, Settings, Statistics, VectorFormat,
    VectorSpace, create, publish, remove_obsolete,
};
use super::disk::Disk;

pub(super) const STORE_ID: [u8; 16] = *b"\x01\x02\x03\x04\x05\x06\x07\x08store-id";
pub(super) const ROWS: u32 = 100;
const DAY_US: i64 = 86_400_000_000;

pub(super) fn store() -> PathBuf {
    PathBuf::from("/s")
}

pub(super) fn settings() -> Settings {
    Settings {
        log_format: 0,
        segment_format: 0,
        side_file_format: 0,
        analyzer: "plain-en/1".to_owned(),
        vector_space: Some(VectorSpace {
            model: "builtin/1".to_owned(),
            dim: 256,
            format: VectorFormat::F16,
            normalised: true,
        }),
        spaces: None,
        token_counter: "bytes4/1".to_owned(),
        bucket_base_us: DAY_US,
        bucket_ladder: vec![1, 7, 28, 84, 364],
        index: IndexOptions {
            summary_words: true,
            speaker_words: true,
            date_words: false,
        },
        dense_weight_ppm: 400_000,
        seed: 0x5eed,
    }
}

/// Generation `g` has segments of file numbers 10g and, but for the first two, 10(g-1); the
/// newest has no delete set, the one before has one; each has its own tag graph.
pub(super) fn manifest(generation: u64) -> Manifest {
    let mut manifest = Manifest::first(STORE_ID, 1_700_000_000_000_000, settings());
    manifest.generation = generation;
    manifest.epoch = 1;
    manifest.flushed_seq = (1 << 40) + generation * u64::from(ROWS);
    manifest.floor_file = generation;
    manifest.next_file_number = 10 * generation + 5;
    if generation == 1 {
        (
            manifest.epoch,
            manifest.flushed_seq,
            manifest.next_file_number,
        ) = (0, 0, 1);
        return manifest;
    }
    if generation > 2 {
        manifest.segments.push(segment(generation - 1));
    }
    manifest.segments.push(segment(generation));
    manifest.statistics = Statistics::of(&manifest.segments);
    manifest.witness = CatalogWitness {
        generation: generation - 1,
        watermark: manifest.flushed_seq - 1,
        locators: 7,
        content_hashes: 6,
    };
    manifest
}

fn segment(generation: u64) -> SegmentEntry {
    let seq = (1 << 40) + (generation - 1) * u64::from(ROWS);
    let day = i64::try_from(generation).expect("small") * DAY_US;
    SegmentEntry {
        file_number: 10 * generation,
        bytes: 7,
        digest: 0xd16e_5700_0000_0000_0000_0000_0000_0000 + u128::from(generation),
        level: 0,
        bucket_start_us: day,
        bucket_end_us: day + DAY_US,
        rows: ROWS,
        first_seq: seq + 1,
        last_seq: seq + u64::from(ROWS),
        event_time_min_us: day,
        event_time_max_us: day + DAY_US - 1,
        deletes: None,
    }
}

pub(super) fn dead(generation: u64) -> Vec<DeadRow> {
    let row = u32::try_from(generation).expect("small");
    vec![
        DeadRow {
            row,
            seq: (1 << 40) + 9,
            kind: 1,
            valid_to_us: -1,
        },
        DeadRow {
            row: row + 40,
            seq: (1 << 40) + 8,
            kind: 3,
            valid_to_us: i64::MAX,
        },
    ]
}

pub(super) fn edges(generation: u64) -> Vec<StoredEdge> {
    let edge = |parent: &str, child: &str| StoredEdge {
        scope_key: b"user\0ana\0".to_vec(),
        parent: parent.to_owned(),
        child: child.to_owned(),
    };
    vec![
        edge("food", "bread"),
        edge("food", &format!("wine {generation}")),
    ]
}

pub(super) type Failure = Box<dyn std::error::Error>;

/// Writes the segments and side files of `generation`; returns the manifest that names them.
pub(super) fn write_data(
    vfs: &dyn Vfs,
    store: &Path,
    generation: u64,
) -> Result<Manifest, Failure> {
    let mut manifest = manifest(generation);
    if generation == 1 {
        return Ok(manifest);
    }
    let number = 10 * generation;
    write_segment(vfs, store, number)?;
    if generation > 2 {
        manifest.segments[0].deletes = Some(write_deletes(
            vfs,
            store,
            number + 1,
            &STORE_ID,
            manifest.segments[0].file_number,
            &dead(generation),
        )?);
    }
    manifest.tag_graph = Some(write_tag_graph(
        vfs,
        store,
        number + 2,
        &STORE_ID,
        &edges(generation),
    )?);
    manifest.statistics = Statistics::of(&manifest.segments);
    Ok(manifest)
}

/// Stands for the segment writer: aside, synced, renamed.
fn write_segment(vfs: &dyn Vfs, store: &Path, number: u64) -> Result<(), Failure> {
    let name = DataName::new(number, DataKind::Segment);
    let temp = name.with_temp(true).path(store);
    if vfs.stat(&temp).is_ok() {
        vfs.remove_file(&temp)?;
    }
    let file = vfs.create_new(&temp)?;
    file.write_all_at(b"segment", 0)?;
    file.sync_all()?;
    vfs.rename(&temp, &name.path(store))?;
    Ok(())
}

/// One whole step of the engine: data, publish, removal of what went out of reach.
pub(super) fn advance(vfs: &dyn Vfs, store: &Path, generation: u64) -> Result<Manifest, Failure> {
    let manifest = write_data(vfs, store, generation)?;
    if generation == 1 {
        create(vfs, store, &manifest)?;
    } else {
        publish(vfs, store, &manifest)?;
    }
    Ok(manifest)
}

/// Removal once the last of three generations is published: the first one's copies, and the
/// data that it alone named.
pub(super) fn clean(
    vfs: &dyn Vfs,
    store: &Path,
    [older, before, now]: [&Manifest; 3],
) -> Result<(), Failure> {
    remove_obsolete(vfs, store, now.generation)?;
    for name in older.retired_by(before) {
        vfs.remove_file(&name.path(store))?;
    }
    Ok(())
}

/// A healthy store of `generations` generations, nothing removed, all of it durable.
pub(super) fn healthy(generations: u64) -> (Disk, Vec<Manifest>) {
    let disk = Disk::default();
    let all = (1..=generations)
        .map(|g| advance(&disk, &store(), g).expect("healthy disk"))
        .collect();
    (disk.fork(), all)
}

/// Everything a manifest names is there and is what was written.
pub(super) fn assert_data_whole(vfs: &dyn Vfs, store: &Path, manifest: &Manifest) {
    for segment in &manifest.segments {
        let path = DataName::new(segment.file_number, DataKind::Segment).path(store);
        assert_eq!(
            vfs.stat(&path).expect("a live segment is there").len,
            segment.bytes
        );
        if let Some(deletes) = &segment.deletes {
            let (number, rows) = (segment.file_number, segment.rows);
            let found =
                read_deletes(vfs, store, &STORE_ID, deletes, number, rows).expect("delete set");
            assert_eq!(found, dead(manifest.generation));
        }
    }
    if let Some(graph) = &manifest.tag_graph {
        assert_eq!(
            read_tag_graph(vfs, store, &STORE_ID, graph).expect("tag graph"),
            edges(manifest.generation)
        );
    }
}
