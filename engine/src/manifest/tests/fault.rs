//! Goal: a failed call during a publish is either definite, and leaves no trace, or unknown,
//! and nothing more is touched. Mechanism: fail each operation of a publish once.

use super::super::{
    ManifestError, PublishError, create, load, load_read_only, publish, remove_obsolete,
};
use super::disk::Disk;
use super::store::{advance, healthy, manifest, store, write_data};

/// Each operation of the publish of generation 3 in turn fails once.
fn each_fault(mut check: impl FnMut(&Disk, &str, PublishError)) {
    let (base, expected) = healthy(2);
    for n in 0.. {
        let disk = base.fork();
        let next = write_data(&disk, &store(), 3).expect("data");
        let begun = disk.log().len();
        disk.set_fault(begun + n);
        let Err(error) = publish(&disk, &store(), &next) else {
            assert!(n >= 17, "a publish has at least 17 operations, saw {n}");
            assert_eq!(expected.len(), 2);
            break;
        };
        let failed = disk.log()[begun + n].clone();
        check(&disk, &failed, error);
    }
}

#[test]
fn a_failed_sync_or_rename_is_unknown_and_nothing_is_touched_after_it() {
    let mut unknown = 0;
    each_fault(|disk, failed, error| {
        let is_final = failed.starts_with("sync") || failed.starts_with("rename");
        assert_eq!(error.is_outcome_unknown(), is_final, "{failed}: {error}");
        if is_final {
            assert_eq!(
                disk.log().last().map(String::as_str),
                Some(failed),
                "something was done after it"
            );
            unknown += 1;
        }
        let generation = load(disk, &store()).expect("reopened").manifest.generation;
        assert!(
            generation == 2 || (is_final && generation == 3),
            "{failed}: {generation}"
        );
    });
    assert_eq!(unknown, 9, "3 directories, 3 files, 3 renames");
}

#[test]
fn a_definite_failure_leaves_no_trace_and_can_be_tried_again() {
    let mut definite = 0;
    each_fault(|disk, failed, error| {
        if error.is_outcome_unknown() {
            return;
        }
        assert!(
            matches!(error, PublishError::NotPublished { .. }),
            "{failed}: {error}"
        );
        for path in disk.files() {
            let name = path.to_string_lossy().into_owned();
            assert!(
                !name.ends_with(".tmp") && !name.contains("MANIFEST-0000000000000003"),
                "{failed}: {name} stays"
            );
        }
        let next = write_data(disk, &store(), 3).expect("data again");
        publish(disk, &store(), &next).unwrap_or_else(|error| panic!("{failed}: {error}"));
        assert_eq!(load(disk, &store()).expect("published").manifest, next);
        definite += 1;
    });
    assert_eq!(
        definite, 8,
        "2 x (create, write, seal), and create, write of the pointer"
    );
}

#[test]
fn the_order_is_data_copies_pointer() {
    let (disk, _) = healthy(1);
    let next = write_data(&disk, &store(), 2).expect("data");
    let begun = disk.log().len();
    publish(&disk, &store(), &next).expect("published");
    let log: Vec<String> = disk.log()[begun..]
        .iter()
        .map(|op| op.replace("MANIFEST-0000000000000002", "M"))
        .collect();
    let wanted = [
        "sync_dir /s/segments",
        "create /s/manifest/M.a.tmp",
        "write /s/manifest/M.a.tmp",
        "sync /s/manifest/M.a.tmp",
        "seal /s/manifest/M.a.tmp",
        "create /s/manifest/M.b.tmp",
        "write /s/manifest/M.b.tmp",
        "sync /s/manifest/M.b.tmp",
        "seal /s/manifest/M.b.tmp",
        "rename /s/manifest/M.a",
        "rename /s/manifest/M.b",
        "sync_dir /s/manifest",
        "create /s/CURRENT.tmp",
        "write /s/CURRENT.tmp",
        "sync /s/CURRENT.tmp",
        "rename /s/CURRENT",
        "sync_dir /s",
    ];
    assert_eq!(log, wanted);
}

#[test]
fn the_previous_generation_stays_until_the_next_publish() {
    let (disk, _) = healthy(3);
    let copies = |disk: &Disk| {
        disk.files()
            .iter()
            .filter(|path| path.starts_with("/s/manifest"))
            .count()
    };
    assert_eq!(copies(&disk), 6);
    assert_eq!(remove_obsolete(&disk, &store(), 3).expect("removed"), 2);
    assert_eq!(copies(&disk), 4);
    assert_eq!(
        remove_obsolete(&disk, &store(), 3).expect("nothing more"),
        0
    );
}

#[test]
fn a_publish_that_does_not_follow_current_is_refused_untouched() {
    let (disk, _) = healthy(2);
    let before = disk.log();
    for generation in [1, 2, 4] {
        let error = publish(&disk, &store(), &manifest(generation)).expect_err("out of order");
        assert!(
            matches!(
                error,
                PublishError::OutOfOrder {
                    current: Some(2),
                    ..
                }
            ),
            "{error}"
        );
    }
    let mut foreign = manifest(3);
    foreign.store_id[0] ^= 1;
    let error = publish(&disk, &store(), &foreign).expect_err("another store");
    assert!(
        matches!(
            error,
            PublishError::OutOfOrder {
                current: None,
                generation: 3
            }
        ),
        "{error}"
    );
    assert_eq!(disk.log(), before);
}

#[test]
fn a_read_only_load_changes_nothing() {
    let (disk, expected) = healthy(2);
    let before = disk.log();
    assert_eq!(
        load_read_only(&disk, &store()).expect("opens").manifest,
        expected[1]
    );
    assert_eq!(disk.log(), before);
}

#[test]
fn what_is_no_store_is_told_apart() {
    let load = |disk: &Disk| load_read_only(disk, &store()).expect_err("no store");
    let disk = Disk::default();
    assert!(matches!(load(&disk), ManifestError::Missing { .. }));
    chronolith_vfs::Vfs::create_dir(&disk, &store()).expect("made");
    assert!(matches!(load(&disk), ManifestError::EmptyDirectory { .. }));
    disk.put(&store().join("LOCK"), b"");
    assert!(matches!(load(&disk), ManifestError::EmptyDirectory { .. }));
    disk.put(&store().join("notes.txt"), b"mine");
    assert!(matches!(load(&disk), ManifestError::NotAStore { .. }));
    let error = create(&disk, &store(), &manifest(1)).expect_err("not empty");
    assert!(matches!(error, PublishError::NotEmpty { .. }), "{error}");
    disk.delete(&store().join("notes.txt"));
    advance(&disk, &store(), 1).expect("an empty directory with a lock becomes a store");
    let error = create(&disk, &store(), &manifest(1)).expect_err("already there");
    assert!(matches!(error, PublishError::NotEmpty { .. }), "{error}");

    // Only the pointer is gone: unfinished while nothing was written, damage afterwards.
    disk.delete(&store().join("CURRENT"));
    assert!(matches!(
        load(&disk),
        ManifestError::CreationUnfinished { .. }
    ));
    disk.put(&store().join("wal/0000000000000001.log"), b"a log");
    let error = load(&disk);
    assert!(
        matches!(error, ManifestError::CurrentMissing { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("repair"));
    let error = create(&disk, &store(), &manifest(1)).expect_err("there is data");
    assert!(matches!(error, PublishError::NotEmpty { .. }), "{error}");
}
