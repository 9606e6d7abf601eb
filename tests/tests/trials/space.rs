//! Full disks, and files that grow without bound.

use chronolith::{Batch, Error, Options, Store};
use chronolith_vfs::{CrashImage, SimVfs};

use super::house::{DIR, count, open, options, put, record, scope, sim};

fn used(disk: &SimVfs) -> usize {
    disk.files()
        .iter()
        .map(|path| disk.content(path).map_or(0, |bytes| bytes.len()))
        .sum()
}

/// Origin: quickwit-oss/tantivy/issues/1198 and cberner/redb/issues/620: after a full disk
/// writes hang or succeed falsely, and the next open panics.
#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_once_there_is_room() {
    for spare_bytes in [0, 10, 100, 1000] {
        let (env, disk) = sim();
        let store = open(&env);
        put(&store, record("a", "first", "text")).expect("written");
        disk.set_space(Some(used(&disk) + spare_bytes));
        let big = "word ".repeat(2000);
        let full = put(&store, record("a", "big", &big)).expect_err("no room");
        assert!(!matches!(full, Error::Poisoned { .. }), "{full}");
        assert!(store.flush().is_err() || spare_bytes > 0);
        assert_eq!(count(&store, "a"), 1, "refused, and visible");
        disk.set_space(None);
        for at in 0..5 {
            put(&store, record("a", format!("{at}"), "text")).expect("there is room again");
        }
        assert_eq!(count(&store, "a"), 6);
        let disk = disk.crash(CrashImage::LoseUnsynced);
        drop(store);
        let store = open(&env.with_vfs(disk));
        assert_eq!(count(&store, "a"), 6, "acknowledged, and lost");
        store.close().expect("closed");
    }
}

/// Origin: fjall-rs/fjall/issues/288, logs are never freed for one idle keyspace.
#[test]
fn an_idle_scope_does_not_keep_the_logs_of_busy_ones() {
    let (env, _disk) = sim();
    let small = Options {
        memtable_bytes_max: 64 << 10,
        log_file_bytes_max: 32 << 10,
        ..options(&env)
    };
    let store = Store::open(DIR, small).expect("opens");
    put(&store, record("idle", "old", "one old record")).expect("written");
    let mut most = 0;
    for at in 0..400 {
        let mut batch = Batch::new();
        for part in 0..5 {
            batch.upsert(record(
                "busy",
                format!("{at}-{part}"),
                "words that fill a log file",
            ));
        }
        store.write(batch).expect("written");
        most = most.max(store.stats().expect("counts").wal_bytes);
    }
    assert!(most < 400 << 10, "the log grew to {most} bytes");
    assert_eq!((count(&store, "idle"), count(&store, "busy")), (1, 2000));
}

/// Origin: chroma-core/chroma/issues/1265, thedotmack/claude-mem/issues/3266: ids cannot be
/// added again, and the index grows without bound.
#[test]
fn ids_can_be_forgotten_and_added_again_without_growth() {
    let (env, disk) = sim();
    let small = Options {
        log_file_bytes_max: 4 << 10,
        ..options(&env)
    };
    let store = Store::open(DIR, small).expect("opens");
    let mut sizes = Vec::new();
    for round in 0..100 {
        let mut batch = Batch::new();
        for at in 0..20 {
            batch.insert(record("a", format!("{at}"), &format!("round {round}")));
        }
        store.write(batch).expect("ids that are free");
        if round % 10 == 9 {
            store.compact(true, &mut |_| {}).expect("compacted");
            sizes.push(used(&disk));
            assert_eq!(store.stats().expect("counts").dead_rows, 0);
        }
        if round < 99 {
            let mut batch = Batch::new();
            for at in 0..20 {
                batch.forget(scope("a"), format!("{at}"));
            }
            store.write(batch).expect("written");
        }
    }
    assert_eq!(count(&store, "a"), 20);
    let (first, last) = (sizes[1], sizes[9]);
    assert!(
        last < first * 2,
        "grew from {first} to {last} bytes: {sizes:?}"
    );
}

/// Origin: lance-format/lance/issues/4585, duplicate keys from writers at once.
#[test]
fn four_writers_of_the_same_new_ids_leave_one_record_each() {
    let root = tempfile::tempdir().expect("a directory");
    let env = chronolith_vfs::Env::real();
    let store = Store::open(root.path().join("store"), options(&env)).expect("opens");
    std::thread::scope(|threads| {
        for writer in 0..4 {
            let store = store.clone();
            threads.spawn(move || {
                for at in 0..20 {
                    let text = format!("by writer {writer}");
                    put(&store, record("a", format!("{at}"), &text)).expect("written");
                }
            });
        }
    });
    assert_eq!(count(&store, "a"), 20);
    store.flush().expect("flushed");
    assert_eq!(count(&store, "a"), 20);
    store.compact(true, &mut |_| {}).expect("compacted");
    assert_eq!(
        (count(&store, "a"), store.stats().expect("counts").records),
        (20, 20)
    );
}
