//! `compact`: what is merged and dropped when a person asks for it?

use std::io::Write;

use chronolith::{Compacted, Options};
use serde_json::json;

use super::open_to_write;
use crate::cli::Compact;
use crate::failure::Failure;
use crate::{output, progress};

pub(crate) fn run(args: &Compact) -> Result<(), Failure> {
    let store = open_to_write(&args.store, Options::default())?;
    let spinner = progress::spinner("compacting");
    let done = store.compact(args.all, &mut |step| {
        spinner.set_message(format!(
            "compacting: {} segments, {}",
            step.inputs.len(),
            step.reason
        ));
        spinner.tick();
    });
    spinner.finish_and_clear();
    let done = done?;
    let stats = store.stats()?;
    store.close()?;
    if args.json {
        return output::print_json(&json!({
            "compactions": done.iter().map(step_json).collect::<Vec<_>>(),
            "segments": stats.segments,
            "segment_bytes": stats.segment_bytes,
            "records": stats.records,
            "dead_rows": stats.dead_rows,
        }));
    }
    let mut out = output::for_people();
    if !done.is_empty() {
        let mut table = output::table(&[
            "into",
            "inputs",
            "rows before",
            "after",
            "before",
            "after",
            "why",
        ]);
        for step in &done {
            let into = step
                .output
                .map_or("nothing".to_owned(), |number| format!("{number:016x}"));
            table.add_row([
                into,
                step.inputs.len().to_string(),
                step.rows_before.to_string(),
                step.rows_after.to_string(),
                output::bytes(step.bytes_before),
                output::bytes(step.bytes_after),
                step.reason.clone(),
            ]);
        }
        writeln!(out, "{table}")?;
    }
    writeln!(
        out,
        "{} compactions; {} segments, {}, {} records",
        done.len(),
        stats.segments,
        output::bytes(stats.segment_bytes),
        stats.records
    )?;
    Ok(out.flush()?)
}

fn step_json(step: &Compacted) -> serde_json::Value {
    json!({
        "inputs": step.inputs,
        "output": step.output,
        "rows_before": step.rows_before,
        "rows_after": step.rows_after,
        "bytes_before": step.bytes_before,
        "bytes_after": step.bytes_after,
        "reason": step.reason,
    })
}
