//! Goal: the writer of a log that was closed cleanly writes nothing before its first append, and
//! that append begins all that an open would have begun.

use chronolith_vfs::{Env, Errno, FaultRule, FaultVfs, OpKind};
use chronolith_wal::{Log, LogReader, Recovered, WalError, log_name, read_status};

use crate::bed::{Bed, DIR, STORE, body, commit, recovered_bodies, small};
use crate::disk::Image;

fn recover(env: &Env) -> Recovered {
    Log::recover(env, DIR.as_ref(), &small()).expect("opens")
}

/// A log of one batch, closed.
fn closed(bed: &Bed) {
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    log.seal().expect("sealed");
}

fn bytes_of(bed: &Bed) -> Vec<(String, Vec<u8>)> {
    let names = bed.names().into_iter();
    names.map(|name| (name.clone(), bed.read(&name))).collect()
}

#[test]
fn a_writer_that_never_appends_leaves_every_byte_and_gives_its_epoch_back() {
    let bed = Bed::new(0);
    closed(&bed);
    let before = bytes_of(&bed);
    for _ in 0..2 {
        let recovered = recover(&bed.env);
        assert!(recovered.is_settled());
        let log = recovered.start_late(2).expect("starts");
        assert_eq!((log.epoch(), log.current_file()), (2, 1));
        assert_eq!(log.next_seq(), 2 << 40 | 1);
        assert_eq!(log.rotate().expect("nothing to rotate"), 1);
        assert!(!log.retire(0).expect("nothing to retire"));
        log.sync_upto(log.last_seq()).expect("is durable");
        log.write_status(log.last_seq()).expect("nothing to say");
        log.seal().expect("is sealed");
        assert_eq!(log.floor_for(log.last_seq()), 1);
        log.remove_below(log.current_file()).expect("nothing below");
        drop(log);
        assert_eq!(bytes_of(&bed), before);
    }
}

#[test]
fn the_first_append_begins_a_file_of_its_own() {
    for image in Image::all() {
        let bed = Bed::new(1);
        closed(&bed);
        let mut reader = LogReader::open(&bed.env, DIR.as_ref(), STORE, 1).expect("opens");
        let log = recover(&bed.env).start_late(2).expect("starts");
        commit(&log, &body(1, 50));
        assert_eq!(log.current_file(), 2);
        assert_eq!(log.files().len(), 2);
        log.seal().expect("sealed");
        let status = read_status(&bed.env, DIR.as_ref(), &STORE).expect("reads");
        let status = status.expect("there");
        assert_eq!((status.epoch, status.durable_upto), (2, log.last_seq()));
        let mut seen = 0;
        while reader.next(&status).expect("reads").is_some() {
            seen += 1;
        }
        assert_eq!(seen, 2, "a reader follows");
        drop(log);
        bed.crash(image);
        let recovered = recover(&bed.env);
        assert_eq!(recovered_bodies(&recovered), [body(0, 100), body(1, 50)]);
        assert_eq!(recovered.report().epoch_highest, 2);
    }
}

/// What leaves a log that is not settled, and how it is called.
type Unsettled = (&'static str, fn(&Bed));

#[test]
fn only_a_log_that_needs_nothing_is_settled() {
    let unsettled: [Unsettled; 4] = [
        ("a batch behind the seal", |bed| {
            let log = recover(&bed.env).start_late(2).expect("starts");
            commit(&log, &body(1, 50));
        }),
        ("no status", |bed| bed.remove("STATUS")),
        ("a damaged status", |bed| {
            bed.edit("STATUS", |bytes| bytes[20] ^= 1);
        }),
        ("a torn tail", |bed| {
            let end = recover(&bed.env).start_late(2).expect("starts").bytes() as usize;
            bed.edit(&log_name(1), |bytes| {
                bytes.resize(bytes.len().max(end + 64), 0);
                bytes[end] = b'C';
            });
        }),
    ];
    for (what, spoil) in unsettled {
        let bed = Bed::new(2);
        closed(&bed);
        spoil(&bed);
        let recovered = recover(&bed.env);
        assert!(!recovered.is_settled(), "{what}");
        let files = recovered.report().files;
        let epoch = recovered.report().epoch_highest + 1;
        let log = recovered.start_late(epoch).expect("starts");
        assert_eq!(log.files().len(), files + 1, "{what}: begun at once");
    }
}

#[test]
fn an_append_that_cannot_begin_is_tried_again() {
    let bed = Bed::new(3);
    closed(&bed);
    let before = bytes_of(&bed);
    let faults = FaultVfs::new(std::sync::Arc::clone(&bed.env.vfs));
    let env = bed.env.with_vfs(faults.clone());
    let log = recover(&env).start_late(2).expect("starts");
    for kind in [OpKind::OpenWrite, OpKind::Create, OpKind::Write] {
        faults.add(FaultRule::error(Errno::Io).on(kind));
        let error = log.append(&body(1, 50), 1).expect_err("fails");
        assert!(matches!(error, WalError::Io { .. }), "{kind:?}: {error}");
        faults.clear();
    }
    let swept = chronolith_wal::sweep_temps(&env, DIR.as_ref());
    assert_eq!(swept.expect("swept"), 0);
    assert_eq!(bytes_of(&bed), before, "nothing was begun");
    commit(&log, &body(1, 50));
    assert_eq!(log.current_file(), 2);
    let bodies = recovered_bodies(&recover(&env));
    assert_eq!(bodies, [body(0, 100), body(1, 50)]);
}

#[test]
fn a_failed_sync_of_the_begin_is_final() {
    for kind in [OpKind::Sync, OpKind::SyncDir, OpKind::Rename] {
        let bed = Bed::new(4);
        closed(&bed);
        let faults = FaultVfs::new(std::sync::Arc::clone(&bed.env.vfs));
        let env = bed.env.with_vfs(faults.clone());
        let log = recover(&env).start_late(2).expect("starts");
        faults.add(FaultRule::error(Errno::Io).on(kind));
        let error = log.append(&body(1, 50), 1).expect_err("fails");
        assert!(error.is_final(), "{kind:?}: {error}");
        let error = log.append(&body(1, 50), 1).expect_err("fails");
        assert!(matches!(error, WalError::Poisoned { .. }), "{kind:?}");
        drop(log);
        assert_eq!(recovered_bodies(&recover(&env)), [body(0, 100)]);
    }
}

#[test]
fn without_a_file_to_give_the_epoch_begins_in_the_newest() {
    let bed = Bed::new(5);
    closed(&bed);
    let faults = FaultVfs::new(std::sync::Arc::clone(&bed.env.vfs));
    let env = bed.env.with_vfs(faults.clone());
    faults.add(
        FaultRule::error(Errno::NoSpace)
            .on(OpKind::Create)
            .forever(),
    );
    let log = recover(&env).start_late(2).expect("starts");
    commit(&log, &body(1, 50));
    assert_eq!((log.current_file(), log.files().len()), (1, 1));
    drop(log);
    let recovered = recover(&env);
    assert_eq!(recovered_bodies(&recovered), [body(0, 100), body(1, 50)]);
    assert_eq!(recovered.report().epoch_highest, 2);
}

#[test]
fn files_that_go_meanwhile_are_no_hindrance() {
    let bed = Bed::new(6);
    let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create");
    commit(&log, &body(0, 100));
    log.rotate().expect("rotates");
    commit(&log, &body(1, 100));
    log.seal().expect("sealed");
    drop(log);
    let log = recover(&bed.env).start_late(2).expect("starts");
    assert_eq!(log.remove_below(2).expect("removed"), 1);
    commit(&log, &body(2, 100));
    assert_eq!(log.current_file(), 3);
    drop(log);
    let opts = chronolith_wal::LogOptions {
        floor_file: 2,
        ..small()
    };
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("opens");
    assert_eq!(recovered_bodies(&recovered), [body(1, 100), body(2, 100)]);
}
