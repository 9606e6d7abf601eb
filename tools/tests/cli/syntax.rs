//! Questions with signs, snippets and what `--explain` says of them, through the command.

use crate::support::{Room, Run, chronolith, ids};

const LOG: &str = r#"{"id":"a","ts":"2025-01-01T00:00:00Z","scope":"u/ana","text":"the staging proxy listens on 8443"}
{"id":"b","ts":"2025-02-01T00:00:00Z","scope":"u/ana","text":"the old staging proxy listened on 80"}
{"id":"c","ts":"2025-03-01T00:00:00Z","scope":"u/ana","text":"a proxy for staging"}
{"id":"d","ts":"2025-04-01T00:00:00Z","scope":"u/ana","text":"kubernetes deployment, 東京都"}
"#;

fn store(room: &Room) -> String {
    let store = room.store("store", &["--embedder", "none"]);
    chronolith(["ingest", &store, &room.file("log.jsonl", LOG)]).ends(0);
    store
}

fn query(store: &str, flags: &[&str]) -> Run {
    let args = ["query", store, "--scope", "u/ana"].into_iter();
    chronolith(args.chain(flags.iter().copied()))
}

#[test]
fn signs_mean_something_with_syntax_alone() {
    let room = Room::new();
    let store = store(&room);
    let asked = |text: &str, flags: &[&str]| {
        let flags: Vec<&str> = flags
            .iter()
            .copied()
            .chain(["--json", "--", text])
            .collect();
        ids(&query(&store, &flags).ends(0).json()).join(" ")
    };
    let with = |text: &str| asked(text, &["--syntax"]);
    assert_eq!(with("staging -old"), "c a");
    assert_eq!(with("staging +8443"), "a");
    assert_eq!(with("\"staging proxy\""), "a b");
    assert_eq!(with("depl*"), "d");
    assert_eq!(with("stoge~"), "c a b");
    assert_eq!(with("kbernet~2"), "d");
    assert_eq!(with("東京^3"), "d");
    assert_eq!(with("-proxy"), "d");
    assert_eq!(with(r"\-old"), "b");
    assert_eq!(asked("proxy -old", &[]), "b c a", "plain text stays plain");
}

#[test]
fn a_question_that_is_not_understood_says_where() {
    let room = Room::new();
    let store = store(&room);
    let says = |text: &str, what: &str| {
        query(&store, &["--syntax", "--", text]).ends(2).says(what);
    };
    says(
        "staging \"proxy",
        "column 9: the phrase that begins here has no end",
    );
    says("staging \"proxy", "`\"proxy`");
    says("ab^200", "column 3: a weight must be a number");
    says(
        "+ab*",
        "column 4: a prefix or a fuzzy word cannot be required",
    );
    says("a~7", "column 2: a word may be 1 to 2 changes away");
    query(&store, &["--syntax", "+!!"]).ends(2).says("require");
}

#[test]
fn too_many_words_for_a_prefix_are_refused_with_what_to_do() {
    let room = Room::new();
    let store = store(&room);
    let words: String = (0..80).map(|at| format!("sta{at} ")).collect();
    let line = format!(r#"{{"id":"e","ts":0,"scope":"u/ana","text":"{words}"}}"#);
    chronolith(["ingest", &store, &room.file("more.jsonl", line)]).ends(0);
    query(&store, &["--syntax", "sta*"])
        .ends(2)
        .says("`sta` stands for more than 64 terms of these scopes; write more of the word");
    query(&store, &["--syntax", "stag*"]).ends(0);
}

#[test]
fn explain_shows_clauses_and_what_they_stand_for() {
    let room = Room::new();
    let store = store(&room);
    let flags = ["--syntax", "--explain", "-k", "1", "+proxy list*^2 -old"];
    let shown = query(&store, &flags).ends(0).stdout;
    for expected in [
        "clause      require  proxy, weight 1, terms proxi",
        "clause      prefix   list, weight 2",
        "stands for 1 terms",
        "listen",
        "clause      exclude  old, terms old",
        "listen for list",
    ] {
        assert!(shown.contains(expected), "{expected:?} in {shown}");
    }
    let flags = ["--syntax", "--explain", "--json", "list*"];
    let answer = query(&store, &flags).ends(0).json();
    let clause = &answer["plan"]["clauses"][0];
    assert_eq!(
        (&clause["kind"], &clause["text"]),
        (&"prefix".into(), &"list".into())
    );
    assert_eq!(clause["expansions"][0]["term"], "listen");
    assert_eq!(clause["expansions"][0]["df"], 2);
    let part = &answer["hits"][0]["explanation"]["terms"][0];
    assert_eq!(part["stands_for"], "list");
}

#[test]
fn snippets_are_shown_and_in_the_json() {
    let room = Room::new();
    let store = store(&room);
    let answer = query(&store, &["staging", "--snippets=16", "--json"])
        .ends(0)
        .json();
    let snippet = &answer["hits"][0]["snippet"];
    assert_eq!(
        snippet["text"],
        "proxy for staging".split_at(6).1,
        "{snippet}"
    );
    assert_eq!(snippet["start"], 8);
    assert_eq!(snippet["highlights"][0]["start"], 4);
    assert_eq!(snippet["highlights"][0]["end"], 11);
    let shown = query(&store, &["staging", "--snippets", "-k", "1"])
        .ends(0)
        .stdout;
    assert!(shown.contains("    a proxy for staging\n"), "{shown}");
    assert!(
        !shown.contains('\u{1b}'),
        "no colours where there is no terminal"
    );
    query(&store, &["staging", "--snippets=0"])
        .ends(2)
        .says("snippets");
    query(&store, &["staging", "--snippets=many"]).ends(2);
}
