//! A writing child and the pipe on which it acknowledges.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::Script;

/// One line of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The store is open, at this seq, with these last batches by lane.
    Open {
        /// Last visible commit seq.
        seq: u64,
        /// Last batch of each lane.
        heads: Vec<Option<u64>>,
    },
    /// A batch is acknowledged.
    Acked {
        /// The lane.
        lane: usize,
        /// The batch.
        number: u64,
        /// The last commit seq of the batch.
        last_seq: u64,
    },
    /// A sync, flush or close of everything up to this seq came back.
    Durable {
        /// The last commit seq it covers.
        seq: u64,
    },
    /// The store was closed for good.
    Closed,
}

impl Said {
    /// Reads a line; `None` where a kill cut it or it is none of these.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(match *words.first()? {
            "open" => Self::Open {
                seq: number(1)?,
                heads: words[2..].iter().map(|head| head.parse().ok()).collect(),
            },
            "ack" => Self::Acked {
                lane: usize::try_from(number(1)?).ok()?,
                number: number(2)?,
                last_seq: number(3)?,
            },
            "durable" => Self::Durable { seq: number(1)? },
            "closed" => Self::Closed,
            _ => return None,
        })
    }

    /// The line that [`Said::parse`] reads.
    pub fn line(&self) -> String {
        let word = |head: &Option<u64>| head.map_or("-".into(), |head| head.to_string());
        match self {
            Self::Open { seq, heads } => {
                let heads: Vec<String> = heads.iter().map(word).collect();
                format!("open {seq} {}\n", heads.join(" "))
            }
            Self::Acked {
                lane,
                number,
                last_seq,
            } => format!("ack {lane} {number} {last_seq}\n"),
            Self::Durable { seq } => format!("durable {seq}\n"),
            Self::Closed => "closed\n".into(),
        }
    }
}

/// A child that writes batches until it is killed or its input ends. Killed when dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts `program` (the `kill_child` of this crate) on a store.
    ///
    /// # Panics
    /// If there can be no child.
    pub fn start(program: &str, dir: &Path, seed: u64, script: Script) -> Self {
        let mut command = Command::new(program);
        command.arg(dir).args([&seed.to_string(), script.name()]);
        Self::run(command)
    }

    /// Runs a command and listens to it.
    ///
    /// # Panics
    /// If there can be no child.
    pub fn run(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a child");
        Self {
            input: process.stdin.take(),
            output: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
        }
    }

    /// Waits for the next line; `None` once the child is gone.
    ///
    /// # Panics
    /// If the pipe breaks.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line).expect("a pipe");
        (bytes > 0).then(|| line.trim_end().to_owned())
    }

    /// Waits for the next thing said; `None` once the child is gone.
    pub fn listen(&mut self) -> Option<Said> {
        loop {
            let line = self.line()?;
            if let Some(said) = Said::parse(&line) {
                return Some(said);
            }
        }
    }

    /// SIGSTOP: none of its threads comes back from the system any more, and so it says nothing
    /// that it learns from now on.
    ///
    /// # Panics
    /// If it cannot be stopped.
    pub fn stop(&self) {
        let stopped = Command::new("kill")
            .args(["-STOP", &self.id().to_string()])
            .status();
        assert!(stopped.is_ok_and(|status| status.success()), "not stopped");
    }

    /// SIGKILL, then everything that was still said. Also how it ended, if by itself.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub fn kill_whatever(mut self) -> (Vec<Said>, ExitStatus) {
        self.process.kill().expect("killed");
        let said = std::iter::from_fn(|| self.listen()).collect();
        (said, self.process.wait().expect("waited for"))
    }

    /// SIGKILL, then everything that was still said.
    ///
    /// # Panics
    /// If it had ended by itself.
    pub fn kill(self) -> Vec<Said> {
        let (said, status) = self.kill_whatever();
        assert_eq!(status.code(), None, "the child ended by itself: {status}");
        said
    }

    /// Lets it close the store; everything that was still said.
    ///
    /// # Panics
    /// If it fails.
    pub fn close(self) -> Vec<Said> {
        let (said, status) = self.end();
        assert!(status.success(), "the child failed: {status}");
        said
    }

    /// Ends its input and waits for it; everything that was still said.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn end(mut self) -> (Vec<Said>, ExitStatus) {
        self.input = None;
        let said = std::iter::from_fn(|| self.listen()).collect();
        (said, self.process.wait().expect("waited for"))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nothing to do where it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
