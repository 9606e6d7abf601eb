//! The very first run.

use crate::support::{Room, chronolith, ids};

#[test]
fn quickstart_answers_its_five_questions_and_can_be_run_again() {
    let room = Room::new();
    let dir = room.path("demo");
    for _ in 0..2 {
        let answers = chronolith(["quickstart", &dir, "--json"]).ends(0).json();
        let questions = answers["questions"].as_array().expect("questions");
        assert_eq!(questions.len(), 5);
        for question in questions {
            let (expected, found) = (&question["expected"], ids(&question["answer"]));
            let first = found.iter().take(3).any(|id| expected == id.as_str());
            assert!(first, "{expected} is not among {found:?}");
        }
    }
    chronolith(["verify", &dir]).ends(0);
}

#[test]
fn quickstart_reads_well_without_a_terminal() {
    let room = Room::new();
    let run = chronolith(["quickstart", &room.path("demo")]).ends(0);
    assert!(!run.stdout.contains('\u{1b}'), "colours in a pipe");
    assert!(run.stdout.contains("why: its words"));
    assert!(run.stdout.contains("What to try next"));
    let dir = room.path("demo");
    for line in run.stdout.lines().filter(|line| !line.contains(&dir)) {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
}

#[test]
fn quickstart_shows_that_other_months_stay_shut() {
    let room = Room::new();
    let answers = chronolith(["quickstart", &room.path("demo"), "--json"])
        .ends(0)
        .json();
    let ranged = &answers["questions"][2]["answer"]["plan"]["layout"]["partitions"];
    let partitions = ranged.as_array().expect("partitions");
    let searched = partitions
        .iter()
        .filter(|partition| partition["decision"] == "Search" || partition["decision"] == "search");
    assert!(searched.count() < partitions.len(), "{ranged}");
}

#[test]
fn quickstart_leaves_what_is_not_its_own_alone() {
    let room = Room::new();
    let store = room.store("own", &[]);
    let line = r#"{"id":"mine","ts":1,"scope":"s","text":"private"}"#;
    chronolith(["ingest", &store, &room.file("r.jsonl", line)]).ends(0);
    chronolith(["quickstart", &store])
        .ends(1)
        .says("a store of your own");
    room.file("note.txt", "mine");
    chronolith(["quickstart", &room.path("")])
        .ends(1)
        .says("name another directory");
}
