//! Goal: the whole part of a log, copied, recovers to the same frames, with nothing dropped.
//!
//! Mechanism: logs that were rotated, cut by a recovery, or end half-written are copied as
//! [`WholeLog`] says, and the copy is recovered strictly.

use std::path::Path;

use chronolith_vfs::{CrashImage, Env, SimVfs, Vfs};
use chronolith_wal::{Log, LogOptions, STATUS_NAME, WalError, WholeLog, log_name};

const DIR: &str = "/wal";
const STORE: [u8; 16] = [7; 16];

fn options() -> LogOptions {
    LogOptions {
        preallocate_bytes: 512,
        strict_tail: true,
        ..LogOptions::new(STORE)
    }
}

fn disk() -> (Env, SimVfs) {
    let (env, sim, _clock) = Env::sim(1);
    for dir in [DIR, "/copy"] {
        sim.create_dir(Path::new(dir)).expect("made");
    }
    sim.sync_dir(Path::new("/")).expect("synced");
    (env, sim)
}

fn append(log: &Log, i: usize) -> u64 {
    let body = format!("batch {i}");
    let seq = log.append(body.as_bytes(), 1).expect("appended").last_seq;
    log.sync_upto(seq).expect("synced");
    log.write_status(seq).expect("written");
    seq
}

/// Copies what is whole; returns the bodies that the copy recovers, and its last seq.
fn copied(env: &Env) -> (Vec<String>, u64) {
    let log = WholeLog::read(env, Path::new(DIR), STORE, 1).expect("read");
    assert!(!log.is_ambiguous);
    let put = |name: &str, bytes: &[u8]| {
        let file = env.vfs.create_new(&Path::new("/copy").join(name));
        file.expect("made").write_all_at(bytes, 0).expect("written");
    };
    for part in &log.parts {
        let mut bytes = vec![0; part.bytes as usize];
        part.file.read_exact_at(&mut bytes, 0).expect("whole");
        put(&log_name(part.number), &bytes);
    }
    put(STATUS_NAME, &log.status);
    let recovered = Log::recover(env, Path::new("/copy"), &options()).expect("nothing to drop");
    let report = recovered.report();
    assert_eq!((report.bytes_dropped, report.last_seq), (0, log.last_seq));
    assert_eq!(
        report.durable_upto, log.last_seq,
        "its status says that it was synced"
    );
    let frames = recovered.frames().map(|frame| frame.expect("whole").body);
    let bodies = frames.map(|body| String::from_utf8(body).expect("text"));
    (bodies.collect(), log.last_seq)
}

fn bodies(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|i| format!("batch {i}")).collect()
}

#[test]
fn a_log_of_several_files_is_copied_up_to_its_last_whole_frame() {
    let (env, sim) = disk();
    let log = Log::create(&env, Path::new(DIR), &options(), 1).expect("created");
    for i in 0..3 {
        append(&log, i);
    }
    log.rotate().expect("rotated");
    append(&log, 3);
    log.seal().expect("sealed");
    let last = append(&log, 4);
    // The beginning of a frame, as a reader may find it beside its writer.
    let path = Path::new(DIR).join(log_name(2));
    let bytes = sim.content(&path).expect("there");
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("frames") + 1;
    let half = end.next_multiple_of(8);
    sim.damage(&path, |bytes| {
        bytes[half..half + 4].copy_from_slice(b"CHFR")
    })
    .expect("written");
    assert_eq!(copied(&env), (bodies(0..5), last));
}

#[test]
fn a_log_that_a_recovery_cut_is_copied_with_its_cut() {
    let (env, sim) = disk();
    let log = Log::create(&env, Path::new(DIR), &options(), 1).expect("created");
    for i in 0..2 {
        append(&log, i);
    }
    // Not synced: a recovery copies these into its new file.
    for i in 2..4 {
        let seq = log
            .append(format!("batch {i}").as_bytes(), 1)
            .expect("appended")
            .last_seq;
        log.write_status(seq).expect("written");
    }
    let env = env.with_vfs(sim.crash(CrashImage::ProcessKill));
    let mut recovered = Log::recover(&env, Path::new(DIR), &options()).expect("recovers");
    let log = recovered.start(2).expect("starts");
    let last = append(&log, 4);
    assert_eq!(copied(&env), (bodies(0..5), last));
}

#[test]
fn a_floor_that_is_gone_and_a_durable_frame_that_is_damaged_are_named() {
    let (env, sim) = disk();
    let log = Log::create(&env, Path::new(DIR), &options(), 1).expect("created");
    for i in 0..3 {
        append(&log, i);
    }
    let read = |env: &Env, floor| WholeLog::read(env, Path::new(DIR), STORE, floor);
    let image = sim.crash(CrashImage::KeepAll);
    let path = Path::new(DIR).join(log_name(1));
    let at = sim.content(&path).expect("there");
    let at = at
        .windows(7)
        .position(|found| found == b"batch 2")
        .expect("there");
    image
        .damage(&path, |bytes| bytes[at] ^= 1)
        .expect("damaged");
    let damaged = read(&env.with_vfs(image.clone()), 1).expect_err("STATUS proves it");
    assert!(matches!(damaged, WalError::Corrupt { .. }), "{damaged}");
    image
        .remove_file(&Path::new(DIR).join(STATUS_NAME))
        .expect("removed");
    let unproven = read(&env.with_vfs(image), 1).expect("nothing proves it");
    assert!(unproven.is_ambiguous);
    log.rotate().expect("rotated");
    log.remove_below(2).expect("removed");
    let gone = read(&env, 1).expect_err("gone");
    assert!(matches!(gone, WalError::Removed { .. }), "{gone}");
}
