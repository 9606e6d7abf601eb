//! Goal: a manifest that breaks a rule is neither written nor believed. Mechanism: break each
//! rule of a valid one.

use super::super::{
    EPOCH_MAX, Manifest, SideFile, Statistics, VectorSpace, first_free_file_number, orphans,
    publish, sweep,
};
use super::store::{healthy, manifest, store, write_data};

fn broken(change: impl FnOnce(&mut Manifest)) -> &'static str {
    let mut manifest = manifest(3);
    manifest.statistics = Statistics::of(&manifest.segments);
    manifest.validate().expect("valid before the change");
    change(&mut manifest);
    manifest.validate().expect_err("a rule is broken").field
}

#[test]
fn each_rule_has_a_manifest_that_breaks_it() {
    let side = |file_number, entries| {
        Some(SideFile {
            file_number,
            bytes: 80,
            digest: 0,
            entries,
        })
    };
    let space = |m: &mut Manifest, change: fn(&mut VectorSpace)| {
        change(m.settings.vector_space.as_mut().expect("has one"))
    };
    assert_eq!(broken(|m| m.generation = 0), "generation");
    assert_eq!(broken(|m| m.epoch = EPOCH_MAX + 1), "epoch");
    assert_eq!(broken(|m| m.epoch = 0), "flushed_seq");
    assert_eq!(broken(|m| m.settings.analyzer.clear()), "settings.analyzer");
    assert_eq!(
        broken(|m| m.settings.token_counter = "x".repeat(257)),
        "settings.token_counter"
    );
    assert_eq!(
        broken(|m| space(m, |s| s.model.clear())),
        "settings.vector_space.model"
    );
    assert_eq!(
        broken(|m| space(m, |s| s.dim = 0)),
        "settings.vector_space.dim"
    );
    assert_eq!(
        broken(|m| space(m, |s| s.dim = 4097)),
        "settings.vector_space.dim"
    );
    assert_eq!(
        broken(|m| m.settings.bucket_base_us = 0),
        "settings.bucket_base_us"
    );
    for ladder in [
        vec![],
        vec![2, 3],
        vec![1, 7, 7],
        vec![1, 7, 4],
        (1..=17).collect(),
    ] {
        assert_eq!(
            broken(|m| m.settings.bucket_ladder = ladder),
            "settings.bucket_ladder"
        );
    }
    assert_eq!(
        broken(|m| m.settings.bucket_base_us = i64::MAX / 2),
        "settings.bucket_ladder"
    );
    assert_eq!(
        broken(|m| m.settings.dense_weight_ppm = 1_000_001),
        "settings.dense_weight_ppm"
    );
    assert_eq!(broken(|m| m.segments[0].level = 6), "level");
    assert_eq!(
        broken(|m| m.segments[0].bucket_end_us = m.segments[0].bucket_start_us),
        "bucket"
    );
    assert_eq!(
        broken(|m| m.segments[0].event_time_max_us = m.segments[0].bucket_end_us),
        "event_time"
    );
    assert_eq!(
        broken(|m| m.segments[0].event_time_min_us = m.segments[0].bucket_start_us - 1),
        "event_time"
    );
    assert_eq!(
        broken(|m| m.segments[0].last_seq = m.segments[0].first_seq - 1),
        "seq"
    );
    assert_eq!(
        broken(|m| m.segments[1].last_seq = m.flushed_seq + 1),
        "seq"
    );
    assert_eq!(broken(|m| m.segments[0].rows = 0), "rows");
    assert_eq!(broken(|m| m.segments[0].deletes = side(31, 101)), "deletes");
    assert_eq!(broken(|m| m.segments.swap(0, 1)), "segments");
    assert_eq!(broken(|m| m.tag_graph = side(20, 1)), "file_number");
    assert_eq!(broken(|m| m.next_file_number = 30), "next_file_number");
    assert_eq!(broken(|m| m.tag_graph = side(35, 1)), "next_file_number");
    assert_eq!(broken(|m| m.witness.generation = 4), "witness.generation");
    assert_eq!(
        broken(|m| m.witness.watermark = m.flushed_seq + 1),
        "witness.watermark"
    );
    assert_eq!(broken(|m| m.statistics.live_rows += 1), "statistics");
}

#[test]
fn a_bucket_of_all_time_has_no_end() {
    let mut manifest = manifest(2);
    let segment = &mut manifest.segments[0];
    (
        segment.level,
        segment.bucket_start_us,
        segment.bucket_end_us,
    ) = (5, i64::MIN, i64::MAX);
    (segment.event_time_min_us, segment.event_time_max_us) = (i64::MIN, i64::MAX);
    manifest.statistics = Statistics::of(&manifest.segments);
    manifest.validate().expect("valid");
}

#[test]
fn an_invalid_manifest_is_not_written() {
    let (disk, _) = healthy(1);
    let mut bad = write_data(&disk, &store(), 2).expect("data");
    bad.segments[0].rows = 0;
    let before = disk.log();
    publish(&disk, &store(), &bad).expect_err("refused");
    assert_eq!(disk.log(), before);
}

#[test]
fn a_sweep_takes_our_orphans_and_nothing_else() {
    let (disk, expected) = healthy(4);
    let now = &expected[3];
    let put = |name: &str| disk.put(&store().join(name), b"x");
    let ours = [
        "CURRENT.tmp",
        "manifest/MANIFEST-0000000000000001.a.tmp",
        "manifest/MANIFEST-0000000000000005.a",
        "segments/0000000000000055.seg",
        "segments/0000000000000056.del.tmp",
    ];
    let foreign = [
        "manifest/MANIFEST-5.a",
        "segments/notes.txt",
        "segments/0000000000000055.SEG",
        "LOCK",
        "wal/x.tmp",
    ];
    ours.into_iter().chain(foreign).for_each(put);
    let free = first_free_file_number(&disk, &store(), now).expect("listed");
    assert_eq!(free, 0x57, "above every number on disk");
    put("segments/0000000000000057.seg.tmp");
    let found = orphans(&disk, &store(), now, free).expect("listed");
    let removed = sweep(&disk, found).expect("swept");
    for name in ours {
        assert!(removed.iter().any(|gone| gone == name), "{name} stays");
    }
    let left = disk.files();
    for name in foreign.into_iter().chain([
        "segments/0000000000000057.seg.tmp",
        "manifest/MANIFEST-0000000000000003.b",
    ]) {
        assert!(left.contains(&store().join(name)), "{name} went");
    }
    super::store::assert_data_whole(&disk, &store(), now);
    assert!(
        !left.contains(&store().join("segments/0000000000000014.seg")),
        "generation 2 alone named it"
    );
}

#[test]
fn only_what_the_later_generation_does_not_name_is_retired() {
    let (_, expected) = healthy(4);
    let retired = |older: usize, later: usize| -> Vec<String> {
        let names = expected[older - 1].retired_by(&expected[later - 1]);
        names.into_iter().map(|name| name.format()).collect()
    };
    // Generation 3 names segments 20 (delete set 31) and 30, and tag graph 32.
    let side_files = ["000000000000001f.del", "0000000000000020.tags"];
    assert_eq!(
        retired(3, 4),
        ["0000000000000014.seg", side_files[0], side_files[1]]
    );
    assert_eq!(retired(3, 3), [""; 0]);
}
