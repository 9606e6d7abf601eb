//! What does the child process do? One job on one store, under limits that it sets on itself
//! before the engine is touched; what it learned goes to stdout.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

use crate::ask::{Reply, ask};
use crate::engine::{Engine, Failure, Handle, Settings, named};
use crate::records::{Record, commit, marked};

/// The work of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Job {
    /// Writes the commits, settling on the way; prints `ack n` after each.
    Build,
    /// Opens, asks the fixed questions, closes; prints a reply.
    Ask,
    /// Writes until the disk is full, frees space, writes five more, closes.
    Fill,
    /// Deletes the marked records.
    Delete,
    /// Calls the engine's clean-up.
    Clean,
    /// Opens and closes.
    Touch,
}

/// Everything that a child needs to know.
#[derive(Debug, Clone, clap::Args)]
pub struct Work {
    /// The work.
    #[arg(value_enum)]
    pub job: Job,
    /// Whose store.
    #[arg(long)]
    pub engine: String,
    /// The directory of the store.
    #[arg(long)]
    pub dir: PathBuf,
    /// Seed of the records.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Commits to write, or to ask for.
    #[arg(long, default_value_t = 0)]
    pub commits: usize,
    /// Records of a commit.
    #[arg(long, default_value_t = 1)]
    pub per_commit: usize,
    /// Least length of a text.
    #[arg(long, default_value_t = 0)]
    pub bytes_min: usize,
    /// Marked records to write or to delete.
    #[arg(long, default_value_t = 0)]
    pub marked: usize,
    /// Small buffers.
    #[arg(long)]
    pub small_buffers: bool,
    /// `Build`: dies of SIGKILL where it would close.
    #[arg(long)]
    pub kill: bool,
    /// `Ask`: also asks for words.
    #[arg(long)]
    pub search: bool,
    /// `Fill`: the file whose removal frees space.
    #[arg(long)]
    pub ballast: Option<PathBuf>,
    /// Address space, bytes; 0 = no limit.
    #[arg(long, default_value_t = 0)]
    pub memory_bytes: u64,
    /// Processor time, s; 0 = no limit.
    #[arg(long, default_value_t = 0)]
    pub cpu_s: u64,
}

/// Does the work; an error ends the process with code 1 and the error on stdout.
pub fn run(work: &Work) -> Result<(), Failure> {
    limit(work)?;
    let engine = named(&work.engine).ok_or("no such engine")?;
    let settings = Settings {
        small_buffers: work.small_buffers,
    };
    match work.job {
        Job::Build => build(work, engine.open(&work.dir, settings)?),
        Job::Ask => {
            let reply = asked(work, &*engine, settings);
            println!("{}", serde_json::to_string(&reply)?);
            Ok(())
        }
        Job::Fill => fill(work, engine.open(&work.dir, settings)?),
        Job::Delete => {
            let mut handle = engine.open(&work.dir, settings)?;
            handle.delete(&all_marked(work))?;
            handle.close()
        }
        Job::Clean => {
            let mut handle = engine.open(&work.dir, settings)?;
            handle.clean_up()?;
            handle.close()
        }
        Job::Touch => engine.open(&work.dir, settings)?.close(),
    }
}

fn limit(work: &Work) -> Result<(), Failure> {
    let set = |resource, value: u64| {
        let limit = Rlimit {
            current: Some(value),
            // Above it: at the soft limit of processor time the signal tells what happened.
            maximum: Some(value + 5),
        };
        setrlimit(resource, limit)
    };
    if work.memory_bytes > 0 {
        set(Resource::As, work.memory_bytes)?;
    }
    if work.cpu_s > 0 {
        set(Resource::Cpu, work.cpu_s)?;
    }
    Ok(())
}

fn all_marked(work: &Work) -> Vec<Record> {
    (0..work.marked)
        .map(|number| marked(work.seed, number))
        .collect()
}

fn build(work: &Work, mut handle: Box<dyn Handle>) -> Result<(), Failure> {
    let mut marked = all_marked(work).into_iter();
    for number in 0..work.commits {
        let mut records = commit(work.seed, number, work.per_commit, work.bytes_min);
        records.extend(marked.next());
        handle.put(&records)?;
        println!("ack {number}");
        if number + 1 == work.commits * 4 / 10 || number + 1 == work.commits * 7 / 10 {
            handle.settle()?;
        }
    }
    if work.kill {
        kill_process(getpid(), Signal::KILL)?;
    }
    handle.close()
}

fn asked(work: &Work, engine: &dyn Engine, settings: Settings) -> Reply {
    let mut records = Vec::new();
    for number in 0..work.commits {
        records.extend(commit(work.seed, number, work.per_commit, work.bytes_min));
    }
    match engine.open(&work.dir, settings) {
        Ok(handle) => ask(handle, &records, work.search),
        Err(error) => Reply::refused(&error),
    }
}

/// Prints `ack n` for each acknowledged commit, `full n: why`, then `ack n` or `no n: why` for
/// five more on the same handle, then `closed` or `not closed: why`.
fn fill(work: &Work, mut handle: Box<dyn Handle>) -> Result<(), Failure> {
    let mut number = 0;
    let mut put = |handle: &mut Box<dyn Handle>| {
        let records = commit(work.seed, number, work.per_commit, work.bytes_min);
        number += 1;
        (number - 1, handle.put(&records))
    };
    loop {
        match put(&mut handle) {
            (written, Ok(())) if written + 1 >= work.commits => {
                println!("never full");
                break;
            }
            (written, Ok(())) => println!("ack {written}"),
            (refused, Err(error)) => {
                println!("full {refused}: {error}");
                break;
            }
        }
    }
    if let Some(ballast) = &work.ballast {
        fs::remove_file(ballast)?;
    }
    for _ in 0..5 {
        match put(&mut handle) {
            (written, Ok(())) => println!("ack {written}"),
            (refused, Err(error)) => println!("no {refused}: {error}"),
        }
    }
    match handle.close() {
        Ok(()) => println!("closed"),
        Err(error) => println!("not closed: {error}"),
    }
    Ok(())
}
