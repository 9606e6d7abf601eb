//! Which names does a simulated disk have, now and after a power cut?

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use super::file::FileNode;
use super::image::Survival;
use super::random::Stream;

/// Index of a directory; 0 is the root. Never used again after the directory is removed.
pub(super) type DirId = usize;
const ROOT: DirId = 0;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    File(Arc<FileNode>),
    Dir(DirId),
}

impl Entry {
    /// Identity: two names with equal keys are names of one thing.
    fn key(&self) -> (bool, u64) {
        match self {
            Self::File(node) => (false, node.id),
            Self::Dir(id) => (true, *id as u64),
        }
    }
}

/// The names of one directory.
type Table = BTreeMap<String, Entry>;

/// A directory and a name in it.
pub(super) type Place = (DirId, String);

/// A change of names, atomic each.
#[derive(Debug, Clone)]
enum NameOp {
    Link(Place, Entry),
    Unlink(Place, Entry),
    Rename(Rename),
}

/// A move of one name. Other names of the same file (hard links) do not move with it.
#[derive(Debug, Clone)]
struct Rename {
    from: Place,
    to: Place,
    entry: Entry,
    /// Where this name was before `from`, latest first, by changes that are not durable yet:
    /// if one of those is lost, the name is still there.
    trail: Vec<Place>,
}

impl NameOp {
    /// The directory whose sync makes this durable. For a rename across directories that is
    /// the target's: syncing the source alone promises nothing.
    fn dir(&self) -> DirId {
        match self {
            Self::Link(place, _) | Self::Unlink(place, _) => place.0,
            Self::Rename(rename) => rename.to.0,
        }
    }

    /// The name that this change makes, and of what; none for a removal.
    fn makes(&self) -> Option<(&Place, &Entry)> {
        match self {
            Self::Link(place, entry) => Some((place, entry)),
            Self::Unlink(..) => None,
            Self::Rename(rename) => Some((&rename.to, &rename.entry)),
        }
    }

    /// Applies the change to tables in which earlier changes may be missing.
    ///
    /// A rename that survives without the creation or the rename before it carries the thing
    /// along: its earlier name is gone. A removal whose name meanwhile stands for something else
    /// (the change before it was lost) does nothing.
    fn apply(&self, tables: &mut [Table]) {
        match self {
            Self::Link((dir, name), entry) => {
                tables[*dir].insert(name.clone(), entry.clone());
            }
            Self::Unlink(place, entry) => {
                unlink(tables, place, entry);
            }
            Self::Rename(Rename {
                from,
                to,
                entry,
                trail,
            }) => {
                let mut earlier = std::iter::once(from).chain(trail);
                earlier.find(|place| unlink(tables, place, entry));
                tables[to.0].insert(to.1.clone(), entry.clone());
            }
        }
    }
}

fn unlink(tables: &mut [Table], (dir, name): &Place, entry: &Entry) -> bool {
    let named = tables[*dir].get(name);
    let same = named.is_some_and(|named| named.key() == entry.key());
    if same {
        tables[*dir].remove(name);
    }
    same
}

/// All directories of a disk. `current` is `durable` with `unsynced` applied in order.
#[derive(Debug, Clone)]
pub(super) struct Names {
    current: Vec<Table>,
    durable: Vec<Table>,
    unsynced: Vec<NameOp>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            current: vec![Table::new()],
            durable: vec![Table::new()],
            unsynced: Vec::new(),
        }
    }
}

impl Names {
    /// What `path` names. Relative paths begin at the root.
    pub(super) fn find(&self, path: &Path) -> io::Result<Entry> {
        let mut entry = Entry::Dir(ROOT);
        for part in parts(path)? {
            let Entry::Dir(dir) = entry else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            entry = self.get(&(dir, part)).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(entry)
    }

    /// The file at `path`.
    pub(super) fn find_file(&self, path: &Path) -> io::Result<Arc<FileNode>> {
        match self.find(path)? {
            Entry::File(node) => Ok(node),
            Entry::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// The directory at `path`.
    pub(super) fn find_dir(&self, path: &Path) -> io::Result<DirId> {
        match self.find(path)? {
            Entry::Dir(dir) => Ok(dir),
            Entry::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The place `path` stands for; its directory must exist, its name need not.
    pub(super) fn place(&self, path: &Path) -> io::Result<Place> {
        let mut parts = parts(path)?;
        let name = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = self.find_dir(&parts.iter().collect::<std::path::PathBuf>())?;
        Ok((dir, name))
    }

    pub(super) fn get(&self, (dir, name): &Place) -> Option<Entry> {
        self.current[*dir].get(name).cloned()
    }

    /// Names and entries of a directory, sorted.
    pub(super) fn entries(&self, dir: DirId) -> impl Iterator<Item = (&String, &Entry)> {
        self.current[dir].iter()
    }

    pub(super) fn is_empty(&self, dir: DirId) -> bool {
        self.current[dir].is_empty()
    }

    pub(super) fn link(&mut self, place: Place, entry: Entry) {
        self.change(NameOp::Link(place, entry));
    }

    pub(super) fn link_new_dir(&mut self, place: Place) {
        let id = self.current.len();
        self.current.push(Table::new());
        self.durable.push(Table::new());
        self.link(place, Entry::Dir(id));
    }

    pub(super) fn unlink(&mut self, place: Place, entry: Entry) {
        self.change(NameOp::Unlink(place, entry));
    }

    pub(super) fn rename(&mut self, from: Place, to: Place, entry: Entry) {
        let mut trail: Vec<Place> = Vec::new();
        for op in self.unsynced.iter().rev() {
            if let NameOp::Rename(rename) = op
                && rename.entry.key() == entry.key()
                && rename.to == *trail.last().unwrap_or(&from)
            {
                trail.push(rename.from.clone());
            }
        }
        self.change(NameOp::Rename(Rename {
            from,
            to,
            entry,
            trail,
        }));
    }

    fn change(&mut self, op: NameOp) {
        op.apply(&mut self.current);
        self.unsynced.push(op);
    }

    /// Makes the names inside `dir` durable, and with a thing renamed into it the steps that
    /// brought it there.
    pub(super) fn sync_dir(&mut self, dir: DirId) {
        let mut arrived = BTreeSet::new();
        let mut settled: Vec<bool> = Vec::with_capacity(self.unsynced.len());
        for op in self.unsynced.iter().rev() {
            let on_the_way = op
                .makes()
                .is_some_and(|(place, entry)| arrived.contains(&(entry.key(), place.clone())));
            let settles = op.dir() == dir || on_the_way;
            if let (true, NameOp::Rename(rename)) = (settles, op) {
                arrived.insert((rename.entry.key(), rename.from.clone()));
            }
            settled.push(settles);
        }
        let mut unsynced = Vec::new();
        for op in std::mem::take(&mut self.unsynced) {
            if settled.pop() == Some(true) {
                op.apply(&mut self.durable);
            } else {
                unsynced.push(op);
            }
        }
        self.unsynced = unsynced;
    }

    /// Paths of all files, sorted by directory and name.
    pub(super) fn files(&self) -> Vec<(String, Arc<FileNode>)> {
        let mut files = Vec::new();
        let mut dirs = vec![(String::new(), ROOT)];
        while let Some((prefix, dir)) = dirs.pop() {
            for (name, entry) in &self.current[dir] {
                let path = format!("{prefix}/{name}");
                match entry {
                    Entry::File(node) => files.push((path, Arc::clone(node))),
                    Entry::Dir(id) => dirs.push((path, *id)),
                }
            }
        }
        files.sort_by(|a, b| a.0.cmp(&b.0));
        files
    }

    /// The names as a power cut leaves them, over copies of the files.
    pub(super) fn after_power_cut(&self, survival: &Survival) -> Self {
        let mut stream = Stream::new(survival.seed, 0);
        let mut tables = self.durable.clone();
        for op in &self.unsynced {
            if survival.names.one(&mut stream) {
                op.apply(&mut tables);
            }
        }
        clear_unreachable(&mut tables);
        let mut copies = Copies::new(|node| {
            // A stream for each file: what one keeps does not depend on the others.
            let mut stream = Stream::new(survival.seed, node.id);
            let state = node.state().after_power_cut(survival, &mut stream);
            FileNode::new(node.id, state)
        });
        tables.iter_mut().for_each(|table| copies.of_table(table));
        Self {
            durable: tables.clone(),
            current: tables,
            unsynced: Vec::new(),
        }
    }

    /// The names as a killed process leaves them: all is there and still unsynced.
    pub(super) fn after_kill(&self) -> Self {
        let mut after = self.clone();
        let mut copies = Copies::new(|node| FileNode::new(node.id, node.state().clone()));
        let tables = after.current.iter_mut().chain(&mut after.durable);
        tables.for_each(|table| copies.of_table(table));
        for op in &mut after.unsynced {
            match op {
                NameOp::Link(_, entry)
                | NameOp::Unlink(_, entry)
                | NameOp::Rename(Rename { entry, .. }) => copies.of_entry(entry),
            }
        }
        after
    }
}

/// Empties the directories that no name leads to any more.
fn clear_unreachable(tables: &mut [Table]) {
    let mut reached = BTreeSet::from([ROOT]);
    let mut dirs = vec![ROOT];
    while let Some(dir) = dirs.pop() {
        for entry in tables[dir].values() {
            if let Entry::Dir(id) = entry
                && reached.insert(*id)
            {
                dirs.push(*id);
            }
        }
    }
    for (dir, table) in tables.iter_mut().enumerate() {
        if !reached.contains(&dir) {
            table.clear();
        }
    }
}

/// Copies each file once, however many tables and operations mention it.
struct Copies<F> {
    copy: F,
    made: BTreeMap<u64, Arc<FileNode>>,
}

impl<F: Fn(&FileNode) -> FileNode> Copies<F> {
    fn new(copy: F) -> Self {
        Self {
            copy,
            made: BTreeMap::new(),
        }
    }

    fn of_entry(&mut self, entry: &mut Entry) {
        if let Entry::File(node) = entry {
            let made = self.made.entry(node.id);
            *node = Arc::clone(made.or_insert_with(|| Arc::new((self.copy)(node))));
        }
    }

    fn of_table(&mut self, table: &mut Table) {
        table.values_mut().for_each(|entry| self.of_entry(entry));
    }
}

/// The names along a path. `..` and prefixes are refused: the engine never makes them.
fn parts(path: &Path) -> io::Result<Vec<String>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(parts)
}
