//! Does the group commit hold under every interleaving? loom runs the code of `sync` itself.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p chronolith-wal --lib sync_model`.
//!
//! The disk of the model: a sync makes durable what was written when it *started*; a
//! write that arrives while it runs is not covered, which is the strictest reading.

use std::io;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::error::WalError;
use crate::sync::GroupSync;

struct Disk {
    written: AtomicU64,
    durable: AtomicU64,
    syncs: AtomicU64,
    /// The sync with this number (from 1) fails; 0: none.
    fails_at: u64,
    failed: AtomicBool,
}

struct Log {
    append: Mutex<u64>,
    group: GroupSync<Arc<Disk>>,
}

impl Log {
    fn new(fails_at: u64) -> (Arc<Self>, Arc<Disk>) {
        let disk = Arc::new(Disk {
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            fails_at,
            failed: AtomicBool::new(false),
        });
        let group = GroupSync::new(Arc::clone(&disk), 0);
        (
            Arc::new(Self {
                append: Mutex::new(0),
                group,
            }),
            disk,
        )
    }

    fn append(&self, disk: &Disk) -> u64 {
        let mut next = self.append.lock().expect("no panic in the model");
        *next += 1;
        disk.written.store(*next, SeqCst);
        self.group.note_append(*next);
        *next
    }

    fn commit(&self, disk: &Disk) -> Result<u64, WalError> {
        let seq = self.append(disk);
        self.group.sync_upto(seq, || (), |disk| disk.sync())?;
        Ok(seq)
    }
}

impl Disk {
    fn sync(&self) -> io::Result<()> {
        let covered = self.written.load(SeqCst);
        assert!(
            !self.failed.load(SeqCst),
            "a failed sync is never tried again"
        );
        if self.syncs.fetch_add(1, SeqCst) + 1 == self.fails_at {
            self.failed.store(true, SeqCst);
            return Err(io::Error::other("EIO"));
        }
        self.durable.fetch_max(covered, SeqCst);
        Ok(())
    }
}

/// Each writer that is answered finds its own seq durable, and nobody waits for ever. Three
/// threads are too many for every interleaving (over 6 minutes): at most two preemptions.
#[test]
fn an_answer_means_durable() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (log, disk) = Log::new(0);
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
                thread::spawn(move || {
                    let seq = log.commit(&disk).expect("no sync fails here");
                    assert!(disk.durable.load(SeqCst) >= seq);
                })
            })
            .collect();
        let seq = log.commit(&disk).expect("no sync fails here");
        assert!(disk.durable.load(SeqCst) >= seq);
        for writer in writers {
            writer.join().expect("no panic");
        }
        assert!(
            disk.syncs.load(SeqCst) <= 3,
            "never more syncs than commits"
        );
        assert_eq!(log.group.durable_upto(), 3);
    });
}

/// After a failed sync no seq is answered that was not durable before, and all are answered.
#[test]
fn a_failed_sync_is_final_for_all() {
    loom::model(|| {
        let (log, disk) = Log::new(1);
        let other = {
            let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
            thread::spawn(move || log.commit(&disk).map(|_| ()))
        };
        let mine = log.commit(&disk);
        let theirs = other.join().expect("no panic");
        assert!(mine.is_err() && theirs.is_err(), "the only sync failed");
        assert_eq!(disk.durable.load(SeqCst), 0);
        assert!(matches!(log.group.check(), Err(WalError::Poisoned { .. })));
    });
}

/// A seal's forced sync covers what was written before it, beside a writer's sync.
#[test]
fn a_forced_sync_runs_beside_writers() {
    loom::model(|| {
        let (log, disk) = Log::new(0);
        let first = log.append(&disk);
        let other = {
            let (log, disk) = (Arc::clone(&log), Arc::clone(&disk));
            thread::spawn(move || log.commit(&disk).map(|_| ()))
        };
        log.group
            .sync_now(|disk| disk.sync())
            .expect("no sync fails here");
        assert!(disk.durable.load(SeqCst) >= first);
        other.join().expect("no panic").expect("no sync fails here");
    });
}
