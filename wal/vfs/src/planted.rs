//! Which deliberate fault is switched on? None, outside the suite that plants them.
//!
//! A bug that nobody has planted may be one that no check would catch. So every promise has a
//! one-line fault at the place where it could really be broken, and the planted suite sees
//! some check fail for each. Without the feature `planted` all of it is a constant `false`
//! that leaves no trace in a build; only the tests' package turns the feature on.
//!
//! The switch is one for the process: a suite runs one bug at a time.

/// True where the faults are compiled in at all.
pub const COMPILED: bool = cfg!(feature = "planted");

macro_rules! bugs {
    ($($bug:ident, $place:literal, $what:literal;)*) => {
        /// A fault that can be switched on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Bug {
            $(#[doc = $what] $bug,)*
        }

        impl Bug {
            /// Every bug, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

            /// The file that holds it.
            pub const fn place(self) -> &'static str {
                match self {
                    $(Self::$bug => $place,)*
                }
            }

            /// What goes wrong.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => $what,)*
                }
            }
        }
    };
}

bugs! {
    // The log.
    AckBeforeSync, "wal/src/writer.rs", "an acknowledgement does not wait for its sync";
    SyncRetried, "wal/src/sync.rs", "a sync that failed is tried again and believed";
    PoisonNotSticky, "wal/src/sync.rs", "the log goes on after a failed sync was told once";
    LogDirNotSynced, "wal/src/birth.rs", "a new log file's name is not made durable";
    BirthNotTold, "wal/src/birth.rs", "a new log file is used before the one before it durably says so";
    StoppedAtBadFrame, "wal/src/judge.rs", "the first bad frame is the end, whatever is proven";
    ReadErrorIsEnd, "wal/src/reader.rs", "a read error is taken for the end of the log";
    TailNotCut, "wal/src/recover.rs", "a recovery does not say where the old file ends";
    RefusedAppendStays, "wal/src/writer.rs", "what a failed append left is not cut off";
    CopiesLeftOut, "wal/src/recover.rs", "frames that live in the page cache alone are not copied";
    DurableUptoTooHigh, "wal/src/writer.rs", "STATUS claims one seq more than was synced";
    AckedUptoTooEarly, "wal/src/writer.rs", "STATUS acknowledges a batch before its sync";
    FrameNotChained, "wal/src/reader.rs", "a frame need not follow the one before it";
    FrameHeaderUnchecked, "wal/src/frame.rs", "a frame header's own checksum is not compared";
    FrameDigestUnchecked, "wal/src/reader.rs", "a frame's digest is not compared";
    FloorTooHigh, "wal/src/writer.rs", "the log's floor is one file too high";
    // Commit and recovery.
    EpochNotRaised, "engine/src/recover.rs", "a reopen keeps the epoch before it";
    ReplayInPart, "engine/src/recover.rs", "a replayed batch loses its last operation";
    BatchInPart, "engine/src/write/apply.rs", "a large batch is applied without its last operation";
    OldRowLeftLive, "engine/src/write/apply.rs", "a replaced row stays live";
    InsertOverFlushed, "engine/src/write/commit.rs", "insert-only does not look into segments";
    TimeNotKept, "engine/src/recover.rs", "known time forgets what is in segments";
    // Flush, compaction, publish.
    FlushedSeqTooHigh, "engine/src/maintain/flush.rs", "the manifest calls one seq too many flushed";
    FlushedSeqTooLow, "engine/src/maintain/flush.rs", "the manifest calls one seq too few flushed";
    NewestMemtableFirst, "engine/src/maintain/flush.rs", "memtables are published out of order";
    FlushForgetsDeaths, "engine/src/maintain/flush.rs", "deletes that arrive during a flush are not carried over";
    CompactionForgetsDeaths, "engine/src/maintain/compact.rs", "deletes that arrive during a compaction are not carried over";
    SettledDeathsLost, "engine/src/maintain/compact.rs", "deletes that a flush settled are left out of the compacted segment's set";
    DeadDroppedEarly, "engine/src/maintain/compact.rs", "a compaction drops rows whose delete is not durable";
    TagsNotSettled, "engine/src/maintain/publish.rs", "a flush leaves tag edges out";
    DeletesNotSettled, "engine/src/maintain/publish.rs", "a flush leaves delete sets out";
    UnlinkBeforePublish, "engine/src/maintain/publish.rs", "files go before the publish that retires them";
    SegmentNotSynced, "segments/src/writer/file.rs", "a segment is not synced";
    SegmentsDirNotSynced, "engine/src/manifest/publish.rs", "a new segment's name is not made durable";
    StoreDirNotSynced, "engine/src/manifest/publish.rs", "the rename of CURRENT is not made durable";
    ParentDirNotSynced, "engine/src/manifest/publish.rs", "a new store's own name is not made durable";
    ManifestNotSynced, "engine/src/manifest/io.rs", "manifest copies and CURRENT are not synced";
    PointerNotProven, "engine/src/manifest/load.rs", "a recovery builds on a CURRENT that is not durable";
    PointerDigestUnchecked, "engine/src/manifest/format.rs", "a manifest of another publish passes";
    FallsBack, "engine/src/manifest/load.rs", "the generation before is opened without a word";
    // Segments.
    BlockUnchecked, "segments/src/format/section.rs", "a block of a positioned read is not verified";
    OneBlockForAll, "segments/src/format/section.rs", "one verified block of a mapping vouches for its neighbours";
    BoundFromLongest, "segments/src/postings/bounds.rs", "a bound is of the longest row and not of the shortest";
    OtherSegmentPasses, "segments/src/segment/mod.rs", "a segment need not be the one that the manifest names";
    // Queries.
    WindowStartOffByOne, "engine/src/query/prune.rs", "a partition that ends where the window begins is pruned";
    TagsWithoutTime, "engine/src/query/prune.rs", "a tag filter replaces the time filter";
    UntaggedLetIn, "engine/src/query/prune.rs", "rows without tags pass a tag filter";
    IdfOfOneSegment, "engine/src/query/analyse.rs", "document frequency is that of one partition";
    DeadInFrequency, "engine/src/query/view.rs", "dead rows count in document frequency";
    SiblingInSubtree, "segments/src/scope.rs", "a subtree holds the siblings that share its prefix";
    TieReversed, "engine/src/query/order.rs", "ties between partitions go the wrong way";
    EqualBoundDropped, "engine/src/query/order.rs", "a row that ties with the last one is not looked at";
    SnapshotSeesLater, "engine/src/version.rs", "an old snapshot sees later deletes";
    // Doors.
    ReaderGoesBack, "engine/src/reader.rs", "a refresh shows less than the one before";
    LockNotTaken, "wal/vfs/src/real.rs", "a store that is open can be opened again";
}

/// True while `bug` is switched on; a constant where the faults are not compiled in.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is_on(_bug: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use on::{is_on, switch};

#[cfg(feature = "planted")]
mod on {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    const NONE: u8 = u8::MAX;
    static ON: AtomicU8 = AtomicU8::new(NONE);

    /// True while `bug` is switched on.
    #[inline]
    pub fn is_on(bug: Bug) -> bool {
        ON.load(Ordering::Relaxed) == bug as u8
    }

    /// Switches one bug on for the whole process, or all off.
    pub fn switch(bug: Option<Bug>) {
        ON.store(bug.map_or(NONE, |bug| bug as u8), Ordering::SeqCst);
    }
}
