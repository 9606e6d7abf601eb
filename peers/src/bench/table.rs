//! How is a run shown to people? Tables of times, counts and stores.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::summary::{BASE, BEST, CorpusReport, EngineReport, Ratio};

/// A table whose first column is words and whose others are numbers.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Numbers to the right.
pub fn aligned(mut table: Table, words: usize) -> Table {
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Three figures that matter.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// `0.31 (0.30-0.33)`.
pub fn spread(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(String::new, |ratio| {
        let Ratio { median, low, high } = ratio;
        format!("{} ({}-{})", short(median), short(low), short(high))
    })
}

/// The tables of one corpus.
pub fn print(report: &CorpusReport) {
    let corpus = &report.corpus;
    println!(
        "## {}: {} records, seed {}\n",
        corpus.name, corpus.records, corpus.seed
    );
    println!("{}\n", times(report));
    if let Some(engine) = report
        .engines
        .iter()
        .find(|engine| engine.name == "chronolith")
    {
        println!("{}\n", counters(engine));
    }
    println!("{}\n", stores(report));
    for verified in &report.verified {
        println!(
            "oracle: {}: {} of {} answers exact",
            verified.kind.name(),
            verified.equal,
            verified.compared
        );
    }
    println!();
}

fn times(report: &CorpusReport) -> Table {
    let ratio = format!("p50 / {} (low-high)", BASE.name());
    let best = format!("/ {}", BEST.name());
    let mut table = table(&[
        "queries",
        "engine",
        "asked",
        "p50 us",
        "p95 us",
        "p99 us",
        "p99/p50",
        &ratio,
        &best,
        "p95 ratio",
        "least p50 us",
        "least ratio",
        "hits",
        "overlap",
    ]);
    let kinds = report.engines.iter().flat_map(|engine| &engine.kinds);
    let mut kinds: Vec<_> = kinds.map(|kind| kind.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        for engine in &report.engines {
            let Some(found) = engine.kinds.iter().find(|found| found.kind == kind) else {
                continue;
            };
            // What other threads do is in no column: it must be seen.
            let helped = if found.threads > 1.1 {
                format!(" (threads {})", short(found.threads))
            } else {
                String::new()
            };
            table.add_row([
                kind.name().to_owned(),
                format!("{}{helped}", engine.name),
                found.asked.to_string(),
                short(found.us.p50),
                short(found.us.p95),
                short(found.us.p99),
                short(found.tail),
                spread(found.p50_ratio),
                found
                    .best_ratio
                    .map_or_else(String::new, |ratio| short(ratio.median)),
                spread(found.p95_ratio),
                short(found.least_us.p50),
                found.least_ratio.map_or_else(String::new, short),
                short(found.found),
                found.overlap.map_or_else(String::new, short),
            ]);
        }
    }
    aligned(table, 2)
}

fn counters(engine: &EngineReport) -> Table {
    let mut names: Vec<&String> = engine
        .kinds
        .iter()
        .flat_map(|kind| kind.counters.keys())
        .collect();
    names.sort();
    names.dedup();
    let kinds = engine.kinds.iter().map(|kind| kind.kind.name());
    let header: Vec<&str> = std::iter::once("chronolith, mean of a query")
        .chain(kinds)
        .collect();
    let mut table = table(&header);
    for name in names {
        let value = |kind: &super::summary::KindReport| {
            kind.counters
                .get(name)
                .map_or_else(String::new, |value| short(*value))
        };
        table.add_row(std::iter::once(name.clone()).chain(engine.kinds.iter().map(value)));
    }
    aligned(table, 1)
}

#[expect(clippy::cast_precision_loss, reason = "shown figures")]
fn stores(report: &CorpusReport) -> Table {
    let mut table = table(&[
        "store",
        "parts",
        "bytes/record",
        "with log",
        "records/CPU s",
        "with analysis",
        "build s",
        "written/record",
        "open warm ms",
        "open cold ms",
        "anonymous MB",
        "files, MB",
    ]);
    for engine in &report.engines {
        let file =
            |(kind, bytes): (&String, &u64)| format!("{kind} {}", short(*bytes as f64 / 1e6));
        let mut files: Vec<(&String, &u64)> = engine.built.bytes.iter().collect();
        files.sort_by(|a, b| b.1.cmp(a.1));
        let files: Vec<String> = files.into_iter().take(6).map(file).collect();
        table.add_row([
            engine.name.to_owned(),
            engine.partitions.to_string(),
            short(engine.record_bytes),
            short(engine.record_bytes_with_log),
            short(engine.ingest_settled),
            short(engine.ingest_settled_with_analysis),
            short(engine.built.wall_s),
            short(engine.built.written_bytes as f64 / engine.built.records.max(1) as f64),
            short(engine.open_warm_ms),
            short(engine.open_cold_ms),
            short(engine.anonymous_bytes as f64 / 1e6),
            files.join(", "),
        ]);
    }
    aligned(table, 1)
}

/// p50 by size, and what the largest costs over the smallest.
pub fn print_growth(reports: &[CorpusReport]) {
    let sizes: Vec<String> = reports
        .iter()
        .map(|report| report.corpus.records.to_string())
        .collect();
    let mut header = vec!["p50 us"];
    header.extend(sizes.iter().map(String::as_str));
    header.push("last / first");
    let mut table = table(&header);
    for (name, times) in super::plot::lines(reports) {
        let first = times.first().map_or(0.0, |(_, us)| *us);
        let last = times.last().map_or(0.0, |(_, us)| *us);
        let at = |report: &CorpusReport| {
            let found = times
                .iter()
                .find(|(records, _)| *records == report.corpus.records);
            found.map_or_else(String::new, |(_, us)| short(*us))
        };
        let cells = reports.iter().map(at);
        let growth = short(last / first.max(1e-9));
        table.add_row(std::iter::once(name).chain(cells).chain([growth]));
    }
    println!("{}\n", aligned(table, 1));
}

/// What the columns mean.
pub fn print_legend(reports: &[CorpusReport]) {
    let Some(report) = reports.first() else {
        return;
    };
    for engine in &report.engines {
        println!("{:<15} {}", engine.name, engine.about);
    }
    let overhead_ns = report
        .engines
        .first()
        .map_or(0, |engine| engine.overhead_ns);
    println!(
        "\nTimes are processor time of the one asking thread, ten ids and times included, warm; reading the \
         clock adds {overhead_ns} ns to each.\np50, p95, p99: median over passes. least: of each query its \
         smallest time. Ratios pass by pass; an engine that is asked fewer\nqueries is compared on those. \
         overlap: share of {}'s hits among the hits, over the sample. with analysis: plus the\nanalysis that \
         an engine fed with terms was spared. anonymous: growth from before the open to after the queries. written: bytes \
         to the disk while building.",
        BASE.name()
    );
}
