//! What does a writer look like that is killed? A child process for the suites that kill
//! processes and file systems.
//!
//! `kill_child DIR SEED SCRIPT` opens the store, says which batch of each lane is the last
//! there, writes the next ones, does the script's chores, and says each acknowledgement
//! (`Said`). It ends when it is killed, or closes the store when its input ends. An error is
//! said as `error KIND: MESSAGE` and ends it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronolith::{Durability, Error, Store};
use chronolith_tests::kills::{Chore, Lane, Said, Script, child_options, found};
use chronolith_vfs::Env;

struct Run {
    dir: PathBuf,
    script: Script,
    lanes: Vec<Lane>,
    ended: Arc<AtomicBool>,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, seed, script] = &args[..] else {
        println!("usage: kill_child DIR SEED SCRIPT");
        return;
    };
    let script = Script::parse(script).expect("a script");
    let run = Run {
        dir: dir.into(),
        script,
        lanes: script.lanes(seed.parse().expect("a seed")),
        ended: watch_input(),
    };
    let closed = run.open().and_then(|store| run.write(store));
    match closed {
        Ok(()) => say(&Said::Closed),
        Err(error) => {
            let line = format!("error {:?}: {error}\n", error.kind());
            let _ = std::io::stdout().write_all(line.as_bytes());
            std::process::exit(1);
        }
    }
}

/// Raised when the parent closes the pipe.
fn watch_input() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let wait = move || {
        // Nothing is ever sent.
        let _ = std::io::stdin().read(&mut [0; 1]);
        seen.store(true, Ordering::SeqCst);
    };
    let threads = Env::real().threads;
    threads.spawn("input", Box::new(wait)).expect("a thread");
    ended
}

/// One write a line, so that a kill cannot cut one. Whether anyone listens is not our matter.
fn say(said: &Said) {
    let mut out = std::io::stdout().lock();
    let _ = out
        .write_all(said.line().as_bytes())
        .and_then(|()| out.flush());
}

impl Run {
    fn open(&self) -> Result<Store, Error> {
        let store = Store::open(&self.dir, child_options())?;
        let snapshot = store.snapshot();
        let records = found(&snapshot)?;
        let heads = self.lanes.iter().map(|lane| lane.last_batch(&records));
        say(&Said::Open {
            seq: snapshot.seq(),
            heads: heads.collect(),
        });
        Ok(store)
    }

    /// Writes until the input ends, then closes.
    fn write(&self, store: Store) -> Result<(), Error> {
        let store = match self.lanes[..] {
            [lane] => self.write_lane(store, 0, lane)?,
            _ => self.write_lanes(store)?,
        };
        store.close()
    }

    fn write_lanes(&self, store: Store) -> Result<Store, Error> {
        let lanes = self.lanes.iter().enumerate();
        std::thread::scope(|threads| {
            let write = |(at, lane): (usize, &Lane)| {
                let (store, lane) = (store.clone(), *lane);
                threads.spawn(move || self.write_lane(store, at, lane).map(drop))
            };
            let writers: Vec<_> = lanes.map(write).collect();
            let mut ends = writers
                .into_iter()
                .map(|writer| writer.join().expect("no panic"));
            ends.try_for_each(|end| end)
        })?;
        Ok(store)
    }

    fn write_lane(&self, mut store: Store, at: usize, lane: Lane) -> Result<Store, Error> {
        let records = found(&store.snapshot())?;
        let first = lane.last_batch(&records).map_or(0, |last| last + 1);
        for number in first.. {
            if self.ended.load(Ordering::SeqCst) {
                break;
            }
            let durability = match self.script {
                Script::Lie => Durability::Buffered,
                script => script.durability(number),
            };
            let committed = store.write_with(lane.batch(number), durability)?;
            say(&Said::Acked {
                lane: at,
                number,
                last_seq: committed.last_seq,
            });
            if let Some(chore) = self.script.chore(lane, number) {
                store = self.run_chore(store, chore)?;
            }
        }
        Ok(store)
    }

    fn run_chore(&self, store: Store, chore: Chore) -> Result<Store, Error> {
        let seq = store.snapshot().seq();
        match chore {
            Chore::Flush => store.flush()?,
            Chore::Compact(force) => drop(store.compact(force, &mut |_| {})?),
            Chore::Sync => store.sync()?,
            Chore::Close => {
                store.close()?;
                say(&Said::Durable { seq });
                return self.open();
            }
            Chore::Drop => {
                drop(store);
                return self.open();
            }
        }
        say(&Said::Durable { seq });
        Ok(store)
    }
}
