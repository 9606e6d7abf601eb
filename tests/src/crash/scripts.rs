//! What is interrupted: scripts that pass every kind of file operation.

use chronolith::{DAY_US, Durability, Record, TagEdge};

use crate::generate::{BASE_US, Op, scope};

/// One step of a script.
#[derive(Debug, Clone)]
pub enum Step {
    /// A batch at a durability.
    Write(Vec<Op>, Durability),
    /// A batch with an insert over a record that exists.
    Refused(Vec<Op>),
    /// Everything into segments.
    Flush,
    /// The batch arrives while the flush writes its segment.
    FlushWith(Vec<Op>),
    /// One round of background work.
    Maintain,
    /// Until every bucket is one segment.
    Compact,
    /// The batch arrives while the compaction writes its segment.
    CompactWith(Vec<Op>),
    /// As before, and a flush settles the batch before the compaction lands.
    CompactWithFlush(Vec<Op>),
    /// Everything durable.
    Sync,
    /// Close and reopen.
    Close,
    /// Drop without a close, and reopen.
    Drop,
    /// Drop, and reopen with a memtable that is too small for what is in the log.
    Shrink,
    /// A backup beside the writer, the first or a later one.
    Backup,
    /// The last backup becomes a store of its own, which is looked at.
    Restore,
    /// Drop, make a new store from what can be proved of this one, look at it, and reopen.
    Repair,
    /// A reader opens beside the writer.
    Reader,
}

/// A script with the limits that it needs.
#[derive(Debug, Clone)]
pub struct Script {
    /// What it is about.
    pub name: &'static str,
    /// As in the options.
    pub memtable_bytes_max: u64,
    /// As in the options.
    pub log_file_bytes_max: u64,
    /// As in the options.
    pub preallocate_bytes: u64,
    /// What happens.
    pub steps: Vec<Step>,
}

use Durability::{Buffered, Synced};
use Step::{
    Backup, Close, Compact, CompactWith, CompactWithFlush, Drop, Flush, FlushWith, Maintain,
    Reader, Refused, Repair, Restore, Shrink, Sync, Write,
};

/// A record whose text occurs once in all scripts.
pub fn put(path: &str, id: &str, n: u32) -> Op {
    let days = [0, 1, 400, -3000][(n % 4) as usize];
    let time_us = BASE_US + days * DAY_US + i64::from(n);
    let text = format!("alpha port number{n} word{}", n % 3);
    let mut record = Record::new(scope(path), id, time_us, text);
    if n.is_multiple_of(2) {
        let mut vector = vec![0.25; crate::generate::DIM];
        vector[(n % 5) as usize] = 1.0;
        record.vector = Some(vector);
    }
    record.tags = vec![format!("t{}", n % 3)];
    record.source_id = Some(format!("doc{}", n % 2));
    Op::Upsert(record)
}

fn one(path: &str, id: &str, n: u32, durability: Durability) -> Step {
    Write(vec![put(path, id, n)], durability)
}

fn forget(path: &str, id: &str) -> Op {
    Op::Forget(scope(path), id.into())
}

fn insert(path: &str, id: &str, n: u32) -> Op {
    match put(path, id, n) {
        Op::Upsert(record) => Op::Insert(record),
        other => other,
    }
}

fn edge(path: &str, parent: &str, child: &str) -> TagEdge {
    TagEdge {
        scope: scope(path),
        parent: parent.into(),
        child: child.into(),
    }
}

/// One batch over four scopes and four far-away times.
fn wide(from: u32) -> Vec<Op> {
    let scopes = ["a", "a/b", "a-b", "b"];
    let place = |n: u32| scopes[(n % 4) as usize];
    (from..from + 6)
        .map(|n| put(place(n), &format!("w{n}"), n))
        .collect()
}

fn script(name: &'static str, steps: Vec<Step>) -> Script {
    Script {
        name,
        memtable_bytes_max: 1 << 20,
        log_file_bytes_max: 1 << 20,
        preallocate_bytes: 0,
        steps,
    }
}

fn tiny(name: &'static str, steps: Vec<Step>) -> Script {
    Script {
        memtable_bytes_max: 2 << 10,
        log_file_bytes_max: 2 << 10,
        preallocate_bytes: 512,
        ..script(name, steps)
    }
}

fn many(count: u32) -> Vec<Step> {
    let durability = |n: u32| {
        if n.is_multiple_of(3) {
            Buffered
        } else {
            Synced
        }
    };
    let path = |n: u32| if n.is_multiple_of(2) { "a" } else { "a/b" };
    (0..count)
        .map(|n| one(path(n), &format!("r{}", n % 5), n, durability(n)))
        .collect()
}

/// A put and a flush, four times.
fn segments() -> Vec<Step> {
    (0..4)
        .flat_map(|n| [one("a", &format!("r{n}"), 4 * n, Synced), Flush])
        .collect()
}

/// The script of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> Script {
    let found = all().into_iter().find(|script| script.name == name);
    found.unwrap_or_else(|| panic!("no script is called {name}"))
}

/// Every script.
pub fn all() -> Vec<Script> {
    let with = |mut steps: Vec<Step>, more: Vec<Step>| {
        steps.extend(more);
        steps
    };
    let r = |n: u32, d| one("a", &format!("r{n}"), n, d);
    vec![
        script("put", vec![r(0, Synced), r(1, Synced), r(2, Synced)]),
        script(
            "batch",
            vec![
                Write(wide(0), Synced),
                Write(wide(6), Buffered),
                Flush,
                Write(wide(3), Synced),
            ],
        ),
        script(
            "upsert",
            vec![
                one("a", "x", 0, Synced),
                one("a", "x", 1, Synced),
                Flush,
                one("a", "x", 2, Buffered),
                one("a", "x", 3, Synced),
                Flush,
                Write(vec![put("a", "x", 4), put("a", "x", 5)], Synced),
            ],
        ),
        script(
            "delete",
            vec![
                Write(wide(0), Synced),
                Write(vec![forget("a", "w0")], Synced),
                Flush,
                Write(vec![forget("a/b", "w1"), put("a", "w0", 20)], Synced),
                Write(vec![forget("a", "w0")], Buffered),
                Flush,
                Write(vec![forget("b", "w3"), forget("b", "none")], Synced),
            ],
        ),
        script(
            "flush",
            with(segments(), vec![Flush, r(9, Buffered), Flush]),
        ),
        tiny("rotate", many(14)),
        script(
            "publish",
            with(segments(), vec![Maintain, Compact, r(7, Synced), Compact]),
        ),
        script(
            "compact under deletes",
            with(
                segments(),
                vec![
                    CompactWith(vec![forget("a", "r1"), put("a", "r2", 30)]),
                    Flush,
                    CompactWith(vec![forget("a", "r2")]),
                    Write(vec![forget("a", "r3")], Synced),
                    Compact,
                ],
            ),
        ),
        script(
            "flush under deletes",
            vec![
                Write(wide(0), Synced),
                FlushWith(vec![forget("a", "w0"), put("a/b", "w1", 30)]),
                FlushWith(vec![forget("a/b", "w1")]),
                Flush,
            ],
        ),
        script(
            "tags",
            vec![
                Write(wide(0), Synced),
                Write(vec![Op::Link(edge("a", "t0", "t1"))], Synced),
                Flush,
                Write(vec![Op::Link(edge("a/b", "t1", "t2"))], Buffered),
                Write(vec![Op::Unlink(edge("a", "t0", "t1"))], Synced),
                Flush,
                Write(
                    vec![Op::Link(edge("b", "t1", "t0")), put("b", "z", 11)],
                    Synced,
                ),
            ],
        ),
        script(
            "close",
            vec![
                r(0, Synced),
                r(1, Buffered),
                Close,
                r(2, Synced),
                Close,
                r(3, Buffered),
            ],
        ),
        script(
            "drop",
            vec![
                r(0, Buffered),
                Drop,
                r(1, Synced),
                Drop,
                r(2, Buffered),
                Flush,
                Drop,
            ],
        ),
        script(
            "mixed",
            vec![
                r(0, Buffered),
                r(1, Buffered),
                r(2, Synced),
                r(3, Buffered),
                Sync,
                r(4, Buffered),
                Write(vec![forget("a", "r0")], Buffered),
                Sync,
                r(5, Buffered),
            ],
        ),
        tiny(
            "reader",
            vec![
                r(0, Synced),
                Reader,
                r(1, Buffered),
                Flush,
                Reader,
                r(2, Synced),
                Reader,
                Close,
            ],
        ),
        script(
            "insert",
            vec![
                Write(vec![insert("a", "i0", 0), insert("a", "i1", 1)], Synced),
                Refused(vec![put("a", "i2", 2), insert("a", "i1", 3)]),
                Flush,
                Refused(vec![insert("a", "i0", 4)]),
                Write(vec![forget("a", "i0")], Buffered),
                Write(vec![insert("a", "i0", 5)], Synced),
                Flush,
                Refused(vec![insert("a", "i0", 6)]),
            ],
        ),
        script(
            "backup",
            vec![
                r(0, Synced),
                Flush,
                r(1, Synced),
                Backup,
                Write(vec![forget("a", "r0"), put("a/b", "r4", 4)], Synced),
                Backup,
                r(2, Synced),
                Restore,
                Flush,
                Backup,
            ],
        ),
        script(
            "repair",
            vec![
                Write(wide(0), Synced),
                Flush,
                Write(vec![forget("a", "w0"), put("b", "z", 8)], Synced),
                Repair,
                r(1, Synced),
            ],
        ),
        script(
            "seal",
            vec![r(0, Buffered), Sync, Drop, Drop, r(1, Synced), Drop, Close],
        ),
        script(
            "compact over a flush",
            with(
                segments(),
                vec![
                    CompactWithFlush(vec![forget("a", "r1"), put("a/b", "r9", 31)]),
                    Drop,
                    Write(vec![forget("a", "r2")], Synced),
                    Compact,
                ],
            ),
        ),
        script(
            "compact before a sync",
            with(
                segments(),
                vec![
                    // Where the delete is lost, so is the put before it.
                    Write(vec![put("a/b", "r8", 14)], Buffered),
                    Write(vec![forget("a", "r1")], Buffered),
                    Maintain,
                    Write(vec![put("a", "r2", 13)], Buffered),
                ],
            ),
        ),
        Script {
            // Several log files for several memtables.
            log_file_bytes_max: 2 << 10,
            ..script("shrink", {
                let mut steps = many(12);
                steps.extend([Shrink, r(12, Synced), Drop]);
                steps
            })
        },
    ]
}
