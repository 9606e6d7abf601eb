//! Goal: another process sees each acknowledged frame once, in order, and nothing else,
//! across rotation, recovery and removal.

use std::ops::Range;

use chronolith_wal::{
    Frame, Log, LogReader, Recovered, Status, WalError, WholeLog, read_status, salvage_log,
};

use crate::bed::{Bed, DIR, STORE, body, commit, small};
use crate::format::format_0;

fn status(bed: &Bed) -> Status {
    read_status(&bed.env, DIR.as_ref(), &STORE)
        .expect("read")
        .expect("a status")
}

fn drain(reader: &mut LogReader, status: &Status) -> Result<Vec<Vec<u8>>, WalError> {
    std::iter::from_fn(|| reader.next(status).transpose())
        .map(|f| f.map(|f: Frame| f.body))
        .collect()
}

#[test]
fn a_reader_sees_what_is_acknowledged_and_no_more() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    assert!(drain(&mut reader, &status(&bed)).expect("read").is_empty());
    for n in 0..30 {
        commit(&log, &body(n, 300));
        log.append(&body(1000 + n, 20), 1).expect("append");
        let seen = drain(&mut reader, &status(&bed)).expect("read");
        let mut expected = vec![body(n, 300)];
        if n > 0 {
            expected.insert(0, body(999 + n, 20));
        }
        assert_eq!(seen, expected, "round {n}");
    }
    assert!(reader.current_file() > 1, "rotated on the way");
    log.remove_below(log.current_file()).expect("remove");
    let late = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect_err("gone");
    assert!(matches!(late, WalError::Removed { .. }), "{late}");
}

#[test]
fn a_reader_crosses_a_recovery_without_seeing_a_frame_twice() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    let seq = log.append(&body(1, 100), 1).expect("append").last_seq;
    log.append(&body(2, 100), 1).expect("append");
    log.write_status(seq).expect("status");
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    assert_eq!(
        drain(&mut reader, &status(&bed)).expect("read"),
        [body(0, 100), body(1, 100)]
    );
    drop(log);
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    let log = recovered.start(2).expect("start");
    commit(&log, &body(3, 100));
    assert_eq!(
        drain(&mut reader, &status(&bed)).expect("read"),
        [body(2, 100), body(3, 100)]
    );
}

#[test]
fn a_reader_whose_next_file_is_gone_is_told_to_begin_anew() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    for n in 1..4 {
        log.rotate().expect("rotate");
        commit(&log, &body(n, 100));
    }
    log.remove_below(3).expect("remove");
    let outcome = drain(&mut reader, &status(&bed));
    assert!(
        matches!(outcome, Err(WalError::Removed { .. })),
        "{outcome:?}"
    );
}

/// A batch is seen whole or not at all, whatever a status claims.
#[test]
fn a_batch_acknowledged_in_part_is_not_seen() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    let seqs = log.append(&body(0, 100), 3).expect("append");
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    let mut status = Status {
        epoch: 1,
        acked_upto: seqs.last_seq - 1,
        durable_upto: 0,
    };
    assert!(drain(&mut reader, &status).expect("read").is_empty());
    status.acked_upto += 1;
    assert_eq!(drain(&mut reader, &status).expect("read").len(), 1);
}

/// After a power cut `STATUS` may be ahead of a log that lost buffered frames: no error.
#[test]
fn a_reader_of_a_torn_log_stops_at_its_end() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    let seq = log.append(&body(1, 100), 1).expect("append").last_seq;
    log.write_status(seq).expect("status");
    drop(log);
    bed.edit(&chronolith_wal::log_name(1), |bytes| {
        bytes[128 + 184 + 100] ^= 1
    });
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    assert_eq!(
        drain(&mut reader, &status(&bed)).expect("read"),
        [body(0, 100)]
    );
    let durable = Status {
        durable_upto: seq,
        ..status(&bed)
    };
    assert!(
        drain(&mut reader, &durable)
            .expect_err("it was durable")
            .is_damage()
    );
}

/// A frame that calls a batch durable must not be there before the status does: where the writer
/// dies between its sync and its acknowledgement, the status would look like an old copy.
#[test]
fn a_status_knows_of_a_sync_before_any_frame_does() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    let acked = log.last_seq();
    let seq = log.append(&body(1, 100), 1).expect("append").last_seq;
    log.sync_upto(seq).expect("sync");
    log.append(&body(2, 100), 1).expect("append");
    // Dead here: nobody was told of `seq`.
    let told = status(&bed);
    assert_eq!((told.acked_upto, told.durable_upto), (acked, seq));
    let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("open");
    drain(&mut reader, &told).expect("read");
    assert_eq!(reader.proven_ahead().expect("read"), seq);
}

/// How a file's header changes in place: the file, the bytes that are written, and who writes them.
struct Change {
    file: u64,
    bytes: usize,
    bed: fn() -> Bed,
    write: fn(&Bed),
}

/// The mark of a successor; that mark with the format that has it; that format for epoch frames.
const CHANGES: [Change; 3] = [
    Change {
        file: 1,
        bytes: 16,
        bed: || Bed::new(0),
        write: |bed| {
            let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
            commit(&log, &body(0, 100));
            log.rotate().expect("rotate");
        },
    },
    Change {
        file: 2,
        bytes: 128,
        bed: format_0,
        write: |bed| drop(recover(bed).start(3).expect("start")),
    },
    Change {
        file: 2,
        bytes: 128,
        bed: format_0,
        write: |bed| drop(recover(bed).take_over(3).expect("take over")),
    },
];

fn recover(bed: &Bed) -> Recovered {
    Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens")
}

type Look = fn(&Bed, u64) -> Result<(), WalError>;

/// Who reads a header beside a writer.
const LOOKS: [Look; 3] = [
    |bed, file| LogReader::open(&bed.env, DIR.as_ref(), STORE, file).map(drop),
    |bed, file| WholeLog::read(&bed.env, DIR.as_ref(), STORE, file).map(drop),
    |bed, file| match salvage_log(&bed.env, DIR.as_ref(), STORE, file)?.gaps[..] {
        [] => Ok(()),
        _ => Err(WalError::MissingFile {
            file: "whole".into(),
        }),
    },
];

/// True where a look is well that meets a header half-changed for `reads` reads.
fn is_read_well(change: &Change, seen: Range<usize>, reads: u64, look: usize) -> bool {
    let bed = (change.bed)();
    bed.disk.show_half(change.bytes, seen, reads);
    (change.write)(&bed);
    assert!(bed.disk.has_half(), "nothing was written in part");
    LOOKS[look](&bed, change.file).is_ok()
}

/// A header that changes in place is whole to everybody who looks once more, wherever the write
/// stands; one that stays half-changed is damage.
#[test]
fn a_header_that_is_being_changed_is_no_damage() {
    for (nth, change) in CHANGES.iter().enumerate() {
        let mut refused = 0;
        for at in 1..change.bytes {
            for seen in [0..at, at..change.bytes] {
                for look in 0..LOOKS.len() {
                    let is_well = is_read_well(change, seen.clone(), 3, look);
                    assert!(is_well, "change {nth}, {seen:?}, look {look}");
                    refused += u32::from(!is_read_well(change, seen.clone(), u64::MAX, look));
                }
            }
        }
        assert!(refused > 10, "change {nth}: {refused} halves are refused");
    }
}
