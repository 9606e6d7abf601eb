//! Are the planted bugs in no build that is shipped?

use std::process::Command;

use chronolith_vfs::planted::{Bug, COMPILED, is_on};

fn features(package: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--edges",
            "features",
            "--prefix",
            "none",
        ])
        .args(["--package", package])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "cargo tree: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn no_shipped_package_asks_for_the_bugs() {
    const FEATURE: &str = "chronolith-vfs feature \"planted\"";
    for package in [
        "chronolith-tools",
        "chronolith",
        "chronolith-segments",
        "chronolith-wal",
        "chronolith-vfs",
    ] {
        let tree = features(package);
        assert!(tree.contains("chronolith-vfs"), "{package}: {tree}");
        assert!(!tree.contains(FEATURE), "{package} has the planted bugs");
    }
    let tree = features("chronolith-tests");
    assert!(tree.contains(FEATURE), "the check can fail: {tree}");
}

#[test]
fn the_suite_has_the_bugs_and_they_are_off() {
    const { assert!(COMPILED) };
    assert!(Bug::ALL.iter().all(|bug| !is_on(*bug)));
}
