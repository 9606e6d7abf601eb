//! How do two directories lie to each other, however they are spelled and linked?

use std::path::{Component, Path, PathBuf, absolute};

use chronolith_vfs::Vfs;

/// True where `path` is `outer` or lies below it, however either is spelled. What exists of
/// them is followed through links; neither needs to be there.
pub(crate) fn is_inside(vfs: &dyn Vfs, path: &Path, outer: &Path) -> bool {
    plain(path).starts_with(plain(outer)) || resolved(vfs, path).starts_with(resolved(vfs, outer))
}

/// The path without links, as far as it exists.
fn resolved(vfs: &dyn Vfs, path: &Path) -> PathBuf {
    let whole = plain(path);
    let mut rest = Vec::new();
    let mut at = whole.as_path();
    loop {
        if let Ok(real) = vfs.canonical(at) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return whole;
        };
        rest.push(name);
        at = parent;
    }
}

/// The directory that holds `path`.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn plain(path: &Path) -> PathBuf {
    let whole = absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use chronolith_vfs::{RealVfs, SimVfs};

    use super::*;

    #[test]
    fn a_link_does_not_hide_that_one_directory_is_inside_another() {
        let room = tempfile::tempdir().expect("a directory");
        let (store, link) = (room.path().join("store"), room.path().join("link"));
        RealVfs::new().create_dir(&store).expect("made");
        std::os::unix::fs::symlink(&store, &link).expect("linked");
        let inside = |path: &Path, outer: &Path| is_inside(&RealVfs::new(), path, outer);
        assert!(inside(&link.join("backup/new"), &store));
        assert!(inside(&store.join("backup"), &link));
        assert!(!inside(&room.path().join("other"), &link));
    }

    #[test]
    fn a_directory_is_found_inside_another_in_any_spelling() {
        let vfs = SimVfs::new();
        let inside = |path: &str, outer: &str| is_inside(&vfs, Path::new(path), Path::new(outer));
        assert!(inside("s/new", "./s") && inside("./s/new", "s") && inside("s", "s/"));
        assert!(!inside("/s/../new", "/s") && inside("/t/../s/new", "/s"));
        assert!(inside("/s/./new", "/s") && !inside("/s-new", "/s") && !inside("s", "s/new"));
    }
}
