//! Is a snapshot of one moment: segments, delete sets and memtables of one version, up to one
//! seq, while commits, a flush and a compaction replace them?

use std::sync::Arc;

use chronolith_vfs::Env;

use super::super::{DIR, found, options, scope, text};
use super::{explore, put, spawn};
use crate::{Durability, Request, ScopeSelector, Snapshot, Store};

/// What is there after so many operations behind the first batch.
fn expected(operations: u64) -> [Option<String>; 2] {
    match operations {
        0 => [Some(text("a", 1)), Some(text("b", 1))],
        1 => [Some(text("a", 2)), Some(text("b", 1))],
        2 => [Some(text("a", 2)), None],
        _ => [Some(text("a", 3)), None],
    }
}

/// The view holds exactly what its seq says, in look-ups and in the index.
fn check(view: &Snapshot, first_seq: u64) {
    let expected = expected(view.seq() - first_seq);
    assert_eq!([found(view, "a"), found(view, "b")], expected);
    let request = Request::within(ScopeSelector::Exact(scope())).text("word");
    let hits = view.retrieve(&request.k(9)).expect("answered").hits;
    let mut texts: Vec<_> = hits.into_iter().filter_map(|hit| hit.text).collect();
    texts.sort();
    let expected: Vec<_> = expected.into_iter().flatten().collect();
    assert_eq!(texts, expected, "each record once, as of {}", view.seq());
}

fn write(store: &Store, id: &str, version: u32) {
    put(store, Durability::Buffered, &[(id, version)]).expect("taken");
}

/// A reader beside changes to a store of one segment with `a` and `b`.
fn beside(change: fn(&Store)) {
    let (env, _, _) = Env::sim(1);
    let store = Arc::new(Store::open(DIR, options(&env)).expect("created"));
    let first = put(&store, Durability::Buffered, &[("a", 1), ("b", 1)]).expect("taken");
    store.flush().expect("flushed");
    let first_seq = first.last_seq;
    let reader = {
        let store = Arc::clone(&store);
        spawn(move || {
            let view = store.snapshot();
            check(&view, first_seq);
            // Whatever happened between, the view is the same, also when its files are gone.
            loom::thread::yield_now();
            let later = store.snapshot();
            assert!(later.seq() >= view.seq(), "visibility never goes back");
            check(&view, first_seq);
            check(&later, first_seq);
        })
    };
    change(&store);
    reader.join().expect("no panic");
    check(&store.snapshot(), first_seq);
}

pub(super) fn a_view_beside_commits_and_a_flush_is_of_one_moment() {
    explore(2, || {
        beside(|store| {
            write(store, "a", 2);
            store.flush().expect("flushed");
            assert!(store.forget(scope(), "b").expect("taken"));
            // Into a memtable that the version before the flush does not have.
            write(store, "a", 3);
        });
    });
}

pub(super) fn a_view_beside_a_compaction_is_of_one_moment() {
    explore(2, || {
        beside(|store| {
            write(store, "a", 2);
            store.compact(true, &mut |_| {}).expect("compacted");
        });
    });
}

/// Commits that come while a compaction runs are carried over to what it writes.
pub(super) fn a_forget_beside_a_compaction_is_kept() {
    explore(2, || {
        let (env, _, _) = Env::sim(1);
        let store = Arc::new(Store::open(DIR, options(&env)).expect("created"));
        let first = put(&store, Durability::Buffered, &[("a", 1), ("b", 1)]).expect("taken");
        store.flush().expect("flushed");
        write(&store, "a", 2);
        store.flush().expect("flushed");
        let other = {
            let store = Arc::clone(&store);
            spawn(move || {
                store.compact(true, &mut |_| {}).expect("compacted");
            })
        };
        assert!(store.forget(scope(), "b").expect("taken"));
        check(&store.snapshot(), first.last_seq);
        other.join().expect("no panic");
        check(&store.snapshot(), first.last_seq);
        store.compact(true, &mut |_| {}).expect("compacted");
        check(&store.snapshot(), first.last_seq);
    });
}
