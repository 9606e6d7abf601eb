//! File systems of a test's own: images on loop devices and small disks in memory.
//!
//! A [`Mount`] is there while the value lives and is unmounted by its drop, so also by a panic.
//! What a killed run left is swept by the next one. Where this machine cannot mount, the error
//! says why, and the test prints it as `skipped`.

#![expect(
    clippy::disallowed_methods,
    reason = "images and mounts are made with the system's own calls"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Prefix of every mount's directory; the process follows.
const PREFIX: &str = "chronolith-mount-";

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An image on a loop device.
    Ext4 {
        /// Size of the image.
        bytes: u64,
    },
    /// An image on a loop device.
    Xfs,
    /// A disk in memory.
    Tmpfs {
        /// Bytes that fit.
        bytes: u64,
        /// Files and directories that fit.
        inodes: u64,
    },
}

impl Kind {
    /// An image of ext4 that is large enough for anything here. The file is sparse.
    pub const EXT4: Self = Self::Ext4 { bytes: 320 << 20 };
    /// Smallest image that XFS accepts, and a little more.
    const XFS_BYTES: u64 = 320 << 20;
}

/// What a shutdown does with the file system's own journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Written out first: all metadata so far survives, data need not.
    Journal,
    /// Lost: only what was synced survives for sure.
    Nothing,
}

/// A mounted file system.
#[derive(Debug)]
pub struct Mount {
    kind: Kind,
    image: PathBuf,
    at: PathBuf,
    is_mounted: bool,
    // Last: removed after the unmount.
    _root: TempDir,
}

/// Runs a program to its end; what it said where it failed.
fn run(program: &str, args: &[&str], paths: &[&Path]) -> Result<(), String> {
    let done = Command::new(program).args(args).args(paths).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{program}: {}", said.trim()))
}

/// What shuts a file system down, if it is here.
///
/// # Errors
/// Why not.
pub fn can_cut() -> Result<(), String> {
    run("xfs_io", &["-V"], &[])
}

impl Mount {
    /// Makes a file system and mounts it.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn new(kind: Kind) -> Result<Self, String> {
        sweep();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let root = tempfile::Builder::new().prefix(&prefix).tempdir();
        let root = root.map_err(|error| error.to_string())?;
        let (image, at) = (root.path().join("image"), root.path().join("mount"));
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        match kind {
            // No blocks that only root may use: a test of a full disk runs as root.
            Kind::Ext4 { bytes } => make(&image, bytes, "mkfs.ext4", &["-q", "-m", "0"])?,
            Kind::Xfs => make(&image, Kind::XFS_BYTES, "mkfs.xfs", &["-q"])?,
            Kind::Tmpfs { .. } => {}
        }
        let mut mount = Self {
            kind,
            image,
            at,
            is_mounted: false,
            _root: root,
        };
        mount.mount("rw")?;
        Ok(mount)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Stops the file system under whoever uses it: a power cut as it sees one.
    ///
    /// # Panics
    /// If it goes on.
    pub fn cut(&self, flush: Flush) {
        let command = match flush {
            Flush::Journal => "shutdown -f",
            Flush::Nothing => "shutdown",
        };
        // -x: expert, which a shutdown needs.
        run("xfs_io", &["-x", "-c", command], &[&self.at]).expect("shut down");
        let after = std::fs::File::create(self.at.join("after the cut"));
        assert!(after.is_err(), "the file system is still alive");
    }

    /// Unmounts, and mounts again: the file system replays its journal.
    ///
    /// # Panics
    /// If it cannot be.
    pub fn again(&mut self) {
        self.unmount().expect("unmounted");
        self.mount("rw").expect("mounted again");
    }

    /// Unmounts, and mounts again for reading only.
    ///
    /// # Panics
    /// If it cannot be.
    pub fn again_read_only(&mut self) {
        self.unmount().expect("unmounted");
        self.mount("ro").expect("mounted again");
    }

    fn mount(&mut self, mode: &str) -> Result<(), String> {
        match self.kind {
            Kind::Tmpfs { bytes, inodes } => {
                let options = format!("{mode},size={bytes},nr_inodes={inodes}");
                run(
                    "mount",
                    &["-t", "tmpfs", "-o", &options, "tmpfs"],
                    &[&self.at],
                )?;
            }
            _ => {
                let options = format!("loop,{mode}");
                run("mount", &["-o", &options], &[&self.image, &self.at])?;
            }
        }
        self.is_mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        // Frees the loop device too: it was made by the mount.
        run("umount", &[], &[&self.at])?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_mounted && self.unmount().is_err() {
            // Something still holds a file; the kernel finishes when that ends.
            let _ = run("umount", &["-l"], &[&self.at]);
        }
    }
}

fn make(image: &Path, bytes: u64, program: &str, args: &[&str]) -> Result<(), String> {
    let file = std::fs::File::create(image).map_err(|error| error.to_string())?;
    file.set_len(bytes).map_err(|error| error.to_string())?;
    run(program, args, &[image])
}

/// Unmounts what a run left that was itself killed.
fn sweep() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for at in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
        let rest = at.split_once(PREFIX).map(|(_, rest)| rest);
        let owner = rest.and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = run("umount", &[], &[Path::new(at)]);
        }
    }
}
