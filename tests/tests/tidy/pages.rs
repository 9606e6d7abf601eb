//! Do the pages tell the truth: the README's example, the paths they name, no path of one machine?

use super::assert_none;
use super::source::{SourceFile, all_files, top};

const README: &str = "README.md";
const EXAMPLE: &str = "engine/examples/readme.rs";
/// Pages whose paths must exist.
const PAGES: [&str; 2] = [README, "engine/FORMAT.md"];
/// Longest example that a README should hold, lines.
const EXAMPLE_LINES_MAX: usize = 45;

/// Beginnings of paths that exist on one machine only, in two parts so that this file holds none.
const MACHINE_PATHS: [(&str, &str); 5] = [
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/t", "mp/"),
    ("/Us", "ers/"),
];
/// Where such a path is content: (beginning of the path, reason).
const CONTENT: [(&str, &str); 2] = [
    ("tools/data/", "the bundled log tells of servers"),
    ("tools/embed/model/", "a vocabulary"),
];
/// What a user may read in a help text.
const HELP_PATH: (&str, &str) = ("/t", "mp/demo");

fn text_of<'a>(files: &'a [SourceFile], path: &str) -> &'a str {
    let file = files.iter().find(|file| file.path == path);
    &file.unwrap_or_else(|| panic!("{path} is missing")).text
}

/// The Rust block of a page.
fn rust_block(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("```rust\n")?;
    rest.split_once("```").map(|(block, _)| block)
}

/// The example without its first doc line.
fn body(example: &str) -> &str {
    example.split_once("\n\n").map_or("", |(_, body)| body)
}

/// Paths between backticks or in links that name a file of the workspace.
fn named_paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let linked = page
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let is_path = |name: &&str| {
        let ends = [
            ".rs",
            ".md",
            ".txt",
            ".toml",
            "NOTICE",
            "LICENSE-MIT",
            "LICENSE-APACHE",
        ];
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        // A bare `lib.rs` is a kind of file, not one of them.
        let placed = !name.ends_with(".rs") || name.contains('/');
        plain && placed && ends.iter().any(|end| name.ends_with(end))
    };
    quoted.chain(linked).filter(is_path).collect()
}

fn machine_findings(file: &SourceFile) -> Vec<String> {
    if CONTENT
        .iter()
        .any(|(begin, _)| file.path.starts_with(begin))
    {
        return Vec::new();
    }
    let help = [HELP_PATH.0, HELP_PATH.1].concat();
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let line = line.replace(&help, "");
        for (head, tail) in MACHINE_PATHS {
            let needle = [head, tail].concat();
            // `a/home/b` is a scope or a relative path; a machine's path starts a word.
            let starts_word = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-".contains(c))
            };
            if line.match_indices(&needle).any(|(at, _)| starts_word(at)) {
                found.push(format!(
                    "{}:{}: a path of one machine",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    found
}

#[test]
fn the_readme_example_is_the_one_that_compiles() {
    let files = all_files();
    let block = rust_block(text_of(&files, README)).expect("the README has a Rust block");
    assert_eq!(
        block,
        body(text_of(&files, EXAMPLE)),
        "{README} and {EXAMPLE} differ"
    );
    let lines = block.lines().count();
    assert!(
        lines <= EXAMPLE_LINES_MAX,
        "{lines} lines are no short example"
    );
}

#[test]
fn the_paths_that_pages_name_exist() {
    let files = all_files();
    for page in PAGES {
        let named = named_paths(text_of(&files, page));
        assert!(named.len() > 3, "{page} names files");
        for name in named {
            let beside = top().join(page).with_file_name(name);
            assert!(
                top().join(name).exists() || beside.exists(),
                "{page} names {name}"
            );
        }
    }
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    let found: Vec<String> = all_files().iter().flat_map(machine_findings).collect();
    assert_none("machine paths", &found);
}

#[test]
fn a_page_that_lies_is_seen() {
    assert_eq!(
        rust_block("a\n```rust\nfn main() {}\n```\nb"),
        Some("fn main() {}\n")
    );
    assert_eq!(body("//! Doc.\n\nfn main() {}\n"), "fn main() {}\n");
    let named = named_paths("`a/b.rs` and `not a path.rs` and [x](LICENSE-MIT) and `Store`");
    assert_eq!(named, ["a/b.rs", "LICENSE-MIT"]);

    let file = |text: String| SourceFile {
        path: "a.rs".into(),
        text,
    };
    for (head, tail) in MACHINE_PATHS {
        assert_eq!(
            machine_findings(&file(format!("\"{head}{tail}x\""))).len(),
            1
        );
    }
    let innocent = "user/ana/home/x, the home/ of files";
    assert_eq!(
        machine_findings(&file(innocent.into())),
        Vec::<String>::new()
    );
}
