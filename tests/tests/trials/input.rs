//! Records and requests at the edge of what there is.

use chronolith::{Batch, ErrorKind, Mode, Record, TIME_MAX_US, TIME_MIN_US};

use super::house::{count, ids, open, put, record, scope, sim, within};

/// Origin: quickwit-oss/tantivy/issues/526, a term of more than 65,535 bytes.
#[test]
fn a_huge_token_is_stored_and_spoils_nothing() {
    let (env, _disk) = sim();
    let store = open(&env);
    put(&store, record("a", "huge", &"x".repeat(70_000))).expect("written");
    put(&store, record("a", "cjk", &"記".repeat(70_000))).expect("written");
    put(&store, record("a", "plain", "needle")).expect("written");
    for _ in 0..2 {
        assert_eq!(ids(&store, &within("a").text("needle")), ["plain"]);
        assert_eq!(ids(&store, &within("a").text("x".repeat(60_000))), ["huge"]);
        assert_eq!(ids(&store, &within("a").text("記記")), ["cjk"]);
        store.flush().expect("flushed");
    }
}

/// Origin: cberner/redb CHANGELOG 4.2.0, a panic at 65,536 small entries after a big value.
#[test]
fn a_batch_of_one_big_and_very_many_small_records_is_whole() {
    let (env, _disk) = sim();
    let store = open(&env);
    let mut batch = Batch::new();
    batch.upsert(record("a", "big", &"word ".repeat(100_000)));
    for at in 0..65_536 {
        batch.upsert(record("b", format!("{at}"), "w"));
    }
    store.write(batch).expect("written");
    assert_eq!(store.stats().expect("counts").records, 65_537);
    store.flush().expect("flushed");
    assert_eq!(store.stats().expect("counts").records, 65_537);
    assert!(store.get(&scope("b"), "65535").expect("readable").is_some());
}

/// Origin: matrix-org/matrix-rust-sdk/issues/6772, paradedb/paradedb/pull/4156: times at the
/// ends of their range panic or wrap.
#[test]
fn times_at_the_ends_are_kept_or_refused_by_name() {
    let (env, _disk) = sim();
    let store = open(&env);
    let at = |id: &str, time_us: i64| Record::new(scope("a"), id, time_us, "text");
    for time_us in [
        i64::MIN,
        i64::MAX,
        TIME_MIN_US - 1,
        TIME_MAX_US,
        1_750_000_000_000_000_000,
    ] {
        let refused = put(&store, at("no", time_us)).expect_err("outside the range");
        assert_eq!(refused.kind(), ErrorKind::FixCall);
        assert!(refused.to_string().contains("ts"), "{refused}");
    }
    put(&store, at("year 1", TIME_MIN_US)).expect("written");
    put(&store, at("before 1970", -1)).expect("written");
    put(&store, at("year 9999", TIME_MAX_US - 1)).expect("written");
    for _ in 0..2 {
        assert_eq!(
            ids(&store, &within("a")),
            ["year 9999", "before 1970", "year 1"]
        );
        let early = within("a").since_us(i64::MIN).until_us(0);
        assert_eq!(ids(&store, &early), ["before 1970", "year 1"]);
        assert_eq!(ids(&store, &within("a").until_us(i64::MAX)).len(), 3);
        store.flush().expect("flushed");
    }
}

/// Origin: quickwit-oss/tantivy/issues/1134, bitwisecook/tcl-lsp/issues/1325: char boundaries.
#[test]
fn long_text_without_spaces_and_odd_characters_is_found_and_whole() {
    let (env, _disk) = sim();
    let store = open(&env);
    let cjk = "記憶は検索エンジンの中に保存される".repeat(400);
    let curly = "“Don’t panic”\u{200B}— said the\u{200B}guide…";
    put(&store, record("a", "cjk", &cjk)).expect("written");
    put(&store, record("a", "curly", curly)).expect("written");
    for _ in 0..2 {
        assert_eq!(ids(&store, &within("a").text("検索")), ["cjk"]);
        assert_eq!(ids(&store, &within("a").text("panic")), ["curly"]);
        let stored = store
            .get(&scope("a"), "curly")
            .expect("readable")
            .expect("there");
        assert_eq!(stored.record.text, curly);
        store.flush().expect("flushed");
    }
}

/// Origin: qdrant/qdrant/issues/9039 and pull/9813: a wrong dimension is acknowledged, lost,
/// and stops every start.
#[test]
fn a_vector_of_another_dimension_is_refused_before_the_log() {
    let (env, disk) = sim();
    let store = open(&env);
    for len in [0, 3, 5] {
        let bad = Record {
            vector: Some(vec![1.0; len]),
            ..record("a", "bad", "text")
        };
        let refused = put(&store, bad).expect_err("another dimension");
        assert_eq!(refused.kind(), ErrorKind::FixCall);
        assert!(refused.to_string().contains("vector"), "{refused}");
    }
    put(&store, record("a", "good", "text")).expect("written");
    let disk = disk.crash(chronolith_vfs::CrashImage::ProcessKill);
    drop(store);
    let store = open(&env.with_vfs(disk));
    assert_eq!(ids(&store, &within("a")), ["good"]);
}

/// Origin: qdrant/qdrant/pull/9604 and /9637: k and limits that overflow an allocation.
#[test]
fn any_k_is_answered_or_refused_by_name() {
    let (env, _disk) = sim();
    let store = open(&env);
    for at in 0..3u8 {
        let vector = Some(vec![1.0, f32::from(at), 0.5, 0.25]);
        let record = Record {
            vector,
            ..record("a", format!("{at}"), "text")
        };
        put(&store, record).expect("written");
    }
    let request = || within("a").text("text").vector(vec![1.0; 4]);
    for mode in [Mode::Sparse, Mode::Dense, Mode::Hybrid] {
        for k in [usize::MAX, usize::MAX / 2, 10_001] {
            let refused = store
                .retrieve(&request().mode(mode).k(k))
                .expect_err("too many");
            assert_eq!(refused.kind(), ErrorKind::FixCall);
            assert!(refused.to_string().contains('k'), "{refused}");
        }
        assert_eq!(ids(&store, &request().mode(mode).k(0)).len(), 0);
        assert_eq!(ids(&store, &request().mode(mode).k(10_000)).len(), 3);
    }
    let refused = store.retrieve(&request().context(usize::MAX, 0));
    assert_eq!(refused.expect_err("too much").kind(), ErrorKind::FixCall);
    assert_eq!(count(&store, "a"), 3);
}
