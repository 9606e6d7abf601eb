//! How is a child process started, bounded and looked at when it ends?

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use crate::child::Work;

/// Address space of a child: far above what a store of 200 records needs.
pub const MEMORY_BYTES: u64 = 1 << 30;
/// Processor time of a child, s.
pub const CPU_S: u64 = 10;
/// Time on the wall after which a child hangs.
pub const WALL: Duration = Duration::from_secs(20);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// Of this signal.
    Signal(i32),
    /// It was killed: over its time.
    Hung,
}

/// What is left of a process.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub ended: Ended,
    /// What it printed.
    pub stdout: String,
    /// What it, or its engine, complained of.
    pub stderr: String,
}

impl Run {
    /// The numbers of the `ack` lines.
    pub fn acknowledged(&self) -> Vec<usize> {
        self.stdout
            .lines()
            .filter_map(|line| line.strip_prefix("ack ")?.parse().ok())
            .collect()
    }

    /// One line about a process that did not do its work.
    pub fn describe(&self) -> String {
        let last = |text: &str| text.lines().last().unwrap_or("").to_owned();
        format!(
            "{:?}; {} {}",
            self.ended,
            last(&self.stdout),
            self.stderr.lines().take(2).collect::<Vec<_>>().join(" ")
        )
    }
}

/// A directory of its own for one trial, removed at the end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new directory in `base`.
    pub fn new(base: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("t{number}"));
        fs::create_dir_all(path.join("store"))?;
        Ok(Self(path))
    }

    /// The directory of the trial.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of its store.
    pub fn store(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in the run's directory, which goes at the end.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command line that does `work`.
pub fn command_line(work: &Work) -> io::Result<Vec<String>> {
    let job = work.job.to_possible_value();
    let mut line = vec![
        std::env::current_exe()?.display().to_string(),
        "child".into(),
        job.map(|job| job.get_name().to_owned()).unwrap_or_default(),
    ];
    let mut with = |name: &str, value: String| line.extend([format!("--{name}"), value]);
    with("engine", work.engine.clone());
    with("dir", work.dir.display().to_string());
    with("seed", work.seed.to_string());
    with("commits", work.commits.to_string());
    with("per-commit", work.per_commit.to_string());
    with("bytes-min", work.bytes_min.to_string());
    with("marked", work.marked.to_string());
    with("memory-bytes", work.memory_bytes.to_string());
    with("cpu-s", work.cpu_s.to_string());
    if let Some(ballast) = &work.ballast {
        with("ballast", ballast.display().to_string());
    }
    for (name, given) in [
        ("small-buffers", work.small_buffers),
        ("kill", work.kill),
        ("search", work.search),
    ] {
        line.extend(given.then(|| format!("--{name}")));
    }
    Ok(line)
}

/// Runs `work` in a child process; its output goes through files in `scratch`.
pub fn run(work: &Work, scratch: &Path) -> io::Result<Run> {
    run_line(&command_line(work)?, scratch, WALL)
}

/// Runs a command line, killing it after `wall`.
pub fn run_line(line: &[String], scratch: &Path, wall: Duration) -> io::Result<Run> {
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    let (program, arguments) = line
        .split_first()
        .ok_or_else(|| io::Error::other("an empty command line"))?;
    let mut child = Command::new(program)
        .args(arguments)
        // One arena: address space is what the limit counts.
        .env("MALLOC_ARENA_MAX", "1")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()?;
    let ended = match wait(&mut child, wall)? {
        Some(status) => how(status),
        None => Ended::Hung,
    };
    let read = |path: &Path| Ok::<_, io::Error>(String::from_utf8_lossy(&fs::read(path)?).into());
    Ok(Run {
        ended,
        stdout: read(&out)?,
        stderr: read(&err)?,
    })
}

fn wait(child: &mut Child, wall: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > wall {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn how(status: ExitStatus) -> Ended {
    const SIGXCPU: i32 = 24;
    match (status.signal(), status.code()) {
        (Some(SIGXCPU), _) => Ended::Hung,
        (Some(signal), _) => Ended::Signal(signal),
        (None, code) => Ended::Exit(code.unwrap_or(-1)),
    }
}
