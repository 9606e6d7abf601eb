//! Do the days of a week that has passed become one segment, and does no answer change?

use chronolith::{
    Batch, DAY_US, Maintenance, Mode, Options, Record, Request, Response, Scope, ScopeSelector,
    Setup, Store,
};
use chronolith_vfs::Env;

/// A day with so many rows gets a segment of its own at a flush.
const ROWS_A_DAY: i64 = 4_200;
/// A week, as buckets are aligned, and the first day of the next.
const DAYS: std::ops::Range<i64> = 14..22;

fn filled() -> Store {
    let (env, _disk, clock) = Env::sim(5);
    clock.set_us(DAYS.end * DAY_US);
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(Setup::default())
    };
    let store = Store::open("/store", options).expect("opens");
    for day in DAYS {
        let mut batch = Batch::new();
        for at in 0..ROWS_A_DAY {
            let scope = Scope::parse(["a", "b/c"][usize::from(at % 3 == 0)]).expect("a scope");
            let text = format!("day{day} word{} common", at % 50);
            let id = format!("r{day}-{at}");
            batch.upsert(Record::new(scope, id, day * DAY_US + at, text));
        }
        store.write(batch).expect("written");
        store.flush().expect("flushed");
    }
    // Forgotten after their flush: deaths that the merge carries over or drops.
    let mut batch = Batch::new();
    for day in DAYS {
        batch.forget(Scope::parse("a").expect("a scope"), format!("r{day}-1"));
    }
    store.write(batch).expect("written");
    store
}

fn answers(store: &Store) -> Vec<Response> {
    let asked = ["common", "day15 word7", "word1 common", "day21 word49"];
    let within = ["/", "a", "b"];
    let mut answers = Vec::new();
    for (text, scope) in asked
        .iter()
        .flat_map(|text| within.map(|scope| (text, scope)))
    {
        let scope = ScopeSelector::parse(scope).expect("a scope");
        let request = Request::within(scope)
            .text(*text)
            .mode(Mode::Sparse)
            .now_us(0);
        let range = (16 * DAY_US, 18 * DAY_US);
        for request in [request.clone(), request.since_us(range.0).until_us(range.1)] {
            answers.push(store.retrieve(&request).expect("answers"));
        }
    }
    answers
}

#[test]
fn the_days_of_a_passed_week_become_one_segment_and_no_answer_changes() {
    let store = filled();
    let before = answers(&store);
    assert_eq!(store.stats().expect("counted").segments, 8);
    let mut reasons = Vec::new();
    let note =
        &mut |done: &chronolith::Compacted| reasons.push((done.inputs.len(), done.reason.clone()));
    store.compact(false, note).expect("compacts");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        reasons[0].0 == 7 && reasons[0].1.contains("wider window"),
        "{reasons:?}"
    );
    assert_eq!(store.stats().expect("counted").segments, 2);
    for (before, after) in before.iter().zip(answers(&store)) {
        assert_eq!(before.hits, after.hits);
        assert_eq!(before.exactness, after.exactness);
        assert!(before.hits.iter().all(|hit| !hit.id.ends_with("-1")));
    }
}
