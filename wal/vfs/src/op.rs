//! What kinds of operation there are, and which errors a system answers with.

use std::fmt;
use std::io;

/// A kind of file-system operation, for counting, tracing and choosing faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpKind {
    /// `open_read`.
    OpenRead,
    /// `open_write`.
    OpenWrite,
    /// `create_new`, or `try_lock` where it makes the lock file.
    Create,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `sync_data` and `sync_all`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `len`.
    Len,
    /// `map`.
    Map,
    /// `rename`.
    Rename,
    /// `remove_file`; in a simulated disk each removal inside `remove_dir_all` too.
    Remove,
    /// `remove_dir_all`.
    RemoveDir,
    /// `create_dir`.
    CreateDir,
    /// `sync_dir`.
    SyncDir,
    /// `list`.
    List,
    /// `stat` and `kind`.
    Stat,
    /// `seal`.
    Seal,
    /// `try_lock`.
    Lock,
    /// `hard_link`.
    Link,
}

impl OpKind {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 19] = [
        Self::OpenRead,
        Self::OpenWrite,
        Self::Create,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::SetLen,
        Self::Len,
        Self::Map,
        Self::Rename,
        Self::Remove,
        Self::RemoveDir,
        Self::CreateDir,
        Self::SyncDir,
        Self::List,
        Self::Stat,
        Self::Seal,
        Self::Lock,
        Self::Link,
    ];
}

/// An error of the operating system, by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// EIO.
    Io,
    /// ENOSPC.
    NoSpace,
    /// EDQUOT.
    Quota,
    /// EMFILE.
    TooManyFiles,
    /// EINTR.
    Interrupted,
    /// EROFS.
    ReadOnly,
}

impl Errno {
    /// Every error.
    pub const ALL: [Self; 6] = [
        Self::Io,
        Self::NoSpace,
        Self::Quota,
        Self::TooManyFiles,
        Self::Interrupted,
        Self::ReadOnly,
    ];
}

/// True where the system refuses for want of descriptors, memory or rights: that says nothing
/// about the bytes, and whoever salvages what can be read must not take it for damage.
#[must_use]
pub fn is_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno as Os;
    matches!(
        Os::from_io_error(error),
        Some(Os::MFILE | Os::NFILE | Os::NOMEM | Os::ACCESS | Os::PERM)
    )
}

/// True where this file, and not the system, is why it cannot be read: a bad sector, no right
/// to read it, or something of that name that is no file. A try later says the same.
#[must_use]
pub fn is_unreadable(error: &io::Error) -> bool {
    use rustix::io::Errno as Os;
    let of_os = matches!(
        Os::from_io_error(error),
        Some(Os::IO | Os::ACCESS | Os::PERM | Os::NXIO)
    );
    let is_no_file = matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory
    );
    of_os || is_no_file
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        use rustix::io::Errno as Os;
        let os = match errno {
            Errno::Io => Os::IO,
            Errno::NoSpace => Os::NOSPC,
            Errno::Quota => Os::DQUOT,
            Errno::TooManyFiles => Os::MFILE,
            Errno::Interrupted => Os::INTR,
            Errno::ReadOnly => Os::ROFS,
        };
        // With the raw number inside, as the system would give it.
        Self::from_raw_os_error(os.raw_os_error())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from(*self).fmt(f)
    }
}
