//! Do the house rules hold that no lint knows? Each rule is a pure function from text to
//! findings, run over the whole workspace, with a test beside it that sees it fail.

mod calls;
mod fixtures;
mod layers;
mod matches;
mod pages;
mod shape;
mod source;
mod unsafe_home;

/// Fails with one finding a line.
fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}
