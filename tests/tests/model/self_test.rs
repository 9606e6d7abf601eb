//! The comparison can fail: a model that is wrong in one thing is caught.

use chronolith::{Maintenance, Options, Store};
use chronolith_tests::generate::{Ask, Op, World, batch_of, setup};
use chronolith_tests::model::{Model, difference};
use chronolith_vfs::Env;

/// Differences found over many asks when the model sees `wrong` instead of what was written.
fn differences(wrong: impl Fn(usize, &mut Vec<Op>)) -> usize {
    let (env, _, _) = Env::sim(7);
    let setup = setup(7);
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(setup.clone())
    };
    let store = Store::open("/store", options).expect("a new store");
    let mut model = Model::new(&setup);
    let mut world = World::with_scopes(7, &["a", "a/b"]);
    for n in 0..60 {
        let ops = vec![Op::Upsert(world.record())];
        let taken = store.write(batch_of(&ops)).expect("write");
        let mut seen = ops;
        wrong(n, &mut seen);
        model.apply(&seen, taken.first_seq, taken.commit_time_us, &taken.new_ids);
    }
    let asks: Vec<Ask> = (0..200).map(|_| world.ask()).collect();
    let differs = |ask: &&Ask| difference(&model.answer(ask), store.retrieve(&ask.request()));
    asks.iter().filter_map(|ask| differs(&ask)).count()
}

fn change(ops: &mut [Op], change: impl Fn(&mut chronolith::Record)) {
    for op in ops {
        if let Op::Upsert(record) = op {
            change(record);
        }
    }
}

#[test]
fn a_wrong_model_is_caught() {
    assert_eq!(differences(|_, _| {}), 0, "the right model agrees");
    let lost = |n, ops: &mut Vec<Op>| {
        if n == 55 {
            ops.clear();
        }
    };
    assert!(differences(lost) > 0, "a lost record");
    let word = |n, ops: &mut Vec<Op>| {
        if n == 55 {
            change(ops, |record| record.text.push_str(" extra"));
        }
    };
    assert!(
        differences(word) > 0,
        "one word more in one record: lengths and df"
    );
    let time = |n, ops: &mut Vec<Op>| {
        if n == 55 {
            change(ops, |record| record.event_time_us -= 1);
        }
    };
    assert!(differences(time) > 0, "a microsecond");
}
