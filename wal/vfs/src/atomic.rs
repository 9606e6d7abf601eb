//! How does a whole file appear, or change, at once?
//!
//! Write aside, sync, rename, sync the directory. A reader, and a reopen after a crash at any
//! operation, sees the old content or the new one and never a part of either.

use std::io;
use std::path::Path;

use crate::traits::Vfs;

/// Makes `bytes` the content of `dir/name`, durably; whatever was there is replaced.
///
/// `tmp_name` is the name aside, in the same directory. A stale file of that name is removed
/// first: it is what an earlier crash left, and nothing refers to it.
///
/// # Errors
/// The system's error. Before the rename the old content stands. An error of the directory
/// sync leaves the outcome unknown: the new content is visible and may not outlive a crash.
pub fn replace(
    vfs: &dyn Vfs,
    dir: &Path,
    name: &str,
    tmp_name: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let tmp = dir.join(tmp_name);
    write_aside(vfs, &tmp, bytes, false)
        .and_then(|()| vfs.rename(&tmp, &dir.join(name)))
        .inspect_err(|_| discard(vfs, &tmp))?;
    vfs.sync_dir(dir)
}

/// Creates the sealed file `dir/name` with content `bytes`; its content and mode are durable.
///
/// The *name* is not: the caller makes many files and then syncs the directory once.
///
/// # Errors
/// `AlreadyExists` where the name is taken: a sealed file is never replaced. Else the
/// system's error; nothing is then visible under `name`.
pub fn create_sealed(
    vfs: &dyn Vfs,
    dir: &Path,
    name: &str,
    tmp_name: &str,
    bytes: &[u8],
) -> io::Result<()> {
    let target = dir.join(name);
    match vfs.stat(&target) {
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let tmp = dir.join(tmp_name);
    write_aside(vfs, &tmp, bytes, true)
        .and_then(|()| vfs.rename(&tmp, &target))
        .inspect_err(|_| discard(vfs, &tmp))
}

/// Writes and syncs the file aside.
fn write_aside(vfs: &dyn Vfs, tmp: &Path, bytes: &[u8], seal: bool) -> io::Result<()> {
    match vfs.remove_file(tmp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = vfs.create_new(tmp)?;
    file.write_all_at(bytes, 0)?;
    if seal {
        // Before the sync, so that the mode is durable with the content.
        vfs.seal(tmp)?;
    }
    file.sync_all()
}

/// Gives the space of a failed attempt back. The first error is the one to tell; if this fails
/// too, the next attempt removes the file.
fn discard(vfs: &dyn Vfs, tmp: &Path) {
    let _ = vfs.remove_file(tmp);
}
