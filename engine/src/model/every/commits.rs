//! Is an acknowledged batch durable, visible and in its order, and is everybody answered?

use std::sync::Arc;

use chronolith_vfs::{CrashImage, Env, FailedSync, SimVfs};

use super::super::{DIR, found, options, text};
use super::{explore, put, spawn};
use crate::{Committed, Durability, Error, ErrorKind, Store};

/// True where a log file of the disk, as a power cut leaves it, holds the text.
fn is_durable(disk: &SimVfs, text: &str) -> bool {
    let left = disk.crash(CrashImage::LoseUnsynced);
    let logs = left.files().into_iter();
    let mut logs = logs.filter(|path| path.extension().is_some_and(|kind| kind == "log"));
    logs.any(|path| {
        let bytes = left.content(&path).expect("there");
        let mut places = bytes.windows(text.len());
        places.any(|place| place == text.as_bytes())
    })
}

/// What an acknowledgement owes.
fn check(store: &Store, disk: &SimVfs, durability: Durability, id: &str, done: &Committed) {
    let text = text(id, 1);
    let view = store.snapshot();
    assert!(
        view.seq() >= done.last_seq,
        "an acknowledged batch is visible"
    );
    assert_eq!(found(&view, id).as_ref(), Some(&text));
    let is_synced = durability == Durability::Synced;
    assert!(!is_synced || is_durable(disk, &text), "{id} is not durable");
}

fn new_store() -> (Arc<Store>, SimVfs) {
    let (env, disk, _) = Env::sim(1);
    let store = Store::open(DIR, options(&env)).expect("created");
    (Arc::new(store), disk)
}

/// Two writers and the main thread, of which one does not wait for the disk.
pub(super) fn an_acknowledged_batch_is_durable_visible_and_in_order() {
    explore(2, || {
        let (store, disk) = new_store();
        let other = {
            let (store, disk) = (Arc::clone(&store), disk.clone());
            spawn(move || {
                let done = put(&store, Durability::Synced, &[("b", 1)]).expect("taken");
                check(&store, &disk, Durability::Synced, "b", &done);
                done.last_seq
            })
        };
        let lazy = put(&store, Durability::Buffered, &[("c", 1)]).expect("taken");
        check(&store, &disk, Durability::Buffered, "c", &lazy);
        let done = put(&store, Durability::Synced, &[("a", 1)]).expect("taken");
        check(&store, &disk, Durability::Synced, "a", &done);
        // A batch that was in the log before a durable one is durable with it.
        assert!(is_durable(&disk, &text("c", 1)));
        let theirs = other.join().expect("no panic");
        assert!(theirs != done.last_seq && lazy.last_seq < done.last_seq);
        assert_eq!(store.snapshot().seq(), theirs.max(done.last_seq));
    });
}

fn outcome(
    store: &Store,
    disk: &SimVfs,
    durability: Durability,
    id: &str,
) -> Result<Committed, Error> {
    let done = put(store, durability, &[(id, 1)]);
    match &done {
        Ok(done) => check(store, disk, durability, id, done),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Reopen, "{id}: {error}"),
    }
    done
}

/// The first sync fails: nothing that waited for it is acknowledged, everybody is told, and
/// nothing is taken after it.
pub(super) fn a_failed_sync_is_told_to_all_and_for_ever() {
    explore(2, || {
        let (store, disk) = new_store();
        disk.fail_sync(0, FailedSync::CacheKeepsNew);
        let other = {
            let (store, disk) = (Arc::clone(&store), disk.clone());
            spawn(move || outcome(&store, &disk, Durability::Buffered, "b").is_ok())
        };
        let mine = outcome(&store, &disk, Durability::Synced, "a");
        assert!(mine.is_err(), "the only sync failed");
        let theirs = other.join().expect("no panic");
        let view = store.snapshot();
        assert_eq!(found(&view, "a"), None, "nothing unacknowledged is shown");
        // What is not durable may be visible, if it was acknowledged before.
        assert_eq!(found(&view, "b").is_some(), theirs);
        let later = put(&store, Durability::Buffered, &[("c", 1)]);
        assert!(
            later.is_err_and(|error| error.kind() == ErrorKind::Reopen),
            "nothing is taken after it"
        );
    });
}
