//! What does a backup hold that is made while a writer goes on?

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chronolith::{Durability, Error, Maintenance, Options, Setup, Store, backup, restore};
use chronolith_vfs::Env;

use crate::support::{how, put, record, records};

/// Backs up beside the writer, restores, and compares with what the writer had been told.
fn round(dir: &Path, number: usize, acked: &AtomicUsize) -> Result<(), Error> {
    // As from a process of its own: only the path is known.
    let before = acked.load(Ordering::SeqCst);
    let (store, dest) = (dir.join("store"), dir.join("backup"));
    backup(
        &Env::real(),
        &store,
        &dest,
        &how(number % 3 == 2),
        &mut |_| {},
    )?;
    let after = acked.load(Ordering::SeqCst);
    let new = dir.join(format!("new-{number}"));
    restore(&Env::real(), &dest, &new, &mut |_| {})?;
    let manual = Options {
        maintenance: Maintenance::Manual,
        ..Options::default()
    };
    let restored = Store::open(&new, manual)?;
    let report = restored.recovery_report();
    assert_eq!((report.bytes_dropped, report.ambiguous), (0, false));
    let found = records(&restored);
    assert!(
        found.len() >= before,
        "{} of {before} acknowledged",
        found.len()
    );
    assert!(
        found.len() <= after + 1,
        "{} of {after} written",
        found.len()
    );
    let wanted = (0..found.len()).map(record);
    let mut wanted: Vec<_> = wanted.map(|r| format!("{}={}", r.id, r.text)).collect();
    wanted.sort();
    assert_eq!(found, wanted, "a prefix, round {number}");
    Ok(())
}

#[test]
fn backups_beside_a_busy_writer_are_prefixes_that_hold_what_was_acknowledged() {
    let temp = tempfile::tempdir().expect("a directory");
    let busy = Options {
        memtable_bytes_max: 48 << 10,
        log_file_bytes_max: 16 << 10,
        log_preallocate_bytes: 4096,
        durability: Durability::Buffered,
        ..Options::create(Setup::default())
    };
    let store = Store::open(temp.path().join("store"), busy).expect("creates");
    let (acked, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done = std::thread::scope(|threads| {
        threads.spawn(|| {
            for i in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                put(&store, i);
                acked.store(i + 1, Ordering::SeqCst);
                if i % 400 == 399 {
                    store.compact(true, &mut |_| {}).expect("compacts");
                }
            }
        });
        let rounds = std::panic::AssertUnwindSafe(|| {
            (0..8usize).try_for_each(|number| {
                while acked.load(Ordering::SeqCst) < (number + 1) * 100 {
                    std::thread::yield_now();
                }
                round(temp.path(), number, &acked)
            })
        });
        let done = std::panic::catch_unwind(rounds);
        stop.store(true, Ordering::SeqCst);
        done
    });
    match done {
        Ok(done) => done.expect("every backup and restore"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
