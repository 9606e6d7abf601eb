//! Is the stored tag graph one that inserts could have made? Its scopes are scopes, and no
//! scope sees a cycle.

use std::collections::BTreeMap;

use chronolith_segments::Scope;

use crate::manifest::tag_graph::StoredEdge;
use crate::tag_graph::TagEdge;

/// The edge as the engine holds it; `None` where its scope is none.
pub(super) fn edge(stored: &StoredEdge) -> Option<TagEdge> {
    Some(TagEdge {
        scope: Scope::from_key(&stored.scope_key)?,
        parent: stored.parent.clone(),
        child: stored.child.clone(),
    })
}

/// What is wrong with the graph. Edges ascend by scope key.
pub(super) fn check(edges: &[StoredEdge]) -> Vec<String> {
    let mut found = Vec::new();
    // Scopes on the way from the root to the current one, each with its edges.
    let mut line: Vec<&[StoredEdge]> = Vec::new();
    for of_scope in edges.chunk_by(|a, b| a.scope_key == b.scope_key) {
        let key = &of_scope[0].scope_key;
        if Scope::from_key(key).is_none() {
            found.push("an edge belongs to a scope key that is none".to_owned());
            continue;
        }
        while line
            .last()
            .is_some_and(|above| !key.starts_with(&above[0].scope_key))
        {
            line.pop();
        }
        line.push(of_scope);
        if has_cycle(line.iter().copied().flatten()) {
            let own = of_scope.len();
            found.push(format!(
                "the edges that a scope with {own} of its own sees make a cycle"
            ));
            // The scopes below see the same one.
            line.pop();
        }
    }
    found
}

/// Takes away tags without parents until none is left, or only cycles are.
fn has_cycle<'a>(edges: impl Iterator<Item = &'a StoredEdge>) -> bool {
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut parents: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in edges {
        children.entry(&edge.parent).or_default().push(&edge.child);
        parents.entry(&edge.parent).or_default();
        *parents.entry(&edge.child).or_default() += 1;
    }
    let mut free: Vec<&str> = parents
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(tag, _)| *tag)
        .collect();
    let mut left = parents.len();
    while let Some(tag) = free.pop() {
        left -= 1;
        for child in children.get(tag).into_iter().flatten() {
            if let Some(count) = parents.get_mut(child) {
                *count -= 1;
                if *count == 0 {
                    free.push(child);
                }
            }
        }
    }
    left > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str, &str)]) -> Vec<StoredEdge> {
        let mut stored: Vec<StoredEdge> = edges
            .iter()
            .map(|(scope, parent, child)| StoredEdge {
                scope_key: Scope::parse(scope).expect("a scope").key().to_vec(),
                parent: (*parent).into(),
                child: (*child).into(),
            })
            .collect();
        stored.sort();
        stored
    }

    #[test]
    fn a_cycle_that_some_scope_sees_is_found_and_no_other() {
        let sound = graph(&[
            ("a", "x", "y"),
            ("a", "x", "z"),
            ("a", "y", "z"),
            ("a/b", "z", "w"),
            ("c", "y", "x"),
        ]);
        assert_eq!(check(&sound), [""; 0]);
        assert_eq!(check(&graph(&[("a", "x", "x")])).len(), 1);
        assert_eq!(
            check(&graph(&[
                ("a", "x", "y"),
                ("a/b", "y", "z"),
                ("a/b/c", "z", "x")
            ]))
            .len(),
            1
        );
        let siblings = graph(&[("a", "x", "y"), ("a/b", "y", "z"), ("a/c", "z", "x")]);
        assert_eq!(check(&siblings), [""; 0]);
        let mut none = sound;
        none[0].scope_key = b"/".to_vec();
        assert_eq!(check(&none).len(), 1);
    }
}
