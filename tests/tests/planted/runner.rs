//! Each bug in a process of its own: on until it is seen, then off.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use chronolith_vfs::planted::{Bug, switch};
use chronolith_vfs::{Clock as _, RealClock};

use crate::checks::Check;
use crate::plan::{check_for, own_checks};

/// Names the bug of a child.
const BUG: &str = "CHRONOLITH_PLANTED_BUG";
/// Begins the line that a child answers with.
const ANSWER: &str = "PLANTED ";
/// A child that takes longer hangs.
const CHILD_WAIT: Duration = Duration::from_secs(150);

fn since(clock: &RealClock) -> Duration {
    Duration::from_nanos(clock.monotonic_ns())
}

fn name(bug: Bug) -> String {
    format!("{bug:?}")
}

/// Runs one trial; a panic is what it says.
fn trial(check: &Check, n: u64) -> Result<(), String> {
    let ran = catch_unwind(AssertUnwindSafe(|| (check.run)(n)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// The first trial that sees the bug, with what it says.
fn catch(check: &Check, bug: Bug) -> Option<(u64, String)> {
    switch(Some(bug));
    let caught = (0..check.trials).find_map(|n| trial(check, n).err().map(|why| (n, why)));
    switch(None);
    caught
}

/// Runs in a child: `PLANTED <trials> <check>|<what it said>`, or what went wrong.
#[test]
#[ignore = "the parent test starts it for one bug at a time"]
fn one_bug() {
    let Ok(wanted) = std::env::var(BUG) else {
        println!("skipped: {BUG} names no bug");
        return;
    };
    let bug = Bug::ALL.iter().copied().find(|bug| name(*bug) == wanted);
    let bug = bug.unwrap_or_else(|| panic!("{BUG}: no bug is called {wanted}"));
    // A panic is a result here: what it says is in the answer.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let check = check_for(bug);
    let caught = catch(&check, bug);
    let upto = caught.as_ref().map_or(check.trials, |(n, _)| n + 1);
    let off = (0..upto).find_map(|n| trial(&check, n).err().map(|why| (n, why)));
    std::panic::set_hook(hook);
    if let Some((n, why)) = off {
        panic!("{}: trial {n} fails with every bug off: {why}", check.name);
    }
    let Some((n, why)) = caught else {
        panic!("{}: {} trials saw nothing", check.name, check.trials);
    };
    let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let why: String = why.chars().take(150).collect();
    println!("\n{ANSWER}{}|{}|{why}", n + 1, check.name);
}

struct Caught {
    check: String,
    trials: u64,
    said: String,
    seconds: f64,
}

/// Starts a child for `bug`, and waits for its answer.
fn in_child(bug: Bug) -> Result<Caught, String> {
    let clock = RealClock::default();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["--exact", "runner::one_bug", "--ignored", "--nocapture"])
        .env(BUG, name(bug))
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    while child
        .try_wait()
        .map_err(|error| error.to_string())?
        .is_none()
    {
        if since(&clock) > CHILD_WAIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no answer after {CHILD_WAIT:?}"));
        }
        clock.sleep(Duration::from_millis(20));
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = out.lines().find_map(|line| line.strip_prefix(ANSWER));
    let parts: Vec<&str> = answer.unwrap_or_default().splitn(3, '|').collect();
    let [trials, check, said] = parts[..] else {
        let error = String::from_utf8_lossy(&output.stderr);
        let tail: Vec<&str> = error.lines().rev().take(6).collect();
        return Err(tail.into_iter().rev().collect::<Vec<_>>().join(" "));
    };
    Ok(Caught {
        check: check.to_owned(),
        trials: trials.parse().map_err(|_| format!("bad answer {out}"))?,
        said: said.to_owned(),
        seconds: since(&clock).as_secs_f64(),
    })
}

/// Runs every bug, two at a time.
fn every_bug() -> Vec<(Bug, Result<Caught, String>)> {
    let next = Mutex::new(Bug::ALL.iter().copied());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(bug) = next.lock().expect("no panic inside").next() else {
                        break;
                    };
                    let result = in_child(bug);
                    done.lock().expect("no panic inside").push((bug, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic inside");
    done.sort_by_key(|(bug, _)| *bug);
    done
}

/// The checks that live here alone are checks all the same, with every bug off.
#[test]
fn the_checks_of_this_suite_pass_with_every_bug_off() {
    let mut trials = 0;
    for check in own_checks() {
        for n in 0..check.trials {
            (check.run)(n).unwrap_or_else(|why| panic!("{}, trial {n}: {why}", check.name));
        }
        trials += check.trials;
    }
    println!("{trials} trials");
}

#[test]
fn every_planted_bug_is_caught() {
    let clock = RealClock::default();
    let results = every_bug();
    let mut missed = Vec::new();
    for (bug, result) in &results {
        let (place, what) = (bug.place(), bug.what());
        match result {
            Ok(caught) => println!(
                "{bug:?} ({place}): {what}: caught by {} at trial {}, {:.1} s: {}",
                caught.check, caught.trials, caught.seconds, caught.said
            ),
            Err(why) => {
                println!("{bug:?} ({place}): {what}: MISSED: {why}");
                missed.push(*bug);
            }
        }
    }
    let caught = results.len() - missed.len();
    let minutes = since(&clock).as_secs_f64() / 60.0;
    println!(
        "{caught} of {} planted bugs caught, {minutes:.2} minutes",
        results.len()
    );
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(caught >= 32, "{caught}");
}
