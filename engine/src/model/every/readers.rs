//! Does a reader in another process see one version, while a writer publishes and unlinks?
//!
//! Every file operation of either is a place where the other may go on, so this is every way
//! in which the two orders of operations can be shuffled with so many interruptions.

use super::super::steps::step_env;
use super::super::{DIR, found, options, text};
use super::{explore, put, spawn};
use crate::{Durability, Options, ReadOnlyStore, Store};

fn write(store: &Store, id: &str, version: u32) {
    put(store, Durability::Synced, &[(id, version)]).expect("taken");
}

fn read(options: &Options, versions: std::ops::RangeInclusive<u32>) {
    let reader = ReadOnlyStore::open(DIR, options.clone()).expect("a reader gets in");
    let view = reader.snapshot();
    assert_eq!(found(&view, "b"), Some(text("b", 1)));
    let a = found(&view, "a").expect("it was never away");
    assert!(
        versions.into_iter().any(|version| a == text("a", version)),
        "{a}"
    );
}

pub(super) fn a_reader_beside_a_compaction_sees_one_version() {
    explore(2, || {
        let (env, _) = step_env();
        let store = Store::open(DIR, options(&env)).expect("created");
        write(&store, "a", 1);
        store.flush().expect("flushed");
        write(&store, "a", 2);
        write(&store, "b", 1);
        store.flush().expect("flushed");
        let of_reader = options(&env);
        let reader = spawn(move || read(&of_reader, 2..=3));
        // Unlinks both segments and the delete set; then the log moves on.
        store.compact(true, &mut |_| {}).expect("compacted");
        write(&store, "a", 3);
        reader.join().expect("no panic");
        read(&options(&env), 3..=3);
    });
}
