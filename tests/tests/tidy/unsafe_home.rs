//! Does unsafe code stay at its two addresses?

use super::assert_none;
use super::source::{code_only, is_word, line_of, rust_files};

const HOMES: [&str; 2] = ["wal/vfs/src/map.rs", "segments/src/kernels/"];

fn findings(path: &str, text: &str) -> Vec<String> {
    if HOMES.iter().any(|home| path.starts_with(home)) {
        return Vec::new();
    }
    let code = code_only(text);
    let mut found = Vec::new();
    for (word, what) in [
        ("unsafe", "unsafe away from home"),
        ("unsafe_code", "opts in to unsafe"),
    ] {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            let forbids = code[..at].ends_with("forbid(");
            if !is_word(before) && !is_word(after) && !forbids {
                found.push(format!("{path}:{}: {what}", line_of(&code, at)));
            }
        }
    }
    found
}

#[test]
fn unsafe_code_stays_home() {
    let files = rust_files();
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| findings(&file.path, &file.text))
        .collect();
    assert_none("unsafe", &found);
    for home in HOMES {
        assert!(
            files.iter().any(|file| file.path.starts_with(home)),
            "{home}"
        );
    }
}

#[test]
fn unsafe_code_is_seen() {
    assert_eq!(findings("a.rs", "fn f() { unsafe { g() } }").len(), 1);
    assert_eq!(
        findings("a.rs", "#![expect(unsafe_code, reason = \"x\")]").len(),
        1
    );
    let innocent = "#![forbid(unsafe_code)]\n// unsafe\nfn unsafe_looking() {}";
    assert_eq!(findings("a.rs", innocent), Vec::<String>::new());
    assert_eq!(findings(HOMES[0], "unsafe {}"), Vec::<String>::new());
}
