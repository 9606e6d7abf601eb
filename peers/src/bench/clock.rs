//! What does it cost: processor time, memory, bytes on disk?

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::engine::Failure;

fn ns(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Processor time of this thread, ns.
pub fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time of all threads of this process, ns.
pub fn process_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// Waits until the process does nothing by itself, at most `longest`: what an engine does in
/// the background after an open is no part of its queries.
pub fn wait_quiet(longest: Duration) {
    let (begin, pause) = (Instant::now(), Duration::from_millis(200));
    loop {
        let before = process_cpu_ns();
        std::thread::sleep(pause);
        // A fiftieth of a processor.
        let is_quiet = process_cpu_ns() - before < 4_000_000;
        if is_quiet || begin.elapsed() > longest {
            return;
        }
    }
}

/// What two readings of the thread's clock cost, ns: part of every figure.
pub fn overhead_ns() -> u64 {
    let mut readings: Vec<u64> = (0..1001)
        .map(|_| {
            let begin = thread_cpu_ns();
            thread_cpu_ns() - begin
        })
        .collect();
    readings.sort_unstable();
    readings[500]
}

/// Anonymous memory of this process, bytes; 0 where the kernel does not tell.
pub fn anonymous_bytes() -> u64 {
    told("/proc/self/smaps_rollup", "Anonymous:") * 1024
}

/// Bytes that this process caused to be written to a disk; 0 where the kernel does not tell.
pub fn written_bytes() -> u64 {
    told("/proc/self/io", "write_bytes:")
}

/// The number behind `label` in a file of the kernel.
fn told(path: &str, label: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(label));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

/// Bytes that the files below `dir` take on disk (a hole takes none), by what they are: the first folder, or the extension of a
/// file that lies in `dir` itself.
pub fn bytes_by_kind(dir: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let mut kinds = BTreeMap::new();
    for_each_file(dir, &mut |path, bytes| {
        let inner = path.strip_prefix(dir)?;
        let mut parts = inner.components();
        let first = parts
            .next()
            .map(|part| part.as_os_str().to_string_lossy().into_owned());
        let kind = match (parts.next(), inner.extension()) {
            (Some(_), _) => format!("{}/", first.unwrap_or_default()),
            (None, Some(extension)) => extension.to_string_lossy().into_owned(),
            (None, None) => first.unwrap_or_default(),
        };
        *kinds.entry(kind).or_default() += bytes;
        Ok(())
    })?;
    Ok(kinds)
}

/// Asks the kernel to forget what it keeps of every file below `dir`.
pub fn forget_pages(dir: &Path) -> Result<(), Failure> {
    for_each_file(dir, &mut |path, _| {
        let file = File::open(path)?;
        // Dirty pages stay: nothing may be unwritten.
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    })
}

type Visit<'a> = &'a mut dyn FnMut(&Path, u64) -> Result<(), Failure>;

fn for_each_file(dir: &Path, visit: Visit<'_>) -> Result<(), Failure> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            for_each_file(&entry.path(), visit)?;
        } else if metadata.is_file() {
            visit(&entry.path(), metadata.blocks() * 512)?;
        }
    }
    Ok(())
}
