//! Flipped bytes, files that are gone, torn, or not the engine's: each is named, and told by
//! what it means.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chronolith::manifest::SegmentEntry;
use chronolith::manifest::names::{DataKind, DataName};
use chronolith::{Error, FindingKind, Options, ReadOnlyStore, Store};
use chronolith_vfs::{Clock, RealClock};

use crate::*;

#[test]
fn a_store_with_a_sealed_catalog_is_sound_and_damage_in_it_is_served() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let options = Options {
        catalog_segments_min: 0,
        ..Options::default()
    };
    let store = Store::open(&path, options).expect("opens");
    let clock = RealClock::default();
    while ["opening", "catching up"]
        .map(Some)
        .contains(&store.stats().expect("counts").catalog.as_deref())
    {
        clock.sleep(Duration::from_millis(1));
    }
    store.close().expect("closes");
    let report = assert_healthy(&path);
    let sealed: Vec<&str> = report
        .files
        .iter()
        .filter(|f| f.holds == "catalog")
        .map(|f| &*f.file)
        .collect();
    assert!(sealed.len() > 2, "{sealed:?}");
    let catalog = path.join("catalog");
    for file in files_below(&catalog) {
        let before = fs::read(&file).expect("readable");
        if before.is_empty() {
            continue;
        }
        rewrite(&file, |bytes| {
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
        });
        let shown = file
            .strip_prefix(&path)
            .expect("inside")
            .to_str()
            .expect("text");
        let report = scrub(&path);
        finds(&report, FindingKind::Degraded, shown, "mismatch");
        assert_eq!(report.count(FindingKind::Damage), 0);
        rewrite(&file, |bytes| *bytes = before);
    }
    assert_healthy(&path);
    let gone = files_below(&catalog.join("db")).remove(0);
    let kept = fs::read(&gone).expect("readable");
    fs::remove_file(&gone).expect("removed");
    finds(
        &scrub(&path),
        FindingKind::Degraded,
        "catalog/db/",
        "missing",
    );
    fs::write(&gone, kept).expect("written");
    fs::write(catalog.join("db/more"), "x").expect("written");
    finds(
        &scrub(&path),
        FindingKind::Degraded,
        "catalog/db/more",
        "not among",
    );
}

#[test]
fn a_flipped_byte_in_any_file_is_found_there() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let needed: Vec<String> = assert_healthy(&path)
        .files
        .into_iter()
        .map(|file| file.file)
        .collect();
    let mut ends = Vec::new();
    for shown in needed {
        let file = path.join(&shown);
        let before = fs::read(&file).expect("readable");
        // A log's end is zeros: the middle of what was written.
        let used = before.iter().rposition(|b| *b != 0).expect("not empty");
        for at in [used / 5, used / 2, used] {
            rewrite(&file, |bytes| bytes[at] ^= 0x10);
            let report = scrub(&path);
            assert!(
                report.findings.iter().any(|f| f.file == shown || shown == "wal/STATUS" && f.file.starts_with("wal/")),
                "{shown} at {at}: {:?}",
                report.findings
            );
            // The very last frame may be a tail that a crash tore.
            let is_end = shown.ends_with(".log") && at == used;
            assert!(
                !report.is_ok() || is_end,
                "{shown} at {at}: {:?}",
                report.findings
            );
        }
        rewrite(&file, |bytes| *bytes = before);
        ends.push(shown.rsplit(['.', '/']).next().expect("a part").to_owned());
    }
    for end in ["CURRENT", "a", "b", "seg", "del", "tags", "log", "STATUS"] {
        assert!(ends.iter().any(|seen| seen == end), "{end}: {ends:?}");
    }
    assert_healthy(&path);
}

#[test]
fn damage_is_told_from_what_is_served_all_the_same() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let generation = assert_healthy(&path).generation;
    let flip = |bytes: &mut Vec<u8>| {
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
    };
    let copy = |end: &str| path.join(format!("manifest/MANIFEST-{generation:016x}.{end}"));
    let whole = fs::read(copy("a")).expect("readable");
    rewrite(&copy("a"), flip);
    let report = scrub(&path);
    finds(&report, FindingKind::Degraded, ".a", "");
    assert_eq!(report.count(FindingKind::Damage), 0);
    assert!(
        !report.is_ok(),
        "a spare copy is gone, and somebody must know"
    );
    fs::remove_file(copy("a")).expect("removed");
    finds(&scrub(&path), FindingKind::Degraded, ".a", "missing");

    // Both copies: segments are verified by their own account, and more than one finding comes.
    rewrite(&copy("b"), flip);
    let segment = path.join(name(&entries_without(&path)[0]));
    let whole_segment = fs::read(&segment).expect("readable");
    rewrite(&segment, |bytes| bytes[200] ^= 1);
    let report = scrub(&path);
    finds(&report, FindingKind::Damage, ".a", "missing");
    finds(&report, FindingKind::Damage, ".b", "");
    finds(&report, FindingKind::Damage, ".seg", "");
    rewrite(&segment, |bytes| *bytes = whole_segment);
    for end in ["a", "b"] {
        fs::write(copy(end), &whole)
            .unwrap_or_else(|_| rewrite(&copy(end), |bytes| *bytes = whole.clone()));
    }
    assert_healthy(&path);

    // A status that was never synced: without it nobody else sees what the log alone holds.
    let status = path.join("wal/STATUS");
    let is_degraded = || {
        let report = scrub(&path);
        finds(
            &report,
            FindingKind::Degraded,
            "wal/STATUS",
            "missing, short",
        );
        assert!(!report.is_ok());
        let read = ReadOnlyStore::open(&path, options()).map(drop);
        assert!(matches!(read, Err(Error::Behind { .. })), "{read:?}");
    };
    rewrite(&status, |bytes| bytes.fill(0));
    is_degraded();
    fs::remove_file(&status).expect("removed");
    is_degraded();

    // Where segments have it all, nothing is hidden.
    let store = Store::open(&path, options()).expect("opens");
    store.close().expect("closes");
    fs::remove_file(&status).expect("removed");
    let report = scrub(&path);
    finds(&report, FindingKind::Tail, "wal/STATUS", "missing, short");
    assert!(report.is_ok());
    ReadOnlyStore::open(&path, options()).expect("is read");
}

/// Puts something else under the name of a file.
fn replace_by(kind: &str, path: &Path) {
    fs::remove_file(path).expect("removed");
    match kind {
        "pipe" => {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo runs").success());
        }
        "socket" => drop(UnixListener::bind(path).expect("bound")),
        "directory" => fs::create_dir(path).expect("made"),
        _ => {
            fs::write(path, b"secret").expect("written");
            fs::set_permissions(path, Permissions::from_mode(0o000)).expect("set");
        }
    }
}

#[test]
fn what_is_no_file_or_cannot_be_read_is_found_and_nothing_waits_for_it() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let whole = temp.path().join("whole");
    full_store(&whole);
    let named = scrub(&whole).files.into_iter();
    let names: Vec<PathBuf> = named.map(|file| PathBuf::from(file.file)).collect();
    assert!(names.len() > 6, "{names:?}");
    let probe = temp.path().join("probe");
    fs::write(&probe, b"").expect("written");
    fs::set_permissions(&probe, Permissions::from_mode(0o000)).expect("set");
    let kinds: &[&str] = match fs::read(&probe) {
        Ok(_) => {
            println!("skipped: a file without the right to read it: this user may read all");
            &["pipe", "socket", "directory"]
        }
        Err(_) => &["pipe", "socket", "directory", "secret"],
    };
    for (at, name) in names.iter().enumerate() {
        for kind in kinds {
            let path = temp.path().join(format!("{kind}-{at}"));
            copy_all(&whole, &path);
            let file = path.join(name);
            replace_by(kind, &file);
            let report = verify(&path, &options(), &mut |_| {}).expect("a scrub goes on");
            let what = format!("{kind} as {}: {:?}", name.display(), report.findings);
            let shown = name.display().to_string();
            let is_named = |f: &VerifyFinding| f.file == shown || f.message.contains("missing");
            assert!(
                !report.is_ok() && report.findings.iter().any(is_named),
                "{what}"
            );
            // It ends, whatever it says; one manifest copy alone is enough.
            if let Err(error) = Store::open(&path, options()) {
                let text = error.to_string();
                let file_name = name.file_name().expect("a name").to_string_lossy();
                let stem = file_name.trim_end_matches(".a").trim_end_matches(".b");
                assert!(text.contains(stem), "{what}: {text}");
            }
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("known").is_dir() {
            true => copy_all(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("copied")),
        }
    }
}

/// Segment entries read from a store whose manifest copies are gone: by name.
fn entries_without(path: &Path) -> Vec<SegmentEntry> {
    let of_name = |file: &PathBuf| {
        let name = DataName::parse(file.file_name()?.to_str()?)?;
        (name.kind == DataKind::Segment).then_some(SegmentEntry {
            file_number: name.file_number,
            bytes: 0,
            digest: 0,
            level: 0,
            bucket_start_us: 0,
            bucket_end_us: 0,
            rows: 0,
            first_seq: 0,
            last_seq: 0,
            event_time_min_us: 0,
            event_time_max_us: 0,
            deletes: None,
        })
    };
    files_below(&path.join("segments"))
        .iter()
        .filter_map(of_name)
        .collect()
}

#[test]
fn every_damaged_or_missing_file_is_named_not_the_first_alone() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let segments = entries(&path);
    assert!(segments.len() >= 2);
    fs::remove_file(path.join(name(&segments[0]))).expect("removed");
    rewrite(&path.join(name(&segments[1])), |bytes| bytes[100] ^= 1);
    let side = segments
        .iter()
        .find_map(|entry| entry.deletes)
        .expect("a delete set");
    let side = DataName::new(side.file_number, DataKind::Deletes).shown();
    fs::remove_file(path.join(&side)).expect("removed");
    let logs: Vec<PathBuf> = files_below(&path.join("wal"))
        .into_iter()
        .filter(|p| p.extension().is_some())
        .collect();
    rewrite(logs.last().expect("a log"), |bytes| bytes[20] ^= 1);
    let report = scrub(&path);
    finds(&report, FindingKind::Damage, &name(&segments[0]), "missing");
    finds(&report, FindingKind::Damage, &name(&segments[1]), "");
    finds(&report, FindingKind::Damage, &side, "missing");
    finds(&report, FindingKind::Damage, ".log", "file header damaged");
    fs::remove_file(logs.last().expect("a log")).expect("removed");
    finds(&scrub(&path), FindingKind::Damage, ".log", "missing");
}

#[test]
fn a_torn_end_of_the_log_is_a_tail_and_damage_before_it_is_damage() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    let store = Store::open(&path, options()).expect("opens");
    for number in 200..204 {
        write(&store, number..number + 1, T0);
    }
    drop(store);
    let logs = files_below(&path.join("wal"));
    let log = logs
        .iter()
        .rfind(|p| p.extension().is_some())
        .expect("a log");
    let whole = fs::read(log).expect("readable");
    let used = whole.iter().rposition(|b| *b != 0).expect("not empty") + 1;
    rewrite(log, |bytes| {
        bytes.truncate(used.next_multiple_of(8));
        bytes.extend([0xab; 40]);
    });
    let report = scrub(&path);
    let tail = finds(&report, FindingKind::Tail, ".log", "next open drops");
    assert_eq!(tail.offset, Some(used.next_multiple_of(8) as u64));
    assert!(report.is_ok(), "{:?}", report.findings);
    rewrite(log, |bytes| {
        *bytes = whole;
        bytes[used / 2] ^= 1;
    });
    damaged(&path, ".log", "cannot be read");
}

#[test]
fn names_that_the_engine_does_not_make_are_reported_and_leftovers_listed() {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("store");
    full_store(&path);
    for foreign in [
        "notes.txt",
        "segments/1.seg",
        "manifest/x",
        "wal/old.log",
        "catalog",
    ] {
        match foreign {
            "catalog" => {
                fs::create_dir_all(path.join("catalog")).expect("made");
                fs::write(path.join("catalog/y"), "").expect("written");
            }
            name => fs::write(path.join(name), "x").expect("written"),
        }
    }
    let own = [
        "CURRENT.tmp",
        "segments/00000000000000ff.seg.tmp",
        "segments/0000000000000fff.del",
        "wal/00000000000000ff.log.tmp",
    ];
    for leftover in own {
        fs::write(path.join(leftover), "x").expect("written");
    }
    let report = scrub(&path);
    for foreign in [
        "notes.txt",
        "segments/1.seg",
        "manifest/x",
        "wal/old.log",
        "catalog/y",
    ] {
        finds(&report, FindingKind::Extra, foreign, "not a name");
    }
    assert_eq!(report.findings.len(), 5);
    assert!(report.is_ok());
    assert_eq!(report.leftovers.len(), own.len(), "{:?}", report.leftovers);
}
