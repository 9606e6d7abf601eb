//! The layout is no part of an answer: memory, one segment, many, compacted or reopened.

use std::path::Path;

use chronolith::{Hit, Maintenance, Options, Response, RunPolicy, Store};
use chronolith_segments::{Description, parse_segment_file_name};
use chronolith_tests::generate::{Ask, Op, World, batch_of, setup};
use chronolith_vfs::Env;

const ROWS: usize = 192;

/// The hits without where they lie, as text: equal text means equal bits.
fn hits_of(response: Response) -> String {
    let without_place = |mut hit: Hit| {
        if let Some(explanation) = &mut hit.explanation {
            explanation.partition = chronolith::PartitionName::Memtable(0);
        }
        hit
    };
    let hits: Vec<Hit> = response.hits.into_iter().map(without_place).collect();
    format!("{hits:?} {:?} {}", response.exactness, response.text_tokens)
}

fn ops(seed: u64) -> Vec<Vec<Op>> {
    let mut world = World::with_scopes(seed, &["a", "a/b", "a-b"]);
    let one = |n: usize| {
        let mut record = world.record();
        record.id = format!("r{}", n % (ROWS - 20));
        vec![Op::Upsert(record)]
    };
    let mut ops: Vec<Vec<Op>> = (0..ROWS).map(one).collect();
    for n in (0..60).step_by(7) {
        ops.push(vec![Op::Forget(world.scope(), format!("r{n}"))]);
    }
    ops.push(vec![Op::Link(chronolith::TagEdge {
        scope: chronolith_tests::generate::scope("a"),
        parent: "t0".into(),
        child: "t1".into(),
    })]);
    ops
}

/// A store that was flushed `flushes` times while the operations came in.
fn store(seed: u64, ops: &[Vec<Op>], flushes: usize) -> (Store, Options) {
    let (env, _, _) = Env::sim(seed);
    let mut options = Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        runs: RunPolicy {
            rows_min: 2,
            rows_max: 8,
        },
        env,
        ..Options::create(setup(seed))
    };
    let store = Store::open("/store", options.clone()).expect("a new store");
    options.create = None;
    for (n, batch) in ops.iter().enumerate() {
        store.write(batch_of(batch)).expect("write");
        if flushes > 0 && (n + 1).is_multiple_of(ROWS / flushes) && n < ROWS {
            store.flush().expect("flush");
        }
    }
    (store, options)
}

fn answers(store: &Store, asks: &[Ask]) -> Vec<String> {
    let answer = |ask: &Ask| match store.retrieve(&ask.request()) {
        Ok(response) => hits_of(response),
        Err(error) => error.to_string(),
    };
    asks.iter().map(answer).collect()
}

/// Whether a segment of the store has rows that lie by what their vectors look like.
fn is_clustered(env: &Env) -> bool {
    let dir = Path::new("/store/segments");
    let names = env.vfs.list(dir).expect("lists").into_iter();
    let numbers = names.filter_map(|entry| parse_segment_file_name(&entry.name));
    numbers.into_iter().any(|number| {
        let found = Description::read(&*env.vfs, dir, number).expect("sound");
        found
            .sections
            .iter()
            .any(|section| section.name == "vector_runs")
    })
}

#[test]
fn the_layout_changes_no_answer() {
    let mut clustered = 0;
    for seed in 0..6 {
        let ops = ops(seed);
        let mut world = World::new(seed);
        let asks: Vec<Ask> = (0..150).map(|_| world.ask()).collect();
        let (memory, options) = store(seed, &ops, 0);
        let expected = answers(&memory, &asks);
        let full = expected.iter().filter(|answer| answer.len() > 100).count();
        assert!(full > 20, "most answers say something: {full}");
        let check = |store: &Store, what: &str| {
            for (n, found) in answers(store, &asks).iter().enumerate() {
                assert_eq!(*found, expected[n], "{what}, seed {seed}, {:?}", asks[n]);
            }
        };
        drop(memory);
        let replayed = Store::open("/store", options).expect("reopen");
        check(&replayed, "replayed");
        for flushes in [1, 4, 64] {
            let (many, options) = store(seed, &ops, flushes);
            let env = options.env.clone();
            let segments = many.stats().expect("stats").segments;
            assert!(segments >= flushes as u64, "{segments} of {flushes}");
            check(&many, "flushed");
            many.close().expect("close");
            let many = Store::open("/store", options).expect("reopen");
            check(&many, "closed and reopened");
            while many.maintain().expect("maintain") {}
            check(&many, "maintained");
            many.compact(true, &mut |_| {}).expect("compact");
            assert_eq!(
                many.stats().expect("stats").dead_rows,
                0,
                "force leaves no dead rows"
            );
            check(&many, "compacted");
            clustered += u32::from(is_clustered(&env));
        }
    }
    assert!(
        clustered > 12,
        "{clustered} of 18 stores have runs of vectors"
    );
}
