//! `repair` writes a new store, says what is missing, and leaves the old one alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{Room, chronolith};

/// 200 flushed records, three of them forgotten, 20 more in a second segment.
fn store(room: &Room) -> String {
    let store = room.store("store", &["--embedder", "none"]);
    let line = |i: usize| {
        format!("{{\"id\":\"{i}\",\"ts\":{i},\"scope\":\"s\",\"text\":\"secretive record {i}\"}}\n")
    };
    let first: String = (0..200).map(line).collect();
    chronolith(["ingest", &store, &room.file("a.jsonl", first)]).ends(0);
    for id in ["3", "4", "5"] {
        chronolith(["forget", &store, id, "--scope", "s"]).ends(0);
    }
    let second: String = (200..220).map(line).collect();
    chronolith(["ingest", &store, &room.file("b.jsonl", second)]).ends(0);
    store
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let bytes = std::fs::read(&path).expect("readable");
                found.insert(path, bytes);
            }
        }
    }
    found
}

fn exported(room: &Room, store: &str) -> Vec<String> {
    let out = room.path("out.jsonl");
    let out = out.as_str();
    chronolith(["export", store, "-o", out]).ends(0);
    let text = std::fs::read_to_string(out).expect("readable");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_lost_manifest_is_rebuilt_and_deletes_stay() {
    let room = Room::new();
    let store = store(&room);
    let before = exported(&room, &store);
    assert_eq!(before.len(), 217);
    for entry in std::fs::read_dir(format!("{store}/manifest")).expect("a directory") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    std::fs::remove_file(format!("{store}/CURRENT")).expect("removed");
    chronolith(["query", &store, "record", "--scope", "/"]).ends(3);
    let bytes = files(Path::new(&store));
    let fixed = room.path("fixed");
    let report = chronolith(["repair", &store, &fixed, "--json"])
        .ends(3)
        .json();
    // Everything is back, and nothing can say so: a delete set may be gone too.
    assert_eq!(report["ok"], false);
    assert_eq!(report["missing"], serde_json::json!([]));
    assert!(report["deletes_at_risk"][0]["first_seq"].is_u64());
    assert_eq!(report["manifest"], "rebuilt");
    assert_eq!(report["records"], 217);
    assert_eq!(files(Path::new(&store)), bytes, "not one byte changed");
    let _ = std::fs::remove_file(room.path("out.jsonl"));
    assert_eq!(exported(&room, &fixed), before);
    chronolith(["verify", &fixed]).ends(0);
}

#[test]
fn a_log_that_is_gone_ends_with_three() {
    let room = Room::new();
    let store = store(&room);
    std::fs::remove_dir_all(format!("{store}/wal")).expect("removed");
    let run = chronolith(["repair", &store, &room.path("fixed")]).ends(3);
    assert!(run.stdout.contains("NOT COMPLETE"), "{run:#?}");
}

#[test]
fn a_backup_and_a_directory_in_the_way_are_refused() {
    let room = Room::new();
    let store = store(&room);
    let (copy, fixed) = (room.path("copy"), room.path("fixed"));
    chronolith(["backup", &store, &copy]).ends(0);
    chronolith(["repair", &copy, &fixed])
        .ends(1)
        .says("chronolith restore");
    let other = format!("{fixed}.chronolith-repair");
    std::fs::create_dir(&other).expect("made");
    let thesis = format!("{other}/thesis.txt");
    std::fs::write(&thesis, "two years of work").expect("written");
    chronolith(["repair", &store, &fixed])
        .ends(1)
        .says("move it away");
    assert!(Path::new(&thesis).exists());
    std::fs::remove_dir_all(&other).expect("removed");
    chronolith(["repair", &store, &fixed]).ends(0);
    assert!(!Path::new(&other).exists());
}

#[test]
fn what_is_lost_ends_with_three_and_shows_no_content() {
    let room = Room::new();
    let store = store(&room);
    let segment = files(Path::new(&store))
        .into_keys()
        .find(|path| path.extension().is_some_and(|end| end == "seg"))
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("readable");
    let end = bytes.len() - 60;
    bytes[end] ^= 1;
    std::fs::remove_file(&segment).expect("removed");
    std::fs::write(&segment, bytes).expect("written");
    let fixed = room.path("fixed");
    let run = chronolith(["repair", &store, &fixed]).ends(3);
    assert!(run.stdout.contains("NOT COMPLETE"), "{run:#?}");
    assert!(!run.stdout.contains("secretive"), "{run:#?}");
    let left = exported(&room, &fixed);
    assert!(!left.is_empty() && left.len() < 217, "{}", left.len());
    // The place is taken now, and nothing is overwritten.
    chronolith(["repair", &store, &fixed])
        .ends(1)
        .says("not empty");
    chronolith(["repair", &room.path("nowhere"), &room.path("x")]).ends(1);
}
