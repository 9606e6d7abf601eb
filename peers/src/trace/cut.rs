//! What is on disk if the power goes at one point? What was synced, and of the rest what the
//! model allows.

use std::collections::BTreeMap;

use super::disk::{Node, Op, ROOT, Recorded};
use crate::image::{Image, ImageFile, SECTOR};
use crate::seeded::Seeded;

/// What an unsynced name is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// As a journalling file system (ext4, XFS): names change in order, and any sync takes all
    /// earlier changes of names with it.
    Journalled,
    /// As POSIX promises: a change of a name is on disk after a sync of its directory; before
    /// that each one is kept or lost by itself.
    Strict,
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// All is lost.
    Nothing,
    /// Names and lengths are kept, bytes are lost.
    NamesOnly,
    /// A random choice, sector by sector and name by name.
    Random,
}

/// The files at `cut`, an index into the operations: those before it have happened.
pub fn image(
    recorded: &Recorded,
    cut: usize,
    model: Model,
    unsynced: Unsynced,
    seeded: &mut Seeded,
) -> Image {
    let ops = &recorded.ops[..cut];
    let synced = Synced::new(ops, recorded.is_dir.len());
    // Where the journal ends: names and lengths changed before are kept, later ones are not.
    let journal_end = match (model, unsynced) {
        (Model::Strict, _) => 0,
        (Model::Journalled, Unsynced::Nothing) => synced.any,
        (Model::Journalled, Unsynced::NamesOnly) => cut,
        (Model::Journalled, Unsynced::Random) => synced.any + seeded.below(cut - synced.any + 1),
    };
    let keeps = |index: usize, node: Node, seeded: &mut Seeded| {
        index < synced.upto(node)
            || match (model, unsynced) {
                (Model::Journalled, _) => index < journal_end,
                (Model::Strict, Unsynced::Nothing) => false,
                (Model::Strict, Unsynced::NamesOnly) => true,
                (Model::Strict, Unsynced::Random) => seeded.coin(),
            }
    };
    let mut names = BTreeMap::new();
    let mut contents: BTreeMap<Node, Content> = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        match op {
            Op::Write { node, offset, data } => {
                let content = contents.entry(*node).or_default();
                let whole = index < synced.upto(*node);
                content.write(*offset, data, whole, unsynced, seeded);
            }
            Op::Resize { node, len } => {
                if keeps(index, *node, seeded) {
                    contents.entry(*node).or_default().resize(*len);
                }
            }
            Op::Link { dir, .. } | Op::Unlink { dir, .. } | Op::Rename { to: (dir, _), .. } => {
                if keeps(index, *dir, seeded) {
                    apply(op, &mut names);
                }
            }
            Op::Sync { .. } | Op::SyncAll { .. } | Op::Ack(_) => {}
        }
    }
    let mut image = Image::default();
    collect(recorded, &names, &contents, ROOT, "", &mut image);
    image
}

/// How far each node, and everything, is synced: operations below are on disk.
struct Synced {
    nodes: Vec<usize>,
    all: usize,
    /// The same for any sync of anything.
    any: usize,
}

impl Synced {
    fn new(ops: &[Op], nodes: usize) -> Self {
        let mut synced = Self {
            nodes: vec![0; nodes],
            all: 0,
            any: 0,
        };
        for op in ops {
            match op {
                Op::Sync { node, covers } => {
                    synced.nodes[*node] = synced.nodes[*node].max(*covers);
                    synced.any = synced.any.max(*covers);
                }
                Op::SyncAll { covers } => {
                    synced.all = synced.all.max(*covers);
                    synced.any = synced.any.max(*covers);
                }
                _ => {}
            }
        }
        synced
    }

    fn upto(&self, node: Node) -> usize {
        self.nodes[node].max(self.all)
    }
}

fn apply(op: &Op, names: &mut BTreeMap<(Node, String), Node>) {
    match op {
        Op::Link { dir, name, node } => {
            names.insert((*dir, name.clone()), *node);
        }
        Op::Unlink { dir, name } => {
            names.remove(&(*dir, name.clone()));
        }
        Op::Rename { from, to, node } => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
        _ => {}
    }
}

/// The bytes of a file, by sector; what is not there is zero.
#[derive(Debug, Default)]
struct Content {
    len: u64,
    sectors: BTreeMap<u64, [u8; SECTOR]>,
}

impl Content {
    /// Writes all of `data` where `whole`; otherwise the sectors that `unsynced` keeps. The
    /// length may grow though the bytes are lost.
    fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        whole: bool,
        unsynced: Unsynced,
        seeded: &mut Seeded,
    ) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let inside = usize::try_from(at % SECTOR as u64).unwrap_or(0);
            let count = (SECTOR - inside).min(data.len() - done);
            let keep = whole || (unsynced == Unsynced::Random && seeded.coin());
            if keep {
                let sector = self
                    .sectors
                    .entry(at / SECTOR as u64)
                    .or_insert([0; SECTOR]);
                sector[inside..inside + count].copy_from_slice(&data[done..done + count]);
                self.len = self.len.max(at + count as u64);
            }
            done += count;
        }
        let longer = match unsynced {
            Unsynced::Nothing => whole,
            Unsynced::NamesOnly => true,
            Unsynced::Random => seeded.coin(),
        };
        if longer {
            self.len = self.len.max(offset + data.len() as u64);
        }
    }

    fn resize(&mut self, len: u64) {
        if len < self.len {
            let last = len / SECTOR as u64;
            let inside = usize::try_from(len % SECTOR as u64).unwrap_or(0);
            self.sectors.split_off(&(last + 1));
            if let Some(sector) = self.sectors.get_mut(&last) {
                sector[inside..].fill(0);
            }
        }
        self.len = len;
    }

    fn file(&self, path: String) -> ImageFile {
        let mut sectors = Vec::new();
        for (number, bytes) in &self.sectors {
            let offset = number * SECTOR as u64;
            let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(SECTOR);
            if left > 0 {
                sectors.push((offset, bytes[..left.min(SECTOR)].to_vec()));
            }
        }
        ImageFile {
            path,
            len: self.len,
            mode: 0o600,
            sectors,
        }
    }
}

fn collect(
    recorded: &Recorded,
    names: &BTreeMap<(Node, String), Node>,
    contents: &BTreeMap<Node, Content>,
    dir: Node,
    below: &str,
    image: &mut Image,
) {
    let first = (dir, String::new());
    for ((_, name), node) in names.range(first..).take_while(|((of, _), _)| *of == dir) {
        let path = if below.is_empty() {
            name.clone()
        } else {
            format!("{below}/{name}")
        };
        if recorded.is_dir[*node] {
            image.dirs.push(path.clone());
            collect(recorded, names, contents, *node, &path, image);
        } else {
            let empty = Content::default();
            let content = contents.get(node).unwrap_or(&empty);
            image.files.push(content.file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::disk::read;

    const HEX_A: &str = r"\x2f\x73\x2f\x61"; // /s/a
    const HEX_B: &str = r"\x2f\x73\x2f\x62"; // /s/b

    fn lost(trace: &str, model: Model) -> Vec<(String, u64)> {
        let recorded = read("/s", trace).expect("a trace");
        let cut = recorded.ops.len();
        let mut seeded = Seeded::new(1);
        image(&recorded, cut, model, Unsynced::Nothing, &mut seeded)
            .files
            .into_iter()
            .map(|file| (file.path, file.len))
            .collect()
    }

    fn file(sync: &str, then: &str) -> String {
        format!(
            "1 openat(AT_FDCWD, \"{HEX_A}\", O_RDWR|O_CREAT, 0600) = 3\n\
             1 write(3, \"\\x41\\x42\", 2) = 2\n{sync}{then}"
        )
    }

    #[test]
    fn what_was_never_synced_is_lost() {
        assert!(lost(&file("", ""), Model::Journalled).is_empty());
    }

    #[test]
    fn a_synced_file_has_its_name_on_a_journalling_file_system_only() {
        let trace = file("1 fsync(3) = 0\n", "");
        assert_eq!(lost(&trace, Model::Journalled), [("a".to_owned(), 2)]);
        assert!(lost(&trace, Model::Strict).is_empty());
    }

    #[test]
    fn a_rename_needs_a_sync_of_the_directory() {
        let rename = format!("1 rename(\"{HEX_A}\", \"{HEX_B}\") = 0\n");
        let dir = "1 openat(AT_FDCWD, \"\\x2f\\x73\", O_RDONLY|O_DIRECTORY) = 4\n1 fsync(4) = 0\n";
        let trace = file("1 fsync(3) = 0\n", &rename);
        assert_eq!(lost(&trace, Model::Journalled), [("a".to_owned(), 2)]);
        let trace = format!("{trace}{dir}");
        assert_eq!(lost(&trace, Model::Journalled), [("b".to_owned(), 2)]);
        assert_eq!(lost(&trace, Model::Strict), [("b".to_owned(), 2)]);
    }

    #[test]
    fn a_write_after_the_sync_is_lost_alone() {
        let trace = file("1 fsync(3) = 0\n", "1 write(3, \"\\x43\", 1) = 1\n");
        assert_eq!(lost(&trace, Model::Journalled), [("a".to_owned(), 2)]);
    }
}
