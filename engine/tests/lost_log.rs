//! Is a loss named that takes the newest log file and `STATUS` at once?

use std::path::{Path, PathBuf};

use chronolith::{
    BackupOptions, Batch, Error, FindingKind, Maintenance, Options, ReadOnlyStore, Record,
    RepairOptions, Scope, Setup, Store, backup, repair, verify,
};
use chronolith_vfs::{Env, SimVfs, Vfs};
use chronolith_wal::WalError;

const DIR: &str = "/store";
const TIME_US: i64 = 1_700_000_000_000_000;

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        log_preallocate_bytes: 0,
        log_file_bytes_max: 1 << 10,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

fn put(store: &Store, id: &str) -> u64 {
    let mut batch = Batch::new();
    let scope = Scope::parse("a").expect("a scope");
    batch.upsert(Record::new(scope, id, TIME_US, "a text ".repeat(20)));
    store.write(batch).expect("written").last_seq
}

fn logs(disk: &SimVfs) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    disk.files().into_iter().filter(is_log).collect()
}

/// Loses the newest log file and `STATUS`; returns the file's name and the seqs in it.
fn lose(disk: &SimVfs, seqs: &[u64]) -> (String, u64) {
    let newest = logs(disk).pop().expect("a log");
    let held: Vec<u64> = {
        let (env, _, _) = Env::sim(1);
        let env = env.with_vfs(disk.clone());
        let name = newest
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let number = chronolith_wal::parse_log_name(&name).expect("a log");
        let dir = newest.parent().expect("a directory");
        let id = chronolith_wal::peek_store_id(&env, dir, number).expect("whole");
        let found = chronolith_wal::salvage_log(&env, dir, id, 0).expect("lists");
        let frames = found.frames.iter().filter(|frame| frame.file == number);
        frames.map(|frame| frame.first_seq).collect()
    };
    let first = *held.first().expect("it holds a batch");
    assert!(seqs.contains(&first), "{first} of {seqs:?}");
    disk.remove_file(&newest).expect("removed");
    disk.remove_file(&Path::new(DIR).join("wal/STATUS"))
        .expect("removed");
    let name = newest
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    (name, first)
}

fn is_named(error: &Error, name: &str, first: u64) -> bool {
    matches!(
        error,
        Error::Log(WalError::SuccessorMissing { file, first_seq, .. })
            if file.ends_with(name) && *first_seq <= first
    )
}

/// Lost is a file that a rotation began, and one that an open did.
#[test]
fn the_newest_log_file_and_status_lost_together_are_named_by_everyone() {
    for reopened in [false, true] {
        let (env, disk, clock) = Env::sim(5);
        clock.set_us(TIME_US);
        let mut store = Store::open(DIR, options(&env)).expect("opens");
        let mut seqs: Vec<u64> = (0..8).map(|n| put(&store, &format!("{n}"))).collect();
        assert!(logs(&disk).len() > 1, "the log rotates");
        if reopened {
            drop(store);
            store = Store::open(DIR, options(&env)).expect("opens");
            seqs.push(put(&store, "after"));
        }
        drop(store);
        let (name, first) = lose(&disk, &seqs);

        let refused = Store::open(DIR, options(&env)).expect_err("a loss");
        assert!(is_named(&refused, &name, first), "open: {refused}");
        let refused = ReadOnlyStore::open(DIR, options(&env)).expect_err("a loss");
        assert!(is_named(&refused, &name, first), "read-only: {refused}");
        let path = format!("{DIR}/wal/{name}");
        assert!(refused.to_string().contains(&path), "{refused}");
        assert!(
            refused.to_string().contains("restore a backup"),
            "{refused}"
        );
        let to = BackupOptions::default();
        let refused = backup(&env, DIR.as_ref(), "/backup".as_ref(), &to, &mut |_| {});
        let refused = refused.expect_err("a loss");
        assert!(is_named(&refused, &name, first), "backup: {refused}");

        let report = verify(DIR, &options(&env), &mut |_| {}).expect("runs");
        let file = format!("wal/{name}");
        let mut findings = report.findings.iter();
        assert!(
            findings.any(|f| f.kind == FindingKind::Damage && f.file == file),
            "{:?}",
            report.findings
        );
        let how = RepairOptions {
            env: env.clone(),
            ..RepairOptions::default()
        };
        let report = repair(DIR, "/fixed", &how, &mut |_| {}).expect("repairs");
        assert!(!report.is_complete());
        let lost = report
            .missing
            .iter()
            .find(|lost| lost.file.as_ref() == Some(&file));
        let lost = lost.unwrap_or_else(|| panic!("{report:#?}"));
        assert!(lost.first_seq.is_some_and(|seq| seq <= first), "{lost:?}");
        assert_eq!(lost.last_seq, None, "nothing says how many");
        assert_eq!(report.log_unproven_after, None, "{report:#?}");
        let survivors = Store::open("/fixed", options(&env)).expect("opens");
        let expected = seqs.iter().filter(|seq| **seq < first).count();
        assert_eq!(survivors.stats().expect("counts").records, expected as u64);
    }
}

/// A reader that is open when the loss happens says so at its next refresh.
#[test]
fn a_reader_that_was_open_names_the_loss_too() {
    let (env, disk, clock) = Env::sim(6);
    clock.set_us(TIME_US);
    let store = Store::open(DIR, options(&env)).expect("opens");
    let seqs: Vec<u64> = (0..4).map(|n| put(&store, &format!("{n}"))).collect();
    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("opens");
    let more: Vec<u64> = (4..12).map(|n| put(&store, &format!("{n}"))).collect();
    drop(store);
    let (name, first) = lose(&disk, &[seqs, more].concat());
    let refused = reader.refresh().expect_err("a loss");
    assert!(is_named(&refused, &name, first), "{refused}");
}

/// A backup that is made while the log has one file, and then gets more, restores whole.
#[test]
fn a_copy_says_of_no_file_that_is_not_in_it() {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(TIME_US);
    let store = Store::open(DIR, options(&env)).expect("opens");
    put(&store, "0");
    let to = BackupOptions::default();
    for round in 0..3 {
        store
            .backup("/backup", &to, &mut |_| {})
            .expect("backed up");
        for n in 0..8 {
            put(&store, &format!("{round}-{n}"));
        }
    }
    store
        .backup("/backup", &to, &mut |_| {})
        .expect("backed up");
    drop(store);
    assert!(logs(&disk).len() > 2);
    chronolith::restore(&env, "/backup".as_ref(), "/restored".as_ref(), &mut |_| {})
        .expect("restores");
    let restored = Store::open("/restored", options(&env)).expect("opens");
    assert_eq!(restored.stats().expect("counts").records, 25);
}

/// `STATUS` is never synced: what a power cut leaves of it may say that the log ended before the
/// file that is lost.
#[test]
fn a_repair_without_the_newest_log_file_is_not_complete_whatever_an_old_status_says() {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(TIME_US);
    let store = Store::open(DIR, options(&env)).expect("opens");
    let mut seqs = vec![put(&store, "first")];
    let path = Path::new(DIR).join("wal/STATUS");
    let old = disk.content(&path).expect("there");
    seqs.extend((0..8).map(|n| put(&store, &format!("{n}"))));
    drop(store);
    let (name, first) = lose(&disk, &seqs);
    let file = disk.create_new(&path).expect("made");
    file.write_all_at(&old, 0).expect("written");

    let refused = Store::open(DIR, options(&env)).expect_err("a loss");
    assert!(is_named(&refused, &name, first), "{refused}");
    let how = RepairOptions {
        env: env.clone(),
        ..RepairOptions::default()
    };
    let report = repair(DIR, "/fixed", &how, &mut |_| {}).expect("repairs");
    assert!(!report.is_complete(), "{report:#?}");
    let file = Some(format!("wal/{name}"));
    let lost = report.missing.iter().find(|lost| lost.file == file);
    let lost = lost.unwrap_or_else(|| panic!("{report:#?}"));
    assert_eq!((lost.first_seq, lost.last_seq), (Some(first), None));
}
