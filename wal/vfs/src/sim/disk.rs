//! The state behind a simulated disk: operations counted, traced and stopped at a crash point.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{FailedSync, FileNode, FileState};
use super::names::Names;
use crate::op::{Errno, OpKind};

/// Operations that a trace keeps; older ones go.
const TRACE_LEN_MAX: usize = 1 << 16;

/// One mutating operation, for debugging and for comparing two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEntry {
    /// Number of the operation on this disk, from 0.
    pub number: u64,
    /// What was done.
    pub kind: OpKind,
    /// To which path; for an open file the path that it was opened by, for a rename or a link the
    /// target.
    pub path: PathBuf,
    /// Offset of a write; new length of a `set_len`.
    pub offset: u64,
    /// Bytes of a write.
    pub bytes: usize,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.number, self.kind, self.path.display())?;
        match self.kind {
            OpKind::Write => write!(f, " @{} +{}", self.offset, self.bytes),
            OpKind::SetLen => write!(f, " ={}", self.offset),
            _ => Ok(()),
        }
    }
}

/// The payload of every error after the crash point.
#[derive(Debug)]
struct SimulatedCrash;

impl fmt::Display for SimulatedCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated crash")
    }
}

impl std::error::Error for SimulatedCrash {}

/// True for the error of an operation at or behind a simulated crash point.
pub fn is_simulated_crash(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<SimulatedCrash>())
}

fn crash_error() -> io::Error {
    io::Error::other(SimulatedCrash)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CrashPoint {
    /// Number of the operation that fails.
    pub(super) at: u64,
    /// True: if it is a write, its first half is done.
    pub(super) half_done: bool,
}

/// Whether an operation may go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Whole,
    /// Do half of the write, then fail with the error.
    Half,
}

impl Step {
    /// The error behind a half-done step.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Whole => Ok(()),
            Self::Half => Err(crash_error()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    pub(super) names: Names,
    /// Ids of the files whose lock is held. A crash releases them: a new disk has none.
    pub(super) locked: BTreeSet<u64>,
    pub(super) ops: u64,
    pub(super) crash_point: Option<CrashPoint>,
    pub(super) crashed: bool,
    /// Syncs that still succeed before the one that fails, and how it fails.
    pub(super) failing_sync: Option<(u64, FailedSync)>,
    /// Bytes of all files together; growing beyond is ENOSPC.
    pub(super) space_bytes_max: Option<usize>,
    pub(super) trace: VecDeque<TraceEntry>,
    files_made: u64,
}

impl Disk {
    pub(super) fn new(names: Names, files_made: u64) -> Self {
        Self {
            names,
            locked: BTreeSet::new(),
            ops: 0,
            crash_point: None,
            crashed: false,
            failing_sync: None,
            space_bytes_max: None,
            trace: VecDeque::new(),
            files_made,
        }
    }

    /// A new disk with other names over copies of the files; counters start anew.
    pub(super) fn image(&self, names: Names) -> Self {
        Self {
            space_bytes_max: self.space_bytes_max,
            ..Self::new(names, self.files_made)
        }
    }

    pub(super) fn new_file(&mut self) -> FileNode {
        self.files_made += 1;
        FileNode::new(self.files_made, FileState::default())
    }

    /// Fails behind the crash point. The first line of every operation, reads included.
    pub(super) fn alive(&self) -> io::Result<()> {
        if self.crashed {
            Err(crash_error())
        } else {
            Ok(())
        }
    }

    /// Counts and traces a mutating operation that is about to take effect.
    pub(super) fn step(&mut self, kind: OpKind, path: &Path) -> io::Result<Step> {
        self.step_at(kind, path, 0, 0)
    }

    pub(super) fn step_at(
        &mut self,
        kind: OpKind,
        path: &Path,
        offset: u64,
        bytes: usize,
    ) -> io::Result<Step> {
        self.alive()?;
        let point = self.crash_point.filter(|point| point.at <= self.ops);
        self.crashed = point.is_some();
        if self.trace.len() == TRACE_LEN_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(TraceEntry {
            number: self.ops,
            kind,
            path: path.to_path_buf(),
            offset,
            bytes,
        });
        self.ops += 1;
        match point {
            None => Ok(Step::Whole),
            Some(point) if point.half_done && kind == OpKind::Write => Ok(Step::Half),
            Some(_) => Err(crash_error()),
        }
    }

    /// Takes the armed failure if it is this sync's turn.
    pub(super) fn sync_failure(&mut self) -> Option<FailedSync> {
        match &mut self.failing_sync {
            Some((0, mode)) => {
                let mode = *mode;
                self.failing_sync = None;
                Some(mode)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }

    /// Fails where `growth` more bytes do not fit.
    pub(super) fn check_space(&self, growth: usize) -> io::Result<()> {
        let Some(bytes_max) = self.space_bytes_max.filter(|_| growth > 0) else {
            return Ok(());
        };
        // A file with several names takes its space once.
        let files = self.names.files().into_iter();
        let files: BTreeMap<u64, _> = files.map(|(_, node)| (node.id, node)).collect();
        let used: usize = files.values().map(|node| node.state().len()).sum();
        if used.saturating_add(growth) > bytes_max {
            return Err(Errno::NoSpace.into());
        }
        Ok(())
    }
}
