//! Goal: a writer that can have no file of its own goes on in the newest one, and all rules of
//! the log hold there.

use std::io::ErrorKind;

use chronolith_wal::{
    Flaw, Log, LogReader, WalError, WholeLog, log_name, read_status, salvage_log,
};

use crate::bed::{Bed, DIR, STORE, body, commit, recovered_bodies, small};
use crate::disk::{Image, Op};

fn bodies(range: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    range.map(|n| body(n, 100)).collect()
}

fn recover(bed: &Bed) -> Result<chronolith_wal::Recovered, WalError> {
    Log::recover(&bed.env, DIR.as_ref(), &small())
}

/// Three lives in one file; the first ends in a batch that was not synced.
fn three_lives(bed: &Bed) {
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    log.append(&body(1, 100), 1).expect("append");
    drop(log);
    for epoch in [2, 3] {
        let mut recovered = recover(bed).expect("opens");
        let log = recovered.take_over(epoch).expect("takes over");
        assert_eq!(log.current_file(), 1);
        assert_eq!(log.epoch(), epoch);
        let next = u64::from(epoch);
        commit(&log, &body(next, 100));
        drop(log);
    }
}

#[test]
fn life_after_life_in_one_file_keeps_every_batch() {
    let bed = Bed::new(0);
    three_lives(&bed);
    assert_eq!(
        bed.names(),
        [log_name(1), "STATUS".to_owned()],
        "no file was made"
    );
    for image in Image::all() {
        bed.crash(image);
        let recovered = recover(&bed).expect("opens");
        assert_eq!(recovered_bodies(&recovered), bodies(0..4), "{image:?}");
        assert_eq!(recovered.report().epoch_highest, 3);
        let seqs: Vec<_> = recovered
            .frames()
            .map(|f| f.expect("read").first_seq)
            .collect();
        assert_eq!(seqs, [1 << 40 | 1, 1 << 40 | 2, 2 << 40 | 1, 3 << 40 | 1]);
    }
    // Back to files of its own.
    let mut recovered = recover(&bed).expect("opens");
    let log = recovered.start(4).expect("starts");
    assert_eq!(log.current_file(), 2);
    commit(&log, &body(4, 100));
    drop(log);
    assert_eq!(
        recovered_bodies(&recover(&bed).expect("opens")),
        bodies(0..5)
    );
}

#[test]
fn readers_copies_and_a_salvage_follow_into_a_later_epoch() {
    let bed = Bed::new(0);
    three_lives(&bed);
    let status = read_status(&bed.env, DIR.as_ref(), &STORE).expect("reads");
    let status = status.expect("there");
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("opens");
    let mut seen = Vec::new();
    while let Some(frame) = reader.next(&status).expect("reads") {
        seen.push(frame.body);
    }
    assert_eq!(seen, bodies(0..4));
    let whole = WholeLog::read(&bed.env, DIR.as_ref(), STORE, 1).expect("whole");
    assert_eq!((whole.last_seq, whole.is_ambiguous), (3 << 40 | 1, false));
    let found = salvage_log(&bed.env, DIR.as_ref(), STORE, 1).expect("lists");
    assert_eq!((found.frames.len(), found.gaps.len()), (4, 0));
    assert!(found.covers(1 << 40 | 1, 3 << 40 | 1), "{found:?}");
}

#[test]
fn what_was_torn_is_gone_for_good_before_the_epoch_begins() {
    for image in Image::all() {
        let bed = Bed::new(7);
        let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
        commit(&log, &body(0, 100));
        log.append(&body(9, 100), 1).expect("append");
        drop(log);
        bed.edit(&log_name(1), |bytes| bytes[128 + 184 + 70] ^= 1);
        let mut recovered = recover(&bed).expect("opens");
        assert!(recovered.report().dropped.is_some());
        let log = recovered.take_over(2).expect("takes over");
        commit(&log, &body(1, 100));
        drop(log);
        bed.crash(image);
        let recovered = recover(&bed).expect("opens");
        assert_eq!(recovered_bodies(&recovered), bodies(0..2), "{image:?}");
    }
}

/// Damage in an epoch frame: `STATUS` knows of the epoch, later frames of what was durable.
#[test]
fn a_damaged_epoch_frame_is_named() {
    let bed = Bed::new(0);
    three_lives(&bed);
    // Two batches of 100 bytes, then the frame that begins epoch 2.
    let at = 128 + 2 * 184;
    assert_eq!(bed.read(&log_name(1))[at + 4], 3);
    for inside in [0, 4, 16, 33, 40, 61, 70] {
        bed.edit(&log_name(1), |bytes| bytes[at + inside] ^= 1);
        let refused = recover(&bed).expect_err("damage");
        let WalError::Corrupt { offset, flaw, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(offset, at as u64);
        assert!(flaw != Flaw::Zeros, "{flaw}");
        bed.edit(&log_name(1), |bytes| bytes[at + inside] ^= 1);
    }
}

#[test]
fn an_error_inside_leaves_the_log_as_it_was() {
    for op in [Op::Write, Op::Sync, Op::Cut] {
        for nth in 0..4 {
            let bed = Bed::new(0);
            let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
            commit(&log, &body(0, 100));
            log.append(&body(1, 100), 1).expect("append");
            drop(log);
            let mut recovered = recover(&bed).expect("opens");
            bed.disk.fail(op, nth, ErrorKind::StorageFull);
            if let Ok(log) = recovered.take_over(2) {
                drop(log);
            }
            bed.disk.fail(op, u64::MAX, ErrorKind::StorageFull);
            bed.crash(Image::All);
            let mut recovered = recover(&bed).expect("opens");
            assert_eq!(recovered_bodies(&recovered), bodies(0..2), "{op:?} {nth}");
            let epoch = recovered.report().epoch_highest + 1;
            let log = recovered.take_over(epoch).expect("takes over");
            commit(&log, &body(2, 100));
            drop(log);
            assert_eq!(
                recovered_bodies(&recover(&bed).expect("opens")),
                bodies(0..3)
            );
        }
    }
}

/// A full file whose successor cannot be made grows on, and gets one once it can.
#[test]
fn a_file_without_a_successor_grows_on() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    for n in 0..40 {
        bed.disk.fail(Op::Create, 0, ErrorKind::StorageFull);
        commit(&log, &body(n, 1000));
    }
    assert_eq!(log.current_file(), 1);
    bed.disk.fail(Op::Create, u64::MAX, ErrorKind::StorageFull);
    commit(&log, &body(40, 1000));
    assert_eq!(log.current_file(), 2);
    drop(log);
    let recovered = recover(&bed).expect("opens");
    let expected: Vec<_> = (0..41).map(|n| body(n, 1000)).collect();
    assert_eq!(recovered_bodies(&recovered), expected);
}

/// Other processes read frames and headers: what these call durable `STATUS` knows of by then, or
/// it would pass for an old copy for as long as the open takes.
#[test]
fn status_knows_of_what_a_new_writer_made_durable_before_others_can_see_it() {
    for takes_over in [false, true] {
        let mut seen = 0;
        for stop in 0..30 {
            let bed = Bed::new(0);
            let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
            commit(&log, &body(0, 100));
            log.append(&body(1, 100), 1).expect("append");
            drop(log);
            let mut recovered = recover(&bed).expect("opens");
            bed.crash_at(stop);
            let begun = match takes_over {
                false => recovered.start(2),
                true => recovered.take_over(2),
            };
            drop(begun);
            bed.crash(Image::All);
            let is_visible = match takes_over {
                false => bed.read(&log_name(1))[112..124] != [0; 12],
                true => recover(&bed).expect("opens").report().epoch_highest == 2,
            };
            if is_visible {
                let status = read_status(&bed.env, DIR.as_ref(), &STORE).expect("reads");
                let durable_upto = status.map(|status| status.durable_upto);
                assert_eq!(durable_upto, Some(1 << 40 | 2), "{takes_over} {stop}");
                seen += 1;
            }
        }
        assert!(seen > 0);
    }
}

/// No file of a later epoch was begun: the frame that began it is lost, and that place is named.
#[test]
fn an_epoch_frame_lost_with_all_behind_it_is_named_where_it_was() {
    let bed = Bed::new(0);
    three_lives(&bed);
    let at = 128 + 2 * 184;
    bed.edit(&log_name(1), |bytes| bytes[at..].fill(0));
    let refused = recover(&bed).expect_err("a loss");
    let WalError::Corrupt { file, offset, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!((file, offset), (log_name(1), at as u64));
}
