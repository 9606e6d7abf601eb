//! Cuts at random moments of every script, on each file system, with and without its journal.

use std::path::Path;
use std::time::Duration;

use chronolith::{Request, ScopeSelector, Store};
use chronolith_tests::data::{deep, knob, next_random};
use chronolith_tests::kills::{Account, Child, Owed, Records, Said, Script, child_options, found};
use chronolith_tests::mounts::{Flush, Kind, Mount, can_cut};
use chronolith_vfs::Env;

/// Cuts on one store before the next one begins.
const CUTS_A_STORE: u64 = 8;
/// Within so many cuts a child that lies about its syncs is found out.
const LIES_MAX: u64 = 12;

#[derive(Debug, Default)]
struct Tally {
    cuts: u64,
    acked: usize,
    ambiguous: u64,
    bytes_dropped: u64,
    open_ms_max: u64,
}

/// Lets a child write, cuts, kills it, mounts again; what the child said is in the account.
fn write_and_cut(
    mount: &mut Mount,
    flush: Flush,
    account: &mut Account,
    run: Run,
    random: &mut u64,
) {
    let dir = mount.path().join("store");
    let mut child = Child::start(env!("CARGO_BIN_EXE_kill_child"), &dir, run.seed, run.script);
    let mut note = |said: Option<Said>| {
        let said = said.expect("a child that lives");
        account.note(&said);
    };
    match next_random(random) % 4 {
        // While it opens and recovers.
        0 => Env::real()
            .clock
            .sleep(Duration::from_micros(next_random(random) % 15_000)),
        // Right behind an acknowledgement.
        1 => (0..=next_random(random) % 40).for_each(|_| note(child.listen())),
        // Anywhere.
        _ => {
            note(child.listen());
            Env::real()
                .clock
                .sleep(Duration::from_micros(next_random(random) % 250_000));
        }
    }
    // Nobody speaks after a power cut. A file system that is shut down may tell a sync that was
    // under way that all is well (the transaction is gone, so nothing is left to wait for), and
    // a child that lives on would pass that lie on to us.
    child.stop();
    mount.cut(flush);
    let (said, _) = child.kill_whatever();
    said.iter().for_each(|said| account.note(said));
    mount.again();
}

#[derive(Debug, Clone, Copy)]
struct Run {
    script: Script,
    seed: u64,
}

/// Opens the store and compares; the records, or what is wrong.
fn reopen(dir: &Path, account: &mut Account, tally: &mut Tally) -> Result<(), String> {
    let clock = Env::real().clock;
    let start_ns = clock.monotonic_ns();
    let store = Store::open(dir, child_options()).map_err(|error| format!("open: {error}"))?;
    let open_ms = (clock.monotonic_ns() - start_ns) / 1_000_000;
    tally.open_ms_max = tally.open_ms_max.max(open_ms);
    let report = store.recovery_report();
    tally.ambiguous += u64::from(report.ambiguous);
    tally.bytes_dropped += report.bytes_dropped;
    let records = found(&store.snapshot()).map_err(|error| format!("read: {error}"))?;
    tally.acked += account.acks();
    account.settle(&records, Owed::AfterPowerCut)?;
    check_indexes(&store, &records, account)
}

/// The indexes agree with the export: every record holds the word `batch`.
fn check_indexes(store: &Store, records: &Records, account: &Account) -> Result<(), String> {
    let scope = account.lanes()[0].scope(1);
    let path = scope.path();
    let request = Request::within(ScopeSelector::Exact(scope)).text("batch");
    let hits = store
        .retrieve(&request.k(10_000))
        .map_err(|error| error.to_string())?
        .hits;
    let in_scope = records.keys().filter(|(of, _)| *of == path).count();
    match hits.len() == in_scope {
        true => Ok(()),
        false => Err(format!("{} hits of {in_scope} records", hits.len())),
    }
}

/// Cuts `cuts` times; the first thing that is wrong ends it.
fn cut(
    mount: &mut Mount,
    flush: Flush,
    scripts: &[Script],
    cuts: u64,
    seed: u64,
) -> Result<Tally, String> {
    let mut random = seed;
    let mut tally = Tally::default();
    while tally.cuts < cuts {
        let script =
            scripts[usize::try_from(next_random(&mut random)).unwrap_or(0) % scripts.len()];
        let run = Run {
            script,
            seed: next_random(&mut random),
        };
        let dir = mount.path().join("store");
        let mut account = Account::new(script, run.seed);
        // The creation is not cut: a child would have to say that it ended.
        drop(Store::open(&dir, child_options()).expect("created"));
        for _ in 0..CUTS_A_STORE.min(cuts - tally.cuts) {
            write_and_cut(mount, flush, &mut account, run, &mut random);
            tally.cuts += 1;
            reopen(&dir, &mut account, &mut tally)
                .map_err(|why| format!("{run:?}, cut {}: {why}", tally.cuts))?;
        }
        std::fs::remove_dir_all(&dir).expect("removed");
    }
    Ok(tally)
}

fn cuts_wanted() -> u64 {
    // Four tests share the deep tier's 500.
    knob("CHRONOLITH_POWER_CUTS", if deep() { 125 } else { 4 })
}

fn mounted(kind: Kind) -> Option<Mount> {
    can_cut()
        .and_then(|()| Mount::new(kind))
        .inspect_err(|why| println!("skipped: no power cuts on {kind:?}: {why}"))
        .ok()
}

fn power_cuts(kind: Kind, flush: Flush, seed: u64) {
    let Some(mut mount) = mounted(kind) else {
        return;
    };
    let tally = cut(&mut mount, flush, &Script::HONEST, cuts_wanted(), seed);
    let tally = tally.unwrap_or_else(|why| panic!("{kind:?} {flush:?}: {why}"));
    println!("{kind:?} {flush:?}: {tally:?}; 0 synced lost, 0 in part, 0 ghosts");
    assert!(tally.acked > 0, "nothing was acknowledged before the cuts");
}

#[test]
fn a_cut_of_ext4_loses_nothing_synced() {
    power_cuts(Kind::EXT4, Flush::Nothing, 1);
}

#[test]
fn a_cut_of_ext4_that_keeps_its_journal_loses_nothing_synced() {
    power_cuts(Kind::EXT4, Flush::Journal, 2);
}

#[test]
fn a_cut_of_xfs_loses_nothing_synced() {
    power_cuts(Kind::Xfs, Flush::Nothing, 3);
}

#[test]
fn a_cut_of_xfs_that_keeps_its_journal_loses_nothing_synced() {
    power_cuts(Kind::Xfs, Flush::Journal, 4);
}

/// The negative test: what is not synced is lost here, and that is noticed.
#[test]
fn a_child_that_lies_about_its_syncs_is_found_out() {
    for kind in [Kind::EXT4, Kind::Xfs] {
        let Some(mut mount) = mounted(kind) else {
            return;
        };
        let tally = cut(&mut mount, Flush::Nothing, &[Script::Lie], LIES_MAX, 5);
        let why = tally.expect_err("a lie that nobody noticed");
        assert!(
            why.contains("is owed"),
            "{kind:?}: found out for another reason: {why}"
        );
        println!("{kind:?}: found out: {why}");
    }
}
