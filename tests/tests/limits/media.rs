//! Read-only media: a store on them is read, and not a byte changes.
//!
//! Origin: kuzudb/kuzu/issues/2276, Dicklesworthstone/frankensqlite/issues/140.

#![expect(clippy::disallowed_methods, reason = "the suite looks at real files")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chronolith::{ErrorKind, Options, ReadMode, ReadOnlyStore, Request, ScopeSelector, Store};
use chronolith_tests::kills::{Lane, child_options, found};
use chronolith_tests::mounts::{Kind, Mount};

const LANE: Lane = Lane { seed: 8, index: 0 };

/// Content and time of change of everything below a directory.
fn contents(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("listed").flatten() {
        let path = entry.path();
        let meta = entry.metadata().expect("there");
        let changed = meta.modified().expect("a time");
        if meta.is_dir() {
            all.extend(contents(&path));
            all.insert(path, (Vec::new(), changed));
        } else {
            let bytes = std::fs::read(&path).expect("readable");
            all.insert(path, (bytes, changed));
        }
    }
    all
}

#[test]
fn a_store_on_read_only_media_is_read_and_unchanged() {
    let mut mount = match Mount::new(Kind::EXT4) {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: read-only media: {why}"),
    };
    let dir = mount.path().join("store");
    // One that was closed, and one that was not: its log is to be replayed, in memory.
    for closed in [true, false] {
        let store = Store::open(&dir, child_options()).expect("opens");
        let first = LANE.last_batch(&found(&store.snapshot()).expect("readable"));
        let first = first.map_or(0, |last| last + 1);
        for number in first..first + 60 {
            store.write(LANE.batch(number)).expect("written");
        }
        match closed {
            true => store.close().expect("closed"),
            false => drop(store),
        }
        mount.again_read_only();
        let before = contents(mount.path());
        for read_mode in [ReadMode::Mapped, ReadMode::Positioned] {
            let options = Options {
                read_mode,
                ..Options::default()
            };
            let reader = ReadOnlyStore::open(&dir, options).expect("opens read-only");
            let records = found(&reader.snapshot()).expect("readable");
            assert_eq!(records, LANE.expected(Some(first + 59)));
            let request = Request::within(ScopeSelector::Exact(LANE.scope(1))).text("batch");
            assert!(!reader.retrieve(&request).expect("answers").hits.is_empty());
            assert!(!reader.refresh().expect("refreshes"));
        }
        let refused =
            Store::open(&dir, child_options()).expect_err("a writer on a read-only mount");
        assert_eq!(refused.kind(), ErrorKind::System, "{refused}");
        let text = refused.to_string();
        let path = dir.join("LOCK").display().to_string();
        assert!(
            text.contains(&path) && text.contains("open the store read-only"),
            "{text}"
        );
        assert!(contents(mount.path()) == before, "something changed");
        mount.again();
    }
    println!("read from a read-only ext4, closed and not closed");
}
