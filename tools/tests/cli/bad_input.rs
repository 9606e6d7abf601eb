//! What is wrong is refused by name and costs nothing that is right.

use std::collections::BTreeSet;

use chronolith::{Options, Store};
use serde_json::{Value, json};

use crate::support::{Room, chronolith, command, data, f32_bytes, npy};

/// Line numbers that a report names.
fn lines(report: &Value) -> BTreeSet<u64> {
    let errors = report["errors"].as_array().expect("errors");
    errors
        .iter()
        .map(|error| error["line"].as_u64().expect("a line"))
        .collect()
}

#[test]
fn nasty_records_end_as_they_should() {
    let Some(data) = data("nasty.jsonl") else {
        return;
    };
    let room = Room::new();
    let text = std::fs::read_to_string(data.join("nasty.jsonl")).expect("readable");
    let cases: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let cases: Vec<&Value> = cases
        .iter()
        .filter(|case| case.get("record").is_some())
        .collect();
    let records: String = cases
        .iter()
        .map(|case| format!("{}\n", case["record"]))
        .collect();
    let store = room.store("nasty", &["--dim", "8"]);
    let report = chronolith(["ingest", &store, &room.file("r.jsonl", records), "--json"])
        .ends(1)
        .json();
    let refused = lines(&report);
    for (line, case) in (1u64..).zip(&cases) {
        match case["expect"].as_str() {
            Some("accept") => assert!(!refused.contains(&line), "{case} was refused: {report}"),
            Some("reject") => assert!(refused.contains(&line), "{case} was stored"),
            _ => {}
        }
    }
    let named = report["errors"].as_array().expect("errors").iter();
    assert!(
        named
            .into_iter()
            .all(|error| error["field"] != "" && error["message"] != "")
    );
    assert_eq!(
        report["stored"].as_u64().expect("a count") + refused.len() as u64,
        cases.len() as u64
    );
    // What was stored comes back byte for byte; of two with one id the later one.
    let mut last = std::collections::BTreeMap::new();
    for (line, case) in (1u64..)
        .zip(&cases)
        .filter(|(line, _)| !refused.contains(line))
    {
        let record = &case["record"];
        last.insert(
            (record["scope"].to_string(), record["id"].to_string()),
            (line, record),
        );
    }
    let exported = room.path("out.jsonl");
    chronolith(["export", &store, "-o", &exported]).ends(0);
    let out = std::fs::read_to_string(&exported).expect("readable");
    assert_eq!(out.lines().count(), last.len());
    for line in out.lines() {
        let got: Value = serde_json::from_str(line).expect("JSON");
        let (_, record) = last[&(got["scope"].to_string(), got["id"].to_string())];
        assert_eq!(got["text"], record["text"]);
        if record["ts"].is_i64() {
            assert_eq!(got["ts"], record["ts"]);
        }
        let tags = |value: &Value| -> BTreeSet<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect()
        };
        assert_eq!(tags(&got["tags"]), tags(&record["tags"]));
    }
    chronolith(["verify", &store]).ends(0);
}

#[test]
fn nasty_queries_crash_nothing() {
    let Some(data) = data("nasty queries") else {
        return;
    };
    let room = Room::new();
    let store = room.store("store", &[]);
    let line = r#"{"id":"a","ts":1,"scope":"s","text":"the quick brown fox"}"#;
    chronolith(["ingest", &store, &room.file("r.jsonl", line)]).ends(0);
    let text = std::fs::read_to_string(data.join("nasty.jsonl")).expect("readable");
    for case in text.lines() {
        let case: Value = serde_json::from_str(case).expect("JSON");
        // No system passes a NUL in an argument, nor some 100 KiB.
        let Some(query) = case["query"]["text"]
            .as_str()
            .filter(|text| !text.contains('\0') && text.len() < 100_000)
        else {
            continue;
        };
        let run = chronolith(["query", &store, "--scope", "/", "--json", "--", query]);
        assert!(matches!(run.code, 0 | 1), "{case}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{case}: {run:?}");
        if run.code == 1 {
            assert!(run.stderr.starts_with("error:"), "{case}: {run:?}");
        }
    }
}

#[test]
fn a_damaged_file_stores_its_good_lines_and_names_the_others() {
    let Some(data) = data("nasty_raw.jsonl") else {
        return;
    };
    let room = Room::new();
    let store = room.store("raw", &["--dim", "8"]);
    let raw = data.join("nasty_raw.jsonl");
    let report = chronolith(["ingest", &store, raw.to_str().expect("UTF-8"), "--json"])
        .ends(1)
        .json();
    assert_eq!(
        (&report["stored"], &report["refused"]),
        (&json!(4), &json!(16))
    );
    let expected: BTreeSet<u64> =
        [4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21].into();
    assert_eq!(lines(&report), expected);
    for id in ["r1", "r5", "r10", "r18"] {
        chronolith(["get", &store, id, "--scope", "s"]).ends(0);
    }
}

#[test]
fn a_refused_record_costs_its_neighbours_nothing() {
    let room = Room::new();
    let store = room.store("store", &["--dim", "2"]);
    // The zero vector is refused by the engine, in the middle of a batch.
    let lines = r#"{"id":"a","ts":1,"scope":"s","text":"x","vector":[1,0]}
{"id":"b","ts":1,"scope":"s","text":"x","vector":[0,0]}

{"id":"c","ts":1,"scope":"s","text":"x","vector":[0,1]}
{"id":"d","ts":1,"scope":"s","text":"x","vector":[1]}"#;
    let run = chronolith(["ingest", &store, &room.file("r.jsonl", lines)]).ends(1);
    assert!(run.stdout.starts_with("2 stored, 2 refused"), "{run:?}");
    let run = run.says("line 2: vector").says("line 5: vector");
    assert!(!run.stderr.contains("line 4"));
    chronolith(["get", &store, "c", "--scope", "s"]).ends(0);
}

#[test]
fn lines_without_a_scope_need_a_default() {
    let room = Room::new();
    let store = room.store("store", &[]);
    let log = room.file("r.jsonl", r#"{"id":"a","ts":1,"text":"x"}"#);
    chronolith(["ingest", &store, &log])
        .ends(1)
        .says("--default-scope");
    chronolith(["ingest", &store, &log, "--default-scope", "s"]).ends(0);
    chronolith(["get", &store, "a", "--scope", "s"]).ends(0);
}

#[test]
fn stdin_is_a_file_too() {
    use std::io::Write;
    let room = Room::new();
    let store = room.store("store", &[]);
    let mut child = command()
        .args(["ingest", &store, "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin
        .write_all(b"\xef\xbb\xbf{\"id\":\"a\",\"ts\":1,\"scope\":\"s\",\"text\":\"x\"}\r\n")
        .expect("written");
    drop(stdin);
    assert!(child.wait().expect("ends").success());
    chronolith(["get", &store, "a", "--scope", "s"]).ends(0);
}

#[test]
fn vector_files_that_do_not_fit_write_nothing() {
    let room = Room::new();
    let store = room.store("store", &["--dim", "2"]);
    let log = room.file(
        "r.jsonl",
        "{\"id\":\"a\",\"ts\":1,\"scope\":\"s\",\"text\":\"x\"}\n",
    );
    let two = f32_bytes(&[1.0, 0.0]);
    for (name, content, says) in [
        (
            "rows",
            npy("<f4", "False", "(2, 2)", &two.repeat(2)),
            "has 2 rows",
        ),
        (
            "dim",
            npy("<f4", "False", "(1, 3)", &f32_bytes(&[1.0; 3])),
            "dimension 3",
        ),
        ("type", npy("<f8", "False", "(1, 2)", &[0; 16]), "<f8"),
        ("big endian", npy(">f4", "False", "(1, 2)", &two), ">f4"),
        ("order", npy("<f4", "True", "(1, 2)", &two), "Fortran"),
        (
            "short",
            npy("<f4", "False", "(1, 2)", &two[..7]),
            "does not fit its shape",
        ),
        ("vector", npy("<f4", "False", "(2,)", &two), "no matrix"),
        (
            "huge",
            npy(
                "<f4",
                "False",
                "(9223372036854775807, 9223372036854775807)",
                &two,
            ),
            "does not fit",
        ),
        ("none", b"hello".to_vec(), "no NumPy file"),
        ("empty", Vec::new(), "no NumPy file"),
    ] {
        let vectors = room.file("v.npy", content);
        let run = chronolith(["ingest", &store, &log, "--vectors", &vectors])
            .ends(1)
            .says(says);
        assert!(run.stdout.is_empty(), "{name}");
    }
    assert_eq!(
        chronolith(["stats", &store, "--json"]).ends(0).json()["records"],
        0
    );
    let missing = room.path("nope.npy");
    chronolith(["ingest", &store, &log, "--vectors", &missing])
        .ends(1)
        .says("cannot read");
    let words = room.store("words", &["--embedder", "none"]);
    chronolith(["ingest", &words, &log, "--vectors", &missing])
        .ends(1)
        .says("keeps no vectors");
}

#[test]
fn what_is_no_store_is_called_so() {
    let room = Room::new();
    let file = room.file("r.jsonl", "{}");
    room.file("other.txt", "x");
    for verb in ["stats", "verify", "compact", "export"] {
        chronolith([verb, &room.path("")])
            .ends(1)
            .says("not a chronolith store");
        chronolith([verb, &room.path("nope")])
            .ends(1)
            .says("no such directory");
    }
    chronolith(["ingest", &room.path(""), &file])
        .ends(1)
        .says("not a chronolith store");
    chronolith(["init", &room.path("")]).ends(1);
    let store = room.store("store", &[]);
    chronolith(["init", &store]).ends(1).says("a store already");
    chronolith(["ingest", &store, &room.path("nope.jsonl")])
        .ends(1)
        .says("cannot read");
    chronolith(["ingest", &store, &store])
        .ends(1)
        .says("cannot read");
}

#[test]
fn a_locked_store_can_be_read_and_not_written() {
    let room = Room::new();
    let path = room.store("store", &[]);
    let log = room.file("r.jsonl", r#"{"id":"a","ts":1,"scope":"s","text":"x"}"#);
    let store = Store::open(&path, Options::default()).expect("opens");
    chronolith(["ingest", &path, &log])
        .ends(1)
        .says("open for writing");
    chronolith(["compact", &path])
        .ends(1)
        .says("open for writing");
    chronolith(["stats", &path]).ends(0);
    chronolith(["query", &path, "x", "--scope", "/"]).ends(0);
    store.close().expect("closes");
    chronolith(["ingest", &path, &log]).ends(0);
}

#[test]
#[cfg(unix)]
fn a_read_only_directory_is_read_and_refuses_writes() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new();
    let log = room.file("r.jsonl", r#"{"id":"a","ts":1,"scope":"s","text":"x"}"#);
    let store = room.store("store", &[]);
    chronolith(["ingest", &store, &log]).ends(0);
    let chmod = |mode| {
        for path in [
            store.clone(),
            format!("{store}/wal"),
            format!("{store}/segments"),
            format!("{store}/manifest"),
        ] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        }
    };
    chmod(0o500);
    let probe = std::fs::write(format!("{store}/probe"), "");
    let run = chronolith(["ingest", &store, &log]);
    let read = chronolith(["query", &store, "x", "--scope", "/"]);
    chmod(0o700);
    if probe.is_ok() {
        eprintln!("skipped: read-only directory (this user may write anywhere)");
        return;
    }
    run.ends(1).says("ermission denied");
    read.ends(0);
}
