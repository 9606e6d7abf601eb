//! Which rows may see each other: scope paths, their keys, and the key ranges of a request.

use crate::error::Refused;
use crate::limits::{SCOPE_BYTES_MAX, SCOPE_DEPTH_MAX};
use chronolith_vfs::planted::{self, Bug};

/// A path such as `user/ana/project/apollo`: the unit of isolation and of statistics.
///
/// Components are joined by `/` in text and by 0x00 in the key. Empty components and NUL are
/// refused; nothing else is special (`..` and `*` are ordinary names).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// Components, each ended by 0x00. Never empty. Byte order of keys is scope order.
    key: Box<[u8]>,
}

impl Scope {
    /// Parses a path.
    ///
    /// # Errors
    /// [`Refused`] on `scope` for the empty path, empty components, NUL, or too long a path.
    pub fn parse(path: &str) -> Result<Self, Refused> {
        let refuse = |message: String| Err(Refused::new("scope", message));
        if path.is_empty() {
            return refuse("is empty; name one, such as user/ana".into());
        }
        if path.contains('\0') {
            return refuse("holds a NUL character".into());
        }
        if path.len() + 1 > SCOPE_BYTES_MAX {
            return refuse(format!(
                "is {} bytes long; at most {}",
                path.len(),
                SCOPE_BYTES_MAX - 1
            ));
        }
        let depth = path.split('/').count();
        if depth > SCOPE_DEPTH_MAX {
            return refuse(format!("has {depth} components; at most {SCOPE_DEPTH_MAX}"));
        }
        if path.split('/').any(str::is_empty) {
            return refuse("has an empty component (a leading, trailing or doubled /)".into());
        }
        let mut key: Vec<u8> = path
            .bytes()
            .map(|b| if b == b'/' { 0 } else { b })
            .collect();
        key.push(0);
        Ok(Self { key: key.into() })
    }

    /// Reads a key back, as found on disk. `None` where it is not a scope's key: what no path
    /// parses to is none, or two scopes would share a path.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let (last, body) = key.split_last()?;
        if *last != 0
            || key.len() > SCOPE_BYTES_MAX
            || body.contains(&b'/')
            || body.split(|b| *b == 0).any(<[u8]>::is_empty)
        {
            return None;
        }
        if body.split(|b| *b == 0).count() > SCOPE_DEPTH_MAX {
            return None;
        }
        std::str::from_utf8(body).ok()?;
        Some(Self { key: key.into() })
    }

    /// The key: components, each ended by 0x00.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The path with `/` between components.
    pub fn path(&self) -> String {
        let body = &self.key[..self.key.len() - 1];
        let bytes = body
            .iter()
            .map(|b| if *b == 0 { b'/' } else { *b })
            .collect();
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The scope one component up, or `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let body = &self.key[..self.key.len() - 1];
        let cut = body.iter().rposition(|b| *b == 0)?;
        Some(Self {
            key: self.key[..=cut].into(),
        })
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path())
    }
}

/// One scope that a request names, and how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeSelector {
    /// The scope and everything below it.
    Subtree(Scope),
    /// The scope alone.
    Exact(Scope),
    /// The subtree, and each ancestor exactly: project and user facts for a task.
    SubtreeAndUp(Scope),
    /// Every scope of the store. Must be asked for by name.
    Root,
}

impl ScopeSelector {
    /// Parses `S` (subtree), `=S` (exact), `S+up`, or `/` (every scope).
    ///
    /// # Errors
    /// [`Refused`] on `scope` where the path is none.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        if text == "/" {
            Ok(Self::Root)
        } else if let Some(path) = text.strip_suffix("+up") {
            Scope::parse(path).map(Self::SubtreeAndUp)
        } else if let Some(path) = text.strip_prefix('=') {
            Scope::parse(path).map(Self::Exact)
        } else {
            Scope::parse(text).map(Self::Subtree)
        }
    }

    fn ranges(&self, out: &mut Vec<KeyRange>) {
        match self {
            Self::Root => out.push(KeyRange {
                from: Vec::new(),
                to: None,
            }),
            Self::Exact(scope) => out.push(KeyRange::exact(scope)),
            Self::Subtree(scope) => out.push(KeyRange::subtree(scope)),
            Self::SubtreeAndUp(scope) => {
                out.push(KeyRange::subtree(scope));
                let mut up = scope.parent();
                while let Some(ancestor) = up {
                    out.push(KeyRange::exact(&ancestor));
                    up = ancestor.parent();
                }
            }
        }
    }
}

/// A half-open range of scope keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// First key inside.
    pub from: Vec<u8>,
    /// First key outside; `None` = to the end.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// The scope alone: keys below it start with its key and go on.
    pub fn exact(scope: &Scope) -> Self {
        let mut to = scope.key().to_vec();
        to.push(0);
        Self {
            from: scope.key().to_vec(),
            to: Some(to),
        }
    }

    /// The scope and all below: its last 0x00 raised to 0x01 is the first key outside.
    pub fn subtree(scope: &Scope) -> Self {
        let mut to = scope.key().to_vec();
        if let Some(last) = to.last_mut() {
            *last = match planted::is_on(Bug::SiblingInSubtree) {
                true => 0xFF,
                false => 1,
            };
        }
        Self {
            from: scope.key().to_vec(),
            to: Some(to),
        }
    }

    /// True if `key` lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// A request's scopes, reduced to disjoint maximal key ranges in ascending order.
///
/// Only built from at least one selector: a request without a scope does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRanges(Vec<KeyRange>);

impl ScopeRanges {
    /// Reduces selectors to disjoint ranges; overlapping and adjacent ones are joined.
    ///
    /// # Errors
    /// [`Refused`] on `scope` if there is none.
    pub fn new(selectors: &[ScopeSelector]) -> Result<Self, Refused> {
        let mut ranges = Vec::new();
        for selector in selectors {
            selector.ranges(&mut ranges);
        }
        if ranges.is_empty() {
            return Err(Refused::new(
                "scope",
                "is missing; name one, or / for every scope",
            ));
        }
        ranges.sort();
        let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.to.as_ref().is_none_or(|to| range.from <= *to) => {
                    // None is "to the end" and beats every key.
                    last.to = match (last.to.take(), range.to) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        _ => None,
                    };
                }
                _ => joined.push(range),
            }
        }
        Ok(Self(joined))
    }

    /// The ranges, ascending and disjoint.
    pub fn ranges(&self) -> &[KeyRange] {
        &self.0
    }

    /// True if some key lies in both.
    pub fn intersects(&self, other: &Self) -> bool {
        let ends_before =
            |a: &KeyRange, b: &KeyRange| a.to.as_ref().is_some_and(|to| *to <= b.from);
        self.0.iter().any(|a| {
            other
                .0
                .iter()
                .any(|b| !ends_before(a, b) && !ends_before(b, a))
        })
    }

    /// True if the scope with this key is asked for.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.0.iter().any(|range| range.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(path: &str) -> Scope {
        Scope::parse(path).expect("a scope")
    }

    #[test]
    fn a_subtree_never_catches_a_longer_sibling() {
        let ranges =
            ScopeRanges::new(&[ScopeSelector::parse("user/ana").expect("ok")]).expect("ok");
        assert!(ranges.contains(scope("user/ana").key()));
        assert!(ranges.contains(scope("user/ana/x").key()));
        assert!(!ranges.contains(scope("user/ana-b").key()));
        assert!(!ranges.contains(scope("user").key()));
    }

    #[test]
    fn exact_is_the_scope_alone_and_up_adds_ancestors_exactly() {
        let exact = ScopeRanges::new(&[ScopeSelector::parse("=a/b").expect("ok")]).expect("ok");
        assert!(exact.contains(scope("a/b").key()));
        assert!(!exact.contains(scope("a/b/c").key()));
        let up = ScopeRanges::new(&[ScopeSelector::parse("a/b/c+up").expect("ok")]).expect("ok");
        for (path, inside) in [
            ("a", true),
            ("a/b", true),
            ("a/b/c/d", true),
            ("a/x", false),
        ] {
            assert_eq!(up.contains(scope(path).key()), inside, "{path}");
        }
    }

    #[test]
    fn overlapping_selectors_become_one_range() {
        let all = ["a", "a/b", "=a/c", "a"].map(|s| ScopeSelector::parse(s).expect("ok"));
        assert_eq!(ScopeRanges::new(&all).expect("ok").ranges().len(), 1);
        let root = ["/", "a"].map(|s| ScopeSelector::parse(s).expect("ok"));
        assert_eq!(
            ScopeRanges::new(&root).expect("ok").ranges(),
            [KeyRange {
                from: vec![],
                to: None
            }]
        );
        assert!(ScopeRanges::new(&[]).is_err());
    }

    #[test]
    fn ranges_intersect_where_a_key_lies_in_both() {
        let of = |text| ScopeRanges::new(&[ScopeSelector::parse(text).expect("ok")]).expect("ok");
        for (a, b, expected) in [
            ("a", "a/b", true),
            ("a/b", "a", true),
            ("=a", "a/b", false),
            ("a", "a-b", false),
            ("/", "a", true),
        ] {
            assert_eq!(of(a).intersects(&of(b)), expected, "{a} and {b}");
        }
    }

    #[test]
    fn bad_paths_are_refused_by_field() {
        for path in ["", "/", "/a", "a/", "a//b", "a\0b"] {
            assert_eq!(Scope::parse(path).expect_err(path).field, "scope");
        }
        for path in ["..", "*", "../other", "用户-一"] {
            assert_eq!(scope(path).path(), path);
            assert_eq!(Scope::from_key(scope(path).key()), Some(scope(path)));
        }
        assert_eq!(Scope::from_key(b"\0"), None);
        assert_eq!(Scope::from_key(b"a"), None);
        assert_eq!(Scope::from_key(b"a/b\0"), None, "the path of another key");
    }
}
