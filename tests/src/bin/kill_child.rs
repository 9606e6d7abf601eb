//! What does a writer look like that is killed? A child process for the `process` suite.
//!
//! `kill_child DIR FIRST SEED` opens the store, says `open`, writes batch FIRST, FIRST + 1, ...
//! and says `N LAST_SEQ` after each acknowledgement. It ends when it is killed, or closes the
//! store when its input ends.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronolith::{Durability, Store};
use chronolith_tests::kills::{batch, child_options};
use chronolith_vfs::Env;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, first, seed] = &args[..] else {
        println!("usage: kill_child DIR FIRST SEED");
        return;
    };
    let first: u64 = first.parse().expect("a batch number");
    let seed: u64 = seed.parse().expect("a seed");
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let wait = move || {
        // Nothing is ever sent: this returns when the parent closes the pipe.
        let _ = std::io::stdin().read(&mut [0; 1]);
        seen.store(true, Ordering::SeqCst);
    };
    Env::real()
        .threads
        .spawn("input", Box::new(wait))
        .expect("a thread");
    write_until(Path::new(dir), first, seed, &ended);
}

fn write_until(dir: &Path, first: u64, seed: u64, ended: &AtomicBool) {
    let store = Store::open(dir, child_options()).expect("opens");
    let mut out = std::io::stdout().lock();
    let mut say = |line: String| {
        // One write a line, so a kill cannot cut one.
        let said = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        assert!(
            said.is_ok() || ended.load(Ordering::SeqCst),
            "the parent is gone"
        );
    };
    say("open\n".into());
    for number in first.. {
        if ended.load(Ordering::SeqCst) {
            break;
        }
        let durability = match number % 3 {
            0 => Durability::Buffered,
            _ => Durability::Synced,
        };
        let committed = store
            .write_with(batch(seed, number), durability)
            .expect("written");
        say(format!("{number} {}\n", committed.last_seq));
    }
    store.close().expect("closed");
    say("closed\n".into());
}
