//! Is there a committed file of every format version that the code knows?

use super::assert_none;
use super::source::{SourceFile, all_files, code_only, top};

/// A version constant and, from version to version, the files that prove it readable.
struct Format {
    path: &'static str,
    constant: &'static str,
    fixtures: &'static [(u32, &'static [&'static str])],
}

const FORMATS: [Format; 9] = [
    Format {
        path: "engine/src/manifest/format.rs",
        constant: "FORMAT_VERSION",
        fixtures: &[
            (0, &["engine/tests/golden/manifest-0.hex"]),
            (1, &["engine/tests/golden/manifest-1.hex"]),
        ],
    },
    Format {
        path: "engine/src/manifest/pointer.rs",
        constant: "FORMAT_VERSION",
        fixtures: &[(0, &["engine/tests/golden/current-0.hex"])],
    },
    Format {
        path: "engine/src/manifest/side_file.rs",
        constant: "SIDE_FILE_FORMAT_VERSION",
        fixtures: &[(
            0,
            &[
                "engine/tests/golden/deletes-0.hex",
                "engine/tests/golden/tags-0.hex",
            ],
        )],
    },
    Format {
        // Earlier ones are scrubbed; what they seal is built anew.
        path: "engine/src/catalog/seal.rs",
        constant: "VERSION",
        fixtures: &[
            (0, &["tests/fuzz-corpus/seal/valid-earlier"]),
            (1, &["tests/fuzz-corpus/seal/valid-one-file"]),
        ],
    },
    Format {
        path: "engine/src/backup/index.rs",
        constant: "FORMAT_VERSION",
        fixtures: &[(0, &["engine/tests/golden/backup-0.hex"])],
    },
    Format {
        // Versions before 3 are refused.
        path: "segments/src/format/mod.rs",
        constant: "FORMAT_VERSION",
        fixtures: &[
            (0, &["segments/tests/golden/segment_v0.txt"]),
            (1, &["segments/tests/golden/segment_v1.txt"]),
            (2, &["segments/tests/golden/segment_v2.txt"]),
            (3, &["segments/tests/golden/segment_v3.txt"]),
            (4, &["segments/tests/golden/segment_v4.txt"]),
        ],
    },
    Format {
        path: "segments/src/codec/batch.rs",
        constant: "BATCH_VERSION",
        fixtures: &[
            (1, &["segments/tests/golden/batch.txt"]),
            (2, &["segments/tests/golden/batch-2.txt"]),
            (3, &["segments/tests/golden/batch-3.txt"]),
        ],
    },
    Format {
        path: "wal/src/files.rs",
        constant: "FORMAT_NEWEST",
        fixtures: &[
            (
                0,
                &[
                    "wal/tests/golden/format-0-first.txt",
                    "wal/tests/golden/format-0-second.txt",
                    "wal/tests/golden/format-0-status.txt",
                ],
            ),
            (
                1,
                &[
                    "wal/tests/golden/format-1-first.txt",
                    "wal/tests/golden/format-1-second.txt",
                    "wal/tests/golden/format-1-status.txt",
                ],
            ),
        ],
    },
    Format {
        // What a term is: the tables of its tests are the fixture. Version 1 is refused.
        path: "segments/src/analyze/mod.rs",
        constant: "ANALYZER_VERSION",
        fixtures: &[(2, &["segments/src/analyze/tests.rs"])],
    },
];

/// `(name, value)` of every constant of `code` that versions bytes. Offsets are u64 and stay out.
fn version_constants(code: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for line in code.lines() {
        let Some((_, rest)) = line.split_once("const ") else {
            continue;
        };
        let Some((name, rest)) = rest.split_once(": u") else {
            continue;
        };
        let versions = ["VERSION", "FORMAT"];
        if !versions.iter().any(|word| name.contains(word)) || rest.starts_with("64") {
            continue;
        }
        let value = rest.split_once('=').map(|(_, value)| value.trim());
        let value = value.and_then(|value| value.trim_end_matches(';').parse().ok());
        found.extend(value.map(|value| (name.to_owned(), value)));
    }
    found
}

fn findings(files: &[SourceFile], formats: &[Format]) -> Vec<String> {
    // Fixtures of bytes that are no text are not among the files.
    let on_disk = |path: &str| std::fs::metadata(top().join(path)).is_ok_and(|file| file.len() > 0);
    let exists = |path: &str| {
        let mut texts = files.iter();
        on_disk(path) || texts.any(|file| file.path == path && !file.text.is_empty())
    };
    let mut found = Vec::new();
    let mut met = 0;
    for file in files
        .iter()
        .filter(|file| file.path.contains("src/") && file.path.ends_with(".rs"))
    {
        for (name, newest) in version_constants(&code_only(&file.text)) {
            let known = formats
                .iter()
                .find(|f| f.path == file.path && f.constant == name);
            let Some(format) = known else {
                found.push(format!("{}: {name} is in no table of fixtures", file.path));
                continue;
            };
            met += 1;
            if format
                .fixtures
                .iter()
                .all(|(version, _)| *version != newest)
            {
                found.push(format!(
                    "{}: {name} is {newest}, without a fixture",
                    file.path
                ));
            }
        }
    }
    for path in formats
        .iter()
        .flat_map(|f| f.fixtures)
        .flat_map(|(_, paths)| *paths)
    {
        if !exists(path) {
            found.push(format!("{path}: the fixture is missing or empty"));
        }
    }
    if met != formats.len() {
        found.push(format!(
            "{met} of {} constants of the table were found",
            formats.len()
        ));
    }
    found
}

#[test]
fn every_format_version_has_a_fixture() {
    assert_none("fixtures", &findings(&all_files(), &FORMATS));
}

#[test]
fn a_version_without_a_fixture_is_seen() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.into(),
        text: text.into(),
    };
    let table = || {
        [Format {
            path: "a/src/x.rs",
            constant: "FORMAT_VERSION",
            fixtures: &[(0, &["a/x-0.hex"])],
        }]
    };
    let code = "pub const FORMAT_VERSION: u32 = 0;\nconst VERSION_AT: u64 = 8;";
    let fixture = file("a/x-0.hex", "00");
    let good = [file("a/src/x.rs", code), fixture];
    assert_eq!(findings(&good, &table()), Vec::<String>::new());

    let raised = [
        file("a/src/x.rs", &code.replace("= 0", "= 1")),
        file("a/x-0.hex", "00"),
    ];
    assert_eq!(findings(&raised, &table()).len(), 1);
    let gone = [file("a/src/x.rs", code)];
    assert_eq!(findings(&gone, &table()).len(), 1);
    let new = file("a/src/y.rs", "const Y_VERSION: u8 = 3;");
    let unknown = [file("a/src/x.rs", code), file("a/x-0.hex", "00"), new];
    assert_eq!(findings(&unknown, &table()).len(), 1);
    let renamed = [file("a/src/x.rs", ""), file("a/x-0.hex", "00")];
    assert_eq!(findings(&renamed, &table()).len(), 1);
}
