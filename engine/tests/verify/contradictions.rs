//! Files that contradict each other under right checksums.

use std::fs;

use chronolith::manifest::deletes::{DeadRow, write_deletes};
use chronolith::manifest::tag_graph::{StoredEdge, write_tag_graph};
use chronolith::manifest::{self, Manifest, SegmentEntry};
use chronolith::{DAY_US, Error, ErrorKind, FindingKind, Store};
use chronolith_vfs::{Env, RealVfs};
use chronolith_wal::{Log, LogOptions};

use crate::*;

#[test]
fn what_the_manifest_says_of_a_segment_is_what_the_segment_says() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let sound = entries(&path);
    let file = name(&sound[0]);
    type Change = fn(&mut SegmentEntry);
    let changes: [(Change, &str); 6] = [
        (|entry| entry.rows += 1, "rows"),
        (|entry| entry.first_seq -= 1, "seqs"),
        (|entry| entry.last_seq += 1, "seqs"),
        (|entry| entry.event_time_max_us += 1, "event times"),
        (|entry| entry.event_time_min_us -= 1, "event times"),
        (|entry| entry.bucket_end_us += 1, "none of the ladder's"),
    ];
    for (change, what) in changes {
        republish(&path, |_, next| {
            next.segments = sound.clone();
            change(&mut next.segments[0]);
        });
        damaged(&path, &file, what);
    }
    republish(&path, |_, next| {
        next.segments = sound.clone();
        next.segments[0].level += 1;
    });
    damaged(&path, &file, "bucket");
    republish(&path, |_, next| next.segments = sound.clone());
    let at = |settings: fn(&mut Manifest)| republish(&path, |_, next| settings(next));
    at(|next| next.settings.analyzer = "default-2/german".into());
    damaged(&path, &file, "analyzer");
    at(|next| next.settings.analyzer = "default-2/english".into());
    at(|next| next.settings.token_counter = "characters".into());
    damaged(&path, &file, "token counter");
    at(|next| next.settings.token_counter = "bytes/4".into());
    at(|next| next.settings.vector_space = None);
    damaged(&path, &file, "vector space");
}

#[test]
fn deaths_are_settled_come_after_births_and_leave_one_row_of_an_id() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let sound = entries(&path);
    let at = sound
        .iter()
        .position(|entry| entry.deletes.is_some())
        .expect("dead rows");
    let plant = |dead: Option<Vec<DeadRow>>| {
        republish(&path, |vfs, next| {
            next.segments = sound.clone();
            let number = next.take_file_number();
            let segment = next.segments[at].file_number;
            next.segments[at].deletes = dead.map(|dead| {
                write_deletes(vfs, &path, number, &next.store_id, segment, &dead).expect("written")
            });
        });
    };
    let dead = |row, seq| DeadRow {
        row,
        seq,
        kind: 1,
        valid_to_us: 0,
    };
    plant(Some(vec![dead(0, u64::MAX)]));
    damaged(&path, ".del", "the manifest has settled");
    plant(Some(vec![dead(0, 1)]));
    damaged(&path, ".del", "was written at");
    // Rows that were superseded or forgotten come back: two of one id live.
    plant(None);
    damaged(&path, ".seg", "lives though");
}

#[test]
fn a_segment_and_the_one_it_was_made_of_are_not_both_live() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    let store = create(&path);
    for day in 0..3 {
        write(&store, day * 20..day * 20 + 20, T0);
        store.flush().expect("flushes");
    }
    let before = entries(&path);
    let kept = fs::read(path.join(name(&before[0]))).expect("readable");
    store.compact(true, &mut |_| {}).expect("compacts");
    store.close().expect("closes");
    assert_healthy(&path);
    fs::write(path.join(name(&before[0])), kept).expect("written");
    republish(&path, |_, next| next.segments.insert(0, before[0].clone()));
    let report = scrub(&path);
    finds(
        &report,
        FindingKind::Damage,
        ".seg",
        "which the manifest still names",
    );
    finds(&report, FindingKind::Damage, ".seg", "and so has");
    finds(&report, FindingKind::Damage, ".seg", "lives though");
}

#[test]
fn a_stored_tag_graph_has_no_cycle() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    republish(&path, |vfs, next| {
        let number = next.take_file_number();
        let edge = |parent: &str, child: &str| StoredEdge {
            scope_key: scope("user").key().to_vec(),
            parent: parent.into(),
            child: child.into(),
        };
        let edges = [edge("a", "b"), edge("b", "a")];
        let side = write_tag_graph(vfs, &path, number, &next.store_id, &edges).expect("written");
        next.tag_graph = Some(side);
    });
    damaged(&path, ".tags", "cycle");
}

#[test]
fn a_batch_that_cannot_be_replayed_is_found_and_the_ones_behind_it_too() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let manifest = manifest::load_read_only(&RealVfs::new(), &path)
        .expect("loads")
        .manifest;
    let log_options = LogOptions {
        floor_file: manifest.floor_file,
        flushed_seq: manifest.flushed_seq,
        ..LogOptions::new(manifest.store_id)
    };
    let mut recovered = Log::recover(&Env::real(), &path.join("wal"), &log_options).expect("whole");
    let epoch = recovered.report().epoch_highest + 1;
    let log = recovered.start(epoch).expect("starts");
    for body in [&b"no batch"[..], b"nor this"] {
        log.append(body, 1).expect("appends");
    }
    log.sync_upto(log.last_seq()).expect("syncs");
    log.write_status(log.last_seq()).expect("writes");
    drop(log);
    let report = scrub(&path);
    let found = report
        .findings
        .iter()
        .filter(|f| f.message.contains("cannot be replayed"));
    assert_eq!(found.count(), 2, "{:?}", report.findings);
    finds(&report, FindingKind::Damage, ".log", "cannot be replayed");
    assert_eq!(report.replayed, 2);
}

#[test]
fn compaction_refuses_rows_outside_their_bucket() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    let store = create(&path);
    for part in 0..2 {
        write(&store, part * 20..part * 20 + 20, T0);
        store.flush().expect("flushes");
    }
    store.close().expect("closes");
    republish(&path, |_, next| {
        for entry in &mut next.segments {
            entry.bucket_start_us += DAY_US;
            entry.bucket_end_us += DAY_US;
            entry.event_time_min_us += DAY_US;
            entry.event_time_max_us += DAY_US;
        }
    });
    damaged(&path, ".seg", "event times");
    let store = Store::open(&path, options()).expect("opens: the files are whole");
    let error = store.compact(true, &mut |_| {}).expect_err("refused");
    assert!(
        matches!(error, Error::Segment(_)) && error.kind() == ErrorKind::Damaged,
        "{error}"
    );
    assert!(error.to_string().contains("outside its bucket"), "{error}");
}
