//! A file system in a file, mounted while the value lives.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Prefix of every mount's directory; the process follows.
const PREFIX: &str = "chronolith-power-";
/// Smallest that both file systems accept. The file is sparse.
const IMAGE_BYTES: u64 = 320 << 20;

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// What the shutdown does with the file system's own journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Written out first: all metadata so far survives, data need not.
    Journal,
    /// Lost: only what was synced survives for sure.
    Nothing,
}

/// A mounted image. Unmounted when dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Mount {
    image: PathBuf,
    at: PathBuf,
    is_mounted: bool,
    // Last: removed after the unmount.
    _root: TempDir,
}

/// Runs a program to its end; what it said where it failed.
fn run(program: &str, args: &[&str], path: &[&Path]) -> Result<(), String> {
    let done = Command::new(program).args(args).args(path).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{program}: {}", said.trim()))
}

impl Mount {
    /// Makes a file system and mounts it; why not, where this machine cannot.
    pub(crate) fn new(kind: Kind) -> Result<Self, String> {
        sweep();
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let root = tempfile::Builder::new().prefix(&prefix).tempdir();
        let root = root.map_err(|error| error.to_string())?;
        let (image, at) = (root.path().join("image"), root.path().join("mount"));
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(IMAGE_BYTES).map_err(|error| error.to_string())?;
        run(&format!("mkfs.{}", kind.name()), &["-q"], &[&image])?;
        run("xfs_io", &["-V"], &[])?;
        let mut mount = Self {
            image,
            at,
            is_mounted: false,
            _root: root,
        };
        mount.mount()?;
        Ok(mount)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.at
    }

    /// Stops the file system under whoever uses it.
    pub(crate) fn cut(&self, flush: Flush) {
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
    pub(crate) fn again(&mut self) {
        self.unmount().expect("unmounted");
        self.mount().expect("mounted again");
    }

    fn mount(&mut self) -> Result<(), String> {
        run("mount", &["-o", "loop"], &[&self.image, &self.at])?;
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

/// Unmounts what a run left that was itself killed.
fn sweep() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for at in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
        let owner = at.split_once(PREFIX).and_then(|(_, rest)| rest.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = run("umount", &[], &[Path::new(at)]);
        }
    }
}
