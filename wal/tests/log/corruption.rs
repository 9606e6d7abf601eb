//! Goal: no damaged byte and no cut of any file gives another answer than the undamaged log,
//! except where nothing that is left can tell a lost last group from one that never was.
//! A cut that takes frames *and* the seal, in a log without `STATUS` (a second loss), leaves a
//! shorter log that is whole: there any prefix from the newest file's birth on is allowed.
//!
//! Mechanism: a log of two files; every byte x {flip, 0x00, 0xff}, every length, every
//! zeroed sector, each of the files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use chronolith_wal::{Log, LogOptions, log_name};

use crate::bed::{Bed, DIR, body, commit, recovered_bodies, small};

const BATCHES: usize = 6;
const IN_FIRST_FILE: usize = 3;
/// Batches of the last synced group: the only ones an unsealed log without STATUS may lose.
const LAST_GROUP: usize = 1;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Sealed,
    WithStatus,
    /// Neither seal nor STATUS behind the last group.
    Bare,
}

fn make(kind: Kind) -> Bed {
    let bed = Bed::new(1);
    let opts = LogOptions {
        preallocate_bytes: 256,
        ..small()
    };
    let log = Log::create(&bed.env, DIR.as_ref(), &opts, 1).expect("create");
    for n in 0..BATCHES {
        commit(&log, &body(n as u64, 60 + n * 7));
        if n + 1 == IN_FIRST_FILE {
            log.rotate().expect("rotate");
        }
    }
    if kind == Kind::Sealed {
        log.seal().expect("seal");
    }
    if kind != Kind::WithStatus {
        bed.remove("STATUS");
    }
    bed
}

/// How many batches must come back at least, error aside.
fn at_least(kind: Kind, is_cut: bool) -> usize {
    match (kind, is_cut) {
        (Kind::WithStatus, _) | (Kind::Sealed, false) => BATCHES,
        (Kind::Bare, false) => BATCHES - LAST_GROUP,
        (Kind::Sealed | Kind::Bare, true) => IN_FIRST_FILE,
    }
}

fn judge(bed: &Bed, all: &[Vec<u8>], at_least: usize, what: &str) -> &'static str {
    let opts = LogOptions {
        floor_file: 1,
        ..small()
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        Log::recover(&bed.env, DIR.as_ref(), &opts)
    }));
    let recovered = match outcome.unwrap_or_else(|_| panic!("{what}: panicked")) {
        Err(e) => {
            assert!(!e.to_string().is_empty());
            return "error";
        }
        Ok(recovered) => recovered,
    };
    let bodies = recovered_bodies(&recovered);
    if bodies == all {
        return "equal";
    }
    let (report, n) = (recovered.report(), bodies.len());
    assert!(
        n >= at_least,
        "{what}: silently {n} of {} batches: {report:?}",
        all.len()
    );
    assert_eq!(bodies[..], all[..n], "{what}");
    assert!(
        report.ambiguous || report.bytes_dropped == 0,
        "{what}: {report:?}"
    );
    "shorter"
}

#[test]
fn no_damage_gives_another_answer() {
    for kind in [Kind::Sealed, Kind::WithStatus, Kind::Bare] {
        let bed = make(kind);
        let all: Vec<_> = (0..BATCHES).map(|n| body(n as u64, 60 + n * 7)).collect();
        let mut seen = std::collections::BTreeMap::new();
        for name in bed.names() {
            let whole = bed.read(&name);
            let newest = name == log_name(2);
            let mut check = |damaged: Vec<u8>, is_cut: bool, what: String| {
                bed.put(&name, &damaged);
                let least = if newest {
                    at_least(kind, is_cut)
                } else {
                    BATCHES
                };
                *seen.entry(judge(&bed, &all, least, &what)).or_insert(0) += 1;
            };
            for at in 0..whole.len() {
                for value in [whole[at] ^ (1 << (at % 8)), 0x00, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = value;
                    check(
                        damaged,
                        false,
                        format!("{kind:?} {name} byte {at} = {value:#x}"),
                    );
                }
                check(
                    whole[..at].to_vec(),
                    true,
                    format!("{kind:?} {name} cut at {at}"),
                );
            }
            for at in (0..whole.len()).step_by(512) {
                let mut damaged = whole.clone();
                let end = (at + 512).min(whole.len());
                damaged[at..end].fill(0);
                check(
                    damaged,
                    true,
                    format!("{kind:?} {name} sector at {at} zeroed"),
                );
            }
            bed.put(&name, &whole);
        }
        assert!(
            seen["error"] > 1000 && seen["equal"] > 100,
            "{kind:?}: {seen:?}"
        );
    }
}
