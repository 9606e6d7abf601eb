//! Goal: the judgement's rules one by one, and the field's trials that a log can meet.

use chronolith_wal::{EPOCH_MAX, Flaw, Log, LogOptions, WalError, log_name, sweep_temps};

use crate::bed::{Bed, DIR, STORE, body, commit, recovered_bodies, small, unmark};

fn log_with(bed: &Bed, batches: u64) -> Log {
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    for n in 0..batches {
        commit(&log, &body(n, 100));
    }
    log
}

fn bodies(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(|n| body(n, 100)).collect()
}

/// Where frame `n` of file 1 begins (all bodies 100 bytes, padded to 104).
fn frame_at(n: usize) -> usize {
    128 + n * (64 + 104 + 16)
}

/// facebook/rocksdb/issues/1351: refuses to open after a kill in the middle of an append.
#[test]
fn rocksdb_1351_a_partial_last_header_is_dropped_and_counted() {
    for kept in 1..64 {
        let bed = Bed::new(0);
        let log = log_with(&bed, 3);
        log.append(&body(3, 100), 1).expect("append");
        drop(log);
        bed.edit(&log_name(1), |bytes| bytes.truncate(frame_at(3) + kept));
        let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
        assert_eq!(recovered_bodies(&recovered), bodies(0..3));
        let report = recovered.report();
        let torn = &bed.read(&log_name(1))[frame_at(3)..];
        let used = torn.iter().rposition(|&b| b != 0).expect("a magic") + 1;
        assert_eq!(report.bytes_dropped, used as u64, "kept {kept}");
        assert!(!report.ambiguous, "STATUS says that it was never synced");
        assert_eq!(
            report.dropped.as_ref().expect("a tail").flaw,
            Flaw::PartialHeader
        );
        let strict = LogOptions {
            strict_tail: true,
            ..small()
        };
        let refused = Log::recover(&bed.env, DIR.as_ref(), &strict).expect_err("strict");
        assert!(matches!(refused, WalError::TornTail { .. }), "{refused}");
    }
}

/// Cut at a frame's end, or zeros from there on, a log looks whole: `STATUS` tells that it is not.
#[test]
fn acknowledged_frames_gone_without_a_trace_are_told_of() {
    let durable = 1 << 40 | 2;
    let gone = |n: usize, zeros: bool| {
        let bed = Bed::new(0);
        let log = log_with(&bed, 2);
        for n in 2..5 {
            let seqs = log.append(&body(n, 100), 1).expect("append");
            log.write_status(seqs.last_seq).expect("status");
        }
        drop(log);
        bed.edit(&log_name(1), |bytes| match zeros {
            true => bytes[frame_at(n)..].fill(0),
            false => bytes.truncate(frame_at(n)),
        });
        bed
    };
    for n in 2..=5 {
        for zeros in [false, true] {
            let bed = gone(n, zeros);
            let strict = LogOptions {
                strict_tail: true,
                ..small()
            };
            let refused = Log::recover(&bed.env, DIR.as_ref(), &strict).err();
            let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
            assert_eq!(recovered_bodies(&recovered), bodies(0..n as u64));
            let report = recovered.report();
            assert_eq!(report.durable_upto, durable);
            assert_eq!((report.bytes_dropped, report.ambiguous), (0, false));
            let lost = (n < 5).then_some(1 << 40 | 5);
            assert_eq!(report.acked_lost_upto, lost, "{n} frames, zeros {zeros}");
            match (lost, refused) {
                (Some(_), Some(WalError::TornTail { offset, .. })) => {
                    assert_eq!(offset, frame_at(n) as u64);
                }
                (None, None) => {}
                (_, refused) => panic!("{n} frames, zeros {zeros}: {refused:?}"),
            }
            // Told once: the next writer says what there is.
            drop(recovered.start(2).expect("starts"));
            let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
            assert_eq!(recovered.report().acked_lost_upto, None);
        }
    }
    // A frame is acknowledged before it is synced, so a bad one may be such a loss, too.
    let bed = gone(5, false);
    bed.edit(&log_name(1), |bytes| bytes[frame_at(3)] ^= 1);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    let report = recovered.report();
    assert_eq!(report.bytes_dropped, (frame_at(5) - frame_at(3)) as u64);
    assert_eq!(report.acked_lost_upto, Some(1 << 40 | 5));
}

/// qdrant/qdrant/issues/2231: start fails on an unknown temporary file in the log directory.
#[test]
fn qdrant_2231_foreign_and_half_born_files_are_ignored() {
    let bed = Bed::new(0);
    drop(log_with(&bed, 2));
    for name in [
        "0000000000000002.log.tmp",
        "first-index.tmp",
        "0000000000000009.LOG",
        "x.log",
    ] {
        bed.put(name, b"half");
    }
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered), bodies(0..2));
    let log = recovered
        .start(2)
        .expect("starts over the half-born file of its own name");
    commit(&log, &body(2, 100));
    bed.put("00000000000000ff.log.tmp", b"half");
    assert_eq!(sweep_temps(&bed.env, DIR.as_ref()).expect("sweeps"), 1);
    assert!(
        bed.names().contains(&"first-index.tmp".to_owned()),
        "only own patterns are swept"
    );
}

/// Without `STATUS` nobody knows whether the last group was acknowledged.
#[test]
fn a_damaged_last_group_is_damage_with_status_and_ambiguous_without() {
    let bed = Bed::new(0);
    drop(log_with(&bed, 3));
    bed.edit(&log_name(1), |bytes| bytes[frame_at(2) + 70] ^= 1);
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("STATUS proves it");
    let WalError::Corrupt {
        file,
        offset,
        first_seq,
        last_seq,
        flaw,
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((file, offset), (log_name(1), frame_at(2) as u64));
    assert_eq!(
        (first_seq, last_seq, flaw),
        (1 << 40 | 3, 1 << 40 | 3, Flaw::Digest)
    );
    bed.remove("STATUS");
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered), bodies(0..2));
    assert!(recovered.report().ambiguous);
    let flushed = LogOptions {
        flushed_seq: 1 << 40 | 3,
        ..small()
    };
    let refused =
        Log::recover(&bed.env, DIR.as_ref(), &flushed).expect_err("the manifest proves it");
    assert!(refused.is_damage(), "{refused}");
}

/// A later frame's promise proves an earlier one, through a damaged header too.
#[test]
fn a_damaged_header_in_the_middle_is_not_the_end() {
    for at in [0, 8, 16, 40, 60] {
        let bed = Bed::new(0);
        drop(log_with(&bed, 4));
        bed.remove("STATUS");
        bed.edit(&log_name(1), |bytes| bytes[frame_at(1) + at] ^= 0x40);
        let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("damage");
        assert!(
            matches!(refused, WalError::Corrupt { offset, .. } if offset == frame_at(1) as u64),
            "byte {at}: {refused}"
        );
    }
}

/// A whole frame behind a hole proves nothing by itself: sectors land in any order.
#[test]
fn an_unsynced_frame_behind_a_hole_is_dropped() {
    let bed = Bed::new(0);
    let log = log_with(&bed, 2);
    for n in 2..5 {
        log.append(&body(n, 100), 1).expect("append");
    }
    drop(log);
    bed.edit(&log_name(1), |bytes| {
        bytes[frame_at(3)..frame_at(4)].fill(0)
    });
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered), bodies(0..3));
    assert_eq!(
        recovered.report().bytes_dropped,
        (frame_at(5) - frame_at(3)) as u64
    );
    assert!(!recovered.report().ambiguous);
}

#[test]
fn a_missing_foreign_or_swapped_file_is_named() {
    let make = || {
        let bed = Bed::new(0);
        let log = log_with(&bed, 2);
        for n in 2..5 {
            log.rotate().expect("rotate");
            commit(&log, &body(n, 100));
        }
        bed
    };
    let refused = |bed: &Bed| {
        let opts = LogOptions {
            floor_file: 1,
            ..small()
        };
        Log::recover(&bed.env, DIR.as_ref(), &opts)
            .expect_err("damage")
            .to_string()
    };
    for (number, named) in [(1, 1), (2, 2), (3, 3)] {
        let bed = make();
        bed.remove(&log_name(number));
        let message = refused(&bed);
        assert!(
            message.contains(&log_name(named)) && message.contains("missing"),
            "{message}"
        );
    }
    // The newest one gone: the one before it knows of it, and STATUS how far it went.
    let bed = make();
    bed.remove(&log_name(4));
    let message = refused(&bed);
    assert!(
        message.contains(&log_name(4)) && message.contains("missing"),
        "{message}"
    );
    // Of an older release's files none says so: STATUS knows of seqs that no file holds.
    bed.edit(&log_name(3), |bytes| unmark(bytes));
    assert!(refused(&bed).contains("damaged"));
    // Two files swapped: a header knows its own number.
    let bed = make();
    let (two, three) = (bed.read(&log_name(2)), bed.read(&log_name(3)));
    bed.put(&log_name(2), &three);
    bed.put(&log_name(3), &two);
    assert!(refused(&bed).contains("file header damaged"));
    // Another store's.
    let bed = make();
    let opts = LogOptions {
        store_id: [9; 16],
        floor_file: 1,
        ..small()
    };
    let error = Log::recover(&bed.env, DIR.as_ref(), &opts).expect_err("foreign");
    assert!(matches!(error, WalError::WrongStore { .. }), "{error}");
}

#[test]
fn a_sealed_log_says_so_and_a_floor_skips_older_files() {
    let bed = Bed::new(0);
    let log = log_with(&bed, 2);
    log.rotate().expect("rotate");
    commit(&log, &body(2, 100));
    log.seal().expect("seal");
    assert_eq!(log.file_of(1 << 40 | 2), Some(1));
    assert_eq!(log.file_of(1 << 40 | 3), Some(2));
    assert_eq!(log.floor_for(1 << 40 | 1), 1);
    assert_eq!(log.floor_for(1 << 40 | 2), 2);
    assert_eq!(log.remove_below(2).expect("remove"), 1);
    drop(log);
    let opts = LogOptions {
        floor_file: 2,
        flushed_seq: 1 << 40 | 2,
        ..small()
    };
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("opens");
    assert!(recovered.report().sealed);
    assert_eq!(recovered_bodies(&recovered), bodies(2..3));
    assert!(recovered.start(1).is_err(), "an epoch is never used twice");
    let log = recovered.start(7).expect("start");
    assert_eq!((log.next_seq(), log.current_file()), (7 << 40 | 1, 3));
    assert_eq!(
        recovered_bodies(&recovered),
        bodies(2..3),
        "frames may be read after start"
    );
}

/// A frame that is only in the page cache is copied; the old file's rest no longer counts.
#[test]
fn frames_above_the_proven_seq_are_copied_behind_a_cut() {
    let bed = Bed::new(0);
    let log = log_with(&bed, 2);
    log.append(&body(2, 100), 1).expect("append");
    log.append(&body(3, 100), 1).expect("append");
    drop(log);
    bed.edit(&log_name(1), |bytes| bytes[frame_at(3) + 80] ^= 1);
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered.report().durable_upto, 1 << 40 | 2);
    let log = recovered.start(2).expect("start");
    let spans: Vec<_> = log
        .files()
        .iter()
        .map(|s| (s.number, s.first_seq, s.last_seq))
        .collect();
    let epoch = 1 << 40;
    assert_eq!(
        spans,
        [(1, epoch | 1, epoch | 2), (2, epoch | 3, epoch | 3)]
    );
    commit(&log, &body(4, 100));
    drop(log);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    let expected: Vec<_> = [0, 1, 2, 4].map(|n| body(n, 100)).into();
    assert_eq!(recovered_bodies(&recovered), expected);
}

/// A frame of another history with the same store, epoch, seq and offset (a stale copy of
/// the file) is not this log's frame.
#[test]
fn a_frame_of_another_history_does_not_chain() {
    let (bed, other) = (Bed::new(0), Bed::new(0));
    drop(log_with(&bed, 3));
    let log = log_with(&other, 1);
    commit(&log, &body(77, 100));
    commit(&log, &body(2, 100));
    let foreign = other.read(&log_name(1))[frame_at(2)..frame_at(3)].to_vec();
    bed.edit(&log_name(1), |bytes| {
        bytes[frame_at(2)..frame_at(3)].copy_from_slice(&foreign)
    });
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("stale");
    assert!(
        matches!(
            refused,
            WalError::Corrupt {
                flaw: Flaw::Chain,
                ..
            }
        ),
        "{refused}"
    );
}

/// A log of three files, closed; the newest one holds two batches.
fn three_files(bed: &Bed) -> Log {
    let log = log_with(bed, 3);
    log.rotate().expect("rotates");
    commit(&log, &body(3, 100));
    log.rotate().expect("rotates");
    (4..6).for_each(|n| commit(&log, &body(n, 100)));
    log
}

/// The newest file and `STATUS` are all that knew of the last batches; the file before does
/// say that there was one more.
#[test]
fn the_newest_file_and_status_lost_together_are_a_named_loss() {
    let bed = Bed::new(0);
    drop(three_files(&bed));
    bed.remove(&log_name(3));
    let status = bed.read("STATUS");
    bed.remove("STATUS");
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("a loss");
    assert!(refused.is_damage());
    let text = refused.to_string();
    let WalError::SuccessorMissing {
        file,
        before,
        first_seq,
        last_seq,
    } = refused
    else {
        panic!("{text}");
    };
    assert_eq!((file, before), (log_name(3), log_name(2)));
    assert_eq!((first_seq, last_seq), (1 << 40 | 5, None));
    assert!(text.contains("restore"), "{text}");
    // With STATUS it is known how many.
    bed.put("STATUS", &status);
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("a loss");
    let WalError::SuccessorMissing { last_seq, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!(last_seq, Some(1 << 40 | 6));
}

/// The file that a recovery begins holds what it copied, too.
#[test]
fn the_file_of_a_recovery_lost_with_status_is_a_named_loss() {
    let bed = Bed::new(0);
    let log = log_with(&bed, 2);
    log.append(&body(2, 100), 1).expect("append");
    drop(log);
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    drop(recovered.start(2).expect("starts"));
    bed.remove(&log_name(2));
    bed.remove("STATUS");
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("a loss");
    assert!(
        matches!(refused, WalError::SuccessorMissing { .. }),
        "{refused}"
    );
}

/// Any other byte in the mark's place: nobody can tell whether a file is missing, unless it is
/// there. Then the next writer makes the mark whole.
#[test]
fn a_damaged_mark_is_no_proof_of_an_end() {
    for at in 112..124 {
        let bed = Bed::new(0);
        drop(three_files(&bed));
        bed.edit(&log_name(2), |bytes| bytes[at] ^= 4);
        let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("all is there");
        assert_eq!(recovered_bodies(&recovered), bodies(0..6));
        assert_eq!(recovered.report().damaged_marks, [log_name(2)]);
        drop(recovered.start(2).expect("starts"));
        let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
        assert!(recovered.report().damaged_marks.is_empty());
        bed.edit(&log_name(4), |bytes| bytes[at] ^= 4);
        let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("in doubt");
        let WalError::Corrupt {
            file, offset, flaw, ..
        } = refused
        else {
            panic!("{refused}");
        };
        assert_eq!((file, offset), (log_name(4), 112));
        assert_eq!(flaw, Flaw::SuccessorMark);
    }
}

/// A file that was begun and never told of holds nothing that anybody was promised.
#[test]
fn a_file_that_was_not_told_of_takes_no_batch_until_it_is() {
    let bed = Bed::new(0);
    let log = log_with(&bed, 3);
    bed.disk
        .fail(crate::disk::Op::Write, 2, std::io::ErrorKind::StorageFull);
    let refused = log.rotate().expect_err("the mark cannot be written");
    assert!(!refused.is_final(), "{refused}");
    assert_eq!(log.current_file(), 2);
    bed.edit(&log_name(1), |bytes| unmark(bytes));
    bed.disk
        .fail(crate::disk::Op::Write, 0, std::io::ErrorKind::StorageFull);
    log.append(&body(3, 100), 1).expect_err("it still cannot");
    assert!(bed.read(&log_name(2))[128..].iter().all(|b| *b == 0));
    commit(&log, &body(3, 100));
    assert_ne!(bed.read(&log_name(1))[112..124], [0; 12]);
    drop(log);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered), bodies(0..4));
}

/// A hostile header behind a torn frame: its checksum holds, its epoch is one that no writer has.
#[test]
fn an_epoch_that_no_writer_has_is_no_evidence() {
    for epoch in [0, EPOCH_MAX + 1, u32::MAX] {
        let bed = Bed::new(0);
        let log = log_with(&bed, 1);
        (1..3).for_each(|n| drop(log.append(&body(n, 100), 1)));
        drop(log);
        bed.edit(&log_name(1), |bytes| {
            bytes[frame_at(1) + 70] ^= 1;
            let at = frame_at(2);
            bytes[at + 32..at + 36].copy_from_slice(&epoch.to_le_bytes());
            let mut crc = crc32fast::Hasher::new();
            crc.update(&bytes[at..at + 60]);
            crc.update(&STORE);
            crc.update(&(at as u64).to_le_bytes());
            bytes[at + 60..at + 64].copy_from_slice(&crc.finalize().to_le_bytes());
        });
        let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
        assert_eq!(recovered.report().epoch_highest, 1, "{epoch}");
        assert_eq!(recovered_bodies(&recovered), bodies(0..1));
        drop(recovered.start(2).expect("starts"));
    }
}
