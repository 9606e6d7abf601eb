//! What is left when the process is killed in the middle of a write?
//!
//! `cargo run -p chronolith --example crash_and_reopen`
//!
//! The program starts itself as a child that writes and reports each acknowledgement, kills
//! it with a signal it cannot catch, and reopens the store. Everything that was acknowledged
//! is there; what was not is there as a whole or not at all.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use chronolith::{Batch, DAY_US, Options, Record, Scope, Setup, Store};

const START_US: i64 = 1_740_000_000_000_000;
/// Records of one batch: present together, or absent together.
const BATCH: u64 = 3;
/// Acknowledgements to wait for before the kill.
const KILL_AFTER: u64 = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(store) => write_for_ever(Path::new(&store)),
        None => kill_and_look(),
    }
}

/// The child: one batch after the other, and a line for each that `write` has acknowledged.
fn write_for_ever(path: &Path) -> Result<(), Box<dyn Error>> {
    let store = Store::open(path, Options::create(Setup::default()))?;
    let scope = Scope::parse("user/ana")?;
    let mut out = std::io::stdout().lock();
    for number in 0_u64.. {
        let mut batch = Batch::new();
        for part in 0..BATCH {
            let at_us = START_US + i64::try_from(number)? * DAY_US / 24;
            let text = format!("note {number}, part {part}");
            batch.upsert(Record::new(
                scope.clone(),
                format!("{number}-{part}"),
                at_us,
                text,
            ));
        }
        store.write(batch)?;
        writeln!(out, "{number}")?;
        out.flush()?;
    }
    Ok(())
}

/// The parent: starts the child, kills it, reopens what it left.
fn kill_and_look() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("memory");
    let mut child = Command::new(std::env::current_exe()?)
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()?;
    let pipe = child.stdout.take().ok_or("the child has no stdout")?;
    let mut acknowledged = 0;
    for line in BufReader::new(pipe).lines() {
        // Lines that arrive after the kill count too: they were acknowledged before it.
        acknowledged = line?.parse::<u64>()? + 1;
        if acknowledged == KILL_AFTER {
            child.kill()?;
        }
    }
    let status = child.wait()?;
    println!(
        "child         ended by the kill: {}",
        status.code().is_none()
    );
    println!(
        "acknowledged  at least {KILL_AFTER} batches: {}",
        acknowledged >= KILL_AFTER
    );

    let store = Store::open(&path, Options::default())?;
    let report = store.recovery_report();
    println!("sealed        {}", report.sealed);
    println!(
        "replayed      {} batches, {} operations",
        report.batches_replayed, report.operations_replayed
    );
    println!(
        "dropped       {} bytes of a batch that was never whole",
        report.bytes_dropped
    );
    println!("ambiguous     {}", report.ambiguous);

    let scope = Scope::parse("user/ana")?;
    let mut lost = 0;
    for number in 0..acknowledged {
        let whole = parts(&store, &scope, number)? == BATCH;
        lost += u64::from(!whole);
    }
    let torn = !matches!(parts(&store, &scope, acknowledged)?, 0 | BATCH);
    println!("lost          {lost} acknowledged batches");
    println!("torn          {torn}");
    store.close()?;
    Ok(())
}

/// How many records of a batch are there.
fn parts(store: &Store, scope: &Scope, number: u64) -> Result<u64, chronolith::Error> {
    let mut found = 0;
    for part in 0..BATCH {
        found += u64::from(store.get(scope, &format!("{number}-{part}"))?.is_some());
    }
    Ok(found)
}
