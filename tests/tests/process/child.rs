//! A writing child and the pipe on which it acknowledges.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A child that writes batches until it is killed or its input ends.
pub(crate) struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// One line of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The store is open.
    Open,
    /// A batch is acknowledged.
    Acked { number: u64, last_seq: u64 },
    /// The store was closed.
    Closed,
}

impl Writer {
    pub(crate) fn start(dir: &Path, first: u64, seed: u64) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kill_child"))
            .arg(dir)
            .args([first.to_string(), seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    /// Waits for the next line; `None` once the child is gone.
    pub(crate) fn listen(&mut self) -> Option<Said> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a pipe");
        match line.trim_end() {
            "" => None,
            "open" => Some(Said::Open),
            "closed" => Some(Said::Closed),
            acked => {
                let (number, seq) = acked.split_once(' ').expect("a number and a seq");
                Some(Said::Acked {
                    number: number.parse().expect("a number"),
                    last_seq: seq.parse().expect("a seq"),
                })
            }
        }
    }

    /// SIGKILL, then everything that was still said.
    pub(crate) fn kill(mut self) -> Vec<Said> {
        self.child.kill().expect("killed");
        let said = std::iter::from_fn(|| self.listen()).collect();
        let status = self.child.wait().expect("waited for");
        assert_eq!(status.code(), None, "the child ended by itself: {status}");
        said
    }

    /// Lets it close the store; everything that was still said.
    pub(crate) fn close(mut self) -> Vec<Said> {
        self.input = None;
        let said = std::iter::from_fn(|| self.listen()).collect();
        let status = self.child.wait().expect("waited for");
        assert!(status.success(), "the child failed: {status}");
        said
    }
}
