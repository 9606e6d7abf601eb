//! What lies in one scope changes not one byte of another's answer, count, plan or error.

use chronolith::{Maintenance, Options, Response, Store};
use chronolith_tests::data::{deep, knob};
use chronolith_tests::generate::{Op, World, batch_of, setup};
use chronolith_vfs::Env;

fn open(seed: u64) -> Store {
    let (env, _, _) = Env::sim(seed);
    let options = Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        memtable_bytes_max: 16 << 10,
        env,
        ..Options::create(setup(seed))
    };
    Store::open("/store", options).expect("a new store")
}

/// Everything but seq, layout and timings.
fn answer_of(response: Response) -> String {
    let mut plan = response.plan;
    plan.layout = chronolith::Layout::default();
    let hits: Vec<_> = response
        .hits
        .into_iter()
        .map(|mut hit| {
            if let Some(explanation) = &mut hit.explanation {
                explanation.partition = chronolith::PartitionName::Memtable(0);
            }
            hit
        })
        .collect();
    let (exactness, now_us) = (response.exactness, response.now_us);
    format!(
        "{hits:?} {exactness:?} {now_us} {} {plan:?}",
        response.text_tokens
    )
}

#[test]
fn another_scopes_data_changes_no_byte() {
    let mut asked = 0;
    for seed in 0..knob("CHRONOLITH_SEEDS", if deep() { 3000 } else { 300 }) / 10 {
        let (alone, shared) = (open(seed), open(seed));
        let mut ours = World::with_scopes(seed, &["a/b", "a/b/c"]);
        let mut theirs = World::with_scopes(seed + 1, &["a-b", "a/b-c", "b", "b/x", "user/ana"]);
        for _ in 0..40 {
            for _ in 0..ours.rng.below(3) {
                let noise = batch_of(&theirs.batch());
                // Refused or not is the others' affair.
                let _ = shared.write(noise);
                if theirs.rng.percent(20) {
                    shared.flush().expect("flush");
                }
                if theirs.rng.percent(5) {
                    shared.compact(true, &mut |_| {}).expect("compact");
                }
            }
            let mut ops = ours.batch();
            // A made id is random: it would differ.
            ops.retain(|op| !matches!(op, Op::Add(_)));
            let outcome = |store: &Store| match store.write(batch_of(&ops)) {
                Ok(committed) => format!("removed {}", committed.removed),
                Err(error) => error.to_string(),
            };
            assert_eq!(outcome(&alone), outcome(&shared), "seed {seed}: {ops:?}");
            for _ in 0..8 {
                let mut ask = ours.ask();
                ask.scopes = vec![chronolith::ScopeSelector::Subtree(ours.scope())];
                let answer = |store: &Store| match store.retrieve(&ask.request()) {
                    Ok(response) => answer_of(response),
                    Err(error) => error.to_string(),
                };
                assert_eq!(answer(&alone), answer(&shared), "seed {seed}: {ask:?}");
                asked += 1;
            }
        }
    }
    eprintln!("{asked} answers were the same beside other scopes");
}
