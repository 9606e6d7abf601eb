//! One module a verb; [`run`] picks it.

mod backup;
mod compact;
mod eval;
mod export;
mod forget;
mod get;
mod ingest;
mod init;
mod inspect;
mod query;
mod quickstart;
mod repair;
mod restore;
mod spaces;
mod stats;
mod verify;

use std::path::Path;

use chronolith::{Error, Options, ReadOnlyStore, Store};

use crate::cli::Command;
use crate::failure::Failure;

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Ingest(args) => ingest::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Spaces(args) => spaces::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
    }
}

/// Opens a store beside whoever writes it.
fn open_to_read(store: &Path) -> Result<ReadOnlyStore, Failure> {
    Ok(ReadOnlyStore::open(store, Options::default())?)
}

/// Opens an existing store for writing, and says what its last writer left behind.
fn open_to_write(store: &Path, options: Options) -> Result<Store, Failure> {
    let store = Store::open(store, options).map_err(|error| match error {
        Error::Locked { path } => Failure::Failed(format!(
            "{} is open for writing in another process; wait until it is done, or stop it",
            path.display()
        )),
        error => error.into(),
    })?;
    let report = store.recovery_report();
    if let Some(finding) = &report.damaged_manifest_copy {
        anstream::eprintln!(
            "note: one of two manifest copies is damaged ({finding}); the other one was used"
        );
    }
    if report.bytes_dropped > 0 {
        let certainty = match report.ambiguous {
            true => {
                "; it may hold acknowledged writes: the log's status file is missing or damaged"
            }
            false => " that was never acknowledged as synced",
        };
        anstream::eprintln!(
            "note: the last writer was cut off; {} bytes at the log's end were dropped{certainty}",
            report.bytes_dropped
        );
    }
    if let Some(acked_upto) = report.acked_lost_upto {
        anstream::eprintln!(
            "note: writes up to seq {acked_upto} were acknowledged as buffered and are lost"
        );
    }
    Ok(store)
}
