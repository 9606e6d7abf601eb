//! One writer and four readers, each a process, each killed again and again.
//!
//! Goal: no reader ever sees a commit in part, out of order, going back, or one that was
//! neither acknowledged nor recovered; none meets an error but a refusal for now. Mechanism:
//! the readers compare every view with the model by themselves and say what they were shown;
//! what the writer said decides afterwards whether they might. The writer flushes, compacts,
//! rotates its log, closes and reopens.
//!
//! `CHRONOLITH_STRESS_SECONDS=n`: so long.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use chronolith::Store;
use chronolith_tests::data::{deep, knob, next_random};
use chronolith_tests::kills::{Child, Lane, Said, Script, child_options, found};
use chronolith_vfs::Env;

const LANE: Lane = Lane { seed: 99, index: 0 };
const READERS: u64 = 4;
/// A reader waits 5 s before it says that it is busy: more than these is no bounded wait.
const BUSY_MAX: u64 = 3;

/// What all readers said.
#[derive(Debug, Default)]
struct Seen {
    /// (last batch, seq) of every view.
    shown: Vec<(Option<u64>, u64)>,
    errors: Vec<String>,
    busy: u64,
    refreshes: u64,
    kills: u64,
}

/// What the writer said: batch to last seq, acknowledged or recovered.
#[derive(Debug, Default)]
struct Written {
    seq_of: BTreeMap<Option<u64>, u64>,
    kills: u64,
    closes: u64,
    acks: u64,
}

impl Written {
    fn note(&mut self, said: &Said) {
        let (batch, seq) = match said {
            Said::Open { seq, heads } => (heads[0], *seq),
            Said::Acked {
                number, last_seq, ..
            } => {
                self.acks += 1;
                (Some(*number), *last_seq)
            }
            Said::Durable { .. } | Said::Closed => return,
        };
        let before = self.seq_of.insert(batch, seq);
        let same = before.is_none_or(|before| before == seq);
        assert!(same, "batch {batch:?} is at seq {seq} and at {before:?}");
    }
}

/// One for all: each counts from an instant of its own.
static ENV: LazyLock<Env> = LazyLock::new(Env::real);

/// Time since some instant.
fn now() -> Duration {
    Duration::from_nanos(ENV.clock.monotonic_ns())
}

/// Writes until `end`, killed or closed after a random life.
fn run_writer(dir: &Path, end: Duration) -> Written {
    let (mut written, mut random) = (Written::default(), 1);
    while now() < end {
        let program = env!("CARGO_BIN_EXE_kill_child");
        let mut child = Child::start(program, dir, LANE.seed, Script::Reopen);
        let life = Duration::from_millis(20 + next_random(&mut random) % 2000);
        let until = (now() + life).min(end);
        while now() < until {
            let said = child.listen().expect("a writer that lives");
            written.note(&said);
        }
        let is_closed = next_random(&mut random).is_multiple_of(4);
        let said = match is_closed {
            true => child.close(),
            false => child.kill(),
        };
        said.iter().for_each(|said| written.note(said));
        *(if is_closed {
            &mut written.closes
        } else {
            &mut written.kills
        }) += 1;
    }
    written
}

/// Reads until `end`, killed after a random life.
fn run_reader(dir: &Path, index: u64, end: Duration, seen: &Mutex<Seen>) {
    let mut random = 100 + index;
    while now() < end {
        let mut command = Command::new(env!("CARGO_BIN_EXE_read_child"));
        command.arg(dir).arg(LANE.seed.to_string());
        let mut child = Child::run(command);
        let life = Duration::from_millis(100 + next_random(&mut random) % 4000);
        let until = (now() + life).min(end);
        while now() < until {
            let Some(line) = child.line() else { break };
            note_view(&line, &mut seen.lock().expect("no panic"));
        }
        drop(child);
        seen.lock().expect("no panic").kills += 1;
    }
}

fn note_view(line: &str, seen: &mut Seen) {
    seen.refreshes += 1;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["alive"] => {}
        ["busy"] => seen.busy += 1,
        ["shown", seq, batch] => {
            let seq = seq.parse().expect("a seq");
            seen.shown.push((batch.parse().ok(), seq));
        }
        _ => seen.errors.push(line.to_owned()),
    }
}

#[test]
fn readers_beside_a_writer_see_whole_acknowledged_batches_whoever_dies() {
    let seconds = knob("CHRONOLITH_STRESS_SECONDS", if deep() { 600 } else { 15 });
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    drop(Store::open(&dir, child_options()).expect("created"));
    let end = now() + Duration::from_secs(seconds);
    let seen = Mutex::new(Seen::default());
    let mut written = std::thread::scope(|threads| {
        for index in 0..READERS {
            let (dir, seen) = (&dir, &seen);
            threads.spawn(move || run_reader(dir, index, end, seen));
        }
        run_writer(&dir, end)
    });
    // What the last kill left under way is recovered here.
    let store = Store::open(&dir, child_options()).expect("opens");
    let records = found(&store.snapshot()).expect("readable");
    let last = LANE.last_batch(&records);
    assert_eq!(records, LANE.expected(last));
    written.note(&Said::Open {
        seq: store.snapshot().seq(),
        heads: vec![last],
    });

    let seen = seen.into_inner().expect("no panic");
    println!(
        "{seconds} s: {} commits by a writer killed {} and closed {} times; {} refreshes and {} \
         views by readers killed {} times; {} busy, errors: {:?}",
        written.acks,
        written.kills,
        written.closes,
        seen.refreshes,
        seen.shown.len(),
        seen.kills,
        seen.busy,
        seen.errors
    );
    assert_eq!(seen.errors, Vec::<String>::new());
    assert!(seen.busy <= BUSY_MAX, "{} times busy", seen.busy);
    for (batch, seq) in &seen.shown {
        let known = written.seq_of.get(batch);
        assert_eq!(
            known,
            Some(seq),
            "batch {batch:?} was shown at {seq} and never acknowledged"
        );
    }
    assert!(
        written.acks > 0 && seen.shown.len() > 10,
        "nothing happened"
    );
}
