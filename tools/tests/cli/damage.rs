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
        let file = report["findings"][0]["file"].as_str().expect("a file");
        assert!(file.contains(name), "{report}");
    }
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
