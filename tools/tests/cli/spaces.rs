//! Vector spaces through the command: a store moves to another space and back out as lines.

use crate::support::{Room, chronolith};

const LINES: &str = r#"{"id":"a","ts":1700000000000000,"scope":"u","text":"the staging proxy port"}
{"id":"b","ts":1700000000000001,"scope":"u","text":"the cause of the incident"}
"#;

#[test]
fn a_store_moves_to_another_space_and_answers_from_it() {
    let room = Room::new();
    let store = room.store("store", &[]);
    chronolith(["ingest", &store, &room.file("r.jsonl", LINES)]).ends(0);
    let run = chronolith(["spaces", &store, "--add", "next", "--fill", "next"]).ends(0);
    assert!(run.stdout.contains("2 records filled"), "{run:#?}");
    assert!(run.stdout.contains("* main"), "{run:#?}");
    let ask = |args: &[&str]| {
        let all = [
            &["query", &store, "staging proxy", "--scope", "u", "--json"],
            args,
        ]
        .concat();
        let response = chronolith(all).ends(0).json();
        (response["plan"]["space"].clone(), response["hits"].clone())
    };
    let (of_main, from_main) = ask(&["--mode", "dense"]);
    let (of_next, from_next) = ask(&["--mode", "dense", "--space", "next"]);
    assert_eq!((of_main, of_next), ("main".into(), "next".into()));
    assert_eq!(from_main[0]["id"], from_next[0]["id"]);
    let counts = chronolith(["stats", &store]).ends(0);
    assert!(counts.stdout.contains("space next: 2 of"), "{counts:#?}");
    chronolith(["spaces", &store, "--default", "next", "--drop", "main"]).ends(0);
    let spaces = chronolith(["spaces", &store, "--json"]).ends(0).json();
    assert_eq!(spaces["spaces"][0]["name"], "next");
    assert_eq!(spaces["spaces"][0]["vectors"], 2);
    assert_eq!(ask(&["--mode", "dense"]).1[0]["id"], from_next[0]["id"]);
    let shown = chronolith(["inspect", &store]).ends(0);
    assert!(shown.stdout.contains("space next (1)"), "{shown:#?}");
    chronolith(["compact", &store, "--all"]).ends(0);
    chronolith(["verify", &store]).ends(0);
}

#[test]
fn what_cannot_be_says_so() {
    let room = Room::new();
    let store = room.store("store", &["--dim", "3", "--model", "m"]);
    let spaces = |args: &[&str]| chronolith([&["spaces", &store], args].concat());
    spaces(&["--drop", "main"]).ends(1).says("is the default");
    spaces(&["--default", "none"])
        .ends(1)
        .says("no vector space none");
    spaces(&["--fill", "main"])
        .ends(1)
        .says("Store::migrate_space");
    spaces(&["--add", "own", "--dim", "3"]).ends(2);
    spaces(&["--add", "own", "--dim", "3", "--model", "n"]).ends(0);
    spaces(&["--add", "own", "--dim", "4", "--model", "n"])
        .ends(1)
        .says("of model n");
    let ask = ["query", &store, "x", "--scope", "/", "--space", "none"];
    chronolith(ask).ends(1).says("no vector space none");
}

#[test]
fn vectors_of_every_space_leave_and_come_back() {
    let line =
        r#"{"id":"a","ts":1,"scope":"u","text":"t","vector":[1,0,0],"vectors":{"own":[0,1]}}"#;
    let room = Room::new();
    let store = |name: &str| {
        let store = room.store(name, &["--dim", "3", "--model", "m"]);
        let add = ["--add", "own", "--dim", "2", "--model", "n"];
        chronolith([&["spaces", &store], &add[..]].concat()).ends(0);
        store
    };
    let (first, second) = (store("first"), store("second"));
    chronolith(["ingest", &first, &room.file("r.jsonl", line)]).ends(0);
    let export = |store: &str| chronolith(["export", store]).ends(0).stdout;
    let lines = export(&first);
    assert!(lines.contains(r#""own":[0.0,1.0]"#), "{lines}");
    chronolith(["ingest", &second, &room.file("out.jsonl", &lines)]).ends(0);
    assert_eq!(export(&second), lines);
    let without = room.store("without", &["--dim", "3", "--model", "m"]);
    let run = chronolith(["ingest", &without, &room.file("o.jsonl", &lines)]);
    run.ends(1).says("none of that name");
}
