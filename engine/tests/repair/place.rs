//! What is a repair not to touch, and what must it not take for something else?

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chronolith::{BackupOptions, Error, RepairError, backup};
use chronolith_vfs::{Errno, FaultRule, FaultVfs, OpKind, Vfs};

use crate::bed::{Bed, FIXED, STORE, check, history, options};

const BUILDING: &str = "/fixed.chronolith-repair";

fn write(bed: &Bed, path: &Path, bytes: &[u8]) {
    let file = bed.vfs.create_new(path).expect("made");
    file.write_all_at(bytes, 0).expect("written");
}

fn building(bed: &Bed) -> Vec<PathBuf> {
    let files = bed.vfs.files().into_iter();
    files.filter(|path| path.starts_with(BUILDING)).collect()
}

#[test]
fn a_directory_that_no_repair_left_is_not_removed() {
    let bed = history(31, 20);
    let foreign: [(&str, &[u8]); 4] = [
        ("thesis.txt", b"two years of work"),
        ("REPAIR", b"how to repair the bicycle"),
        ("LOCK", b"not empty"),
        ("CURRENT", b""),
    ];
    for (name, bytes) in foreign {
        let taken = bed.fork();
        taken.vfs.create_dir(Path::new(BUILDING)).expect("made");
        let path = Path::new(BUILDING).join(name);
        write(&taken, &path, bytes);
        let refused = taken.repair().expect_err("in the way");
        assert!(
            matches!(
                refused,
                Error::Repair(RepairError::NotALeftover { ref path }) if path == Path::new(BUILDING)
            ),
            "{name}: {refused}"
        );
        assert!(refused.to_string().contains(BUILDING), "{refused}");
        assert_eq!(building(&taken), std::slice::from_ref(&path), "{name}");
        assert_eq!(taken.vfs.content(&path).expect("there"), bytes);
    }
    bed.vfs.create_dir(Path::new(BUILDING)).expect("made");
    let report = bed.repair().expect("an empty directory will do");
    check(&bed, &report, "empty directory");
    let left = bed.vfs.kind(Path::new(BUILDING)).expect_err("taken away");
    assert_eq!(left.kind(), ErrorKind::NotFound);
}

#[test]
fn a_second_repair_to_one_place_waits_for_the_first() {
    let bed = history(32, 20);
    let mut refused = None;
    let options = chronolith::RepairOptions {
        env: bed.env.clone(),
        ..Default::default()
    };
    let report = chronolith::repair(STORE, FIXED, &options, &mut |_| {
        refused.get_or_insert_with(|| bed.repair().expect_err("the first one builds there"));
    });
    let report = report.expect("the first one is not disturbed");
    check(&bed, &report, "the first one");
    let refused = refused.expect("asked");
    assert!(
        matches!(refused, Error::Repair(RepairError::InProgress { .. })),
        "{refused}"
    );
}

#[test]
fn a_refused_repair_leaves_nothing_beside_the_destination() {
    let bed = history(33, 20);
    let faults = FaultVfs::over_sim(&bed.vfs);
    let rule = FaultRule::error(Errno::TooManyFiles).on(OpKind::OpenRead);
    faults.add(rule.at_path("/store/wal/").forever());
    let mut bed = bed;
    bed.env = bed.env.with_vfs(faults);
    bed.repair().expect_err("no descriptors");
    assert!(building(&bed).is_empty());
}

#[test]
fn a_directory_that_cannot_be_listed_ends_the_repair() {
    for dir in ["/store/segments", "/store/wal", "/store/manifest"] {
        for errno in [Errno::Io, Errno::TooManyFiles] {
            let mut bed = history(34, 20);
            let faults = FaultVfs::over_sim(&bed.vfs);
            faults.add(
                FaultRule::error(errno)
                    .on(OpKind::List)
                    .at_path(dir)
                    .forever(),
            );
            bed.env = bed.env.with_vfs(faults);
            let refused = bed.repair().expect_err("not an empty directory");
            let name = dir.trim_start_matches("/store/");
            assert!(refused.to_string().contains(name), "{refused}");
            assert!(bed.vfs.list(Path::new(FIXED)).is_err(), "{dir}");
        }
    }
}

#[test]
fn a_backup_is_sent_to_restore() {
    let bed = history(35, 20);
    let at = Path::new("/store-copy");
    let copies = BackupOptions::copies();
    backup(&bed.env, Path::new(STORE), at, &copies, &mut |_| {}).expect("backs up");
    let repair_options = chronolith::RepairOptions {
        env: bed.env.clone(),
        ..Default::default()
    };
    let refused = chronolith::repair(at, FIXED, &repair_options, &mut |_| {});
    let refused = refused.expect_err("a backup");
    assert!(
        matches!(refused, Error::Repair(RepairError::IsBackup { .. })),
        "{refused}"
    );
    assert!(refused.to_string().contains("chronolith restore"));
    let opened = chronolith::Setup::of_store(at, &options(&bed.env)).expect_err("no store");
    assert!(
        opened.to_string().contains("chronolith restore"),
        "{opened}"
    );
}
