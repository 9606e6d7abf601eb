//! What is exported and ingested again is the same.

use std::collections::BTreeSet;

use crate::support::{Room, chronolith, data};

fn exported(room: &Room, store: &str, name: &str) -> BTreeSet<String> {
    let path = room.path(name);
    chronolith(["export", store, "-o", &path]).ends(0);
    let text = std::fs::read_to_string(path).expect("readable");
    text.lines().map(str::to_owned).collect()
}

const LINES: &str = r#"{"id":"a","ts":-1,"scope":"u/x","text":"line\nbreak \u0000 \u001b[31m","summary":"s","tags":["b","a"],"speaker":"Ana","source":"chat","source_class":"web","importance":0.3,"source_id":"d","impacts":{"port":1.3,"-ing":0.5},"colour":"blue","attributes":{"k":[1,2.5]}}
{"id":"b","ts":"2025-01-01T00:00:00.5Z","scope":"u","text":""}
"#;

#[test]
fn a_store_of_words_and_one_with_the_builtin_embedder() {
    for flags in [&["--embedder", "none"][..], &[]] {
        let room = Room::new();
        let (first, second) = (room.store("first", flags), room.store("second", flags));
        chronolith(["ingest", &first, &room.file("r.jsonl", LINES)]).ends(0);
        let before = exported(&room, &first, "first.jsonl");
        assert_eq!(before.len(), 2);
        let impacts = r#""impacts":{"-ing":0.5,"port":1.30078125}"#;
        assert!(
            before.iter().any(|line| line.contains(impacts)),
            "{before:?}"
        );
        chronolith(["ingest", &second, &room.path("first.jsonl")]).ends(0);
        assert_eq!(exported(&room, &second, "second.jsonl"), before);
        let ask = |store: &str| {
            let run = chronolith([
                "query",
                store,
                "line break",
                "--scope",
                "/",
                "--json",
                "--now",
                "0",
            ]);
            run.ends(0).json()["hits"].clone()
        };
        assert_eq!(ask(&first), ask(&second));
    }
}

#[test]
fn vectors_travel_in_the_lines_or_beside_them() {
    let lines = r#"{"id":"a","ts":1,"scope":"s","text":"x","vector":[3,4]}
{"id":"b","ts":2,"scope":"s","text":"y","vector":[-1,0.25]}
"#;
    let flags = ["--dim", "2", "--model", "mine", "--vector-format", "f32"];
    let room = Room::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| room.store(name, &flags));
    chronolith(["ingest", &first, &room.file("r.jsonl", lines)]).ends(0);
    let before = exported(&room, &first, "first.jsonl");
    assert!(before.iter().all(|line| line.contains("vector")));
    chronolith(["ingest", &second, &room.path("first.jsonl")]).ends(0);
    let (out, npy) = (room.path("out.jsonl"), room.path("out.npy"));
    chronolith(["export", &first, "--vectors", &npy, "-o", &out]).ends(0);
    chronolith(["ingest", &third, &out, "--vectors", &npy]).ends(0);
    let cosines = |store: &str| -> Vec<f64> {
        let args = [
            "query", store, "--scope", "/", "--vector", &npy, "--row", "0", "--mode", "dense",
            "--json",
        ];
        let hits = chronolith(args).ends(0).json()["hits"].clone();
        let hits = hits.as_array().expect("hits").clone();
        hits.iter()
            .map(|hit| hit["score"].as_f64().expect("a score"))
            .collect()
    };
    for store in [&second, &third] {
        for (a, b) in cosines(&first).iter().zip(cosines(store)) {
            assert!((a - b).abs() < 1e-6);
        }
    }
}

#[test]
fn a_scope_can_be_exported_alone() {
    let room = Room::new();
    let store = room.store("store", &[]);
    chronolith(["ingest", &store, &room.file("r.jsonl", LINES)]).ends(0);
    let run = chronolith(["export", &store, "--scope", "u/x"]).ends(0);
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn real_conversations_survive_the_trip() {
    let Some(data) = data("export of locomo") else {
        return;
    };
    let room = Room::new();
    let (first, second) = (
        room.store("first", &["--dim", "384"]),
        room.store("second", &["--dim", "384"]),
    );
    let file = |name: &str| {
        data.join("locomo")
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (records, vectors) = (file("records.jsonl"), file("records.f16.npy"));
    chronolith(["ingest", &first, &records, "--vectors", &vectors]).ends(0);
    let (out, npy) = (room.path("out.jsonl"), room.path("out.npy"));
    chronolith(["export", &first, "--vectors", &npy, "-o", &out]).ends(0);
    chronolith(["ingest", &second, &out, "--vectors", &npy]).ends(0);
    let lines = |path: &str| -> BTreeSet<String> {
        std::fs::read_to_string(path)
            .expect("readable")
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let (again, again_npy) = (room.path("again.jsonl"), room.path("again.npy"));
    chronolith(["export", &second, "--vectors", &again_npy, "-o", &again]).ends(0);
    assert_eq!(lines(&out).len(), 4125);
    assert_eq!(lines(&out), lines(&again));
}

#[test]
fn an_export_replaces_no_part_of_a_store_and_nothing_that_is_no_file() {
    let room = Room::new();
    let store = room.path("store");
    chronolith(["init", &store, "--embedder", "none"]).ends(0);
    for name in ["CURRENT", "segments/new", "wal/STATUS", "a"] {
        let target = format!("{store}/{name}");
        chronolith(["export", &store, "-o", &target])
            .ends(1)
            .says("inside a store");
    }
    chronolith(["export", &store, "-o", "/dev/null"])
        .ends(1)
        .says("no regular file");
    chronolith(["export", &store, "-o", &store])
        .ends(1)
        .says("a directory");
    chronolith(["verify", &store]).ends(0);
}
