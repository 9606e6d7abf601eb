//! Each command does what its help says, and ends with the promised exit code.

use crate::support::{Room, chronolith, command, f32_bytes, ids, npy};

const LOG: &str = r#"{"id":"a","ts":"2025-01-01T00:00:00Z","scope":"u/ana","text":"the staging proxy listens on 8443","tags":["ops"],"source_class":"user_confirmed"}
{"id":"b","ts":"2025-02-01T00:00:00Z","scope":"u/ana","text":"the staging database moved","tags":["ops","db"],"source_class":"web"}
{"id":"c","ts":"2025-03-01T00:00:00Z","scope":"u/ana-b","text":"another staging proxy"}
"#;

fn store(room: &Room) -> String {
    let store = room.store("store", &[]);
    let run = chronolith(["ingest", &store, &room.file("log.jsonl", LOG), "--json"]).ends(0);
    let report = run.json();
    assert_eq!(
        (&report["stored"], &report["refused"]),
        (&3.into(), &0.into())
    );
    assert!(report["bytes_on_disk"].as_u64().expect("bytes") > 0);
    store
}

#[test]
fn a_query_finds_filters_and_never_leaves_its_scope() {
    let room = Room::new();
    let store = store(&room);
    let ask = |flags: &[&str]| {
        let args = ["query", &store, "staging proxy", "--json"]
            .into_iter()
            .chain(flags.iter().copied());
        ids(&chronolith(args).ends(0).json())
    };
    assert_eq!(ask(&["--scope", "u/ana"]), ["a", "b"]);
    assert_eq!(ask(&["--scope", "/"]).len(), 3);
    assert_eq!(ask(&["--scope", "u/ana", "--since", "2025-01-15"]), ["b"]);
    assert_eq!(ask(&["--scope", "u/ana", "--until", "2025-01-15"]), ["a"]);
    assert_eq!(
        ask(&["--scope", "u/ana", "--tag", "ops", "--tag", "db"]),
        ["b"]
    );
    assert_eq!(ask(&["--scope", "u/ana", "--tag", "db|none"]), ["b"]);
    assert_eq!(
        ask(&["--scope", "u/ana", "--min-source", "tool_output"]),
        ["a"]
    );
    assert_eq!(ask(&["--scope", "u/ana", "-k", "1"]), ["a"]);
    assert_eq!(ask(&["--scope", "=u"]).len(), 0);
}

#[test]
fn the_json_of_a_query_has_the_promised_keys() {
    let room = Room::new();
    let store = store(&room);
    let answer = chronolith([
        "query",
        &store,
        "proxy",
        "--scope",
        "u/ana",
        "--json",
        "--context",
        "1,1",
    ])
    .ends(0)
    .json();
    let hit = &answer["hits"][0];
    assert_eq!(hit["ts"], "2025-01-01T00:00:00Z");
    for key in [
        "id",
        "scope",
        "ts_us",
        "score",
        "source_class",
        "tags",
        "text",
        "signals",
    ] {
        assert!(hit.get(key).is_some(), "{key} in {hit}");
    }
    assert_eq!(answer["exactness"], "exact");
    assert!(answer["plan"].is_object() && answer["took_us"].is_u64());
    let latest = chronolith(["query", &store, "--scope", "u/ana", "--json"])
        .ends(0)
        .json();
    assert_eq!(ids(&latest), ["b", "a"]);
    let stats = chronolith(["stats", &store, "--json"]).ends(0).json();
    assert_eq!(stats["records"], 3);
    for key in [
        "scopes",
        "segments",
        "memtables",
        "wal_bytes",
        "segment_bytes",
        "catalog_bytes",
        "oldest_ts_us",
        "newest_ts_us",
    ] {
        assert!(stats[key].is_u64(), "{key} in {stats}");
    }
}

#[test]
fn get_forget_and_compact_agree() {
    let room = Room::new();
    let store = store(&room);
    let got = chronolith(["get", &store, "a", "--scope", "u/ana", "--json"])
        .ends(0)
        .json();
    assert_eq!(got["text"], "the staging proxy listens on 8443");
    chronolith(["get", &store, "a", "--scope", "u"])
        .ends(1)
        .says("no record a in scope u");
    chronolith(["forget", &store, "a", "--scope", "u/ana"]).ends(0);
    chronolith(["forget", &store, "a", "--scope", "u/ana"])
        .ends(1)
        .says("nothing was forgotten");
    chronolith(["get", &store, "a", "--scope", "u/ana"]).ends(1);
    let compacted = chronolith(["compact", &store, "--all", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&compacted["records"], &compacted["dead_rows"]),
        (&2.into(), &0.into())
    );
    chronolith(["verify", &store, "--json"]).ends(0);
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    let room = Room::new();
    let store = store(&room);
    chronolith(["query", &store, "x"]).ends(2).says("--scope");
    chronolith(["query", &store, "x", "--scope", "a//b"])
        .ends(2)
        .says("empty component");
    chronolith(["query", &store, "x", "--scope", "/", "--since", "yesterday"])
        .ends(2)
        .says("RFC 3339");
    chronolith(["query", &store, "x", "--scope", "/", "--min-source", "me"])
        .ends(2)
        .says("user_confirmed");
    chronolith(["query", &store, "x", "--scope", "/", "--recency", "soon"])
        .ends(2)
        .says("decay:30d");
    chronolith(["query", &store, "x", "--scope", "/", "--vector", "v.npy"]).ends(2);
    chronolith(["init", &room.path("n"), "--dim", "3", "--embedder", "none"]).ends(2);
    chronolith(["init", &room.path("n"), "--language", "klingon"])
        .ends(2)
        .says("english");
    chronolith(["repair", &store]).ends(2);
    chronolith([""; 0]).ends(2);
    let help = chronolith(["--help"]).ends(0);
    for later in ["revise", "calibrate", "feedback"] {
        assert!(!help.stdout.contains(later), "{later} is not there yet");
    }
}

#[test]
fn what_later_releases_answer_is_refused_by_name() {
    let room = Room::new();
    let store = store(&room);
    for flag in ["--as-of", "--valid-at", "--known-at"] {
        chronolith(["query", &store, "x", "--scope", "/", flag, "5"])
            .ends(1)
            .says("not available yet");
    }
}

#[test]
fn a_budget_of_time_cuts_and_says_so_and_threads_change_nothing() {
    let room = Room::new();
    let store = store(&room);
    let ask = |more: &[&str]| {
        let mut args = vec!["query", &store, "proxy", "--scope", "/", "--mode", "sparse"];
        args.extend(["--now", "2026-01-01T00:00:00Z", "--json"]);
        args.extend(more);
        chronolith(args).ends(0).json()
    };
    let plain = ask(&[]);
    assert_eq!(plain["exactness"], "exact");
    assert!(
        plain["hits"]
            .as_array()
            .is_some_and(|hits| !hits.is_empty())
    );
    let cut = ask(&["--budget-ms", "0"]);
    assert!(cut["hits"].as_array().is_some_and(Vec::is_empty));
    let bound = cut["exactness"]["budget_cut"]["unvisited_upper_bound"].as_f64();
    assert!(bound >= plain["hits"][0]["score"].as_f64());
    for more in [
        &["--threads", "3"][..],
        &["--exhaustive"],
        &["--budget-ms", "60000"],
    ] {
        assert_eq!(ask(more)["hits"], plain["hits"], "{more:?}");
    }
    chronolith(["query", &store, "proxy", "--scope", "/", "--threads", "0"])
        .ends(2)
        .says("threads");
}

#[test]
fn vectors_of_ones_own_answer_by_row() {
    let room = Room::new();
    let store = room.store("vectors", &["--dim", "2", "--model", "mine"]);
    let log = room.file("log.jsonl", LOG);
    let vectors = npy(
        "<f4",
        "False",
        "(3, 2)",
        &f32_bytes(&[1.0, 0.0, 0.0, 2.0, 1.0, 1.0]),
    );
    let vectors = room.file("v.npy", vectors);
    chronolith([
        "ingest",
        &store,
        &log,
        "--vectors",
        &vectors,
        "--vector-model",
        "mine",
    ])
    .ends(0);
    chronolith([
        "ingest",
        &store,
        &log,
        "--vectors",
        &vectors,
        "--vector-model",
        "other",
    ])
    .ends(1)
    .says("two embedders");
    let args = [
        "query", &store, "--scope", "/", "--vector", &vectors, "--row", "1", "--mode", "dense",
        "--json",
    ];
    assert_eq!(ids(&chronolith(args).ends(0).json()), ["b", "c", "a"]);
    // Fewer candidates than rows: codes choose them, and the answer says so.
    let ask = |more: &[&'static str]| chronolith(args.into_iter().chain(more.iter().copied()));
    let exact = ask(&["--exhaustive"]).ends(0).json();
    assert_eq!(exact["exactness"], "exact");
    let coded = ask(&["--candidates", "2"]).ends(0).json();
    assert!(
        coded["exactness"]["approximate"]["bound"].is_f64(),
        "{coded}"
    );
    assert_eq!(coded["plan"]["dense"]["way"]["codes"]["candidates"], 2);
    ask(&["--candidates", "0"]).ends(2).says("candidates");
    let past = [
        "query", &store, "--scope", "/", "--vector", &vectors, "--row", "3",
    ];
    chronolith(past).ends(1).says("has 3 rows");
}

#[test]
fn the_builtin_embedder_takes_no_foreign_vectors() {
    let room = Room::new();
    let store = store(&room);
    let vectors = npy("<f4", "False", "(3, 256)", &f32_bytes(&[0.5; 768]));
    let vectors = room.file("v.npy", vectors);
    chronolith([
        "ingest",
        &store,
        &room.path("log.jsonl"),
        "--vectors",
        &vectors,
    ])
    .ends(1)
    .says("built-in embedder");
}

#[test]
fn inspect_reads_every_kind_of_file() {
    let room = Room::new();
    store(&room);
    // One dead row of many: a delete set, and nothing that a compaction would take up.
    let lines: String = (0..300)
        .map(|i| format!("{{\"id\":\"{i}\",\"ts\":{i},\"scope\":\"s\",\"text\":\"row {i}\"}}\n"))
        .collect();
    let store = room.store("many", &[]);
    chronolith(["ingest", &store, &room.file("many.jsonl", lines)]).ends(0);
    chronolith(["forget", &store, "7", "--scope", "s"]).ends(0);
    assert!(
        chronolith(["inspect", &store])
            .ends(0)
            .stdout
            .contains("generation")
    );
    let mut kinds = Vec::new();
    for room in ["segments", "wal", "manifest"] {
        for entry in std::fs::read_dir(format!("{store}/{room}")).expect("a directory") {
            let path = entry.expect("an entry").path();
            let kind = path
                .extension()
                .and_then(|kind| kind.to_str())
                .unwrap_or_default()
                .to_owned();
            if kind.is_empty() {
                continue;
            }
            let shown = chronolith(["inspect", path.to_str().expect("UTF-8"), "--json"])
                .ends(0)
                .json();
            assert!(shown.is_object(), "{path:?}");
            kinds.push(kind);
        }
    }
    for kind in ["seg", "del", "log", "a", "b"] {
        assert!(
            kinds.iter().any(|seen| seen == kind),
            "no .{kind} in {kinds:?}"
        );
    }
    chronolith(["inspect", &room.path("log.jsonl")])
        .ends(1)
        .says("no store and no file of one");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let room = Room::new();
    let store = store(&room);
    let lines: String = (0..5000)
        .map(|i| format!("{{\"id\":\"{i}\",\"ts\":{i},\"scope\":\"s\",\"text\":\"filler filler filler {i}\"}}\n"))
        .collect();
    chronolith(["ingest", &store, &room.file("many.jsonl", lines)]).ends(0);
    let mut child = command()
        .args(["export", &store])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
}
