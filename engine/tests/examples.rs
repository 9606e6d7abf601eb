//! Do the examples run, and do they show what they say? Each is started as a user would.
//!
//! `cargo test` builds the examples beside this binary; what is run is what was built.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example to its end, with a directory of its own for what it leaves behind, and
/// returns what it printed.
fn run(name: &str) -> String {
    let scratch = tempfile::tempdir().expect("a directory");
    let output = Command::new(built(name))
        .env("TMPDIR", scratch.path())
        .output()
        .expect("the example starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}:\n{printed}\n{errors}");
    printed
}

/// `target/<profile>/examples/<name>`, from `target/<profile>/deps/<this test>`. Built here
/// where this test was asked for alone.
fn built(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test has a path");
    let profile = this.ancestors().nth(2).expect("a test lies in deps");
    let path = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        let build = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--offline", "--example", name])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(build.success(), "example {name} does not build");
    }
    path
}

/// The lines under `-- heading`, up to the next blank one.
fn section<'a>(printed: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = printed.lines();
    lines
        .skip_while(|line| *line != format!("-- {heading}"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect()
}

/// The ids of a section's hits, in order.
fn ids<'a>(printed: &'a str, heading: &str) -> Vec<&'a str> {
    let hits = section(printed, heading);
    assert!(!hits.is_empty(), "no hits under {heading:?}:\n{printed}");
    hits.into_iter()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect()
}

#[test]
fn the_readme_example_finds_both_ports() {
    let printed = run("readme");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines.iter().all(|line| line.contains("443")), "{printed}");
}

#[test]
fn a_service_writes_and_reads_from_many_threads() {
    let printed = run("embed_in_service");
    for line in [
        "records    200 in 4 scopes",
        "questions  asked beside the writers: true",
        "last step  found for 4 agents",
    ] {
        assert!(printed.contains(line), "{line:?} is not in:\n{printed}");
    }
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    let printed = run("crash_and_reopen");
    for line in [
        "child         ended by the kill: true",
        "acknowledged  at least 40 batches: true",
        "sealed        false",
        "ambiguous     false",
        "lost          0 acknowledged batches",
        "torn          false",
    ] {
        assert!(printed.contains(line), "{line:?} is not in:\n{printed}");
    }
}

#[test]
fn a_store_moves_to_another_model_while_it_answers() {
    let printed = run("migrate_model");
    for line in [
        "mixed: vector: was made by letters-3; the vectors of space main come from letters-1",
        "filled: 4",
        "space main: 4 vectors of letters-1, the default",
        "space next: 4 vectors of letters-3\n",
        "space next: 4 vectors of letters-3, the default",
    ] {
        assert!(printed.contains(line), "{line:?} is not in:\n{printed}");
    }
    assert_eq!(printed.matches("space main").count(), 2, "{printed}");
}

#[test]
fn filters_narrow_and_the_plan_accounts() {
    let printed = run("filters_and_explain");
    let of = |heading| {
        let mut ids = ids(&printed, heading);
        ids.sort_unstable();
        ids
    };
    assert_eq!(of("one scope"), ["r1", "r2", "r3", "r4", "r5", "r6"]);
    let with_rules = of("the scope and those above it");
    assert!(with_rules.contains(&"t1") && !with_rules.contains(&"z1"));
    assert_eq!(of("March only"), ["r1", "r2", "r3", "r4"]);
    let deploys = of("tag deploy, which a rollback is too");
    assert_eq!(deploys, ["r1", "r2", "r4", "r5"]);
    assert!(!of("nothing that a model guessed").contains(&"r6"));
    let story = ids(&printed, "one hit with the record before and after it");
    assert_eq!(story, ["r2", "r3", "r4"]);
    let small = section(&printed, "at most 30 tokens of text").join("\n");
    assert!(small.contains("(over the budget)"), "{small}");
    assert!(
        printed.contains("population  6 live rows in scope"),
        "{printed}"
    );
    assert!(
        printed.contains("tags        any of deploy, rollback"),
        "{printed}"
    );
}
