//! Which check ought to see which bug? The cheapest one.

use chronolith::ReadMode;
use chronolith_vfs::planted::Bug;
use chronolith_vfs::{Errno, FailedSync, FaultAction, OpKind};

use crate::checks::{
    Check, crash, crash_late, fault, kill_then_cut, known_time, model, recovery_fault,
};
use crate::{damage, doors, log};

/// The check for a bug.
pub(crate) fn check_for(bug: Bug) -> Check {
    let eio = FaultAction::Error(Errno::Io);
    let lost_sync = FaultAction::FailedSync(FailedSync::CacheKeepsNew);
    match bug {
        Bug::AckBeforeSync | Bug::EpochNotRaised | Bug::ParentDirNotSynced => crash("put"),
        Bug::SyncRetried | Bug::AckedUptoTooEarly => fault("put", OpKind::Sync, lost_sync),
        Bug::BirthNotTold => log::newest_file_lost(),
        Bug::PoisonNotSticky => log::failed_sync_is_sticky(),
        Bug::LogDirNotSynced => crash("rotate"),
        Bug::StoppedAtBadFrame | Bug::FrameHeaderUnchecked | Bug::FrameDigestUnchecked => {
            log::bits_of_a_frame()
        }
        Bug::ReadErrorIsEnd => recovery_fault("mixed", OpKind::Read, eio),
        Bug::TailNotCut | Bug::CopiesLeftOut => crash("mixed"),
        Bug::RefusedAppendStays => {
            let told_late = FaultAction::ErrorAfter(Errno::Io);
            fault("put", OpKind::Write, told_late)
        }
        Bug::DurableUptoTooHigh => crash("drop"),
        Bug::FrameNotChained => log::frame_of_another_course(),
        Bug::ReplayInPart
        | Bug::BatchInPart
        | Bug::FlushedSeqTooLow
        | Bug::FlushedSeqTooHigh
        | Bug::SegmentsDirNotSynced => crash("batch"),
        Bug::OldRowLeftLive
        | Bug::WindowStartOffByOne
        | Bug::TagsWithoutTime
        | Bug::UntaggedLetIn
        | Bug::IdfOfOneSegment
        | Bug::DeadInFrequency
        | Bug::SiblingInSubtree
        | Bug::TieReversed
        | Bug::SnapshotSeesLater => model(),
        Bug::InsertOverFlushed => crash("insert"),
        Bug::TimeNotKept => known_time(),
        Bug::NewestMemtableFirst | Bug::FloorTooHigh => crash("shrink"),
        Bug::FlushForgetsDeaths => crash("flush under deletes"),
        Bug::CompactionForgetsDeaths => crash("compact under deletes"),
        Bug::SettledDeathsLost => crash("compact over a flush"),
        Bug::DeadDroppedEarly => crash_late("compact before a sync"),
        Bug::TagsNotSettled => crash("tags"),
        Bug::DeletesNotSettled => crash("delete"),
        Bug::UnlinkBeforePublish => crash("publish"),
        Bug::SegmentNotSynced | Bug::StoreDirNotSynced | Bug::ManifestNotSynced => crash("flush"),
        Bug::PointerNotProven => kill_then_cut("publish"),
        Bug::PointerDigestUnchecked => damage::files_of_another_course("/manifest/", "/segments/"),
        Bug::FallsBack => damage::both_copies(),
        Bug::BoundFromLongest => damage::bounds_of_postings(),
        Bug::BlockUnchecked => damage::bits_of_a_segment(ReadMode::Positioned),
        Bug::OneBlockForAll => damage::bits_of_a_segment(ReadMode::Mapped),
        Bug::OtherSegmentPasses => damage::files_of_another_course(".seg", ".seg"),
        Bug::EqualBoundDropped => doors::long_ties(),
        Bug::ReaderGoesBack => doors::reader_is_monotonic(),
        Bug::LockNotTaken => doors::second_opener(),
    }
}

/// The checks that no other suite has.
pub(crate) fn own_checks() -> Vec<Check> {
    vec![
        log::bits_of_a_frame(),
        log::frame_of_another_course(),
        log::failed_sync_is_sticky(),
        log::newest_file_lost(),
        damage::bits_of_a_segment(ReadMode::Mapped),
        damage::bits_of_a_segment(ReadMode::Positioned),
        damage::both_copies(),
        damage::bounds_of_postings(),
        damage::files_of_another_course("/manifest/", "/segments/"),
        damage::files_of_another_course("/manifest/", "/wal/"),
        damage::files_of_another_course(".seg", ".seg"),
        damage::files_of_another_course(".del", ".del"),
        doors::second_opener(),
        doors::reader_is_monotonic(),
        doors::long_ties(),
    ]
}
