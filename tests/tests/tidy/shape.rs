//! Does the house keep its shape: a bare top, files of a size to read, maps at the doors?

use super::assert_none;
use super::source::{SourceFile, rust_files, top_names};

/// All that stands at the top.
const TOP: [&str; 19] = [
    ".cargo",
    ".ci",
    ".config",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "compaction",
    "deny.toml",
    "engine",
    "segments",
    "tests",
    "tools",
    "wal",
];
/// Optional at the top: benches against other engines and libFuzzer, outside the workspace.
const TOP_OPTIONAL: [&str; 3] = ["fuzz", "peers", "rustfmt.toml"];

/// Past this a file is probably two.
const LINES_MAX: usize = 700;
/// Files that are longer, with the length they may not pass. Lower the number when one
/// shrinks; add none.
const LONG_FILES: [(&str, usize); 0] = [];

/// Fewest lines of a crate's map.
const MAP_LINES_MIN: usize = 8;
/// A crate of shared helpers whose door needs no map.
const SMALL_DOORS: [&str; 1] = ["tests/src/lib.rs"];

fn top_findings(names: &[String]) -> Vec<String> {
    let known =
        |name: &&String| !TOP.contains(&name.as_str()) && !TOP_OPTIONAL.contains(&name.as_str());
    let strangers = names.iter().filter(known);
    strangers
        .map(|name| format!("{name}: does not belong at the top"))
        .collect()
}

fn length_findings(file: &SourceFile, long_files: &[(&str, usize)]) -> Vec<String> {
    let lines = file.text.lines().count();
    let known = long_files.iter().find(|(path, _)| *path == file.path);
    match known {
        Some((_, lines_max)) if lines > *lines_max => {
            vec![format!(
                "{}: grew from {lines_max} to {lines} lines",
                file.path
            )]
        }
        Some(_) if lines <= LINES_MAX => {
            vec![format!(
                "{}: is short now; strike it from the list",
                file.path
            )]
        }
        None if lines > LINES_MAX => {
            vec![format!("{}: {lines} lines; at most {LINES_MAX}", file.path)]
        }
        _ => Vec::new(),
    }
}

/// A file says first what it is for; a crate's door is a map.
fn door_findings(file: &SourceFile) -> Vec<String> {
    // A module's tests are introduced by the module.
    if file.path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let is_doc = |line: &&str| line.starts_with("//!");
    let lines = file.text.lines().take_while(is_doc).count();
    if lines == 0 {
        return vec![format!(
            "{}: begins without a line that says what for",
            file.path
        )];
    }
    let is_door = file.path.ends_with("src/lib.rs") && !SMALL_DOORS.contains(&file.path.as_str());
    if is_door && lines < MAP_LINES_MIN {
        return vec![format!("{}: is no map yet ({lines} lines)", file.path)];
    }
    Vec::new()
}

#[test]
fn the_top_is_bare() {
    assert_none("top", &top_findings(&top_names()));
}

#[test]
fn files_have_a_size_to_read() {
    let files = rust_files();
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| length_findings(file, &LONG_FILES))
        .collect();
    assert_none("length", &found);
}

#[test]
fn every_file_says_what_for_and_every_crate_has_a_map() {
    let found: Vec<String> = rust_files().iter().flat_map(door_findings).collect();
    assert_none("doors", &found);
}

#[test]
fn a_lost_shape_is_seen() {
    let file = |path: &str, text: String| SourceFile {
        path: path.into(),
        text,
    };
    assert_eq!(
        top_findings(&["README.md".into(), "notes.txt".into()]).len(),
        1
    );

    let long = file("a.rs", "//! A\n".repeat(LINES_MAX + 1));
    assert_eq!(length_findings(&long, &[]).len(), 1);
    assert_eq!(length_findings(&long, &[("a.rs", LINES_MAX)]).len(), 1);
    assert_eq!(length_findings(&long, &[("a.rs", LINES_MAX + 9)]).len(), 0);
    let short = file("a.rs", "//! A\n".into());
    assert_eq!(length_findings(&short, &[("a.rs", 900)]).len(), 1);

    assert_eq!(
        door_findings(&file("a/src/x.rs", "use y;\n".into())).len(),
        1
    );
    assert_eq!(
        door_findings(&file("a/src/lib.rs", "//! A\n".into())).len(),
        1
    );
    assert_eq!(
        door_findings(&file("a/src/lib.rs", "//! A\n".repeat(9))).len(),
        0
    );
}
