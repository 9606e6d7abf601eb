//! Goal: a backup holds what was acknowledged, whatever stops it; a restore makes a whole store
//! or none, whatever it is given.
//!
//! Mechanism: small stores on a simulated disk, stopped and failed at every file operation of a
//! backup and of a restore; a real directory with a writer that never rests; indexes that are
//! damaged, or hostile with checksums that hold.

mod beside;
mod hostile;
mod stops;
mod support;

use std::path::{Path, PathBuf};

use chronolith::{BackupError, Error, ErrorKind, ReadOnlyStore, Store, backup, restore};
use chronolith_vfs::{CrashImage, Env, Vfs};
use support::{INDEX, back_up, bring_back, how, names, open, options, put, records};

#[test]
fn a_restored_store_is_the_one_that_was_backed_up() {
    for copies in [false, true] {
        let (env, sim, _clock) = Env::sim(1);
        let store = support::store(&env);
        let want = records(&store);
        let report = back_up(&env, copies).expect("backs up");
        assert_eq!(report.last_seq, store.snapshot().seq());
        let brought = (report.linked, report.copied, report.kept);
        assert_eq!(brought, if copies { (0, 4, 0) } else { (4, 0, 0) });
        put(&store, 100);
        drop(store);

        let restored = bring_back(&env, "/new").expect("restores");
        assert_eq!(restored.last_seq, report.last_seq);
        assert_eq!(restored.files, report.files);
        let reader = ReadOnlyStore::open("/new", options(&env)).expect("opens to read");
        assert_eq!(reader.snapshot().seq(), report.last_seq);
        let store = open(&env, "/new");
        assert_eq!(records(&store), want);
        assert_eq!(store.snapshot().seq(), report.last_seq);
        put(&store, 200);
        assert!(
            store.snapshot().seq() >> 40 > report.last_seq >> 40,
            "a new epoch: no seq is given twice in this history"
        );
        for path in names(&sim, "/new/segments") {
            assert!(sim.is_sealed(&path).expect("there"), "{}", path.display());
        }
    }
}

#[test]
fn a_new_empty_store_can_be_backed_up() {
    let (env, _sim, _clock) = Env::sim(2);
    let store = Store::open("/store", options(&env)).expect("creates");
    back_up(&env, false).expect("backs up");
    bring_back(&env, "/new").expect("restores");
    assert_eq!(records(&open(&env, "/new")), records(&store));
}

#[test]
fn a_second_backup_brings_only_what_is_new_and_drops_what_is_gone() {
    let (env, sim, _clock) = Env::sim(3);
    let store = support::store(&env);
    back_up(&env, false).expect("backs up");
    (10..12).for_each(|i| put(&store, i));
    store.flush().expect("flushes");
    let second = back_up(&env, false).expect("backs up");
    assert_eq!((second.point, second.removed), (2, 0));
    assert_eq!((second.kept, second.linked), (4, 1));

    store.compact(true, &mut |_| {}).expect("compacts");
    let third = back_up(&env, false).expect("backs up");
    assert_eq!((third.kept, third.linked, third.removed), (1, 1, 4));
    let outside = |path: &PathBuf| !path.starts_with("/backup/point-0000000000000003");
    let outside_segments = |path: &PathBuf| !path.starts_with("/backup/segments");
    let mut left = names(&sim, "/backup");
    left.retain(|path| outside(path) && outside_segments(path));
    let top = ["/backup/BACKUP", "/backup/LOCK"].map(PathBuf::from);
    assert_eq!(left, top, "earlier points are gone");

    // Links are no copies: asked for copies, it makes some.
    let fourth = back_up(&env, true).expect("backs up");
    assert_eq!((fourth.kept, fourth.copied), (0, 2));
    let fifth = back_up(&env, true).expect("backs up");
    assert_eq!((fifth.kept, fifth.copied), (2, 0));
    let want = records(&store);
    drop(store);
    for path in names(&sim, "/store/segments") {
        sim.damage(&path, |bytes| bytes[100] ^= 1).expect("damaged");
    }
    bring_back(&env, "/new").expect("copies are not damaged with the store");
    assert_eq!(records(&open(&env, "/new")), want);
}

#[test]
fn a_damaged_file_of_the_backup_is_replaced_by_the_next_one() {
    let (env, sim, _clock) = Env::sim(4);
    let store = support::store(&env);
    back_up(&env, true).expect("backs up");
    let segment = &names(&sim, "/backup/segments")[0];
    sim.damage(segment, |bytes| bytes[200] ^= 4)
        .expect("damaged");
    let error = bring_back(&env, "/new").expect_err("seen");
    assert_eq!(error.kind(), ErrorKind::Damaged);
    let report = back_up(&env, true).expect("backs up");
    assert_eq!((report.kept, report.copied), (3, 1));
    bring_back(&env, "/new").expect("restores");
    assert_eq!(records(&open(&env, "/new")), records(&store));
}

#[test]
fn a_damaged_store_is_not_backed_up_and_the_old_backup_stays() {
    let (env, sim, _clock) = Env::sim(5);
    let store = support::store(&env);
    let want = records(&store);
    back_up(&env, true).expect("backs up");
    put(&store, 50);
    store.flush().expect("flushes");
    let new = names(&sim, "/store/segments").pop().expect("a segment");
    let name = new
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let before = sim.content(Path::new(INDEX)).expect("there");
    sim.damage(&new, |bytes| bytes[100] ^= 1).expect("damaged");
    let refused = || {
        let error = back_up(&env, true).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    };
    refused();
    sim.remove_file(&new).expect("removed");
    refused();
    assert_eq!(sim.content(Path::new(INDEX)).expect("there"), before);
    bring_back(&env, "/new").expect("restores");
    assert_eq!(records(&open(&env, "/new")), want);
}

#[test]
fn a_log_that_lost_what_was_acknowledged_is_not_backed_up_as_if_whole() {
    let (env, sim, _clock) = Env::sim(6);
    let store = support::store(&env);
    let want = records(&store);
    let log = names(&sim, "/store/wal")
        .into_iter()
        .rfind(|path| path.extension().is_some_and(|end| end == "log"))
        .expect("a log");
    let status = Path::new("/store/wal/STATUS");
    let content = sim.content(&log).expect("there");
    let place_of = |text: &[u8]| content.windows(text.len()).position(|found| found == text);
    // The last acknowledged batch, and the one before it; with STATUS to say so, and without.
    for (text, keeps_status) in [("note 6", true), ("note 6", false), ("note 5", false)] {
        let disk = sim.crash(CrashImage::KeepAll);
        let at = place_of(text.as_bytes()).expect("in the log");
        disk.damage(&log, |bytes| bytes[at] ^= 1).expect("damaged");
        if !keeps_status {
            disk.remove_file(status).expect("removed");
        }
        let error = back_up(&env.with_vfs(disk), false).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Damaged, "{text}: {error}");
    }
    // A whole log needs no STATUS: a copy has its own.
    sim.remove_file(status).expect("removed");
    back_up(&env, false).expect("backs up");
    bring_back(&env, "/new").expect("restores");
    let reader = ReadOnlyStore::open("/new", options(&env)).expect("opens to read");
    assert_eq!(reader.snapshot().seq(), store.snapshot().seq());
    assert_eq!(records(&open(&env, "/new")), want);
}

#[test]
fn what_cannot_be_written_into_is_refused_untouched() {
    let (env, sim, _clock) = Env::sim(7);
    let store = support::store(&env);
    sim.create_dir(Path::new("/mine")).expect("made");
    sim.create_new(Path::new("/mine/letter")).expect("made");
    for dest in ["/store", "/store/backup", "/mine"] {
        let before = sim.files();
        let error = store
            .backup(dest, &how(false), &mut |_| {})
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::FixCall, "{error}");
        assert_eq!(sim.files(), before, "{dest}");
    }
    back_up(&env, false).expect("backs up");
    let other = Store::open("/other", options(&env)).expect("creates");
    let error = other.backup("/backup", &how(false), &mut |_| {});
    let error = error.expect_err("of another store");
    assert!(
        matches!(error, Error::Backup(BackupError::OtherStore { .. })),
        "{error}"
    );
    let lock = sim.try_lock(Path::new("/backup/LOCK")).expect("free");
    assert_eq!(
        back_up(&env, false).expect_err("locked").kind(),
        ErrorKind::Retry
    );
    drop(lock);
}

#[test]
fn a_restore_takes_no_place_that_is_somebodys() {
    let (env, sim, _clock) = Env::sim(17);
    let _store = support::store(&env);
    back_up(&env, false).expect("backs up");
    let refused = |dest: &str| {
        let error = bring_back(&env, dest).expect_err("taken");
        assert!(
            matches!(error, Error::Backup(BackupError::BadDestination { .. })),
            "{error}"
        );
    };
    refused("/store");
    refused("/backup/new");
    sim.create_dir(Path::new("/new.restoring")).expect("made");
    sim.create_new(Path::new("/new.restoring/letter"))
        .expect("made");
    refused("/new");
    assert!(
        sim.files()
            .contains(&PathBuf::from("/new.restoring/letter"))
    );
    // A store that somebody closed and calls so is no leftover.
    let mine = Store::open("/mine.restoring", options(&env)).expect("created");
    mine.close().expect("closes");
    sim.remove_file(Path::new("/mine.restoring/RESERVE"))
        .expect("removed");
    let before = sim.files();
    refused("/mine");
    assert_eq!(sim.files(), before);
    sim.create_dir(Path::new("/other.restoring")).expect("made");
    let lock = sim
        .try_lock(Path::new("/other.restoring/LOCK"))
        .expect("free");
    let busy = bring_back(&env, "/other").expect_err("another restore is running");
    assert_eq!(busy.kind(), ErrorKind::Retry, "{busy}");
    drop(lock);
    bring_back(&env, "/other").expect("what it left is in nobody's way");
    let nothing = restore(
        &env,
        Path::new("/new.restoring"),
        Path::new("/third"),
        &mut |_| {},
    );
    let nothing = nothing.expect_err("no backup");
    assert!(
        matches!(nothing, Error::Backup(BackupError::NotABackup { .. })),
        "{nothing}"
    );
}

#[test]
fn a_damaged_index_says_what_to_do() {
    let (env, sim, _clock) = Env::sim(8);
    let _store = support::store(&env);
    back_up(&env, false).expect("backs up");
    sim.damage(Path::new("/backup/BACKUP"), |bytes| bytes[70] ^= 1)
        .expect("damaged");
    let error = back_up(&env, false)
        .expect_err("its index is damaged")
        .to_string();
    assert!(
        error.contains("/backup") && error.contains("another directory"),
        "{error}"
    );
}

#[test]
fn a_backup_follows_one_history_of_a_store() {
    let (env, _sim, _clock) = Env::sim(8);
    let store = support::store(&env);
    back_up(&env, false).expect("backs up");
    bring_back(&env, "/twin").expect("restores");
    let twin = open(&env, "/twin");
    let of_twin = || {
        backup(
            &env,
            Path::new("/twin"),
            Path::new("/backup"),
            &how(false),
            &mut |_| {},
        )
    };
    of_twin().expect("the restored store may go on with the backup it came from");
    put(&store, 60);
    store.flush().expect("flushes");
    put(&twin, 61);
    put(&twin, 62);
    twin.flush().expect("flushes");
    of_twin().expect("a new file");
    let error = back_up(&env, false).expect_err("another file of that number");
    assert!(
        matches!(error, Error::Backup(BackupError::OtherHistory { .. })),
        "{error}"
    );
    bring_back(&env, "/again").expect("the twin's backup is whole");
    assert_eq!(records(&open(&env, "/again")), records(&twin));
}

#[test]
fn an_older_copy_of_the_store_does_not_replace_its_backup() {
    let (env, _sim, _clock) = Env::sim(9);
    let store = support::store(&env);
    back_up(&env, false).expect("backs up");
    bring_back(&env, "/old").expect("restores");
    put(&store, 60);
    store.flush().expect("flushes");
    back_up(&env, false).expect("brings what is new");
    let (old, dest) = (Path::new("/old"), Path::new("/backup"));
    let error = backup(&env, old, dest, &how(false), &mut |_| {}).expect_err("it goes back");
    assert!(
        matches!(error, Error::Backup(BackupError::OlderThanBackup { .. })),
        "{error}"
    );
    bring_back(&env, "/again").expect("the newer backup is whole");
    assert_eq!(records(&open(&env, "/again")), records(&store));
}
