//! `stats`: what is in a store, counted?

use std::io::Write;

use chronolith::Stats as Counts;
use serde_json::{Value, json};

use super::open_to_read;
use crate::cli::Stats;
use crate::failure::Failure;
use crate::output::{bytes, clean};
use crate::{output, times};

/// Most scopes that are listed to a person.
const SCOPES_SHOWN: usize = 20;

pub(crate) fn run(args: &Stats) -> Result<(), Failure> {
    let counts = open_to_read(&args.store)?.stats()?;
    match args.json {
        true => output::print_json(&to_json(&counts)),
        false => print(&counts),
    }
}

fn to_json(counts: &Counts) -> Value {
    let mut value = serde_json::to_value(counts).unwrap_or_default();
    for (key, us) in [
        ("oldest_ts", counts.oldest_ts_us),
        ("newest_ts", counts.newest_ts_us),
    ] {
        value[key] = json!(us.map(times::show));
    }
    value
}

fn print(counts: &Counts) -> Result<(), Failure> {
    let mut out = output::for_people();
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12} {value}");
    line(
        "records",
        format!(
            "{} ({} replaced or forgotten still on disk)",
            counts.records, counts.dead_rows
        ),
    )?;
    let span = |us: Option<i64>| us.map_or("-".to_owned(), times::show);
    line(
        "times",
        format!(
            "{} to {}",
            span(counts.oldest_ts_us),
            span(counts.newest_ts_us)
        ),
    )?;
    line(
        "segments",
        format!("{}, {}", counts.segments, bytes(counts.segment_bytes)),
    )?;
    line(
        "memtables",
        format!("{}, {}", counts.memtables, bytes(counts.memtable_bytes)),
    )?;
    line("log", bytes(counts.wal_bytes))?;
    line("catalog", bytes(counts.catalog_bytes))?;
    line("analyzer", counts.analyzer.clone())?;
    let vectors = match (&counts.embedder, counts.dim) {
        (Some(model), Some(dim)) => {
            format!("{} of {} ({dim} components)", counts.vectors, clean(model))
        }
        _ => "none".to_owned(),
    };
    line("vectors", vectors)?;
    if counts.spaces.len() > 1 {
        for own in &counts.spaces {
            let mark = if own.is_default { ", the default" } else { "" };
            let (vectors, dim) = (own.vectors, own.dim);
            let what = format!("{vectors} of {} ({dim} components)", clean(&own.embedder));
            line("", format!("space {}: {what}{mark}", own.name))?;
        }
    }
    line(
        "commit seq",
        format!("{} (flushed up to {})", counts.seq, counts.flushed_seq),
    )?;
    line("generation", counts.generation.to_string())?;
    line("scopes", counts.scopes.to_string())?;
    let mut scopes: Vec<_> = counts.scope_list.iter().collect();
    scopes.sort_by(|a, b| b.rows.cmp(&a.rows).then(a.scope.cmp(&b.scope)));
    for scope in scopes.iter().take(SCOPES_SHOWN) {
        writeln!(out, "{:>12} {}", scope.rows, clean(&scope.scope))?;
    }
    if scopes.len() > SCOPES_SHOWN {
        writeln!(
            out,
            "{:>12} … and {} more scopes",
            "",
            scopes.len() - SCOPES_SHOWN
        )?;
    }
    Ok(out.flush()?)
}
