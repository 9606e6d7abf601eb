//! Where do the bytes under attack lie? On a simulated disk, put there past every rule.

use std::path::Path;

use chronolith_vfs::{Env, SimVfs, Vfs};

/// An environment with an empty disk.
pub(super) fn env() -> (Env, SimVfs) {
    let (env, disk, _) = Env::sim(1);
    (env, disk)
}

/// Puts a file in place; its directories are made.
pub(super) fn put(disk: &SimVfs, path: &Path, bytes: &[u8]) {
    let mut dirs: Vec<&Path> = path.ancestors().skip(1).collect();
    dirs.reverse();
    for dir in dirs {
        // Those that exist already are fine.
        let _ = disk.create_dir(dir);
    }
    if disk.content(path).is_err() {
        disk.create_new(path).expect("the name is free");
    }
    disk.damage(path, |content| *content = bytes.to_vec())
        .expect("the file is there");
}

/// A number in bytes that may be too short for it.
pub(super) fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(bytes.get(at..at.checked_add(width)?)?);
    Some(u64::from_le_bytes(word))
}

/// The same as an index.
pub(super) fn index(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, width)?).ok()
}

/// A stretch of bytes as a list that has a fixed length; missing bytes are zeros.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut fixed = [0; N];
    for (place, byte) in fixed.iter_mut().zip(bytes) {
        *place = *byte;
    }
    fixed
}
