//! What did the calls do to the files below one directory? A list of operations on numbered
//! files and directories, in the order in which the calls returned.

use std::collections::{BTreeMap, BTreeSet};

use super::parse::{Call, Parser, Step};

/// Number of a file or directory; 0 is the directory of the store, which is there beforehand.
pub type Node = usize;

/// The directory of the store.
pub const ROOT: Node = 0;

/// One change, one sync or one acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `dir/name` is `node` from now on.
    Link { dir: Node, name: String, node: Node },
    /// `dir/name` is gone.
    Unlink { dir: Node, name: String },
    /// `from` has become `to`, in one step.
    Rename {
        from: (Node, String),
        to: (Node, String),
        node: Node,
    },
    /// Bytes of a file.
    Write {
        node: Node,
        offset: u64,
        data: Vec<u8>,
    },
    /// Length of a file.
    Resize { node: Node, len: u64 },
    /// A sync of a file or directory: all its operations below `covers` are on disk.
    Sync { node: Node, covers: usize },
    /// A sync of everything.
    SyncAll { covers: usize },
    /// The child said `ack n`.
    Ack(usize),
}

/// A whole trace.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The operations.
    pub ops: Vec<Op>,
    /// Whether a node is a directory.
    pub is_dir: Vec<bool>,
    /// Files that were mapped shared and writable: stores to them are not in the trace.
    pub mapped: BTreeSet<String>,
}

/// An open file description.
#[derive(Debug, Clone, Copy)]
struct Open {
    node: Node,
    offset: u64,
    append: bool,
}

/// Where a traced descriptor leads.
#[derive(Debug, Clone, Copy)]
enum Target {
    Stdout,
    Below(usize),
}

struct Reader {
    root: String,
    recorded: Recorded,
    names: BTreeMap<(Node, String), Node>,
    lens: Vec<u64>,
    opens: Vec<Open>,
    fds: BTreeMap<i64, Target>,
    /// What the call of each thread was about when it began.
    begun: BTreeMap<u64, (Option<Target>, usize)>,
}

/// Reads a trace of one process; `root` is the absolute path of the store's directory.
///
/// # Errors
/// A call that this model does not know and that touches the directory.
pub fn read(root: &str, trace: &str) -> Result<Recorded, String> {
    let mut reader = Reader {
        root: root.to_owned(),
        recorded: Recorded::default(),
        names: BTreeMap::new(),
        lens: Vec::new(),
        opens: Vec::new(),
        fds: BTreeMap::from([(1, Target::Stdout)]),
        begun: BTreeMap::new(),
    };
    reader.new_node(true);
    let mut parser = Parser::default();
    for line in trace.lines() {
        for step in parser.line(line) {
            match step {
                Step::Begin(call) => reader.begin(&call),
                Step::End(call, value) => reader.end(&call, value)?,
                Step::Failed(thread) => drop(reader.begun.remove(&thread)),
            }
        }
    }
    Ok(reader.recorded)
}

impl Reader {
    fn new_node(&mut self, is_dir: bool) -> Node {
        self.recorded.is_dir.push(is_dir);
        self.lens.push(0);
        self.lens.len() - 1
    }

    fn target(&self, call: &Call) -> Option<Target> {
        self.fds.get(&call.number(0)?).copied()
    }

    /// A descriptor means what it meant when the call began, and a sync covers what had
    /// returned by then. A closed descriptor may be given out again before `close` returns.
    fn begin(&mut self, call: &Call) {
        let target = self.target(call);
        self.begun
            .insert(call.thread, (target, self.recorded.ops.len()));
        if call.name == "close"
            && let Some(fd) = call.number(0)
        {
            self.fds.remove(&fd);
        }
    }

    fn end(&mut self, call: &Call, value: i64) -> Result<(), String> {
        let (target, covers) = self
            .begun
            .remove(&call.thread)
            .unwrap_or((None, self.recorded.ops.len()));
        let unsigned = u64::try_from(value).unwrap_or(0);
        match call.name.as_str() {
            "open" | "creat" | "openat" | "openat2" => self.open(call, value),
            "dup" | "dup2" | "dup3" => self.duplicate(target, value),
            "fcntl" if call.plain.get(1).is_some_and(|to| to.contains("DUPFD")) => {
                self.duplicate(target, value)
            }
            "lseek" => self.seek(target, unsigned),
            "read" | "readv" => self.advance(target, unsigned),
            "write" | "writev" => self.write(target, call, unsigned),
            "pwrite64" | "pwritev" | "pwritev2" => self.write_at(target, call, unsigned),
            "ftruncate" => self.resize(target, call.number(1)),
            "fallocate" => self.allocate(target, call),
            "fsync" | "fdatasync" => self.sync(target, covers),
            "sync" | "syncfs" => {
                self.recorded.ops.push(Op::SyncAll { covers });
                Ok(())
            }
            "mmap" => self.map(call),
            "close" | "fcntl" => Ok(()),
            "copy_file_range" | "sendfile" | "splice" => self.copy(call),
            _ => self.change_names(call),
        }
    }

    // Names.

    /// The path argument whose directory argument, if there is one, is `plain[dir_at]`, as
    /// parts below the root; `None` where it leads elsewhere.
    fn parts(
        &self,
        call: &Call,
        dir_at: Option<usize>,
        string: usize,
    ) -> Option<(Node, Vec<String>)> {
        let path = call.path(string)?;
        let split = |path: &str| -> Vec<String> {
            path.split('/')
                .filter(|part| !part.is_empty() && *part != ".")
                .map(str::to_owned)
                .collect()
        };
        if path.starts_with('/') {
            let below = path.strip_prefix(&self.root)?;
            return (below.is_empty() || below.starts_with('/')).then(|| (ROOT, split(below)));
        }
        match self.fds.get(&call.number(dir_at?)?)? {
            Target::Below(open) => Some((self.opens[*open].node, split(&path))),
            Target::Stdout => None,
        }
    }

    fn walk(&self, from: Node, parts: &[String]) -> Option<Node> {
        parts.iter().try_fold(from, |dir, part| {
            self.names.get(&(dir, part.clone())).copied()
        })
    }

    /// The directory and the name of a path.
    fn place(&self, call: &Call, dir_at: Option<usize>, string: usize) -> Option<(Node, String)> {
        let (from, mut parts) = self.parts(call, dir_at, string)?;
        let name = parts.pop()?;
        Some((self.walk(from, &parts)?, name))
    }

    fn link(&mut self, place: (Node, String), node: Node) {
        let (dir, name) = place.clone();
        self.names.insert(place, node);
        self.recorded.ops.push(Op::Link { dir, name, node });
    }

    fn change_names(&mut self, call: &Call) -> Result<(), String> {
        let at = call.name.ends_with("at") || call.name == "renameat2";
        let (first, second) = (at.then_some(0), at.then_some(2));
        match call.name.as_str() {
            "mkdir" | "mkdirat" => {
                if let Some(place) = self.place(call, first, 0) {
                    let node = self.new_node(true);
                    self.link(place, node);
                }
            }
            "unlink" | "unlinkat" | "rmdir" => {
                if let Some(place) = self.place(call, first, 0) {
                    self.names.remove(&place);
                    let (dir, name) = place;
                    self.recorded.ops.push(Op::Unlink { dir, name });
                }
            }
            "rename" | "renameat" | "renameat2" => {
                let from = self.place(call, first, 0);
                let to = self.place(call, second, 1);
                return self.rename(call, from, to);
            }
            "link" | "linkat" => {
                let node = self
                    .place(call, first, 0)
                    .and_then(|from| self.names.get(&from).copied());
                if let (Some(node), Some(to)) = (node, self.place(call, second, 1)) {
                    self.link(to, node);
                }
            }
            _ => {
                if (0..call.strings.len()).any(|string| self.place(call, first, string).is_some()) {
                    return Err(format!("the model does not know {}", call.name));
                }
            }
        }
        Ok(())
    }

    fn rename(
        &mut self,
        call: &Call,
        from: Option<(Node, String)>,
        to: Option<(Node, String)>,
    ) -> Result<(), String> {
        let (from, to) = match (from, to) {
            (Some(from), Some(to)) => (from, to),
            (None, None) => return Ok(()),
            _ => return Err("a rename across the store's border".into()),
        };
        if call.plain.iter().any(|plain| plain.contains("EXCHANGE")) {
            return Err("the model does not know an exchange of names".into());
        }
        let Some(node) = self.names.remove(&from) else {
            return Err(format!("{} was renamed and never made", from.1));
        };
        self.names.insert(to.clone(), node);
        self.recorded.ops.push(Op::Rename { from, to, node });
        Ok(())
    }

    // Descriptors.

    fn open(&mut self, call: &Call, fd: i64) -> Result<(), String> {
        let at = call.name.starts_with("openat");
        self.fds.remove(&fd);
        let Some((from, parts)) = self.parts(call, at.then_some(0), 0) else {
            return Ok(());
        };
        let flags = call
            .plain
            .get(usize::from(at) + 1)
            .cloned()
            .unwrap_or_default();
        if flags.contains("O_TMPFILE") {
            return Err("the model does not know files without a name".into());
        }
        if flags.contains("SYNC") {
            return Err("the model does not know O_SYNC and O_DSYNC".into());
        }
        let node = match self.walk(from, &parts) {
            Some(node) => node,
            None => {
                let place = self.place(call, at.then_some(0), 0);
                let place = place.ok_or("a file in an unknown directory")?;
                let node = self.new_node(false);
                self.link(place, node);
                node
            }
        };
        if (flags.contains("O_TRUNC") || call.name == "creat") && self.lens[node] > 0 {
            self.set_len(node, 0);
        }
        self.opens.push(Open {
            node,
            offset: 0,
            append: flags.contains("O_APPEND"),
        });
        self.fds.insert(fd, Target::Below(self.opens.len() - 1));
        Ok(())
    }

    fn duplicate(&mut self, target: Option<Target>, fd: i64) -> Result<(), String> {
        match target {
            Some(target) => self.fds.insert(fd, target),
            None => self.fds.remove(&fd),
        };
        Ok(())
    }

    fn seek(&mut self, target: Option<Target>, offset: u64) -> Result<(), String> {
        if let Some(Target::Below(open)) = target {
            self.opens[open].offset = offset;
        }
        Ok(())
    }

    fn advance(&mut self, target: Option<Target>, by: u64) -> Result<(), String> {
        if let Some(Target::Below(open)) = target {
            self.opens[open].offset += by;
        }
        Ok(())
    }

    // Contents.

    fn set_len(&mut self, node: Node, len: u64) {
        self.lens[node] = len;
        self.recorded.ops.push(Op::Resize { node, len });
    }

    fn put(&mut self, node: Node, offset: u64, call: &Call, written: u64) -> Result<(), String> {
        let written = usize::try_from(written).unwrap_or(usize::MAX);
        let mut data = call.strings.concat();
        if data.len() < written {
            return Err("the trace shows a part of a write only".into());
        }
        data.truncate(written);
        self.lens[node] = self.lens[node].max(offset + data.len() as u64);
        self.recorded.ops.push(Op::Write { node, offset, data });
        Ok(())
    }

    fn write(&mut self, target: Option<Target>, call: &Call, written: u64) -> Result<(), String> {
        match target {
            Some(Target::Below(open)) => {
                let Open {
                    node,
                    offset,
                    append,
                } = self.opens[open];
                let offset = if append { self.lens[node] } else { offset };
                self.put(node, offset, call, written)?;
                self.opens[open].offset = offset + written;
            }
            Some(Target::Stdout) => {
                let text = String::from_utf8_lossy(&call.strings.concat()).into_owned();
                let acks = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("ack ")?.parse().ok());
                self.recorded.ops.extend(acks.map(Op::Ack));
            }
            None => {}
        }
        Ok(())
    }

    fn write_at(
        &mut self,
        target: Option<Target>,
        call: &Call,
        written: u64,
    ) -> Result<(), String> {
        if let Some(Target::Below(open)) = target {
            let offset = call.number(3).and_then(|offset| u64::try_from(offset).ok());
            let offset = offset.ok_or("a write at no offset")?;
            self.put(self.opens[open].node, offset, call, written)?;
        }
        Ok(())
    }

    fn resize(&mut self, target: Option<Target>, len: Option<i64>) -> Result<(), String> {
        if let Some(Target::Below(open)) = target {
            let len = len.and_then(|len| u64::try_from(len).ok());
            self.set_len(self.opens[open].node, len.ok_or("a file of no length")?);
        }
        Ok(())
    }

    fn allocate(&mut self, target: Option<Target>, call: &Call) -> Result<(), String> {
        let Some(Target::Below(open)) = target else {
            return Ok(());
        };
        let mode = call.plain.get(1).cloned().unwrap_or_default();
        let (begin, count) = (call.number(2).unwrap_or(0), call.number(3).unwrap_or(0));
        let end = u64::try_from(begin + count).unwrap_or(0);
        let node = self.opens[open].node;
        match mode.as_str() {
            "0" if end > self.lens[node] => self.set_len(node, end),
            "0" | "FALLOC_FL_KEEP_SIZE" => {}
            other => return Err(format!("the model does not know fallocate with {other}")),
        }
        Ok(())
    }

    fn sync(&mut self, target: Option<Target>, covers: usize) -> Result<(), String> {
        if let Some(Target::Below(open)) = target {
            let node = self.opens[open].node;
            self.recorded.ops.push(Op::Sync { node, covers });
        }
        Ok(())
    }

    fn map(&mut self, call: &Call) -> Result<(), String> {
        let has = |index: usize, flag: &str| {
            call.plain
                .get(index)
                .is_some_and(|plain| plain.contains(flag))
        };
        let fd = call.number(4).unwrap_or(-1);
        if has(2, "PROT_WRITE")
            && has(3, "MAP_SHARED")
            && let Some(Target::Below(open)) = self.fds.get(&fd)
        {
            let node = self.opens[*open].node;
            let name = self.names.iter().find(|(_, named)| **named == node);
            let name = name.map_or("a file without a name", |((_, name), _)| name);
            self.recorded.mapped.insert(name.to_owned());
        }
        Ok(())
    }

    fn copy(&self, call: &Call) -> Result<(), String> {
        let touches = (0..call.plain.len())
            .filter_map(|index| call.number(index))
            .any(|fd| matches!(self.fds.get(&fd), Some(Target::Below(_))));
        if touches {
            return Err(format!("the model does not know {}", call.name));
        }
        Ok(())
    }
}
