//! Goal: another process sees each acknowledged frame once, in order, and nothing else,
//! across rotation, recovery and removal.

use chronolith_wal::{Frame, Log, LogReader, Status, WalError, read_status};

use crate::bed::{Bed, DIR, STORE, body, commit, small};

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
