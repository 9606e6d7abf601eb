//! Which tags lie below a tag: a DAG of names that belongs to scopes.
//!
//! An edge (parent, child) belongs to a scope and holds for its subtree, so what one scope
//! teaches never widens a filter in another. A request's tag means itself and its descendants
//! down to [`DEPTH_MAX`] edges.

use std::collections::{BTreeMap, BTreeSet};

use chronolith_segments::{Refused, Scope, ScopeRanges, ScopeSelector};

/// How many edges a closure follows down.
pub const DEPTH_MAX: usize = 4;
/// Most edges of a store.
pub const EDGES_MAX: usize = 1 << 20;

/// One edge with the scope it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagEdge {
    /// Holds here and below.
    pub scope: Scope,
    /// The wider tag.
    pub parent: String,
    /// The narrower tag.
    pub child: String,
}

/// All edges of a store. Acyclic per line of scopes by check at insert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TagGraph {
    edges: BTreeSet<TagEdge>,
}

/// Tags that stand for one requested tag, and where.
#[derive(Debug, Clone)]
pub(crate) struct Closure {
    /// `None` = in every requested scope.
    pub(crate) within: Option<ScopeRanges>,
    /// The tag and its descendants, ascending.
    pub(crate) tags: Vec<String>,
}

impl TagGraph {
    pub(crate) fn new(edges: impl IntoIterator<Item = TagEdge>) -> Self {
        Self {
            edges: edges.into_iter().collect(),
        }
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = &TagEdge> {
        self.edges.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    /// Checks an edge without adding it: a cycle along any line of scopes is refused.
    pub(crate) fn check(&self, edge: &TagEdge) -> Result<(), Refused> {
        if edge.parent == edge.child {
            return Err(Refused::new(
                "tags",
                "an edge from a tag to itself is a cycle",
            ));
        }
        if self.edges.len() >= EDGES_MAX && !self.edges.contains(edge) {
            return Err(Refused::new(
                "tags",
                format!("the store has {EDGES_MAX} edges, the most it takes"),
            ));
        }
        // A cycle closes where some scope sees both the new edge and a path back.
        let related =
            |scope: &Scope| is_ancestor(scope, &edge.scope) || is_ancestor(&edge.scope, scope);
        let below = self.descend(&edge.child, usize::MAX, |e| related(&e.scope));
        if below.contains(&edge.parent) {
            return Err(Refused::new(
                "tags",
                "this edge would close a cycle; remove the edge that goes the other way",
            ));
        }
        Ok(())
    }

    pub(crate) fn insert(&mut self, edge: TagEdge) {
        self.edges.insert(edge);
    }

    pub(crate) fn remove(&mut self, edge: &TagEdge) {
        self.edges.remove(edge);
    }

    /// Makes the edge be there, or not.
    pub(crate) fn set(&mut self, edge: &TagEdge, is_there: bool) {
        if is_there {
            self.insert(edge.clone());
        } else {
            self.remove(edge);
        }
    }

    /// What `tag` stands for: itself everywhere, and more inside each scope that has edges.
    pub(crate) fn closures(&self, tag: &str) -> Vec<Closure> {
        let mut closures = vec![Closure {
            within: None,
            tags: vec![tag.to_owned()],
        }];
        let scopes: BTreeSet<&Scope> = self.edges.iter().map(|edge| &edge.scope).collect();
        for scope in scopes {
            let tags = self.descend(tag, DEPTH_MAX, |edge| is_ancestor(&edge.scope, scope));
            if tags.len() > 1 {
                let within = ScopeRanges::new(&[ScopeSelector::Subtree(scope.clone())]).ok();
                closures.push(Closure {
                    within,
                    tags: tags.into_iter().collect(),
                });
            }
        }
        closures
    }

    /// Breadth-first from `tag` along the edges that `holds` lets through.
    fn descend(
        &self,
        tag: &str,
        depth_max: usize,
        holds: impl Fn(&TagEdge) -> bool,
    ) -> BTreeSet<String> {
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| holds(edge)) {
            children.entry(&edge.parent).or_default().push(&edge.child);
        }
        let mut seen = BTreeSet::from([tag.to_owned()]);
        let mut level = vec![tag];
        let mut depth = 0;
        while !level.is_empty() && depth < depth_max {
            let below = level.iter().filter_map(|tag| children.get(tag)).flatten();
            level = below
                .copied()
                .filter(|child| seen.insert((*child).to_owned()))
                .collect();
            depth += 1;
        }
        seen
    }
}

/// True if `above` is `scope` itself or one of its ancestors.
fn is_ancestor(above: &Scope, scope: &Scope) -> bool {
    scope.key().starts_with(above.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(scope: &str, parent: &str, child: &str) -> TagEdge {
        TagEdge {
            scope: Scope::parse(scope).expect("ok"),
            parent: parent.into(),
            child: child.into(),
        }
    }

    #[test]
    fn a_closure_holds_in_its_scope_and_below_only() {
        let graph = TagGraph::new([
            edge("a", "ops", "deploy"),
            edge("a/b", "deploy", "rollback"),
        ]);
        let closures = graph.closures("ops");
        let described: Vec<(bool, Vec<String>)> = closures
            .into_iter()
            .map(|c| (c.within.is_some(), c.tags))
            .collect();
        assert_eq!(described[0], (false, vec!["ops".to_owned()]));
        assert_eq!(
            described[1],
            (true, vec!["deploy".to_owned(), "ops".to_owned()])
        );
        assert_eq!(described[2].1, ["deploy", "ops", "rollback"]);
    }

    #[test]
    fn a_cycle_along_a_line_of_scopes_is_refused_and_across_siblings_is_not() {
        let graph = TagGraph::new([edge("a", "x", "y"), edge("a/b", "y", "z")]);
        assert!(graph.check(&edge("a", "z", "x")).is_err());
        assert!(graph.check(&edge("a/b/c", "y", "x")).is_err());
        assert!(graph.check(&edge("other", "y", "x")).is_ok());
        assert!(graph.check(&edge("a", "x", "x")).is_err());
    }

    #[test]
    fn a_closure_stops_at_its_depth() {
        let chain = (0..9).map(|i| edge("a", &format!("t{i}"), &format!("t{}", i + 1)));
        let closures = TagGraph::new(chain).closures("t0");
        assert_eq!(closures[1].tags.len(), DEPTH_MAX + 1);
    }
}
