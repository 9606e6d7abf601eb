//! `backup` and `restore` on real directories: links, other processes' eyes, exit codes.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use crate::support::{Room, Run, chronolith, ids};

fn store(room: &Room) -> String {
    let store = room.store("store", &["--embedder", "none"]);
    ingest(room, &store, 0);
    store
}

fn ingest(room: &Room, store: &str, from: usize) {
    let line = |i| {
        format!("{{\"id\":\"{i}\",\"ts\":{i},\"scope\":\"s\",\"text\":\"record number {i}\"}}\n")
    };
    let lines: String = (from..from + 200).map(line).collect();
    chronolith(["ingest", store, &room.file("r.jsonl", lines)]).ends(0);
}

fn ask(store: &str, what: &str) -> Run {
    chronolith(["query", store, what, "--scope", "s", "--json"]).ends(0)
}

fn segments(dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("{dir}/segments")).expect("a directory");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "seg"));
    paths.sort();
    paths
}

fn inode(path: &PathBuf) -> u64 {
    fs::metadata(path).expect("there").ino()
}

#[test]
fn a_backup_comes_back_and_a_second_one_brings_only_what_is_new() {
    let room = Room::new();
    let (store, dest, new) = (store(&room), room.path("dest"), room.path("new"));
    let first = chronolith(["backup", &store, &dest, "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (first["point"].as_u64(), first["kept"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(
        inode(&segments(&store)[0]),
        inode(&segments(&dest)[0]),
        "linked"
    );
    ingest(&room, &store, 200);
    let second = chronolith(["backup", &store, &dest, "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (second["point"].as_u64(), second["kept"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!(second["linked"], 1);
    let restored = chronolith(["restore", &dest, &new, "--json"])
        .ends(0)
        .json();
    assert_eq!(restored["last_seq"], second["last_seq"]);
    assert_ne!(
        inode(&segments(&dest)[0]),
        inode(&segments(&new)[0]),
        "copied"
    );
    for what in ["record number 7", "record number 399"] {
        assert_eq!(ids(&ask(&new, what).json()), ids(&ask(&store, what).json()));
    }
    chronolith(["verify", &new]).ends(0);
    ingest(&room, &new, 400);
    let copy = chronolith(["backup", &new, &room.path("other"), "--copy"]).ends(0);
    assert!(copy.stdout.contains("verified"), "{copy:?}");
    assert_ne!(
        inode(&segments(&new)[0]),
        inode(&segments(&room.path("other"))[0])
    );
}

#[test]
fn damage_and_links_in_a_backup_end_with_3_and_the_files_name() {
    let room = Room::new();
    let (store, dest, new) = (store(&room), room.path("dest"), room.path("new"));
    chronolith(["backup", &store, &dest, "--copy"]).ends(0);
    let segment = segments(&dest).remove(0);
    let name = segment
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let whole = fs::read(&segment).expect("readable");
    let put = |bytes: &[u8]| {
        fs::remove_file(&segment).expect("removed");
        fs::write(&segment, bytes).expect("written");
    };
    let mut bad = whole.clone();
    bad[whole.len() / 2] ^= 1;
    put(&bad);
    chronolith(["restore", &dest, &new]).ends(3).says(name);
    put(&whole);
    let elsewhere = room.path("elsewhere");
    fs::rename(&segment, &elsewhere).expect("moved");
    symlink(&elsewhere, &segment).expect("linked");
    chronolith(["restore", &dest, &new]).ends(3).says(name);
    fs::remove_file(&segment).expect("removed");
    fs::rename(&elsewhere, &segment).expect("moved back");
    for dir in ["segments", "point-0000000000000001/wal"] {
        let (inside, outside) = (format!("{dest}/{dir}"), room.path("outside"));
        fs::rename(&inside, &outside).expect("moved");
        symlink(&outside, &inside).expect("linked");
        chronolith(["restore", &dest, &new]).ends(3).says(dir);
        fs::remove_file(&inside).expect("removed");
        fs::rename(&outside, &inside).expect("moved back");
    }
    assert!(!fs::exists(&new).expect("known"));
    chronolith(["restore", &dest, &new]).ends(0);
}

#[test]
fn a_place_that_is_taken_and_a_backup_that_is_none_are_refused() {
    let room = Room::new();
    let (store, dest) = (store(&room), room.path("dest"));
    chronolith(["backup", &room.path("nothing"), &dest]).ends(1);
    assert!(!fs::exists(&dest).expect("known"));
    let mine = room.path("mine");
    fs::create_dir(&mine).expect("made");
    room.file("mine/letter", "dear");
    chronolith(["backup", &store, &mine]).ends(1).says("letter");
    chronolith(["restore", &mine, &room.path("new")])
        .ends(1)
        .says("not a backup");
    chronolith(["backup", &store, &dest]).ends(0);
    chronolith(["restore", &dest, &store])
        .ends(1)
        .says("not empty");
    chronolith(["restore", &dest]).ends(2);
    let left = fs::read_dir(&mine).expect("there").count();
    assert_eq!(left, 1, "nothing was put beside the letter");
}
