//! Answers that starve, duplicate or go out of order.

use chronolith::{Batch, Mode, Record, Store};

use super::house::{ids, open, put, record, scope, sim, within};

fn with_vector(id: impl Into<String>, vector: [f32; 4]) -> Record {
    Record {
        vector: Some(vector.to_vec()),
        ..record("a", id, "text")
    }
}

/// Runs a check in memory, in a segment, and compacted.
fn everywhere(store: &Store, check: impl Fn(&Store)) {
    check(store);
    store.flush().expect("flushed");
    check(store);
    store.compact(true, &mut |_| {}).expect("compacted");
    check(store);
}

/// Origin: lance-format/lance/issues/2737 and /8783, activeloopai/deeplake/issues/3146: NaN
/// rows break the order after deletes.
#[test]
fn vectors_that_are_no_numbers_are_refused_and_deletes_keep_the_order() {
    let (env, _disk) = sim();
    let store = open(&env);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(put(&store, with_vector("bad", [bad, 0.0, 0.0, 1.0])).is_err());
        let query = within("a").vector(vec![bad, 0.0, 0.0, 1.0]);
        assert!(store.retrieve(&query).is_err());
    }
    assert!(put(&store, with_vector("zero", [0.0; 4])).is_err());
    for at in 0..100u8 {
        let record = with_vector(format!("{at:03}"), [1.0, f32::from(at) / 100.0, 0.0, 0.0]);
        put(&store, record).expect("written");
    }
    store.flush().expect("flushed");
    let mut batch = Batch::new();
    for at in (0..100).step_by(2) {
        batch.forget(scope("a"), format!("{at:03}"));
    }
    store.write(batch).expect("written");
    let request = within("a")
        .vector(vec![1.0, 0.0, 0.0, 0.0])
        .mode(Mode::Dense)
        .k(20);
    let expected: Vec<_> = (0..20).map(|at| format!("{:03}", at * 2 + 1)).collect();
    everywhere(&store, |store| assert_eq!(ids(store, &request), expected));
}

/// Origin: lancedb/lancedb/issues/1465, /2553, lance-format/lance/pull/5078: an index over no
/// row, one row, or equal vectors fails or never ends.
#[test]
fn no_row_one_row_and_equal_vectors_are_answered() {
    for rows in [0, 1, 100] {
        let (env, _disk) = sim();
        let store = open(&env);
        for at in 0..rows {
            put(&store, with_vector(format!("{at:03}"), [0.5; 4])).expect("written");
        }
        let expected: Vec<_> = (0..rows.min(10)).map(|at| format!("{at:03}")).collect();
        everywhere(&store, |store| {
            for mode in [Mode::Sparse, Mode::Dense, Mode::Hybrid] {
                let request = within("a").text("text").vector(vec![0.5; 4]).mode(mode);
                assert_eq!(ids(store, &request), expected, "{rows} rows, {mode:?}");
            }
        });
    }
}

/// Origin: rustic-ai/uni-db/issues/194, xorbitsai/xagent/issues/822: a filtered search finds
/// nothing where what is filtered out ranks higher.
#[test]
fn filtered_rows_do_not_starve_the_answer() {
    let (env, _disk) = sim();
    let store = open(&env);
    for at in 0..50 {
        let mut loud = with_vector(format!("loud-{at}"), [1.0, 0.0, 0.0, 0.0]);
        loud.text = "alpha alpha alpha".into();
        put(&store, loud).expect("written");
        let mut quiet = with_vector(format!("quiet-{at}"), [0.1, 1.0, 0.0, 0.0]);
        quiet.text = "alpha and many words beside it that make it rank lower".into();
        quiet.tags = vec!["kept".into()];
        put(&store, quiet).expect("written");
    }
    everywhere(&store, |store| {
        for mode in [Mode::Sparse, Mode::Dense, Mode::Hybrid] {
            let request = within("a").text("alpha").vector(vec![1.0, 0.0, 0.0, 0.0]);
            let found = ids(store, &request.mode(mode).tag("kept").k(50));
            assert_eq!(found.len(), 50, "{mode:?}");
            assert!(found.iter().all(|id| id.starts_with("quiet")), "{mode:?}");
        }
    });
}

/// Origin: the same; a thousand scopes of ten records each.
#[test]
fn every_one_of_a_thousand_scopes_gets_its_ten_records() {
    let (env, _disk) = sim();
    let store = open(&env);
    for chunk in 0..10 {
        let mut batch = Batch::new();
        for at in chunk * 100..(chunk + 1) * 100 {
            for part in 0..10 {
                batch.upsert(record(&format!("s/{at}"), format!("{part}"), "alpha"));
            }
        }
        store.write(batch).expect("written");
        if chunk % 4 == 1 {
            store.flush().expect("flushed");
        }
    }
    for at in (0..1000).step_by(13) {
        let request = within(&format!("s/{at}")).text("alpha");
        let hits = store.retrieve(&request).expect("answers").hits;
        assert_eq!(hits.len(), 10);
        assert!(hits.iter().all(|hit| hit.scope.path() == format!("s/{at}")));
    }
}

/// Origin: weaviate/weaviate/issues/3650, justrach/turbodb/issues/94,
/// pgvector/pgvector/issues/244: tombstones are dropped early, kept for ever, or starve answers.
#[test]
fn deletes_outlive_a_merge_of_older_segments_and_starve_nothing() {
    let (env, disk) = sim();
    let store = open(&env);
    for part in 0..2 {
        for at in 0..20u8 {
            let first = f32::from(20 - at);
            let id = format!("{part}-{at:02}");
            put(&store, with_vector(id, [first, 1.0, 0.0, 0.0])).expect("written");
        }
        store.flush().expect("flushed");
    }
    // The best ten of every channel are forgotten in a newer segment.
    let request = within("a")
        .vector(vec![1.0, 0.0, 0.0, 0.0])
        .mode(Mode::Dense);
    let best = ids(&store, &request);
    let mut batch = Batch::new();
    for id in &best {
        batch.forget(scope("a"), id);
    }
    store.write(batch).expect("written");
    put(&store, with_vector("newer", [0.0, 0.0, 0.0, 1.0])).expect("written");
    let next = ids(&store, &request);
    assert_eq!(next.len(), 10);
    assert!(next.iter().all(|id| !best.contains(id)));
    everywhere(&store, |store| assert_eq!(ids(store, &request), next));
    assert_eq!(store.stats().expect("counts").dead_rows, 0, "kept for ever");
    drop(store);
    let store = open(&env.with_vfs(disk.crash(chronolith_vfs::CrashImage::ProcessKill)));
    assert_eq!(ids(&store, &request), next, "came back");
}
