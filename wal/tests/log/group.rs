//! Goal: writers that arrive together share a sync, and each is answered only when durable.

use std::time::Duration;

use chronolith_wal::{Log, LogOptions};

use crate::bed::{Bed, DIR, body, recovered_bodies, small};
use crate::disk::{Image, Op};

#[test]
fn sixteen_writers_share_syncs() {
    let bed = Bed::new(0);
    let opts = LogOptions {
        file_bytes_max: 1 << 20,
        ..small()
    };
    let log = Log::create(&bed.env, DIR.as_ref(), &opts, 1).expect("create");
    bed.disk.pause_syncs(Duration::from_micros(500));
    let before = bed.disk.syncs();
    let (writers, each) = (16, 25);
    std::thread::scope(|scope| {
        for w in 0..writers {
            let log = &log;
            scope.spawn(move || {
                for n in 0..each {
                    let seqs = log.append(&body(w * 1000 + n, 50), 1).expect("append");
                    log.sync_upto(seqs.last_seq).expect("sync");
                    assert!(log.durable_upto() >= seqs.last_seq);
                }
            });
        }
    });
    let syncs = bed.disk.syncs() - before;
    let commits = writers * each;
    assert!(syncs * 2 <= commits, "{syncs} syncs for {commits} commits");
    drop(log);
    bed.crash(Image::Synced);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("opens");
    assert_eq!(recovered_bodies(&recovered).len() as u64, commits);
}

/// Writers, rotations and seals at once; then all is there.
#[test]
fn rotations_and_seals_run_beside_writers() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    std::thread::scope(|scope| {
        for w in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..50 {
                    let seqs = log.append(&body(w * 1000 + n, 200), 1).expect("append");
                    match n % 5 {
                        0 => log.seal().expect("seal"),
                        1 => drop(log.rotate().expect("rotate")),
                        _ => log.sync_upto(seqs.last_seq).expect("sync"),
                    }
                }
            });
        }
    });
    log.sync_upto(u64::MAX).expect("sync");
    drop(log);
    bed.crash(Image::Synced);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered).len(), 200);
}

/// What a flush does beside writers: files are made ready and begun, and none is torn or lost.
#[test]
fn files_are_retired_beside_writers() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    assert!(!log.retire(0).expect("nothing to retire"));
    log.append(&body(9, 200), 1).expect("append");
    assert!(!log.retire(1 << 20).expect("too small to retire"));
    std::thread::scope(|scope| {
        for w in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..50 {
                    let seqs = log.append(&body(w * 1000 + n, 200), 1).expect("append");
                    match n % 5 {
                        0 => drop(log.retire(0).expect("retire")),
                        1 => drop(log.rotate().expect("rotate")),
                        _ => log.sync_upto(seqs.last_seq).expect("sync"),
                    }
                }
            });
        }
    });
    log.append(&body(9, 200), 1).expect("append");
    let before = log.current_file();
    assert!(log.retire(0).expect("retired"));
    assert_eq!(log.current_file(), before + 1);
    log.sync_upto(u64::MAX).expect("sync");
    drop(log);
    bed.crash(Image::Synced);
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered).len(), 202);
}

#[test]
fn all_who_wait_for_a_failed_sync_are_told() {
    let bed = Bed::new(0);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    bed.disk.pause_syncs(Duration::from_millis(2));
    bed.disk.fail(Op::Sync, 0, std::io::ErrorKind::Other);
    std::thread::scope(|scope| {
        for w in 0..8 {
            let log = &log;
            scope.spawn(move || {
                let outcome = log
                    .append(&body(w, 50), 1)
                    .and_then(|s| log.sync_upto(s.last_seq));
                assert!(outcome.expect_err("no sync succeeded").is_final());
            });
        }
    });
    assert_eq!(log.durable_upto(), 0);
}
