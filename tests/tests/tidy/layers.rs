//! Do dependencies between the rooms point down only? Read from cargo, dev-dependencies too.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::assert_none;
use super::source::top;

/// Who may use whom: (crate, its rooms, the rooms its tests may use besides).
const ALLOWED: [(&str, &[&str], &[&str]); 8] = [
    ("chronolith-vfs", &[], &[]),
    ("chronolith-wal", &["chronolith-vfs"], &[]),
    ("chronolith-segments", &["chronolith-vfs"], &[]),
    (
        "chronolith-compaction",
        &["chronolith-vfs", "chronolith-segments"],
        &[],
    ),
    (
        "chronolith",
        &[
            "chronolith-vfs",
            "chronolith-wal",
            "chronolith-segments",
            "chronolith-compaction",
        ],
        &[],
    ),
    ("chronolith-embed", &[], &[]),
    (
        // Opens single files through the lower rooms, only to show what is inside.
        "chronolith-tools",
        &[
            "chronolith",
            "chronolith-embed",
            "chronolith-vfs",
            "chronolith-wal",
            "chronolith-segments",
        ],
        &[],
    ),
    (
        "chronolith-tests",
        &[
            "chronolith",
            "chronolith-vfs",
            "chronolith-wal",
            "chronolith-segments",
            "chronolith-compaction",
            "chronolith-embed",
        ],
        &[],
    ),
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(top())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn findings(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    let name_of = |package: &Value| package["name"].as_str().expect("a name").to_owned();
    let rooms: BTreeSet<String> = packages.iter().map(name_of).collect();
    let mut found = Vec::new();
    for package in packages {
        let name = name_of(package);
        let Some((_, uses, tests_use)) = ALLOWED.iter().find(|(room, ..)| *room == name) else {
            found.push(format!("{name} is a room that the table does not know"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = name_of(dependency);
            let is_dev = dependency["kind"] == "dev";
            let allowed =
                uses.contains(&used.as_str()) || (is_dev && tests_use.contains(&used.as_str()));
            if rooms.contains(&used) && !allowed {
                let kind = if is_dev { " in its tests" } else { "" };
                found.push(format!("{name} uses {used}{kind}: no such arrow"));
            }
        }
    }
    found
}

#[test]
fn arrows_point_down() {
    let metadata = metadata();
    assert_none("layers", &findings(&metadata));
    let packages = metadata["packages"].as_array().expect("packages").len();
    assert_eq!(packages, ALLOWED.len(), "every room of the table exists");
}

/// The engine stays free of what belongs to the command or to a server.
#[test]
fn the_library_crates_stay_lean() {
    const TOOLS_ONLY: [&str; 6] = [
        "clap",
        "indicatif",
        "comfy-table",
        "anstream",
        "owo-colors",
        "tokio",
    ];
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("packages") {
        if package["name"] == "chronolith-tools" {
            continue;
        }
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            assert!(
                !TOOLS_ONLY.contains(&name),
                "{} uses {name}",
                package["name"]
            );
        }
    }
}

#[test]
fn a_wrong_arrow_is_seen() {
    let package = |name: &str, used: &str, kind: Value| serde_json::json!({"name": name, "dependencies": [{"name": used, "kind": kind}]});
    let graph = |package: Value| {
        let bare = |name: &str| serde_json::json!({"name": name, "dependencies": []});
        serde_json::json!({"packages": [package, bare("chronolith"), bare("chronolith-wal")]})
    };
    let up = graph(package("chronolith-vfs", "chronolith-wal", Value::Null));
    assert_eq!(
        findings(&up),
        ["chronolith-vfs uses chronolith-wal: no such arrow"]
    );
    let sideways = graph(package(
        "chronolith-segments",
        "chronolith-wal",
        "dev".into(),
    ));
    assert_eq!(findings(&sideways).len(), 1);
    let unknown = graph(package("chronolith-new", "serde", Value::Null));
    assert_eq!(findings(&unknown).len(), 1);
    let outside = graph(package("chronolith-vfs", "memmap2", Value::Null));
    assert_eq!(findings(&outside), Vec::<String>::new());
}
