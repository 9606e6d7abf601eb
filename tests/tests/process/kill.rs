//! kill -9 at random moments: nothing acknowledged is lost, no batch is there in part, nothing
//! rises from the dead, and the next open takes its bounded time.
//!
//! `CHRONOLITH_KILLS=n`: so many kills in all; `CHRONOLITH_SEED=n`: other moments.

use std::path::Path;
use std::time::Duration;

use chronolith::{Request, ScopeSelector, Store};
use chronolith_tests::data::{deep, knob, next_random};
use chronolith_tests::kills::{Account, Child, Owed, Records, Said, Script, child_options, found};
use chronolith_vfs::Env;

/// Kills on one store before the next one begins.
const KILLS_A_STORE: u64 = 12;
/// No open after a kill may take longer: these stores hold at most a few thousand rows, and
/// this is a slow machine's worst moment many times over.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// How soon a child dies.
#[derive(Debug, Clone, Copy)]
enum Density {
    /// While it opens and recovers, or with its first writes.
    Opening,
    /// Right after an acknowledgement: between two batches, or early in one.
    Acked,
    /// Any time, flushes and compactions included.
    Anywhere,
}

#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    acked: usize,
    replayed: u64,
    open_us_max: u64,
    open_us_sum: u64,
}

/// Lets a child write for a while and kills it.
fn run_and_kill(
    dir: &Path,
    seed: u64,
    script: Script,
    density: Density,
    random: &mut u64,
    account: &mut Account,
) {
    let mut child = Child::start(env!("CARGO_BIN_EXE_kill_child"), dir, seed, script);
    let clock = Env::real().clock;
    let mut note = |said: Option<Said>| account.note(&said.expect("a child that lives"));
    match density {
        Density::Opening => clock.sleep(Duration::from_micros(next_random(random) % 12_000)),
        Density::Acked => (0..=next_random(random) % 25).for_each(|_| note(child.listen())),
        Density::Anywhere => {
            note(child.listen());
            clock.sleep(Duration::from_micros(next_random(random) % 150_000));
        }
    }
    child.kill().iter().for_each(|said| account.note(said));
}

/// Reopens and compares everything with what the child said.
fn check(dir: &Path, account: &mut Account, tally: &mut Tally) {
    let clock = Env::real().clock;
    let start_ns = clock.monotonic_ns();
    let store = Store::open(dir, child_options()).expect("opens after a kill");
    let open_us = (clock.monotonic_ns() - start_ns) / 1000;
    tally.open_us_max = tally.open_us_max.max(open_us);
    tally.open_us_sum += open_us;
    let report = store.recovery_report();
    assert!(
        !report.ambiguous,
        "a killed process leaves nothing ambiguous: {report:?}"
    );
    tally.replayed += report.batches_replayed;
    let records = found(&store.snapshot()).expect("readable");
    tally.acked += account.acks();
    let settled = account.settle(&records, Owed::AfterKill);
    settled.unwrap_or_else(|why| panic!("{why}"));
    check_indexes(&store, &records, account);
}

/// The indexes agree with the export.
fn check_indexes(store: &Store, records: &Records, account: &Account) {
    let scope = account.lanes()[0].scope(1);
    let in_scope = records.keys().filter(|(path, _)| *path == scope.path());
    let in_scope = in_scope.count();
    let request = Request::within(ScopeSelector::Exact(scope)).text("batch");
    let hits = store.retrieve(&request.k(10_000)).expect("answers").hits;
    assert_eq!(hits.len(), in_scope, "every record holds the word `batch`");
    for ((path, id), text) in records.iter().rev().take(20) {
        let scope = chronolith::Scope::parse(path).expect("a scope");
        let stored = store.get(&scope, id).expect("readable").expect("there");
        assert_eq!(&stored.record.text, text);
    }
}

fn kill_cycles(density: Density, kills: u64, seed: u64) {
    let mut random = seed + 3 * knob("CHRONOLITH_SEED", 0);
    let mut tally = Tally::default();
    for store in 0.. {
        if tally.kills >= kills {
            break;
        }
        let script = Script::HONEST[store % Script::HONEST.len()];
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("store");
        let seed = next_random(&mut random);
        let mut account = Account::new(script, seed);
        drop(Store::open(&dir, child_options()).expect("created"));
        for _ in 0..KILLS_A_STORE.min(kills - tally.kills) {
            run_and_kill(&dir, seed, script, density, &mut random, &mut account);
            check(&dir, &mut account, &mut tally);
            tally.kills += 1;
        }
        if store % 20 == 19 {
            println!("{density:?}: {} kills so far", tally.kills);
        }
    }
    println!(
        "{density:?}: {tally:?}; 0 acknowledged lost, 0 in part, 0 ghosts; an open took {} µs on average",
        tally.open_us_sum / tally.kills.max(1)
    );
    let writes = !matches!(density, Density::Opening);
    assert!(
        !writes || tally.acked > 0,
        "nothing was acknowledged before the kills"
    );
    let open_max = Duration::from_micros(tally.open_us_max);
    assert!(open_max < OPEN_MAX, "an open took {open_max:?}");
}

/// Kills of one density; each script gets its share of the fast tier's.
fn kills() -> u64 {
    knob("CHRONOLITH_KILLS", if deep() { 3000 } else { 180 }).div_ceil(3)
}

#[test]
fn a_kill_while_opening_loses_nothing() {
    kill_cycles(Density::Opening, kills(), 1);
}

#[test]
fn a_kill_right_after_an_acknowledgement_loses_nothing() {
    kill_cycles(Density::Acked, kills(), 2);
}

#[test]
fn a_kill_anywhere_loses_nothing() {
    kill_cycles(Density::Anywhere, kills(), 3);
}
