//! `verify`: is every byte that an answer may rely on as it was written? Changes nothing, and
//! runs beside a writer.

use std::io::Write;

use chronolith::{FindingKind, Options, VerifyProgress, VerifyReport};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::cli::Verify;
use crate::failure::Failure;
use crate::{output, progress};

/// Most sound files that are listed to a person; those with findings always are.
const FILES_SHOWN: usize = 40;

pub(crate) fn run(args: &Verify) -> Result<(), Failure> {
    let bar = progress::bar(0, "verifying");
    let report = chronolith::verify(&args.store, &Options::default(), &mut |now| tell(&bar, now));
    bar.finish_and_clear();
    let report = report?;
    match args.json {
        true => output::print_json(&to_json(&report))?,
        false => print(&report)?,
    }
    match report.is_ok() {
        true => Ok(()),
        false => Err(Failure::Reported(3)),
    }
}

fn tell(bar: &ProgressBar, now: VerifyProgress) {
    bar.set_length(now.bytes_total);
    bar.set_position(now.bytes_done);
}

fn to_json(report: &VerifyReport) -> Value {
    json!({
        "ok": report.is_ok(),
        "generation": report.generation,
        "files": report.files.len(),
        "blocks": report.blocks,
        "rows": report.rows,
        "log_frames": report.log_frames,
        "replayed": report.replayed,
        "findings": report.findings,
        "file_list": report.files,
        "leftovers": report.leftovers,
    })
}

fn print(report: &VerifyReport) -> Result<(), Failure> {
    let mut out = output::for_people();
    writeln!(out, "{}", files(report))?;
    let shown = shown(report).count();
    if shown < report.files.len() {
        writeln!(
            out,
            "and {} sound files more (--json lists all)",
            report.files.len() - shown
        )?;
    }
    for name in &report.leftovers {
        let name = output::clean(name);
        writeln!(
            out,
            "leftover: {name}; a writer is at work, or its next open sweeps it"
        )?;
    }
    if !report.findings.is_empty() {
        writeln!(out, "{}", findings(report))?;
    }
    writeln!(
        out,
        "{}: {} files, {} blocks, {} rows, {} log frames checked, {} findings",
        if report.is_ok() { "whole" } else { "DAMAGED" },
        report.files.len(),
        report.blocks,
        report.rows,
        report.log_frames,
        report.findings.len()
    )?;
    if report.count(FindingKind::Damage) > 0 {
        writeln!(
            out,
            "restore the named files from a backup, or repair; nothing was changed here"
        )?;
    } else if report.count(FindingKind::Degraded) > 0 {
        writeln!(
            out,
            "all that is proven is whole; a manifest copy is made anew by the next flush, the rest by the next \
             open for writing"
        )?;
    }
    Ok(out.flush()?)
}

/// Files with findings, and the first others.
fn shown(report: &VerifyReport) -> impl Iterator<Item = &chronolith::VerifiedFile> {
    let mut sound = 0;
    report.files.iter().filter(move |file| {
        sound += usize::from(file.findings == 0);
        file.findings > 0 || sound <= FILES_SHOWN
    })
}

fn files(report: &VerifyReport) -> comfy_table::Table {
    let mut table = output::table(&["file", "holds", "size", "blocks", "findings"]);
    for file in shown(report) {
        let or_dash = |count: u64| match count {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        table.add_row([
            output::clean(&file.file),
            file.holds.to_owned(),
            output::bytes(file.bytes),
            or_dash(file.blocks),
            or_dash(file.findings),
        ]);
    }
    table
}

fn findings(report: &VerifyReport) -> comfy_table::Table {
    let mut table = output::table(&["kind", "file", "section", "offset", "what"]);
    for finding in &report.findings {
        let offset = finding.offset;
        table.add_row([
            finding.kind.name().to_owned(),
            output::clean(&finding.file),
            finding.section.clone(),
            offset.map_or("-".to_owned(), |offset| offset.to_string()),
            output::clean(&finding.message),
        ]);
    }
    table
}
