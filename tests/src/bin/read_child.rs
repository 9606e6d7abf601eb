//! What does a reader see beside a writer that is killed? A child process for the stress suite.
//!
//! `read_child DIR SEED` refreshes and compares for ever: what it is shown is a whole batch
//! after a whole batch, and never goes back. It says `shown SEQ BATCH` for each new view,
//! `busy` where a refresh was refused for now, `alive` otherwise, and `error ...` as its last
//! word.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use chronolith::{ErrorKind, Options, ReadOnlyStore, Request, ScopeSelector};
use chronolith_tests::kills::{Lane, Model, found};
use chronolith_vfs::Env;

/// Views between two questions to the indexes.
const ASK_EVERY: u64 = 4;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, dir, seed] = &args[..] else {
        println!("usage: read_child DIR SEED");
        return;
    };
    let lane = Lane::first(seed.parse().expect("a seed"));
    let Err(why) = watch(Path::new(dir), lane);
    say(&format!("error {why}"));
    std::process::exit(1);
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes());
    if said.and_then(|()| out.flush()).is_err() {
        // Nobody listens any more.
        std::process::exit(0);
    }
}

/// A refusal that passes, or the end.
fn unless_busy<T>(result: Result<T, chronolith::Error>) -> Result<Option<T>, String> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Retry => {
            say("busy");
            Ok(None)
        }
        Err(error) => Err(format!("{:?}: {error}", error.kind())),
    }
}

fn watch(dir: &Path, lane: Lane) -> Result<std::convert::Infallible, String> {
    let store = loop {
        if let Some(store) = unless_busy(ReadOnlyStore::open(dir, Options::default()))? {
            break store;
        }
    };
    let mut model = Model::new(lane);
    let (mut seq_before, mut last_before, mut views) = (None, None, 0);
    loop {
        if unless_busy(store.refresh())?.is_none() {
            continue;
        }
        let seq = store.snapshot().seq();
        if Some(seq) < seq_before {
            return Err(format!("seq {seq} after {seq_before:?}"));
        }
        if Some(seq) == seq_before {
            say("alive");
            Env::real().clock.sleep(Duration::from_millis(2));
            continue;
        }
        let last = compare(&store, &mut model, lane)?;
        if last < last_before {
            return Err(format!("batch {last:?} after {last_before:?}"));
        }
        views += 1;
        if views % ASK_EVERY == 0 {
            ask(&store, &model, lane)?;
        }
        (seq_before, last_before) = (Some(seq), last);
        let batch = last.map_or("-".to_owned(), |last| last.to_string());
        say(&format!("shown {seq} {batch}"));
    }
}

/// Compares the view with the model at the last batch it shows.
fn compare(store: &ReadOnlyStore, model: &mut Model, lane: Lane) -> Result<Option<u64>, String> {
    let records = found(&store.snapshot()).map_err(|error| error.to_string())?;
    let last = lane.last_batch(&records);
    if let Some(last) = last {
        model.advance_to(last);
    }
    match records == model.records {
        true => Ok(last),
        false => Err(format!("batch {last:?} is there in part, or more than it")),
    }
}

/// The indexes agree with the export.
fn ask(store: &ReadOnlyStore, model: &Model, lane: Lane) -> Result<(), String> {
    let scope = lane.scope(1);
    let path = scope.path();
    let in_scope = model.records.keys().filter(|(of, _)| *of == path).count();
    let request = Request::within(ScopeSelector::Exact(scope)).text("batch");
    let hits = store.retrieve(&request.k(10_000));
    let hits = hits.map_err(|error| error.to_string())?.hits.len();
    match hits == in_scope {
        true => Ok(()),
        false => Err(format!("{hits} hits of {in_scope} records")),
    }
}
