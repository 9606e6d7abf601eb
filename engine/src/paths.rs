//! How do two directories lie to each other? By their names alone: links are not followed.

use std::path::{Component, Path, PathBuf, absolute};

/// True where `path` is `outer` or lies below it, however either is spelled.
pub(crate) fn is_inside(path: &Path, outer: &Path) -> bool {
    plain(path).starts_with(plain(outer))
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
    use super::*;

    #[test]
    fn a_directory_is_found_inside_another_in_any_spelling() {
        let inside = |path: &str, outer: &str| is_inside(Path::new(path), Path::new(outer));
        assert!(inside("s/new", "./s") && inside("./s/new", "s") && inside("s", "s/"));
        assert!(!inside("/s/../new", "/s") && inside("/t/../s/new", "/s"));
        assert!(inside("/s/./new", "/s") && !inside("/s-new", "/s") && !inside("s", "s/new"));
    }
}
