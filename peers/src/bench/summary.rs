//! What do the times say? Percentiles, ratios with their spread, figures for each record.

use std::collections::BTreeMap;

use serde::Serialize;

use super::corpus::{Corpus, Kind};
use super::oracle::Verified;
use super::searcher::{Counters, Subject};
use super::work::{Built, Measured, MeasuredKind};

/// What ratios are taken to.
pub const BASE: Subject = Subject::Tantivy;
/// The same engine in its best case; one more column.
pub const BEST: Subject = Subject::TantivyColumns;

/// Percentiles of one set of times, µs.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Percentiles {
    /// Half are below.
    pub p50: f64,
    /// 95 of 100 are below.
    pub p95: f64,
    /// 99 of 100 are below.
    pub p99: f64,
}

/// A quotient in every pass.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ratio {
    /// Median over the passes.
    pub median: f64,
    /// Smallest pass.
    pub low: f64,
    /// Largest pass.
    pub high: f64,
}

/// One kind of query on one engine.
#[derive(Debug, Clone, Serialize)]
pub struct KindReport {
    /// The kind.
    pub kind: Kind,
    /// Queries asked.
    pub asked: usize,
    /// Queries there are.
    pub queries: usize,
    /// Median over passes of each pass's percentiles.
    pub us: Percentiles,
    /// Percentiles over queries of the least time of each.
    pub least_us: Percentiles,
    /// p99 / p50 of `us`.
    pub tail: f64,
    /// p50 to the base engine's, pass by pass.
    pub p50_ratio: Option<Ratio>,
    /// p50 to the base engine's at its best.
    pub best_ratio: Option<Ratio>,
    /// p95 to the base engine's.
    pub p95_ratio: Option<Ratio>,
    /// p50 of `least_us` to the base engine's.
    pub least_ratio: Option<f64>,
    /// Processor time of all threads over that of the asking one.
    pub threads: f64,
    /// Mean number of hits.
    pub found: f64,
    /// Share of the base engine's hits that are also in these answers, over the sample.
    pub overlap: Option<f64>,
    /// Means of the engine's own counts.
    pub counters: Counters,
}

/// One engine on one corpus.
#[derive(Debug, Clone, Serialize)]
pub struct EngineReport {
    /// Its name.
    pub name: &'static str,
    /// How it is used.
    pub about: &'static str,
    /// How its store was built.
    pub built: Built,
    /// Parts of the store.
    pub partitions: u64,
    /// Bytes on disk for each record without the log.
    pub record_bytes: f64,
    /// The same with the log.
    pub record_bytes_with_log: f64,
    /// Records for each processor second until the store had come to rest.
    pub ingest_settled: f64,
    /// The same, with the analysis that the engine was spared.
    pub ingest_settled_with_analysis: f64,
    /// Open to first answer, ms: median of several opens.
    pub open_warm_ms: f64,
    /// The same with nothing in the page cache.
    pub open_cold_ms: f64,
    /// Anonymous memory after the queries over that before the open, bytes.
    pub anonymous_bytes: u64,
    /// What a reading of the clock adds to every time, ns.
    pub overhead_ns: u64,
    /// By kind.
    pub kinds: Vec<KindReport>,
}

/// One corpus.
#[derive(Debug, Clone, Serialize)]
pub struct CorpusReport {
    /// Which.
    pub corpus: Corpus,
    /// By engine.
    pub engines: Vec<EngineReport>,
    /// Chronolith against the oracle.
    pub verified: Vec<Verified>,
}

/// What one engine reported, before it is compared.
pub struct Raw {
    /// Whose.
    pub subject: Subject,
    /// Its build.
    pub built: Built,
    /// Its queries.
    pub measured: Measured,
    /// Opens, ms.
    pub warm_ms: Vec<f64>,
    /// Cold opens, ms.
    pub cold_ms: Vec<f64>,
}

/// The middle one; 0 of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0)
}

/// Percentiles of times in ns.
#[expect(clippy::cast_precision_loss, reason = "a shown figure")]
pub fn percentiles(ns: impl IntoIterator<Item = u64>) -> Percentiles {
    let mut ns: Vec<u64> = ns.into_iter().collect();
    ns.sort_unstable();
    let at = |percent: usize| {
        let index = ns.len().saturating_sub(1) * percent / 100;
        ns.get(index).copied().unwrap_or(0) as f64 / 1000.0
    };
    Percentiles {
        p50: at(50),
        p95: at(95),
        p99: at(99),
    }
}

/// The first `asked` queries of every pass.
fn passes(measured: &MeasuredKind, asked: usize) -> Vec<Percentiles> {
    let pass = |ns: &Vec<u64>| percentiles(ns.iter().take(asked).copied());
    measured.passes_ns.iter().map(pass).collect()
}

fn least(measured: &MeasuredKind, asked: usize) -> Percentiles {
    percentiles((0..asked).filter_map(|query| {
        let times = measured.passes_ns.iter();
        times.filter_map(|pass| pass.get(query).copied()).min()
    }))
}

/// Median and spread of quotients.
pub fn ratio(quotients: impl Iterator<Item = f64>) -> Ratio {
    let mut all: Vec<f64> = quotients.collect();
    all.sort_by(f64::total_cmp);
    Ratio {
        median: median(all.iter().copied()),
        low: all.first().copied().unwrap_or(0.0),
        high: all.last().copied().unwrap_or(0.0),
    }
}

fn overlap(mine: &MeasuredKind, base: &MeasuredKind) -> Option<f64> {
    let (mut both, mut all) = (0u32, 0u32);
    for (mine, base) in mine.sample.iter().zip(&base.sample) {
        for hit in base {
            all += 1;
            both += u32::from(mine.contains(hit));
        }
    }
    (all > 0).then(|| f64::from(both) / f64::from(all))
}

fn kind_report(
    mine: &MeasuredKind,
    base: Option<&MeasuredKind>,
    best: Option<&MeasuredKind>,
) -> KindReport {
    let asked = mine.passes_ns.first().map_or(0, Vec::len);
    let each = passes(mine, asked);
    let us = Percentiles {
        p50: median(each.iter().map(|pass| pass.p50)),
        p95: median(each.iter().map(|pass| pass.p95)),
        p99: median(each.iter().map(|pass| pass.p99)),
    };
    let least_us = least(mine, asked);
    // An engine that was given fewer queries is compared on those.
    let quotients = |other: Option<&MeasuredKind>, of: fn(&Percentiles) -> f64| {
        let others = passes(other?, asked);
        let pairs = each.iter().zip(&others);
        Some(ratio(pairs.map(|(a, b)| of(a) / of(b).max(1e-9))))
    };
    KindReport {
        kind: mine.kind,
        asked,
        queries: mine.queries,
        us,
        least_us,
        tail: us.p99 / us.p50.max(1e-9),
        p50_ratio: quotients(base, |pass| pass.p50),
        best_ratio: quotients(best, |pass| pass.p50),
        p95_ratio: quotients(base, |pass| pass.p95),
        least_ratio: base.map(|base| least_us.p50 / least(base, asked).p50.max(1e-9)),
        threads: mine.threads,
        found: mine.found,
        overlap: base.and_then(|base| overlap(mine, base)),
        counters: mine.counters.clone(),
    }
}

fn is_log(kind: &str) -> bool {
    kind == "wal/" || kind == "sqlite-wal"
}

#[expect(clippy::cast_precision_loss, reason = "shown figures")]
fn engine_report(raw: &Raw, all: &[Raw]) -> EngineReport {
    let records = raw.built.records.max(1) as f64;
    let sum = |with_log: bool| -> u64 {
        let counted = |kind: &str| with_log || !is_log(kind);
        let bytes: &BTreeMap<String, u64> = &raw.built.bytes;
        bytes
            .iter()
            .filter(|(kind, _)| counted(kind))
            .map(|(_, bytes)| bytes)
            .sum()
    };
    let measured = &raw.measured;
    let same = |subject: Subject, kind: Kind| {
        let other = all.iter().find(|raw| raw.subject == subject)?;
        other.measured.kinds.iter().find(|other| other.kind == kind)
    };
    let report =
        |mine: &MeasuredKind| kind_report(mine, same(BASE, mine.kind), same(BEST, mine.kind));
    let kinds = measured.kinds.iter();
    EngineReport {
        name: raw.subject.name(),
        about: raw.subject.about(),
        built: raw.built.clone(),
        partitions: measured.partitions,
        record_bytes: sum(false) as f64 / records,
        record_bytes_with_log: sum(true) as f64 / records,
        ingest_settled: records / raw.built.settled_cpu_s,
        ingest_settled_with_analysis: records
            / (raw.built.settled_cpu_s + raw.built.analysis_cpu_s),
        open_warm_ms: median(raw.warm_ms.iter().copied()),
        open_cold_ms: median(raw.cold_ms.iter().copied()),
        anonymous_bytes: measured
            .anonymous_after
            .saturating_sub(measured.anonymous_before),
        overhead_ns: measured.overhead_ns,
        kinds: kinds.map(report).collect(),
    }
}

/// Compares the engines of one corpus.
pub fn corpus_report(corpus: Corpus, raw: &[Raw], verified: Vec<Verified>) -> CorpusReport {
    CorpusReport {
        corpus,
        engines: raw.iter().map(|one| engine_report(one, raw)).collect(),
        verified,
    }
}
