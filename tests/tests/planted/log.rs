//! Checks of the log alone: what no store shows, because the engine stands in front of it.

use std::path::Path;

use chronolith_vfs::{CrashImage, Env, FailedSync, SimVfs, Vfs};
use chronolith_wal::{Log, LogOptions, WalError, log_name};

use crate::checks::Check;

const DIR: &str = "/wal";
const BATCHES: u8 = 5;
const BODY_BYTES: usize = 100;
/// Header, body, digest.
const FRAME_BYTES: usize = 64 + 104 + 16;

fn options() -> LogOptions {
    LogOptions {
        preallocate_bytes: 0,
        floor_file: 1,
        ..LogOptions::new([7; 16])
    }
}

fn path() -> std::path::PathBuf {
    Path::new(DIR).join(log_name(1))
}

/// A log of synced batches and no STATUS; `first` marks the first body.
fn log_of(first: u8) -> (Env, SimVfs) {
    let (env, disk, _) = Env::sim(1);
    disk.create_dir(Path::new(DIR)).expect("created");
    let log = Log::create(&env, DIR.as_ref(), &options(), 1).expect("created");
    for n in 0..BATCHES {
        let body = [if n == 0 { first } else { n }; BODY_BYTES];
        let seqs = log.append(&body, 1).expect("appended");
        log.sync_upto(seqs.last_seq).expect("synced");
    }
    drop(log);
    disk.remove_file(&Path::new(DIR).join("STATUS"))
        .expect("removed");
    (env, disk)
}

fn firsts(env: &Env) -> Result<Vec<u8>, WalError> {
    let recovered = Log::recover(env, DIR.as_ref(), &options())?;
    let bodies = recovered.frames().map(|frame| Ok(frame?.body[0]));
    bodies.collect()
}

/// Every bit of a frame in the middle: later frames prove that it was durable.
pub(crate) fn bits_of_a_frame() -> Check {
    let trials = (FRAME_BYTES * 8) as u64;
    Check::new("log, each bit of a proven frame", trials, move |n| {
        let (env, disk) = log_of(9);
        let bit = usize::try_from(n * 37 % trials).expect("few");
        let at = 128 + FRAME_BYTES + bit / 8;
        let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1 << (bit % 8);
        disk.damage(&path(), flip).expect("there");
        match firsts(&env) {
            Err(error) if error.is_damage() => Ok(()),
            other => Err(format!("byte {at} of the log flipped: {other:?}")),
        }
    })
}

/// A frame of the same place, seq and epoch, from a log that took another course.
pub(crate) fn frame_of_another_course() -> Check {
    Check::new("log, a frame of another course", 1, |_| {
        let (_, other) = log_of(8);
        let (env, disk) = log_of(9);
        let stale = other.content(&path()).expect("there");
        let change = |bytes: &mut Vec<u8>| {
            bytes[128..128 + FRAME_BYTES].copy_from_slice(&stale[128..128 + FRAME_BYTES]);
        };
        disk.damage(&path(), change).expect("there");
        match firsts(&env) {
            Err(error) if error.is_damage() => Ok(()),
            other => Err(format!("a frame of another log was believed: {other:?}")),
        }
    })
}

/// A power cut behind an acknowledgement in a new file, then that file is lost, and STATUS: the
/// file before says so. A trial is an image of the disk.
pub(crate) fn newest_file_lost() -> Check {
    let images = CrashImage::all();
    Check::new("log, its newest file lost with STATUS", 8, move |n| {
        let (env, disk) = log_of(9);
        disk.sync_dir(Path::new("/"))
            .expect("the log's directory is durable");
        let lose = |disk: &SimVfs, number| -> Result<(), String> {
            let image = images[usize::try_from(n).unwrap_or(0)];
            let after = disk.crash(image);
            let _ = after.remove_file(&Path::new(DIR).join("STATUS"));
            let newest = Path::new(DIR).join(log_name(number));
            after.remove_file(&newest).expect("it is durable");
            match firsts(&env.clone().with_vfs(after)) {
                Err(error) if error.is_damage() => Ok(()),
                other => Err(format!("file {number} lost at {image:?}: {other:?}")),
            }
        };
        let mut recovered =
            Log::recover(&env, DIR.as_ref(), &options()).map_err(|e| e.to_string())?;
        let log = recovered.start(2).map_err(|e| e.to_string())?;
        lose(&disk, 2)?;
        let commit = || -> Result<(), WalError> {
            let seqs = log.append(b"in the second file", 1)?;
            log.sync_upto(seqs.last_seq)
        };
        commit()
            .and_then(|()| log.rotate())
            .and_then(|_| commit())
            .map_err(|e| e.to_string())?;
        lose(&disk, 3)
    })
}

/// A sync fails once; nothing is accepted any more, however often it is asked.
pub(crate) fn failed_sync_is_sticky() -> Check {
    Check::new("log, a failed sync is final", 2, |n| {
        let (env, disk, _) = Env::sim(1);
        disk.create_dir(Path::new(DIR)).expect("created");
        let log = Log::create(&env, DIR.as_ref(), &options(), 1).expect("created");
        let seqs = log.append(b"lost", 1).expect("appended");
        let mode = match n {
            0 => FailedSync::CacheKeepsNew,
            _ => FailedSync::CacheReverts,
        };
        disk.fail_sync(0, mode);
        if log.sync_upto(seqs.last_seq).is_ok() {
            return Err("a failed sync was acknowledged".into());
        }
        for _ in 0..2 {
            let again = log.sync_upto(seqs.last_seq);
            if !matches!(again, Err(WalError::Poisoned { .. })) {
                return Err(format!("after a failed sync: {again:?}"));
            }
            let more = log.append(b"more", 1);
            if !matches!(more, Err(WalError::Poisoned { .. })) {
                return Err(format!("after a failed sync: {more:?}"));
            }
        }
        Ok(())
    })
}
