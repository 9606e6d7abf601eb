//! Does a `matches!` stand alone, so that it checks nothing? No lint says so.

use super::assert_none;
use super::source::{code_only, is_word, line_of, rust_files};

fn findings(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let bare = |at: &usize| stands_alone(&code, *at);
    code.match_indices("matches!(")
        .map(|(at, _)| at)
        .filter(bare)
        .map(|at| format!("{path}:{}: a bare matches!; assert it", line_of(&code, at)))
        .collect()
}

/// True where the macro at `at` is a whole statement.
fn stands_alone(code: &str, at: usize) -> bool {
    if is_word(code[..at].chars().next_back()) {
        return false;
    }
    let before = code[..at].trim_end().chars().next_back();
    if !matches!(before, None | Some(';' | '{' | '}' | ']')) {
        return false;
    }
    let mut depth = 0_usize;
    for (i, char) in code[at..].char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth == 1 => return code[at + i + 1..].trim_start().starts_with(';'),
            ')' => depth -= 1,
            _ => {}
        }
    }
    false
}

#[test]
fn every_matches_is_used() {
    let files = rust_files();
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| findings(&file.path, &file.text))
        .collect();
    assert_none("bare matches!", &found);
}

#[test]
fn a_bare_matches_is_seen() {
    for bad in [
        "fn f() { matches!(x, A(_)); }",
        "fn f() {\n    g();\n    matches!(\n        x,\n        A(_)\n    );\n}",
        "fn f() { if a { b() }\n matches!(x, A) ; }",
        "fn f() { #[expect(y)] matches!(x, A); }",
    ] {
        assert_eq!(findings("a.rs", bad).len(), 1, "{bad}");
    }
    for good in [
        "fn f() { assert!(matches!(x, A(_))); }",
        "fn f() -> bool { matches!(x, A) }",
        "fn f() { let y = matches!(x, A); }",
        "fn f() { assert_matches!(x, A); }",
        "fn f() { /* matches!(x, A); */ }",
    ] {
        assert_eq!(findings("a.rs", good), Vec::<String>::new(), "{good}");
    }
}
