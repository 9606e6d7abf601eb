//! A full disk, for real: writes fail by name, records can be forgotten, the store closed, and
//! writes resume when space comes back.
//!
//! Origin: quickwit-oss/tantivy/issues/1198 (writes that succeed falsely), and engines that die
//! of SIGBUS or lose acknowledged rows after a disk was full for a while.

#![expect(clippy::disallowed_methods, reason = "the suite fills real disks")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use chronolith::{
    Batch, Durability, Error, ErrorKind, Options, ReadOnlyStore, Record, Scope, ScopeSelector,
    Setup, Snapshot, Store,
};
use chronolith_tests::data::next_random;
use chronolith_tests::mounts::{Kind, Mount};
use chronolith_vfs::Env;

/// Space on a small disk.
const BYTES: u64 = 24 << 20;
/// Files on a disk with few of them.
const INODES: u64 = 200;
/// How long writes may take to resume: background work tries every half second.
const RESUME_MAX: Duration = Duration::from_secs(10);

/// A store that is filled, and what was acknowledged.
struct Filled {
    store: Store,
    ids: BTreeSet<String>,
    random: u64,
}

fn options() -> Options {
    Options {
        memtable_bytes_max: 512 << 10,
        log_file_bytes_max: 256 << 10,
        log_preallocate_bytes: 64 << 10,
        ..Options::create(Setup::default())
    }
}

fn scope() -> Scope {
    Scope::parse("a").expect("a scope")
}

fn ids(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let all = [ScopeSelector::Exact(scope())];
    let read = snapshot.for_each_record(&all, &mut |stored| {
        ids.insert(stored.record.id);
        Ok(())
    });
    read.expect("readable");
    ids
}

impl Filled {
    /// One write; its ids are noted where it was acknowledged.
    fn write(&mut self, durability: Durability) -> Result<(), Error> {
        let number = next_random(&mut self.random);
        let mut batch = Batch::new();
        let ids: Vec<String> = (0..10).map(|at| format!("{number:x}-{at}")).collect();
        for id in &ids {
            let words: String = (0..100)
                .map(|_| format!("{:09x} ", next_random(&mut self.random) >> 28))
                .collect();
            batch.upsert(Record::new(
                scope(),
                id.clone(),
                1_700_000_000_000_000,
                words,
            ));
        }
        self.store.write_with(batch, durability)?;
        self.ids.extend(ids);
        Ok(())
    }

    /// Writes until the disk is full, and a few times more.
    fn fill(dir: &Path) -> Self {
        let mut filled = Self {
            store: Store::open(dir, options()).expect("created"),
            ids: BTreeSet::new(),
            random: 6,
        };
        let (mut written, mut refused) = (0, 0);
        while refused < 5 {
            let durability = match written % 3 {
                0 => Durability::Synced,
                _ => Durability::Buffered,
            };
            match filled.write(durability) {
                Ok(()) => written += 1,
                Err(error) => {
                    assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
                    assert_eq!(error.kind(), ErrorKind::Retry);
                    refused += 1;
                }
            }
            assert!(written < 100_000, "the disk never fills");
        }
        assert_eq!(
            ids(&filled.store.snapshot()),
            filled.ids,
            "after the disk was full"
        );
        filled
    }

    /// Forgets some of what is there.
    fn forget(&mut self, count: usize) {
        let gone: Vec<String> = self.ids.iter().take(count).cloned().collect();
        for id in gone {
            let removed = self.store.forget(scope(), id.clone());
            let removed = removed.unwrap_or_else(|why| panic!("forget on a full disk: {why}"));
            assert!(removed, "{id} was not there");
            self.ids.remove(&id);
        }
    }

    /// Writes again until one succeeds.
    fn resume(&mut self) -> Duration {
        let clock = Env::real().clock;
        let start_ns = clock.monotonic_ns();
        loop {
            let written = self.write(Durability::Synced);
            let waited = Duration::from_nanos(clock.monotonic_ns() - start_ns);
            match written {
                Ok(()) => return waited,
                Err(error) => assert!(waited < RESUME_MAX, "still refused: {error}"),
            }
            clock.sleep(Duration::from_millis(20));
        }
    }
}

/// Takes almost all space, and gives it back when removed.
fn ballast(mount: &Mount, kind: Kind) {
    let dir = mount.path().join("ballast");
    std::fs::create_dir(&dir).expect("created");
    match kind {
        Kind::Tmpfs { inodes, .. } if inodes == INODES => {
            for at in 0..INODES - 80 {
                std::fs::write(dir.join(at.to_string()), b"").expect("written");
            }
        }
        _ => std::fs::write(dir.join("file"), vec![1; 16 << 20]).expect("written"),
    }
}

fn unballast(mount: &Mount) {
    std::fs::remove_dir_all(mount.path().join("ballast")).expect("removed");
}

fn fill_forget_and_resume(kind: Kind) {
    let mount = match Mount::new(kind) {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: full disk of {kind:?}: {why}"),
    };
    ballast(&mount, kind);
    let dir = mount.path().join("store");
    let mut filled = Filled::fill(&dir);
    let written = filled.ids.len();
    filled.forget(40);
    assert_eq!(ids(&filled.store.snapshot()), filled.ids);

    // On the same handle, as soon as there is space.
    unballast(&mount);
    let resumed = filled.resume();
    for _ in 0..5 {
        filled.write(Durability::Synced).expect("there is space");
    }
    filled.forget(10);
    filled.store.flush().expect("flushed");
    let Filled {
        store, ids: owed, ..
    } = filled;
    store.close().expect("closed");
    let store = Store::open(&dir, options()).expect("opens");
    assert_eq!(ids(&store.snapshot()), owed, "after the reopen");
    println!("{kind:?}: {written} records until it was full; writes resumed after {resumed:?}");
}

fn fill_close_and_open(kind: Kind) {
    let mount = match Mount::new(kind) {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: full disk of {kind:?}: {why}"),
    };
    ballast(&mount, kind);
    let dir = mount.path().join("store");
    let Filled {
        store,
        ids: mut owed,
        ..
    } = Filled::fill(&dir);
    store.close().expect("closes on a full disk");
    let reader = ReadOnlyStore::open(&dir, options()).expect("is read on a full disk");
    assert_eq!(ids(&reader.snapshot()), owed);
    drop(reader);
    // The close has used the reserve: an open may have to wait for space, and says so.
    match Store::open(&dir, options()) {
        Ok(store) => {
            assert_eq!(ids(&store.snapshot()), owed);
            let id = owed.pop_first().expect("a record");
            // A log that was closed cleanly begins here, and may have to wait for space itself.
            match store.forget(scope(), id.clone()) {
                Ok(removed) => assert!(removed),
                Err(error) => {
                    assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
                    println!("{kind:?}: not forgotten on the full disk: {error}");
                    owed.insert(id);
                }
            }
            store.close().expect("closes on a full disk");
            println!("{kind:?}: opened and closed on the full disk");
        }
        Err(error) => {
            assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
            println!("{kind:?}: not opened on the full disk: {error}");
        }
    }
    unballast(&mount);
    let store = Store::open(&dir, options()).expect("opens");
    assert_eq!(ids(&store.snapshot()), owed, "after the disk was full");
    let mut filled = Filled {
        store,
        ids: owed,
        random: 7,
    };
    filled.write(Durability::Synced).expect("there is space");
    assert_eq!(ids(&filled.store.snapshot()), filled.ids);
}

const TMPFS: Kind = Kind::Tmpfs {
    bytes: BYTES,
    inodes: 10_000,
};
const FEW_FILES: Kind = Kind::Tmpfs {
    bytes: 256 << 20,
    inodes: INODES,
};
const EXT4: Kind = Kind::Ext4 { bytes: 32 << 20 };

#[test]
fn a_full_tmpfs_is_forgotten_on_and_written_again() {
    fill_forget_and_resume(TMPFS);
}

#[test]
fn a_full_ext4_is_forgotten_on_and_written_again() {
    fill_forget_and_resume(EXT4);
}

#[test]
fn a_disk_without_inodes_is_forgotten_on_and_written_again() {
    fill_forget_and_resume(FEW_FILES);
}

/// Takes every file that the disk has to give.
fn take_all_files(mount: &Mount) {
    let dir = mount.path().join("ballast");
    for at in 0.. {
        if std::fs::write(dir.join(format!("more-{at}")), b"").is_err() {
            return;
        }
        assert!(at < 10 * INODES, "the disk always has a file to give");
    }
}

#[test]
fn process_after_process_forgets_on_a_disk_without_inodes() {
    let mount = match Mount::new(FEW_FILES) {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: a disk without inodes: {why}"),
    };
    ballast(&mount, FEW_FILES);
    let dir = mount.path().join("store");
    let Filled {
        store,
        ids: mut owed,
        ..
    } = Filled::fill(&dir);
    store.close().expect("closes without inodes");
    for round in 0..6 {
        take_all_files(&mount);
        let store = Store::open(&dir, options());
        let store = store.unwrap_or_else(|why| panic!("open {round}: {why}"));
        assert_eq!(ids(&store.snapshot()), owed, "open {round}");
        let id = owed.pop_first().expect("a record");
        assert!(store.forget(scope(), id).expect("forgotten"));
        match round % 2 {
            0 => store.close().expect("closes"),
            _ => drop(store),
        }
    }
    unballast(&mount);
    let store = Store::open(&dir, options()).expect("opens");
    assert_eq!(ids(&store.snapshot()), owed);
    let mut filled = Filled {
        store,
        ids: owed,
        random: 8,
    };
    filled.resume();
    println!("opened, forgotten and closed six times without an inode");
}

#[test]
fn a_store_on_a_full_tmpfs_closes_and_opens() {
    fill_close_and_open(TMPFS);
}

#[test]
fn a_store_on_a_full_ext4_closes_and_opens() {
    fill_close_and_open(EXT4);
}
