//! A sync that fails once, in a real process, by `strace -e inject`.
//!
//! Goal: whatever sync fails, nothing is acknowledged afterwards, and a reopen finds all that
//! was. Origin: tursodatabase/turso/issues/2091, cberner/redb/issues/299 (the state after a
//! failed fsync).

use std::path::Path;
use std::process::Command;

use chronolith::Store;
use chronolith_tests::kills::{Account, Child, Owed, Said, Script, child_options, found};

const SEED: u64 = 41;

fn can_inject() -> bool {
    let probe = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .output();
    probe.is_ok_and(|done| done.status.success())
}

/// Runs a child whose `when`th call of `syscall` (of each of its threads) fails with EIO.
fn run(dir: &Path, syscall: &str, when: u32) -> Vec<String> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null"]);
    command.arg("-e").arg(format!("trace={syscall}"));
    command
        .arg("-e")
        .arg(format!("inject={syscall}:error=EIO:when={when}"));
    command.arg(env!("CARGO_BIN_EXE_limit_child")).arg("poison");
    command.arg(dir).arg(SEED.to_string());
    let mut child = Child::run(command);
    std::iter::from_fn(|| child.line()).collect()
}

/// What a run said is taken in; true where the handle became useless and said so.
fn judge(lines: &[String], account: &mut Account) -> bool {
    let mut is_poisoned = false;
    for line in lines {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["poisoned", ..] => is_poisoned = true,
            ["again", what, kind] => {
                assert_eq!(kind, "Reopen", "{what} after a failed sync: {lines:?}");
            }
            // Before the store was open, or a failure that is definite.
            ["error", ..] | ["failed", ..] | ["done"] => {}
            _ => {
                let said = Said::parse(line).unwrap_or_else(|| panic!("{line}"));
                let is_ack = matches!(said, Said::Acked { .. });
                assert!(!(is_poisoned && is_ack), "acknowledged after a failed sync");
                account.note(&said);
            }
        }
    }
    is_poisoned
}

#[test]
fn nothing_is_acknowledged_after_a_failed_sync_and_a_reopen_finds_the_rest() {
    if !can_inject() {
        println!("skipped: failed syncs: no strace here, or it may not trace");
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let (mut runs, mut poisoned, mut failed_opens) = (0, 0, 0);
    for (syscall, whens) in [("fdatasync", [1, 2, 3, 5, 8]), ("fsync", [1, 4, 7, 12, 19])] {
        for when in whens {
            let dir = root.path().join(format!("{syscall}-{when}"));
            let mut account = Account::new(Script::Write, SEED);
            drop(Store::open(&dir, child_options()).expect("created"));
            let lines = run(&dir, syscall, when);
            runs += 1;
            poisoned += u64::from(judge(&lines, &mut account));
            let is_open = lines.iter().any(|line| line.starts_with("open"));
            failed_opens += u64::from(!is_open);
            let store = Store::open(&dir, child_options()).expect("opens after a failed sync");
            let records = found(&store.snapshot()).expect("readable");
            let settled = account.settle(&records, Owed::AfterKill);
            settled.unwrap_or_else(|why| panic!("{syscall} {when}: {why}; {lines:?}"));
        }
    }
    println!("{runs} failed syncs: {poisoned} poisoned the handle, {failed_opens} an open");
    assert!(poisoned > 2, "no sync of the log was hit");
}
