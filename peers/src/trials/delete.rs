//! Do the bytes of a deleted record leave the disk? Records with a marker of 24 random letters
//! are deleted in the ordinary way, the ordinary clean-up is called, and every file is searched.
//!
//! The search is for the raw bytes: a marker inside a compressed block is not seen. The row
//! `seen before the delete` says how much of it the search could see at all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::{Bench, each, work};
use crate::child::Job;
use crate::engine::Engine;
use crate::records::{PER_COMMIT, RECORDS, marker};
use crate::report::{Cell, Finding, Section};
use crate::runner::{Ended, Scratch, run};

const TITLE: &str = "delete, clean up, scan the raw files";
const MARKERS: &str = "markers";
const STEPS: [(&str, Job); 4] = [
    ("seen before the delete", Job::Build),
    ("seen after delete and close", Job::Delete),
    ("SEEN AFTER THE CLEAN-UP", Job::Clean),
    ("SEEN AFTER ONE MORE OPEN AND CLOSE", Job::Touch),
];
/// Markers of one store.
const EACH: usize = 5;
/// So many letters of a marker in a row are taken for it.
const WINDOW: usize = 8;

/// The section.
pub fn run_all(bench: &mut Bench) -> io::Result<()> {
    let mut cells = BTreeMap::new();
    for engine in bench.engines {
        let runs = (bench.trials / 200).clamp(1, 10);
        let name = format!("{TITLE}, {}", engine.name());
        let (base, seed) = (bench.base, bench.seed);
        let results = each(&name, runs, |index| {
            one_run(base, seed ^ ((index as u64) << 8), &**engine)
        });
        let mut counts = BTreeMap::new();
        let mut skipped = None;
        for result in results {
            match result? {
                Ok(seen) => {
                    *counts.entry(MARKERS).or_default() += EACH as u64;
                    for (row, files) in seen {
                        *counts.entry(row).or_default() += files.len() as u64;
                        for file in files {
                            bench.report.find(Finding {
                                trial: TITLE,
                                engine: engine.name(),
                                outcome: row,
                                what: file,
                            });
                        }
                    }
                }
                Err(why) => skipped = Some(why),
            }
        }
        let cell = skipped.map_or(Cell::Counts(counts), Cell::skipped);
        cells.insert(engine.name(), cell);
    }
    bench.report.remarks.push(format!(
        "{TITLE}: raw bytes only; what a compressed block holds is not seen"
    ));
    bench.report.sections.push(Section {
        title: TITLE.to_owned(),
        rows: std::iter::once(MARKERS)
            .chain(STEPS.map(|(row, _)| row))
            .collect(),
        cells,
    });
    Ok(())
}

/// For each step, where the markers were seen, one entry for each marker.
type SeenBySteps = Vec<(&'static str, Vec<String>)>;

fn one_run(base: &Path, seed: u64, engine: &dyn Engine) -> io::Result<Result<SeenBySteps, String>> {
    let scratch = Scratch::new(base)?;
    let mut seen = Vec::new();
    for (row, job) in STEPS {
        let mut work = work(job, engine.name(), scratch.store(), seed);
        (work.commits, work.per_commit) = (RECORDS / PER_COMMIT, PER_COMMIT);
        work.marked = EACH;
        let run = run(&work, scratch.path())?;
        if run.ended != Ended::Exit(0) {
            return Ok(Err(format!("{row}: {}", run.describe())));
        }
        let mut found = Vec::new();
        for number in 0..EACH {
            found.extend(scan(&scratch.store(), marker(seed, number).as_bytes())?);
        }
        seen.push((row, found));
    }
    Ok(Ok(seen))
}

/// The first file with a part of the marker.
fn scan(dir: &Path, marker: &[u8]) -> io::Result<Option<String>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let found = scan(&entry.path(), marker)?;
            if found.is_some() {
                return Ok(found);
            }
            continue;
        }
        let bytes = fs::read(entry.path())?;
        let hit = bytes
            .windows(WINDOW)
            .any(|window| marker.windows(WINDOW).any(|part| part == window));
        if hit {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}
