//! Power cuts that a real file system sees.
//!
//! Goal: nothing acknowledged as `Synced` is lost, nothing is there in part, out of order or
//! risen from the dead, when the file system stops under a writer. Mechanism: a child writes
//! to a store on a loop-mounted image; at a random moment the file system is shut down (its
//! own ioctl, by `xfs_io`), the child is killed, the image is mounted again, which replays the
//! file system's journal, and the store is opened and compared with what the child said.
//! Origin: engines that skip the directory sync after a rename lose their last commit here.
//!
//! `CHRONOLITH_POWER_CUTS=n`: so many for each file system and mode.

mod cuts;
