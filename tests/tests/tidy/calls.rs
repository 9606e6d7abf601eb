//! Does anything reach files, time, threads, randomness or the network past their home?

use super::assert_none;
use super::source::{code_only, is_word, line_of, rust_files, without_test_module};

/// Where the real thing is allowed.
const HOME: &str = "wal/vfs/src/";

/// What is banned, and what to use instead.
const BANNED: [(&str, &str); 15] = [
    ("std::fs", "chronolith_vfs::Vfs"),
    ("File::open", "chronolith_vfs::Vfs"),
    ("File::create", "chronolith_vfs::Vfs"),
    ("OpenOptions", "chronolith_vfs::Vfs"),
    ("SystemTime", "chronolith_vfs::Clock"),
    ("Instant::now", "chronolith_vfs::Clock"),
    ("Timestamp::now", "chronolith_vfs::Clock"),
    ("Zoned::now", "chronolith_vfs::Clock"),
    ("thread::sleep", "chronolith_vfs::Clock"),
    ("thread::spawn", "chronolith_vfs::Threads"),
    ("thread::Builder", "chronolith_vfs::Threads"),
    ("rand::", "chronolith_vfs::Entropy"),
    (
        "Uuid::now_v7",
        "a v7 built from chronolith_vfs::Clock and Entropy",
    ),
    ("Uuid::new_v4", "chronolith_vfs::Entropy"),
    ("std::net", "nothing: there is no network here"),
];

/// Rust that no store runs: (part of the path, reason).
const EXEMPT: [(&str, &str); 10] = [
    (
        "/tests/",
        "a suite looks at real files and starts real threads",
    ),
    ("/tests.rs", "a module's tests"),
    ("/golden.rs", "goldens lie in the source tree"),
    (
        "tests/src/",
        "what suites share: the evaluation data, a child to kill",
    ),
    (
        "/benches/",
        "a bench reads its data and this machine's memory figures",
    ),
    (
        "/examples/",
        "a program around the engine, with files and threads of its own",
    ),
    (
        "peers/src/",
        "other engines write through files of their own, and are tried from outside",
    ),
    ("wal/src/sync_model.rs", "threads of loom"),
    ("segments/src/memtable/model.rs", "threads of loom"),
    (
        "engine/src/model/",
        "threads of loom and of shuttle, and what shuttle draws",
    ),
];

fn is_exempt(path: &str) -> bool {
    path.starts_with(HOME) || EXEMPT.iter().any(|(part, _)| path.contains(part))
}

fn findings(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let code = without_test_module(&code);
    let mut found = Vec::new();
    for (call, instead) in BANNED {
        for (at, _) in code.match_indices(call) {
            let before = code[..at].chars().next_back();
            let after = code[at + call.len()..].chars().next();
            if is_word(before) || (!call.ends_with(':') && is_word(after)) {
                continue;
            }
            let line = line_of(code, at);
            found.push(format!("{path}:{line}: {call}; use {instead}"));
        }
    }
    found
}

#[test]
fn files_time_threads_and_chance_come_from_their_home() {
    let files = rust_files();
    let found: Vec<String> = files
        .iter()
        .filter(|file| !is_exempt(&file.path))
        .flat_map(|file| findings(&file.path, &file.text))
        .collect();
    assert_none("direct calls", &found);
    for (part, reason) in EXEMPT {
        let used = files.iter().any(|file| file.path.contains(part));
        assert!(used, "no file matches the exemption {part:?} ({reason})");
    }
}

#[test]
fn a_direct_call_is_seen_in_code_and_not_elsewhere() {
    for (call, _) in BANNED {
        let text = format!("fn f() {{\n    {call}(x);\n}}");
        assert_eq!(findings("a.rs", &text).len(), 1, "{call}");
    }
    let innocent = "// std::fs\nconst S: &str = \"SystemTime\";\nuse my_std::fsx;\nfn operand::x() {}\n\
                    #[cfg(test)]\nmod tests {\n    use std::fs;\n}";
    assert_eq!(findings("a.rs", innocent), Vec::<String>::new());
    assert!(!is_exempt("engine/src/store.rs") && is_exempt("wal/vfs/src/real.rs"));
}
