//! How does a service with many threads keep one memory?
//!
//! `cargo run -p chronolith --example embed_in_service`
//!
//! A `Store` is cheap to clone, and every clone is the same handle. Writers that arrive
//! together share one sync of the disk; readers never wait for writers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chronolith::{
    Batch, DAY_US, Error, ErrorKind, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
};

const WRITERS: u64 = 4;
const READERS: u64 = 2;
const NOTES: u64 = 50;
const START_US: i64 = 1_740_000_000_000_000;

/// What a service wraps around the store: its own verbs, nothing of files and threads.
#[derive(Clone)]
struct Memory {
    store: Store,
}

impl Memory {
    /// Remembers one note; returns once it survives a power cut.
    fn remember(&self, agent: u64, note: u64) -> Result<u64, Error> {
        let hour_us = DAY_US / 24;
        let at_us = START_US + i64::try_from(note).unwrap_or(0) * hour_us;
        let text = format!("agent {agent} finished step {note} of the migration");
        let scope = Scope::parse(&format!("team/migration/agent-{agent}"))?;
        let mut batch = Batch::new();
        batch.upsert(Record::new(scope, format!("step-{note}"), at_us, text));
        match self.store.write(batch) {
            // Nothing was written: the disk is behind. A service would wait or shed load here.
            Err(error) if error.kind() == ErrorKind::Retry => Err(error),
            outcome => Ok(outcome?.last_seq),
        }
    }

    /// How many of the newest steps name this one, over all agents.
    fn ask(&self, step: u64) -> Result<(u64, usize), Error> {
        let request = Request::within(ScopeSelector::parse("team/migration")?)
            .text(format!("step {step}"))
            .k(usize::try_from(WRITERS).unwrap_or(10));
        let response = self.store.retrieve(&request)?;
        Ok((response.seq, response.hits.len()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let options = Options::create(Setup::default());
    let memory = Memory {
        store: Store::open(dir.path().join("memory"), options)?,
    };
    let done = AtomicBool::new(false);
    let questions = AtomicU64::new(0);

    thread::scope(|scope| -> Result<(), Error> {
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(|| read_until(&memory.clone(), &done, &questions)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|agent| {
                let memory = memory.clone();
                scope.spawn(move || {
                    (0..NOTES).try_for_each(|note| memory.remember(agent, note).map(drop))
                })
            })
            .collect();
        let written: Result<Vec<()>, Error> = writers.into_iter().map(join).collect();
        done.store(true, Ordering::Release);
        let read: Result<Vec<()>, Error> = readers.into_iter().map(join).collect();
        written.and(read).map(drop)
    })?;

    let stats = memory.store.stats()?;
    println!("writers    {WRITERS} threads, {NOTES} commits each");
    println!("records    {} in {} scopes", stats.records, stats.scopes);
    println!(
        "questions  asked beside the writers: {}",
        questions.into_inner() > 0
    );
    let (_, hits) = memory.ask(NOTES - 1)?;
    println!("last step  found for {hits} agents");
    memory.store.close()?;
    Ok(())
}

/// Asks until the writers are done. What a reader has seen never goes back.
fn read_until(memory: &Memory, done: &AtomicBool, questions: &AtomicU64) -> Result<(), Error> {
    let mut seen = 0;
    loop {
        let last = done.load(Ordering::Acquire);
        let (seq, _) = memory.ask(questions.fetch_add(1, Ordering::Relaxed) % NOTES)?;
        assert!(seq >= seen, "a reader went back from seq {seen} to {seq}");
        seen = seq;
        if last {
            return Ok(());
        }
    }
}

/// A panic of a thread goes on in ours.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
