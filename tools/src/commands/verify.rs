//! `verify`: is every byte that an answer may rely on as it was written? Changes nothing.
//!
//! In the order of trust: the pointer and both copies of the manifest, what it names
//! (segments, delete sets, tag graph), then the log from its floor on.

use std::io::Write;
use std::path::Path;

use chronolith::manifest::names::{SEGMENTS_DIR, WAL_DIR};
use chronolith::manifest::{self, Manifest, SegmentEntry, deletes, tag_graph};
use chronolith::{Error, ErrorKind, ReadMode, SegmentError, WalError};
use chronolith_segments::{Segment, SegmentRef};
use chronolith_vfs::{Env, RealVfs};
use chronolith_wal::{Log, LogOptions};
use serde::Serialize;

use crate::cli::Verify;
use crate::failure::Failure;
use crate::{files, output, progress};

/// One place that is not as it was written.
#[derive(Debug, Serialize)]
struct Finding {
    file: String,
    section: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    message: String,
}

/// What was looked at and what was found.
#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    files: u64,
    blocks: u64,
    log_frames: u64,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

pub(crate) fn run(args: &Verify) -> Result<(), Failure> {
    let mut report = Report::default();
    check(&args.store, &mut report)?;
    report.ok = report.findings.is_empty();
    match args.json {
        true => output::print_json(&report)?,
        false => print(&report)?,
    }
    match report.ok {
        true => Ok(()),
        false => Err(Failure::Reported(3)),
    }
}

fn check(store: &Path, report: &mut Report) -> Result<(), Failure> {
    let vfs = files::vfs();
    report.files += 1;
    let loaded = match manifest::load_read_only(&vfs, store) {
        Ok(loaded) => loaded,
        Err(error) => return report.take(Error::from(error), manifest::names::CURRENT),
    };
    report.files += 2;
    if let Some(finding) = &loaded.damaged_copy {
        report.find(
            &finding.file,
            finding.section,
            Some(finding.offset),
            finding.message.clone(),
        );
    }
    let manifest = &loaded.manifest;
    let bar = progress::bar(
        manifest.segments.iter().map(|entry| entry.bytes).sum(),
        "verifying",
    );
    for entry in &manifest.segments {
        check_segment(&vfs, store, manifest, entry, report)?;
        bar.inc(entry.bytes);
    }
    bar.finish_and_clear();
    if let Some(side) = &manifest.tag_graph {
        report.files += 1;
        if let Err(error) = tag_graph::read_tag_graph(&vfs, store, &manifest.store_id, side) {
            report.take(error.into(), "tag graph")?;
        }
    }
    check_log(store, manifest, report)
}

fn check_segment(
    vfs: &RealVfs,
    store: &Path,
    manifest: &Manifest,
    entry: &SegmentEntry,
    report: &mut Report,
) -> Result<(), Failure> {
    let reference = SegmentRef {
        file_number: entry.file_number,
        bytes: entry.bytes,
        digest: entry.digest,
    };
    report.files += 1;
    let opened = Segment::open(
        vfs,
        &store.join(SEGMENTS_DIR),
        &reference,
        manifest.store_id,
        ReadMode::Mapped,
    );
    match opened {
        Ok(segment) => {
            let scrub = segment.verify_all();
            report.blocks += scrub.blocks;
            for finding in scrub.findings {
                report.find(
                    &finding.file,
                    finding.section,
                    Some(finding.offset),
                    finding.message,
                );
            }
        }
        Err(error) => report.take(error.into(), "segment")?,
    }
    if let Some(side) = &entry.deletes {
        report.files += 1;
        let (number, rows) = (entry.file_number, entry.rows);
        if let Err(error) =
            deletes::read_deletes(vfs, store, &manifest.store_id, side, number, rows)
        {
            report.take(error.into(), "delete set")?;
        }
    }
    Ok(())
}

fn check_log(store: &Path, manifest: &Manifest, report: &mut Report) -> Result<(), Failure> {
    // The first generation is published before the log begins.
    if manifest.generation == 1 {
        return Ok(());
    }
    let options = LogOptions {
        floor_file: manifest.floor_file,
        flushed_seq: manifest.flushed_seq,
        ..LogOptions::new(manifest.store_id)
    };
    let recovered = match Log::recover(&Env::real(), &store.join(WAL_DIR), &options) {
        Ok(recovered) => recovered,
        Err(error) => return report.take(error.into(), "log"),
    };
    let log = recovered.report();
    report.files += log.files as u64;
    report.log_frames = log.frames;
    if let Some(tail) = &log.dropped {
        let what = match log.ambiguous {
            true => "which may have been acknowledged (the status file is missing or damaged)",
            false => "none of it acknowledged as synced",
        };
        report.notes.push(format!(
            "{} is cut off at offset {}: {} bytes would be dropped by the next open, {what}",
            tail.file, tail.offset, log.bytes_dropped
        ));
    }
    for frame in recovered.frames() {
        if let Err(error) = frame {
            return report.take(error.into(), "log");
        }
    }
    Ok(())
}

impl Report {
    fn find(&mut self, file: &str, section: &str, offset: Option<u64>, message: String) {
        self.findings.push(Finding {
            file: file.to_owned(),
            section: section.to_owned(),
            offset,
            message,
        });
    }

    /// Damage is a finding; everything else (no store, no permission) ends the run.
    fn take(&mut self, error: Error, what: &str) -> Result<(), Failure> {
        let missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        match &error {
            Error::Segment(SegmentError::Corrupt {
                file,
                section,
                offset,
                message,
            }) => {
                let (file, section) = (file.to_string(), section.to_string());
                self.find(&file, &section, Some(*offset), message.clone());
            }
            // The manifest names it: a missing file is damage.
            Error::Segment(SegmentError::Io { file, source, .. }) if missing(source) => {
                let file = file.to_string();
                self.find(&file, what, None, "is missing".into());
            }
            Error::Log(WalError::MissingFile { .. }) => {
                self.find("wal", what, None, error.to_string())
            }
            _ if error.kind() == ErrorKind::Damaged => {
                self.find(what, what, None, error.to_string())
            }
            _ => return Err(error.into()),
        }
        Ok(())
    }
}

fn print(report: &Report) -> Result<(), Failure> {
    let mut out = output::for_people();
    for note in &report.notes {
        writeln!(out, "note: {}", output::clean(note))?;
    }
    if !report.findings.is_empty() {
        let mut table = output::table(&["file", "section", "offset", "what"]);
        for finding in &report.findings {
            table.add_row([
                finding.file.clone(),
                finding.section.clone(),
                finding
                    .offset
                    .map_or("-".to_owned(), |offset| offset.to_string()),
                output::clean(&finding.message),
            ]);
        }
        writeln!(out, "{table}")?;
    }
    writeln!(
        out,
        "{}: {} files, {} blocks, {} log frames checked, {} findings",
        if report.ok { "whole" } else { "DAMAGED" },
        report.files,
        report.blocks,
        report.log_frames,
        report.findings.len()
    )?;
    if !report.ok {
        writeln!(
            out,
            "restore the named files from a backup; nothing was changed here"
        )?;
    }
    Ok(out.flush()?)
}
