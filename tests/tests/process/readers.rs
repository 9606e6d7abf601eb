//! What does a reader in another process see, and does it ever write?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use chronolith::{Error, Options, ReadMode, ReadOnlyStore, Request, ScopeSelector, Store};
use chronolith_tests::data::read;
use chronolith_tests::kills::{Child, Lane, Said, Script, child_options, found};
use chronolith_vfs::{Env, Errno, FaultRule, FaultVfs, OpKind, RealVfs, Vfs};

/// What every writer here writes.
const LANE: Lane = Lane { seed: 77, index: 0 };
/// Kinds of operation that change a disk.
const CHANGING: [OpKind; 10] = [
    OpKind::OpenWrite,
    OpKind::Create,
    OpKind::Write,
    OpKind::SetLen,
    OpKind::Rename,
    OpKind::Remove,
    OpKind::RemoveDir,
    OpKind::CreateDir,
    OpKind::Seal,
    OpKind::Lock,
];

/// Path and content of every file below a directory.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in RealVfs::new().list(dir).expect("listed") {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => all.extend(contents(&path)),
            false => drop(all.insert(path.clone(), read(&path))),
        }
    }
    all
}

fn start(dir: &Path) -> Child {
    Child::start(
        env!("CARGO_BIN_EXE_kill_child"),
        dir,
        LANE.seed,
        Script::Write,
    )
}

/// Follows a writer: after each acknowledgement it must see that batch, whole.
fn follow(mut writer: Child, reader: &ReadOnlyStore, acks: u64) -> (Child, u64) {
    let (mut seq_before, mut last) = (reader.snapshot().seq(), 0);
    let mut seen = 0;
    while seen < acks {
        let Said::Acked {
            number, last_seq, ..
        } = writer.listen().expect("a child that lives")
        else {
            continue;
        };
        (seen, last) = (seen + 1, number);
        // Not after every one: the writer runs ahead, flushes and compacts.
        if seen % 5 != 0 {
            continue;
        }
        reader.refresh().expect("refreshes beside a writer");
        let snapshot = reader.snapshot();
        assert!(snapshot.seq() >= seq_before, "went back");
        assert!(
            snapshot.seq() >= last_seq,
            "batch {number} was acknowledged and is not seen"
        );
        seq_before = snapshot.seq();
        let records = found(&snapshot).expect("readable");
        let shown = LANE.last_batch(&records);
        assert!(shown >= Some(number));
        assert_eq!(records, LANE.expected(shown), "a batch is there in part");
    }
    (writer, last)
}

#[test]
fn a_reader_follows_a_writer_through_flush_compaction_close_and_death() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let mut writer = start(&dir);
    assert!(matches!(writer.listen(), Some(Said::Open { .. })));
    let options = || Options {
        read_mode: ReadMode::Positioned,
        ..Options::default()
    };
    let positioned = ReadOnlyStore::open(&dir, options()).expect("opens beside a writer");
    let reader = ReadOnlyStore::open(&dir, Options::default()).expect("opens beside a writer");
    let held = reader.snapshot();
    let held_before = found(&held).expect("readable");

    let (writer, _) = follow(writer, &reader, 200);
    let generation = reader.stats().expect("counts").generation;
    assert!(
        generation > 4,
        "only generation {generation}: nothing was flushed"
    );
    // A second writer is kept out.
    let second = Store::open(&dir, child_options()).expect_err("two writers");
    assert!(matches!(second, Error::Locked { .. }), "{second}");

    let acked = writer.kill().into_iter().filter_map(number_of).next_back();
    reader
        .refresh()
        .expect("refreshes after the writer's death");
    let after_death = found(&reader.snapshot()).expect("readable");
    let last = LANE.last_batch(&after_death);
    assert!(last >= acked);
    assert_eq!(after_death, LANE.expected(last));

    // The next writer finds at least what the reader was shown, and goes on.
    let store = Store::open(&dir, child_options()).expect("opens");
    let first = LANE.last_batch(&found(&store.snapshot()).expect("readable"));
    assert!(first >= last, "a reader was shown what recovery dropped");
    drop(store);
    let (writer, _) = follow(start(&dir), &reader, 60);
    let said = writer.close();
    assert_eq!(said.last(), Some(&Said::Closed));
    let acked = said.into_iter().filter_map(number_of).next_back();
    for reader in [&reader, &positioned] {
        reader.refresh().expect("refreshes after a close");
        let records = found(&reader.snapshot()).expect("readable");
        assert!(LANE.last_batch(&records) >= acked);
        assert_eq!(records, LANE.expected(LANE.last_batch(&records)));
    }
    assert_eq!(
        found(&held).expect("readable"),
        held_before,
        "a held snapshot changed"
    );
}

fn number_of(said: Said) -> Option<u64> {
    match said {
        Said::Acked { number, .. } => Some(number),
        _ => None,
    }
}

/// A store with segments, deletes and a log that is not flushed.
fn small_store(dir: &Path) -> u64 {
    let store = Store::open(dir, child_options()).expect("created");
    for number in 0..40 {
        store.write(LANE.batch(number)).expect("written");
        if number == 30 {
            store.flush().expect("flushed");
        }
    }
    39
}

/// Everything a reader can be asked.
fn use_reader(dir: &Path, options: Options, last: u64) {
    let reader = ReadOnlyStore::open(dir, options).expect("opens");
    assert_eq!(
        found(&reader.snapshot()).expect("readable"),
        LANE.expected(Some(last))
    );
    let request = Request::within(ScopeSelector::parse("user").expect("a scope")).text("batch 39");
    assert_eq!(reader.retrieve(&request).expect("answers").hits.len(), 10);
    assert!(
        reader
            .get(&LANE.scope(0), "head")
            .expect("readable")
            .is_some()
    );
    reader.refresh().expect("refreshes");
    reader.stats().expect("counts");
}

#[test]
fn a_reader_changes_no_byte_and_asks_for_no_change() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let last = small_store(&dir);
    let before = contents(&dir);
    for read_mode in [ReadMode::Mapped, ReadMode::Positioned] {
        let faults = FaultVfs::new(std::sync::Arc::new(RealVfs::new()));
        for kind in CHANGING {
            faults.add(FaultRule::error(Errno::ReadOnly).on(kind).forever());
        }
        let env = Env::real().with_vfs(faults.clone());
        use_reader(
            &dir,
            Options {
                read_mode,
                env,
                ..Options::default()
            },
            last,
        );
        assert_eq!(faults.hits(), 0, "a reader tried to change the disk");
    }
    assert_eq!(contents(&dir), before);
}

#[test]
fn a_reader_works_beside_a_writer_in_the_same_process() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = Store::open(&dir, child_options()).expect("created");
    let reader = ReadOnlyStore::open(&dir, Options::default()).expect("opens");
    for number in 0..80 {
        store.write(LANE.batch(number)).expect("written");
        assert!(
            reader.refresh().expect("refreshes"),
            "batch {number} is not seen"
        );
        let records = found(&reader.snapshot()).expect("readable");
        assert_eq!(records, LANE.expected(Some(number)));
        assert!(
            !reader.refresh().expect("refreshes"),
            "saw a commit where there was none"
        );
    }
    let second = Store::open(&dir, Options::default()).expect_err("two writers");
    assert!(matches!(second, Error::Locked { .. }), "{second}");
}

/// Origin: kuzudb/kuzu/issues/2276, Dicklesworthstone/frankensqlite/issues/140.
#[test]
fn a_read_only_mount_is_read_and_a_writer_on_it_gets_a_clear_error() {
    let root = tempfile::tempdir().expect("a directory");
    let (dir, mount) = (root.path().join("store"), root.path().join("mount"));
    let last = small_store(&dir);
    RealVfs::new().create_dir(&mount).expect("created");
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).arg(&mount).output();
        done.is_ok_and(|done| done.status.success())
    };
    let source = dir.to_str().expect("a path in UTF-8");
    let bound = run("mount", &["--bind", source]);
    let read_only = bound && run("mount", &["-o", "remount,bind,ro"]);
    if read_only {
        let before = contents(&mount);
        use_reader(&mount, Options::default(), last);
        let refused = Store::open(&mount, Options::default()).expect_err("a read-only mount");
        assert!(refused.to_string().contains("LOCK"), "{refused}");
        assert_eq!(contents(&mount), before);
    } else {
        println!("skipped: no mount here");
    }
    if bound {
        assert!(run("umount", &[]), "still mounted");
    }
    if read_only {
        println!("read through a read-only mount");
    }
}

#[test]
fn a_read_only_directory_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let last = small_store(&dir);
    let chmod = |mode: u32| {
        for path in [
            dir.clone(),
            dir.join("wal"),
            dir.join("segments"),
            dir.join("manifest"),
        ] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, permissions).expect("permitted");
        }
    };
    chmod(0o500);
    use_reader(&dir, Options::default(), last);
    chmod(0o700);
}
