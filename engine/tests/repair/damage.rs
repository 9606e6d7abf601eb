//! One damage at a time, and what the report says of it.

use std::path::{Path, PathBuf};

use chronolith::{Error, ManifestState, RepairError, RepairOptions, Scope, Setup, Store, repair};
use chronolith_vfs::{CrashImage, Vfs};

use crate::bed::{Bed, Builder, FIXED, STORE, answers, check, history, options, records, setup};

/// Repairs a fork after `damage` and compares with the undamaged store in every answer.
fn comes_back_equal(damage: impl Fn(&Bed), manifest: ManifestState) {
    let bed = history(11, 40);
    let whole = bed.fork();
    let store = whole.open(STORE);
    let (expected, expected_answers) = (records(&store), answers(&store));
    assert_eq!(expected.len(), bed.model.live());
    drop(store);

    damage(&bed);
    let before = bed.bytes();
    let report = bed.repair().expect("repairs");
    assert_eq!(bed.bytes(), before, "the source keeps every byte");
    assert!(report.missing.is_empty() && report.lost_ids.is_empty());
    // Without a manifest nothing says that no delete set is gone: the log begins too late.
    let is_proven = manifest == ManifestState::Whole;
    assert_eq!(report.is_complete(), is_proven, "{report:#?}");
    assert_eq!(report.deletes_at_risk.is_empty(), is_proven, "{report:#?}");
    assert_eq!(report.manifest, manifest);
    assert!(!report.order_has_holes);
    assert_eq!(report.tag_edges, 2);
    check(&bed, &report, "equal");
    let store = bed.open(FIXED);
    assert_eq!(answers(&store), expected_answers);
    let found = records(&store);
    let plain = |all: &std::collections::BTreeMap<_, chronolith::StoredRecord>| {
        let records = all.values().map(|stored| stored.record.clone());
        records.collect::<Vec<_>>()
    };
    assert_eq!(plain(&found), plain(&expected), "vectors included");
}

#[test]
fn a_healthy_store_comes_back_equal() {
    comes_back_equal(|_| {}, ManifestState::Whole);
}

#[test]
fn a_store_without_any_manifest_file_comes_back_equal() {
    let damage = |bed: &Bed| {
        bed.remove(&Path::new(STORE).join("CURRENT"));
        for path in bed.files("/manifest/", "") {
            bed.remove(&path);
        }
    };
    comes_back_equal(damage, ManifestState::Rebuilt);
}

#[test]
fn a_damaged_pointer_costs_nothing() {
    let damage = |bed: &Bed| bed.flip(&Path::new(STORE).join("CURRENT"), 40);
    comes_back_equal(damage, ManifestState::Whole);
}

#[test]
fn both_copies_damaged_cost_nothing() {
    let damage = |bed: &Bed| {
        let copies = bed.files("/manifest/", "");
        for path in &copies[copies.len() - 2..] {
            bed.flip(path, 60);
        }
    };
    comes_back_equal(damage, ManifestState::Rebuilt);
}

#[test]
fn a_damaged_segment_header_and_status_cost_nothing() {
    let damage = |bed: &Bed| {
        for path in bed.files("/segments/", ".seg") {
            bed.flip(&path, 20);
        }
        bed.flip(&Path::new(STORE).join("wal/STATUS"), 20);
    };
    comes_back_equal(damage, ManifestState::Whole);
}

fn sections(bed: &Bed, path: &Path) -> Vec<(&'static str, u64, u64)> {
    let name = path.file_stem().and_then(|name| name.to_str());
    let number = u64::from_str_radix(name.expect("a name"), 16).expect("a number");
    let dir = Path::new(STORE).join("segments");
    let described = chronolith_segments::Description::read(&bed.vfs, &dir, number);
    let sections = described.expect("whole").sections.into_iter();
    sections.map(|s| (s.name, s.offset, s.bytes)).collect()
}

#[test]
fn a_damaged_section_costs_rows_of_its_segment_alone() {
    let bed = history(12, 60);
    let segments = bed.files("/segments/", ".seg");
    let path = segments.first().expect("a segment");
    // Not needed for a row: made anew.
    let derived = [
        "timeline",
        "id_order",
        "id_filter",
        "terms",
        "postings",
        "postings_skip",
        "tag_sets",
    ];
    let mut incomplete = 0;
    for (name, offset, bytes) in sections(&bed, path) {
        if bytes == 0 {
            continue;
        }
        let damaged = bed.fork();
        let at = usize::try_from(offset + bytes / 2).expect("small");
        damaged.flip(path, at);
        let report = damaged.repair().expect("repairs");
        check(&damaged, &report, name);
        let is_named = |damage: &chronolith::DamagedFile| {
            damage.section == name && path.ends_with(&damage.file)
        };
        assert!(report.damaged.iter().any(is_named), "{name}: {report:#?}");
        let all = report.records == bed.model.live() as u64;
        assert_eq!(report.is_complete(), all, "{name}: {report:#?}");
        assert!(all || !derived.contains(&name), "{name}: is not needed");
        assert!(report.records > 10, "{name}: other segments are there");
        incomplete += usize::from(!all);
    }
    assert!(
        incomplete >= 8,
        "the log does not hold these rows any more ({incomplete})"
    );
}

#[test]
fn a_segment_that_is_gone_or_without_a_footer_is_reported_with_its_seqs() {
    let bed = history(13, 40);
    let mut reported = 0;
    for path in bed.files("/segments/", ".seg") {
        let missing = bed.fork();
        missing.remove(&path);
        let without_footer = bed.fork();
        let end = bed.vfs.content(&path).expect("there").len() - 60;
        without_footer.flip(&path, end);
        for damaged in [missing, without_footer] {
            let report = damaged.repair().expect("repairs");
            check(&damaged, &report, "no rows");
            let is_it = |file: &str| path.ends_with(file);
            assert!(report.damaged.iter().any(|damage| is_it(&damage.file)));
            // The log may still hold all of them.
            let all = report.records == bed.model.live() as u64;
            assert_eq!(report.is_complete(), all, "{report:#?}");
            let named = report.missing.iter().filter(|missing| {
                missing.file.as_deref().is_some_and(is_it)
                    && missing.first_seq.is_some()
                    && missing.records.is_some_and(|rows| rows > 0)
            });
            reported += named.count();
        }
    }
    assert!(reported >= 2, "the log does not reach back to all of them");
}

#[test]
fn a_damaged_delete_set_is_a_risk_and_said_so() {
    let bed = history(14, 30);
    let sets = bed.files("/segments/", ".del");
    assert!(!sets.is_empty());
    for path in sets {
        let damaged = bed.fork();
        damaged.flip(&path, 100);
        let report = damaged.repair().expect("repairs");
        check(&damaged, &report, "delete set");
        assert!(!report.deletes_at_risk.is_empty(), "{report:#?}");
    }
}

/// The newest log file, and where its frames begin.
fn tail_frames(bed: &Bed) -> (PathBuf, Vec<usize>) {
    let path = bed.files("/wal/", ".log").pop().expect("a log");
    let bytes = bed.vfs.content(&path).expect("there");
    let is_frame = |at: &usize| &bytes[*at..*at + 4] == b"CHFR";
    let starts = (128..bytes.len() - 4).step_by(8).filter(is_frame);
    let starts = starts.collect();
    (path, starts)
}

#[test]
fn a_damaged_frame_costs_its_batch_and_the_report_says_that_order_has_a_hole() {
    let bed = history(15, 30);
    let (path, starts) = tail_frames(&bed);
    // The last one is the seal; the five before it were never flushed.
    let tail = &starts[starts.len() - 5..starts.len() - 2];
    for start in tail {
        for at in [start + 1, start + 20, start + 70] {
            let damaged = bed.fork();
            damaged.flip(&path, at);
            let report = damaged.repair().expect("repairs");
            check(&damaged, &report, "frame");
            assert!(
                !report.is_complete() && report.order_has_holes,
                "{report:#?}"
            );
            let gap = report.missing.iter().find(|missing| missing.file.is_some());
            let gap = gap.expect("the file is named");
            assert!(gap.records.is_some_and(|ops| ops <= 8), "{report:#?}");
        }
    }
}

#[test]
fn a_missing_log_file_and_a_cut_one_are_reported() {
    let bed = history(16, 30);
    let (path, starts) = tail_frames(&bed);
    let missing = bed.fork();
    missing.remove(&path);
    let cut = bed.fork();
    let end = starts[starts.len() - 3] + 30;
    cut.vfs
        .damage(&path, |bytes| bytes.truncate(end))
        .expect("there");
    let zeroed = bed.fork();
    let zero =
        |bytes: &mut Vec<u8>| bytes[starts[starts.len() - 4]..starts[starts.len() - 3]].fill(0);
    zeroed.vfs.damage(&path, zero).expect("there");
    for (name, damaged) in [("missing", missing), ("cut", cut), ("zeroed", zeroed)] {
        let report = damaged.repair().expect("repairs");
        check(&damaged, &report, name);
        assert!(!report.missing.is_empty(), "{name}: {report:#?}");
    }
}

#[test]
fn a_tail_that_a_recovery_dropped_does_not_come_back() {
    let mut builder = Builder::new(17);
    builder.batch(4, 20);
    builder.batch(4, 20);
    let bed = builder.done();
    let (path, starts) = tail_frames(&bed);
    let whole = bed.vfs.content(&path).expect("there");
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(starts[1] + 70);
    bed.vfs.damage(&path, cut).expect("there");
    bed.remove(&Path::new(STORE).join("wal/STATUS"));
    // The second frame is torn: the open drops it, and says in the next file where it cut.
    drop(bed.open(STORE));
    // Now it is whole again, as if its sectors had only been slow.
    bed.vfs
        .damage(&path, |bytes| *bytes = whole)
        .expect("there");
    let report = bed.repair().expect("repairs");
    assert!(report.is_complete(), "{report:#?}");
    let (fixed, opened) = (bed.open(FIXED), bed.open(STORE));
    assert_eq!(records(&fixed).len(), records(&opened).len(), "{report:#?}");
}

#[test]
fn what_is_in_the_way_is_refused() {
    let bed = history(18, 20);
    bed.vfs.create_dir(Path::new(FIXED)).expect("made");
    let file = Path::new(FIXED).join("notes.txt");
    bed.vfs.create_new(&file).expect("made");
    let refused = bed.repair().expect_err("occupied");
    assert!(
        matches!(
            refused,
            Error::Repair(RepairError::DestinationOccupied { .. })
        ),
        "{refused}"
    );
    bed.remove(&file);
    let store = bed.open(STORE);
    let refused = bed.repair().expect_err("a live writer");
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(store);
    let report = bed.repair().expect("an empty directory will do");
    check(&bed, &report, "empty directory");
    let inside = repair(
        STORE,
        format!("{STORE}/inside"),
        &RepairOptions {
            env: bed.env.clone(),
            ..RepairOptions::default()
        },
        &mut |_| {},
    );
    let refused = inside.expect_err("inside the source");
    assert!(
        matches!(
            refused,
            Error::Repair(RepairError::DestinationInside { .. })
        ),
        "{refused}"
    );
}

#[test]
fn a_log_alone_needs_to_be_told_how_the_store_was_made() {
    let mut builder = Builder::new(19);
    builder.batch(6, 20);
    builder.link("ops", "deploy");
    let bed = builder.done();
    bed.remove(&Path::new(STORE).join("CURRENT"));
    for path in bed.files("/manifest/", "") {
        bed.remove(&path);
    }
    let refused = bed.repair().expect_err("nobody knows the analyzer");
    assert!(
        matches!(refused, Error::Repair(RepairError::SetupUnknown)),
        "{refused}"
    );
    let like = |setup: Setup| RepairOptions {
        setup: Some(setup),
        env: bed.env.clone(),
        ..RepairOptions::default()
    };
    let report = repair(STORE, FIXED, &like(setup()), &mut |_| {}).expect("repairs");
    assert!(report.is_complete(), "{report:#?}");
    check(&bed, &report, "log alone");
    let made = Setup::of_store(FIXED, &options(&bed.env)).expect("reads");
    assert_eq!(made, setup());
}

#[test]
fn a_crash_anywhere_in_a_repair_leaves_nothing_or_the_whole_store() {
    let mut builder = Builder::new(20);
    builder.batch(4, 10);
    builder.store().flush().expect("flushes");
    builder.batch(3, 10);
    let bed = builder.done();
    let counted = bed.fork();
    let begin = counted.vfs.ops();
    counted.repair().expect("repairs");
    let all = counted.vfs.ops() - begin;
    let expected = records(&counted.open(FIXED)).len();
    assert!(all > 20);
    for stop in 0..all {
        let run = bed.fork();
        run.vfs.set_crash_point(run.vfs.ops() + stop);
        let ended = run.repair();
        for image in CrashImage::all() {
            let vfs = run.vfs.crash(image);
            let after = Bed {
                env: run.env.with_vfs(vfs.clone()),
                vfs,
                model: run.model.clone(),
            };
            let is_there = after
                .vfs
                .list(Path::new(FIXED))
                .is_ok_and(|names| !names.is_empty());
            // Once it has its name only the leftover is taken away.
            assert!(is_there || ended.is_err(), "stopped at {stop}");
            if is_there {
                let found = records(&after.open(FIXED)).len();
                assert_eq!(found, expected, "stopped at {stop}, {image:?}");
            } else if stop % 8 == 0 {
                let report = after.repair().expect("repairs after a crash");
                assert!(report.is_complete());
                check(&after, &report, "after a crash");
            }
        }
    }
}

#[test]
fn a_repaired_store_takes_writes_and_has_an_id_of_its_own() {
    let bed = history(21, 20);
    let report = bed.repair().expect("repairs");
    assert_ne!(report.source_id, report.store_id);
    let store: Store = bed.open(FIXED);
    let scope = Scope::parse("user/ana").expect("a scope");
    let removed = records(&store);
    let ((_, id), stored) = removed.iter().next().expect("a record");
    assert!(
        store
            .forget(stored.record.scope.clone(), id.clone())
            .expect("forgets")
    );
    assert!(
        store
            .get(&stored.record.scope, id)
            .expect("reads")
            .is_none()
    );
    drop(scope);
    store.close().expect("closes");
}
