//! `repair`: what can be saved of a damaged store, and what is missing? Into a new store.

use std::io::Write;

use chronolith::{
    ManifestState, Options, RepairOptions, RepairProgress, RepairReport, RepairStage, Setup, repair,
};
use serde_json::json;

use crate::cli::Repair;
use crate::failure::Failure;
use crate::{output, progress};

/// Lines of one table: the rest is counted, and in the JSON.
const LINES_MAX: usize = 20;

pub(crate) fn run(args: &Repair) -> Result<(), Failure> {
    let setup = args
        .like
        .as_ref()
        .map(|store| Setup::of_store(store, &Options::default()))
        .transpose()?;
    let mut options = RepairOptions {
        setup,
        ..RepairOptions::default()
    };
    if args.ids {
        options.lost_ids_max = usize::MAX;
    }
    let bar = progress::bar(0, "repairing");
    let mut step = |at: RepairProgress| {
        bar.set_length(at.total);
        bar.set_position(at.done);
        bar.set_message(match at.stage {
            RepairStage::Segments => "segments",
            RepairStage::Log => "log",
            RepairStage::Writing => "writing",
        });
    };
    let repaired = repair(&args.store, &args.new_store, &options, &mut step);
    bar.finish_and_clear();
    let mut report = repaired?;
    let is_complete = report.is_complete();
    if !args.ids {
        report.lost_ids.clear();
    }
    match args.json {
        true => {
            let mut value = serde_json::to_value(&report)?;
            value["ok"] = json!(is_complete);
            output::print_json(&value)?;
        }
        false => print(args, &report)?,
    }
    match is_complete {
        true => Ok(()),
        false => Err(Failure::Reported(3)),
    }
}

fn print(args: &Repair, report: &RepairReport) -> Result<(), Failure> {
    let mut out = output::for_people();
    if report.manifest == ManifestState::Rebuilt {
        writeln!(
            out,
            "the list of live files was lost; it was rebuilt from footers and the log"
        )?;
    }
    for assumed in &report.assumed {
        writeln!(out, "assumed: {}", output::clean(assumed))?;
    }
    for note in &report.notes {
        writeln!(out, "note: {}", output::clean(note))?;
    }
    print_damage(&mut out, report)?;
    print_missing(&mut out, report)?;
    print_risks(&mut out, report)?;
    for lost in report.lost_ids.iter() {
        let scope = lost.scope.as_deref().unwrap_or("?");
        writeln!(
            out,
            "lost: {} {}",
            output::clean(scope),
            output::clean(&lost.id)
        )?;
    }
    if report.lost_ids_total > 0 && !args.ids {
        writeln!(
            out,
            "{} records are known by id to be lost; --ids names them",
            report.lost_ids_total
        )?;
    }
    if report.order_has_holes {
        writeln!(
            out,
            "later writes were kept though earlier ones are lost: the new store is no state \
             that the old one was ever in"
        )?;
    }
    writeln!(
        out,
        "{}: {} records and {} tag edges in {}; {} was not changed",
        match report.is_complete() {
            true => "nothing is missing",
            false => "NOT COMPLETE",
        },
        report.records,
        report.tag_edges,
        args.new_store.display(),
        args.store.display()
    )?;
    Ok(out.flush()?)
}

fn print_damage(out: &mut impl Write, report: &RepairReport) -> Result<(), Failure> {
    if report.damaged.is_empty() {
        return Ok(());
    }
    let mut table = output::table(&["damaged", "section", "offset", "what"]);
    for damage in report.damaged.iter().take(LINES_MAX) {
        table.add_row([
            damage.file.clone(),
            damage.section.clone(),
            number(damage.offset),
            output::clean(&damage.why),
        ]);
    }
    writeln!(out, "{table}")?;
    more(out, report.damaged.len())
}

fn print_missing(out: &mut impl Write, report: &RepairReport) -> Result<(), Failure> {
    if report.missing.is_empty() {
        return Ok(());
    }
    let mut table = output::table(&["missing from", "first seq", "last seq", "at most", "why"]);
    for missing in report.missing.iter().take(LINES_MAX) {
        table.add_row([
            missing.file.clone().unwrap_or_else(|| "-".into()),
            number(missing.first_seq),
            number(missing.last_seq),
            number(missing.records),
            output::clean(&missing.why),
        ]);
    }
    writeln!(out, "{table}")?;
    more(out, report.missing.len())
}

fn print_risks(out: &mut impl Write, report: &RepairReport) -> Result<(), Failure> {
    if report.deletes_at_risk.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "deletes whose evidence may be lost; such records may be back:"
    )?;
    let mut table = output::table(&["file", "first seq", "last seq", "at most", "why"]);
    for risk in report.deletes_at_risk.iter().take(LINES_MAX) {
        table.add_row([
            risk.file.clone().unwrap_or_else(|| "-".into()),
            number(risk.first_seq),
            number(risk.last_seq),
            number(risk.count),
            output::clean(&risk.why),
        ]);
    }
    writeln!(out, "{table}")?;
    more(out, report.deletes_at_risk.len())
}

fn more(out: &mut impl Write, all: usize) -> Result<(), Failure> {
    if all > LINES_MAX {
        writeln!(out, "… and {} more; --json has all", all - LINES_MAX)?;
    }
    Ok(())
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}
