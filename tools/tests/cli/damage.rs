//! Damage ends with exit code 3 and names the file.

use std::path::PathBuf;

use crate::support::{Room, chronolith};

fn store(room: &Room) -> String {
    let store = room.store("store", &[]);
    let lines: String = (0..200)
        .map(|i| format!("{{\"id\":\"{i}\",\"ts\":{i},\"scope\":\"s\",\"text\":\"record number {i} of many\"}}\n"))
        .collect();
    chronolith(["ingest", &store, &room.file("r.jsonl", lines)]).ends(0);
    store
}

/// Flips one byte in the middle of a file, sealed or not.
fn flip(path: &PathBuf) {
    let mut bytes = std::fs::read(path).expect("readable");
    let at = bytes.len() / 2;
    bytes[at] ^= 0x40;
    std::fs::remove_file(path).expect("removed");
    std::fs::write(path, bytes).expect("written");
}

fn file_of(store: &str, room: &str, end: &str) -> PathBuf {
    let entries = std::fs::read_dir(format!("{store}/{room}")).expect("a directory");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let ends = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(end));
    paths.into_iter().rfind(ends).expect("a file of that kind")
}

#[test]
fn verify_names_the_damaged_file() {
    for (place, end) in [("segments", ".seg"), ("manifest", ".a")] {
        let room = Room::new();
        let store = store(&room);
        chronolith(["verify", &store]).ends(0);
        let path = file_of(&store, place, end);
        flip(&path);
        let report = chronolith(["verify", &store, "--json"]).ends(3).json();
        assert_eq!(report["ok"], false);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let finding = &report["findings"][0];
        let file = finding["file"].as_str().expect("a file");
        assert!(file.contains(name), "{report}");
        for key in ["section", "message", "kind"] {
            assert!(finding[key].is_string(), "{key}: {report}");
        }
        let told = chronolith(["verify", &store]).ends(3).stdout;
        assert!(told.contains(name) && told.contains("DAMAGED"), "{told}");
    }
}

#[test]
fn verify_lists_what_it_looked_at_and_a_sound_store_ends_with_0() {
    let room = Room::new();
    let store = store(&room);
    let report = chronolith(["verify", &store, "--json"]).ends(0).json();
    assert_eq!(report["ok"], true);
    assert_eq!(report["findings"], serde_json::json!([]));
    assert_eq!(report["rows"], 200);
    let files = report["file_list"].as_array().expect("a list");
    assert_eq!(report["files"], files.len());
    assert!(report["blocks"].as_u64() > Some(0));
    for (holds, name) in [("segment", ".seg"), ("log", ".log"), ("pointer", "CURRENT")] {
        let is_there = |file: &serde_json::Value| {
            file["holds"] == holds
                && file["file"]
                    .as_str()
                    .is_some_and(|file| file.contains(name))
        };
        assert!(files.iter().any(is_there), "{holds}: {report}");
    }
    let told = chronolith(["verify", &store]).ends(0);
    assert!(
        told.stdout.contains("whole") && told.stdout.contains(".seg"),
        "{told:?}"
    );
}

#[test]
fn a_torn_end_and_a_foreign_file_are_told_and_are_no_damage() {
    let room = Room::new();
    let store = store(&room);
    std::fs::write(format!("{store}/notes.txt"), "mine").expect("written");
    let log = file_of(&store, "wal", ".log");
    let mut bytes = std::fs::read(&log).expect("readable");
    let used = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("not empty")
        + 1;
    bytes.truncate(used.next_multiple_of(8));
    bytes.extend([0xcd; 24]);
    std::fs::write(&log, bytes).expect("written");
    let report = chronolith(["verify", &store, "--json"]).ends(0).json();
    let findings = report["findings"].as_array().expect("a list");
    let mut kinds: Vec<&str> = findings
        .iter()
        .filter_map(|finding| finding["kind"].as_str())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["extra", "tail"], "{report}");
    let told = chronolith(["verify", &store]).ends(0).stdout;
    assert!(
        told.contains("notes.txt") && told.contains("whole"),
        "{told}"
    );
}

#[test]
fn a_missing_segment_and_a_damaged_pointer_are_damage() {
    let room = Room::new();
    let missing = store(&room);
    std::fs::remove_file(file_of(&missing, "segments", ".seg")).expect("removed");
    chronolith(["verify", &missing]).ends(3);
    let room = Room::new();
    let damaged = store(&room);
    flip(&PathBuf::from(format!("{damaged}/CURRENT")));
    chronolith(["verify", &damaged]).ends(3);
    chronolith(["query", &damaged, "record", "--scope", "/"]).ends(3);
}
