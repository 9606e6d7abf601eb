//! Goal: an error of the system is told as it is; a definite one never shows up later, an
//! indefinite one ends the log.

use std::io::ErrorKind;

use chronolith_wal::{Log, LogOptions, WalError};

use crate::bed::{Bed, DIR, body, commit, recovered_bodies, small};
use crate::disk::{Image, Op};

fn log_on(bed: &Bed) -> Log {
    let opts = LogOptions {
        preallocate_bytes: 0,
        ..small()
    };
    Log::create(&bed.env, DIR.as_ref(), &opts, 1).expect("create")
}

fn recover(bed: &Bed) -> Vec<Vec<u8>> {
    recovered_bodies(&Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens"))
}

/// facebook/rocksdb/issues/6288: a read error was taken for the end of the log.
#[test]
fn rocksdb_6288_a_read_error_is_never_the_end() {
    let bed = Bed::new(0);
    let log = log_on(&bed);
    (0..20).for_each(|n| commit(&log, &body(n, 500)));
    let all = recover(&bed);
    let mut failed = 0;
    for nth in 0.. {
        bed.disk.fail(Op::Read, nth, ErrorKind::Other);
        let outcome = Log::recover(&bed.env, DIR.as_ref(), &small())
            .and_then(|r| r.frames().collect::<Result<Vec<_>, _>>());
        match outcome {
            Err(WalError::Io { .. }) => failed += 1,
            Err(e) => panic!("read {nth}: {e}"),
            Ok(frames) => {
                assert_eq!(frames.len(), all.len());
                break;
            }
        }
    }
    assert!(failed > 10, "{failed}");
}

/// tursodatabase/turso/issues/2091, cberner/redb/issues/299: a sync fails once, the next
/// would succeed.
#[test]
fn turso_2091_a_failed_sync_is_sticky() {
    let bed = Bed::new(0);
    let log = log_on(&bed);
    commit(&log, &body(0, 100));
    let seq = log.append(&body(1, 100), 1).expect("append").last_seq;
    bed.disk.fail(Op::Sync, 0, ErrorKind::Other);
    assert!(matches!(
        log.sync_upto(seq),
        Err(WalError::SyncFailed { .. })
    ));
    let syncs = bed.disk.syncs();
    for _ in 0..3 {
        assert!(matches!(log.sync_upto(seq), Err(WalError::Poisoned { .. })));
        assert!(matches!(
            log.append(b"more", 1),
            Err(WalError::Poisoned { .. })
        ));
        assert!(matches!(log.seal(), Err(WalError::Poisoned { .. })));
        assert!(matches!(log.rotate(), Err(WalError::Poisoned { .. })));
    }
    assert_eq!(bed.disk.syncs(), syncs, "no retry");
    assert_eq!(log.durable_upto(), seq - 1);
    drop(log);
    bed.crash(Image::Synced);
    assert_eq!(recover(&bed), [body(0, 100)]);
}

/// quickwit-oss/tantivy/issues/1198 at the log: no space, space again, later appends count
/// and the refused one never appears.
#[test]
fn tantivy_1198_a_full_disk_refuses_and_recovers() {
    for room in (0..400).step_by(13) {
        for image in Image::all() {
            let bed = Bed::new(room);
            let log = log_on(&bed);
            commit(&log, &body(0, 100));
            bed.disk.limit_space(Some(room));
            let refused = log.append(&body(1, 600), 1);
            let failed = matches!(&refused, Err(WalError::AppendFailed { source, .. })
                if source.kind() == ErrorKind::StorageFull);
            assert!(failed, "{refused:?}");
            bed.disk.limit_space(None);
            (2..5).for_each(|n| commit(&log, &body(n, 100)));
            drop(log);
            bed.crash(image);
            let expected: Vec<_> = [0, 2, 3, 4].map(|n| body(n, 100)).into();
            assert_eq!(recover(&bed), expected, "room {room} {image:?}");
        }
    }
}

/// A rotation that finds no space leaves the old file in use.
#[test]
fn a_rotation_without_space_is_retried() {
    let bed = Bed::new(0);
    let log = log_on(&bed);
    (0..3).for_each(|n| commit(&log, &body(n, 1000)));
    bed.disk.limit_space(Some(0));
    assert!(log.append(&body(3, 1500), 1).is_err());
    bed.disk.limit_space(None);
    (3..6).for_each(|n| commit(&log, &body(n, 1000)));
    assert!(log.current_file() > 1);
    let expected: Vec<_> = (0..6).map(|n| body(n, 1000)).collect();
    assert_eq!(recover(&bed), expected);
}

/// Any single error at any operation: what was answered as synced is there, what was refused
/// for good is not, and nothing hangs.
#[test]
fn any_single_error_is_told_as_it_is() {
    for op in [
        Op::Write,
        Op::Cut,
        Op::Sync,
        Op::SyncDir,
        Op::Rename,
        Op::Create,
    ] {
        for nth in 0..50 {
            // Half of the runs go on after the error, half lose power right behind it.
            let (nth, goes_on) = (nth / 2, nth % 2 == 0);
            for image in Image::all() {
                let bed = Bed::new(nth);
                let Ok(log) = Log::create(&bed.env, DIR.as_ref(), &small(), 1) else {
                    continue;
                };
                bed.disk.fail(op, nth, ErrorKind::Other);
                let (mut synced, mut unknown) = (Vec::new(), Vec::new());
                for n in 0..8 {
                    let body = body(n, 900);
                    match log.append(&body, 1).and_then(|s| log.sync_upto(s.last_seq)) {
                        Ok(()) => synced.push(body),
                        Err(e) if e.is_final() => unknown.push(body),
                        Err(_) if goes_on => {}
                        Err(_) => break,
                    }
                }
                drop(log);
                bed.crash(image);
                let got = recover(&bed);
                assert!(got.starts_with(&synced), "{op:?} {nth} {image:?}");
                let rest = &got[synced.len()..];
                assert!(unknown.starts_with(rest), "{op:?} {nth} {image:?}: a ghost");
            }
        }
    }
}

#[test]
fn limits_are_refused_before_anything_is_written() {
    let bed = Bed::new(0);
    let opts = LogOptions {
        body_bytes_max: 100,
        ..small()
    };
    let log = Log::create(&bed.env, DIR.as_ref(), &opts, 1).expect("create");
    let before = bed.operations();
    assert!(matches!(
        log.append(&[0; 101], 1),
        Err(WalError::BodyTooLarge {
            len: 101,
            len_max: 100
        })
    ));
    assert!(matches!(log.append(b"x", 0), Err(WalError::EmptyBatch)));
    assert_eq!(bed.operations(), before);
    log.append(&[0; 100], u32::MAX)
        .expect("the longest body, the most ops");
    for _ in 0..255 {
        log.append(b"", u32::MAX).expect("below 2^40 seqs");
    }
    assert!(matches!(
        log.append(b"", u32::MAX),
        Err(WalError::SeqExhausted)
    ));
}
