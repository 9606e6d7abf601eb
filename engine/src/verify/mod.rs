//! Is every byte of a store that an answer may rely on as it was written, and do its files
//! agree with each other?
//!
//! ```text
//!   CURRENT, both copies --> what they name, opened --> CURRENT again      look
//!        |                          |
//!        |     segments: every block, every section against the others     segment
//!        |     delete sets, tag graph                                       segment, tags
//!        |     log from its floor, judged as recovery would; STATUS         log
//!        v     all rows of all: one live row for each (scope, id)           rows
//!   catalog under its seal, foreign names                                   others
//! ```
//!
//! Nothing is written, locked or swept, so it runs beside a writer in any process. It goes on
//! after a finding and collects them all. Each says what it means ([`FindingKind`]).
//!
//! What it does not check: log files below the floor and manifests of other generations, on
//! which nothing relies; catalog files while no seal speaks of them.

mod log;
mod look;
mod others;
mod report;
mod rows;
mod run;
mod segment;
mod tags;
#[cfg(test)]
mod tests;

use std::path::Path;

use chronolith_segments::Segment;

pub use report::{FindingKind, VerifiedFile, VerifyFinding, VerifyProgress, VerifyReport};

use crate::error::Error;
use crate::manifest::SideFile;
use crate::manifest::names::{CURRENT, CopyName, DataKind, DataName, ManifestName};
use crate::options::Options;
use look::{Generation, Look, Looked};
use run::Run;

/// Reads a whole store and reports everything that is not as it was written.
///
/// Read-only, and safe beside a running writer: the store as of one generation and the log
/// behind it are verified. `progress` is called after every block or so. Of `options` the
/// environment, the read mode and the size of memtables count. Memory: that of an open for
/// reading plus 32 bytes a row.
///
/// # Errors
/// There is no store, another release wrote it, the system refuses, or the writer publishes
/// faster than its files can be opened (`Busy`). Damage is no error but a finding.
pub fn verify(
    path: impl AsRef<Path>,
    options: &Options,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<VerifyReport, Error> {
    let dir = path.as_ref();
    let Look {
        generation,
        findings,
        ..
    } = look::consistent(options, dir)?;
    let mut run = Run::new(progress);
    findings.into_iter().for_each(|finding| run.find(finding));
    match &generation {
        Some(generation) => {
            check_generation(&mut run, generation);
            let store_id = &generation.manifest.store_id;
            others::check_catalog(&mut run, options, dir, store_id)?;
        }
        None => check_without_manifest(&mut run, options, dir)?,
    }
    let manifest = generation.as_ref().map(|generation| &generation.manifest);
    others::check_names(&mut run, options, dir, manifest)?;
    Ok(run.finish())
}

fn check_generation(run: &mut Run<'_>, generation: &Generation) {
    let shared = &generation.shared;
    let number = generation.manifest.generation;
    let mut heads = vec![(CURRENT.to_owned(), "pointer", shared.dir.join(CURRENT))];
    for copy in CopyName::ALL {
        let name = ManifestName::new(number, copy);
        heads.push((name.shown(), "manifest", name.path(&shared.dir)));
    }
    let heads = heads.into_iter().map(|(shown, holds, path)| {
        // Lengths are for people: a copy that is gone has none.
        let bytes = shared.env.vfs.stat(&path).map_or(0, |stat| stat.len);
        (shown, holds, bytes)
    });
    let heads: Vec<(String, &'static str, u64)> = heads.collect();
    let (files, bytes) = totals(generation, &heads);
    run.expect(number, files, bytes);
    for (name, holds, bytes) in heads {
        run.file(name, holds, bytes, 0);
    }
    for (name, bytes) in &generation.log.files {
        let holds = if name.ends_with(".log") {
            "log"
        } else {
            "status"
        };
        run.file(name.clone(), holds, *bytes, 0);
    }
    run.log_frames(generation.log.frames);
    if let Some(side) = &generation.manifest.tag_graph {
        let name = DataName::new(side.file_number, DataKind::TagGraph).shown();
        for message in tags::check(&generation.edges) {
            run.find(VerifyFinding::damage(&name, "tag graph", message));
        }
        run.file(name, "tag graph", side.bytes, 0);
    }
    let mut sound: Vec<&Looked> = Vec::with_capacity(generation.segments.len());
    for looked in &generation.segments {
        if segment::check(run, generation, looked) {
            sound.push(looked);
        }
    }
    rows::check(run, generation, &sound);
}

/// Files and bytes of a generation.
fn totals(generation: &Generation, heads: &[(String, &'static str, u64)]) -> (u64, u64) {
    let manifest = &generation.manifest;
    let segments = manifest.segments.iter().map(|entry| entry.bytes);
    let deletes = manifest.segments.iter().filter_map(|entry| entry.deletes);
    let sides = deletes
        .chain(manifest.tag_graph)
        .map(|side: SideFile| side.bytes);
    let logs = generation.log.files.iter().map(|(_, bytes)| *bytes);
    let heads = heads.iter().map(|(_, _, bytes)| *bytes);
    segments
        .chain(sides)
        .chain(logs)
        .chain(heads)
        .fold((0, 0), |(files, sum), bytes| (files + 1, sum + bytes))
}

/// Without a manifest nobody knows which files count: each segment is verified by its own
/// account, so that a repair knows what it has.
fn check_without_manifest(run: &mut Run<'_>, options: &Options, dir: &Path) -> Result<(), Error> {
    let numbers = look::segment_files(options, dir)?;
    let segments = dir.join(crate::manifest::names::SEGMENTS_DIR);
    let (vfs, mode) = (&*options.env.vfs, options.read_mode);
    run.expect(0, 1 + numbers.len() as u64, 0);
    run.file(CURRENT.to_owned(), "pointer", 0, 0);
    for number in numbers {
        let opened = Segment::open_unreferenced(vfs, &segments, number, mode);
        segment::check_unreferenced(run, opened, number);
    }
    Ok(())
}
