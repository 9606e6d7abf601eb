//! kill -9 at random moments: nothing acknowledged is lost, no batch is there in part.

use std::path::Path;
use std::time::Duration;

use chronolith::{Request, ScopeSelector, Store};
use chronolith_tests::data::{knob, next_random};
use chronolith_tests::kills::{child_options, expected, found, last_batch, scope};
use chronolith_vfs::Env;

use super::child::{Said, Writer};

/// Cycles on one store before the next one begins.
const CYCLES_A_STORE: u64 = 12;

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
    batches_acked: u64,
    batches_unacked_found: u64,
    replayed: u64,
}

/// Lets a child write for a while, kills it, and returns the last batch it acknowledged.
fn run_and_kill(
    dir: &Path,
    first: u64,
    seed: u64,
    density: Density,
    random: &mut u64,
) -> Option<u64> {
    let mut writer = Writer::start(dir, first, seed);
    let clock = Env::real().clock;
    let mut acked = None;
    let mut note = |said: Said| {
        if let Said::Acked { number, .. } = said {
            let expected = acked.map_or(first, |last| last + 1);
            assert_eq!(number, expected, "acknowledged out of order");
            acked = Some(number);
        }
    };
    match density {
        Density::Opening => {
            clock.sleep(Duration::from_micros(next_random(random) % 12_000));
        }
        Density::Acked => {
            for _ in 0..=next_random(random) % 25 {
                note(writer.listen().expect("a child that lives"));
            }
        }
        Density::Anywhere => {
            note(writer.listen().expect("a child that lives"));
            clock.sleep(Duration::from_micros(next_random(random) % 150_000));
        }
    }
    writer.kill().into_iter().for_each(&mut note);
    acked
}

/// Reopens, compares everything with what the batches give; returns the last batch found.
fn check(dir: &Path, seed: u64, acked: Option<u64>, tally: &mut Tally) -> Option<u64> {
    let store = Store::open(dir, child_options()).expect("opens after a kill");
    let report = store.recovery_report();
    assert!(
        !report.ambiguous,
        "a killed process leaves nothing ambiguous: {report:?}"
    );
    tally.replayed += report.batches_replayed;
    let records = found(&store.snapshot()).expect("readable");
    let last = last_batch(&records);
    assert!(
        last >= acked,
        "batch {acked:?} was acknowledged, {last:?} is the last there"
    );
    // All batches to the last one, in full, and nothing else.
    assert_eq!(records, expected(seed, last), "up to batch {last:?}");
    // The indexes agree with the export.
    if let Some(number) = last {
        let text = format!("batch {number}");
        let request = Request::within(ScopeSelector::Exact(scope(1)));
        let hits = store
            .retrieve(&request.text(text).k(10_000))
            .expect("answers")
            .hits;
        let in_scope = records
            .keys()
            .filter(|(path, _)| *path == scope(1).path())
            .count();
        assert_eq!(hits.len(), in_scope, "every record holds the word `batch`");
        for ((path, id), text) in records.iter().rev().take(20) {
            let scope = chronolith::Scope::parse(path).expect("a scope");
            let stored = store.get(&scope, id).expect("readable").expect("there");
            assert_eq!(&stored.record.text, text);
        }
    }
    last
}

fn kill_cycles(density: Density, cycles: u64, seed: u64) {
    let mut random = seed;
    let mut tally = Tally::default();
    while tally.kills < cycles {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("store");
        let seed = next_random(&mut random);
        drop(Store::open(&dir, child_options()).expect("created"));
        let mut last = None;
        for _ in 0..CYCLES_A_STORE.min(cycles - tally.kills) {
            let first = last.map_or(0, |last| last + 1);
            let acked = run_and_kill(&dir, first, seed, density, &mut random);
            let acked = acked.or(last);
            last = check(&dir, seed, acked, &mut tally);
            tally.kills += 1;
            tally.batches_acked += acked.map_or(0, |acked| acked + 1 - first);
            tally.batches_unacked_found += u64::from(last > acked);
        }
    }
    println!("{density:?}: {tally:?}; 0 acknowledged lost, 0 in part");
    let writes = !matches!(density, Density::Opening);
    assert!(
        !writes || tally.batches_acked > 0,
        "nothing was acknowledged before the kills"
    );
}

fn cycles() -> u64 {
    knob("CHRONOLITH_KILLS", 50).div_ceil(3)
}

#[test]
fn a_kill_while_opening_loses_nothing() {
    kill_cycles(Density::Opening, cycles(), 1);
}

#[test]
fn a_kill_right_after_an_acknowledgement_loses_nothing() {
    kill_cycles(Density::Acked, cycles(), 2);
}

#[test]
fn a_kill_anywhere_loses_nothing() {
    kill_cycles(Density::Anywhere, cycles(), 3);
}
