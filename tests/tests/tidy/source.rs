//! What does a rule read? The workspace's files, and Rust code without comments and literals.

use std::path::{Path, PathBuf};

/// One text file of the workspace.
pub(crate) struct SourceFile {
    /// Path from the top, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The top of the workspace.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names at the top, ascending, without what git ignores.
pub(crate) fn top_names() -> Vec<String> {
    let ignored = ignored();
    let mut names: Vec<String> = entries(&top())
        .into_iter()
        .map(|path| name_of(&path))
        .filter(|name| !ignored.contains(name))
        .collect();
    names.sort();
    names
}

/// Every UTF-8 file outside `.git` and what git ignores, by path.
pub(crate) fn all_files() -> Vec<SourceFile> {
    let mut files = Vec::new();
    for name in top_names() {
        collect(&top().join(&name), &name, &mut files);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Every Rust file.
pub(crate) fn rust_files() -> Vec<SourceFile> {
    let mut files = all_files();
    files.retain(|file| file.path.ends_with(".rs"));
    assert!(files.len() > 100, "the walk finds the workspace");
    files
}

fn collect(at: &Path, path: &str, files: &mut Vec<SourceFile>) {
    if at.is_dir() {
        for entry in entries(at) {
            collect(&entry, &format!("{path}/{}", name_of(&entry)), files);
        }
    } else if let Ok(text) = std::fs::read_to_string(at) {
        let path = path.to_owned();
        files.push(SourceFile { path, text });
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(dir).expect("a directory of the workspace");
    listing
        .map(|entry| entry.expect("an entry of the workspace").path())
        .collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().expect("an entry has a name");
    name.to_string_lossy().into_owned()
}

/// Names at the top that are no part of the project.
fn ignored() -> Vec<String> {
    let lines = std::fs::read_to_string(top().join(".gitignore")).expect(".gitignore");
    let rooted = lines.lines().filter_map(|line| line.strip_prefix('/'));
    rooted
        .map(str::to_owned)
        .chain([".git".to_owned()])
        .collect()
}

/// `text` with every comment, string and character blanked; lines and columns stay.
pub(crate) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = chars.clone();
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        for place in &mut out[at..end] {
            if *place != '\n' {
                *place = ' ';
            }
        }
        at = end.max(at + 1);
    }
    out.into_iter().collect()
}

/// Where the comment or literal that starts at `at` ends; `at` where none starts.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |rest| rest[0] == '\n'),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !is_word(at.checked_sub(1).map(|i| chars[i])) || raw_prefix(chars, at) => {
            raw_end(chars, at)
        }
        '\'' if next == Some('\\') => find(chars, at + 3, |rest| rest[0] == '\'') + 1,
        '\'' if chars.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

/// True for the `r` of `br"..."`.
fn raw_prefix(chars: &[char], at: usize) -> bool {
    at > 0 && chars[at - 1] == 'b' && !is_word(at.checked_sub(2).map(|i| chars[i]))
}

pub(crate) fn is_word(char: Option<char>) -> bool {
    char.is_some_and(|char| char.is_alphanumeric() || char == '_')
}

fn find(chars: &[char], from: usize, holds: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len())
        .find(|i| holds(&chars[*i..]))
        .unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0_usize, at);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i.min(chars.len())
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// End of `r"..."` or `r#"..."#` at `at`; `at` where it is something else.
fn raw_end(chars: &[char], at: usize) -> usize {
    let open = find(chars, at + 1, |rest| rest[0] != '#');
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let hashes = open - at - 1;
    let closes = |rest: &[char]| {
        rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#')
    };
    (find(chars, open + 1, closes) + 1 + hashes).min(chars.len())
}

/// `code` up to its test module: by convention the last item of a file.
pub(crate) fn without_test_module(code: &str) -> &str {
    let start = code.match_indices("#[cfg(test)]").find(|(at, _)| {
        let rest = code[at + "#[cfg(test)]".len()..].trim_start();
        let head = rest.lines().next().unwrap_or_default();
        head.starts_with("mod ") && head.trim_end().ends_with('{')
    });
    start.map_or(code, |(at, _)| &code[..at])
}

/// 1-based line of a byte offset.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn comments_and_literals_are_blanked_and_code_stays() {
    let text =
        "a /* x /* y */ z */ b // c\n\"d \\\" e\" f r#\"g \" h\"# 'i' '\\'' &'j k b\"l\" br\"m\"";
    let words: Vec<String> = code_only(text)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(words, ["a", "b", "f", "&'j", "k", "b", "b"]);
    assert_eq!(code_only(text).lines().count(), text.lines().count());
}

#[test]
fn a_test_module_is_cut_off_and_a_test_file_is_not() {
    let code = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n#[cfg(test)]\nmod tests {\n}";
    let kept = without_test_module(code);
    assert_eq!(kept, "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n");
}
