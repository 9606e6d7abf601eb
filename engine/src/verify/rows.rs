//! Is there one live row for each (scope, id), over all segments and the replayed log?
//!
//! The log's batches are applied to memory as an open would. Then every row is sorted by a
//! hash of its (scope, id), 32 bytes a row, and rows that share one are compared: of one id
//! at most one row lives, and it is the newest. Every seq is one row's.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronolith_segments::{Death, DeathKind};
use chronolith_segments::{DeathLog, DeleteSet, Partition, SegmentError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::look::{Generation, Looked};
use super::report::VerifyFinding;
use super::run::Run;
use crate::manifest::deletes::DeadRow;
use crate::manifest::names::{DataKind, DataName, WAL_DIR};
use crate::recover::Replay;
use crate::tag_graph::TagGraph;
use crate::version::{LiveSegment, Version};
use crate::write::decode;

/// Findings about rows after which no more are looked for.
const FINDINGS_MAX: usize = 1000;
/// Rows that one finding names beside its own.
const SHOWN_MAX: usize = 4;

/// Rows of one file, or of the memtables that the log makes.
pub(super) struct Part<'a> {
    pub(super) file: String,
    pub(super) rows: &'a dyn Partition,
    pub(super) deaths: &'a DeathLog,
    /// True for a segment: its deaths up to the flushed seq are in its delete set.
    pub(super) is_settled: bool,
}

/// Replays the log over the segments that are sound, and compares the rows of all.
pub(super) fn check(run: &mut Run<'_>, generation: &Generation, sound: &[&Looked]) {
    let version = version_of(generation, sound);
    let replayed = replay(run, generation, version);
    let version = replayed.current.version();
    let mut parts: Vec<Part<'_>> = Vec::new();
    for live in &version.segments {
        parts.push(Part {
            file: DataName::new(live.entry.file_number, DataKind::Segment).shown(),
            rows: &*live.segment,
            deaths: &live.deaths,
            is_settled: true,
        });
    }
    for live in &version.memtables {
        run.rows(u64::from(live.table.zone().rows));
        parts.push(Part {
            file: WAL_DIR.to_owned(),
            rows: &*live.table,
            deaths: &live.deaths,
            is_settled: false,
        });
    }
    match compare(&parts, generation.manifest.flushed_seq) {
        Ok(found) => found.into_iter().for_each(|finding| run.find(finding)),
        // All of it was read before: a block that fails now is a file that changed.
        Err(error) => run.find(VerifyFinding::damage("segments", "rows", error.to_string())),
    }
}

fn version_of(generation: &Generation, sound: &[&Looked]) -> Version {
    let flushed_seq = generation.manifest.flushed_seq;
    let mut segments = Vec::with_capacity(sound.len());
    for looked in sound {
        let Some(segment) = &looked.segment else {
            continue;
        };
        // One that is not settled cannot have happened; it is a finding of its own.
        let dead = looked.dead.iter().filter(|dead| dead.seq <= flushed_seq);
        let deaths = dead.filter_map(death).collect();
        segments.push(Arc::new(LiveSegment {
            segment: Arc::clone(segment),
            entry: looked.entry.clone(),
            deaths: DeathLog::new(&DeleteSet::new(deaths)),
        }));
    }
    let edges = generation.edges.iter().filter_map(super::tags::edge);
    Version {
        segments,
        lost: Vec::new(),
        memtables: Vec::new(),
        tag_graph: Arc::new(TagGraph::new(edges)),
        tag_graph_before: None,
    }
}

fn death(dead: &DeadRow) -> Option<Death> {
    Some(Death {
        row: dead.row,
        seq: dead.seq,
        kind: DeathKind::from_byte(dead.kind)?,
        valid_to_us: dead.valid_to_us,
    })
}

/// Applies the batches behind the flushed seq. Behind one that cannot be applied the others
/// are decoded only: memory would no longer be what the log says.
fn replay(run: &mut Run<'_>, generation: &Generation, version: Version) -> Replay {
    let shared = &generation.shared;
    let mut replay = Replay::new(shared, version, generation.manifest.flushed_seq);
    let mut is_whole = true;
    for (file, frame) in &generation.log.replay {
        let applied = match is_whole {
            true => replay.apply(shared, frame),
            false => decode(shared, &frame.body).map(|_| ()),
        };
        match applied {
            Ok(()) => run.replayed(),
            Err(error) => {
                is_whole = false;
                let message = format!(
                    "the batch of seq {} cannot be replayed: {error}",
                    frame.first_seq
                );
                run.find(VerifyFinding::damage(file, "batch", message));
            }
        }
    }
    replay
}

/// One row by where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    part: u32,
    row: u32,
}

/// Compares the rows of all parts that share a (scope, id) or a seq.
pub(super) fn compare(
    parts: &[Part<'_>],
    flushed_seq: u64,
) -> Result<Vec<VerifyFinding>, SegmentError> {
    let (mut by_key, mut by_seq) = (Vec::new(), Vec::new());
    for (number, part) in (0_u32..).zip(parts) {
        for row in 0..part.rows.zone().rows {
            let at = At { part: number, row };
            by_key.push((key_hash(part.rows, row)?, at));
            by_seq.push((part.rows.fields(row)?.commit_seq, at));
        }
    }
    by_key.sort_unstable();
    by_seq.sort_unstable();
    let mut found = Vec::new();
    for same in by_seq
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|same| same.len() > 1)
    {
        let others = same[1..]
            .iter()
            .take(SHOWN_MAX)
            .map(|(_, at)| show(parts, *at));
        let message = format!(
            "row {} has seq {}, and so has {}",
            same[0].1.row,
            same[0].0,
            others.collect::<Vec<_>>().join(", ")
        );
        push(&mut found, parts, same[0].1, message);
    }
    for same in by_key
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|same| same.len() > 1)
    {
        let mut of_key: BTreeMap<Vec<u8>, Vec<(u64, At)>> = BTreeMap::new();
        for (_, at) in same {
            let part = &parts[at.part as usize];
            let seq = part.rows.fields(at.row)?.commit_seq;
            of_key
                .entry(key(part.rows, at.row)?)
                .or_default()
                .push((seq, *at));
        }
        for rows in of_key.into_values() {
            one_lives(&mut found, parts, rows, flushed_seq);
        }
    }
    Ok(found)
}

/// All rows of one (scope, id): none but the newest lives, by the settled deaths among the
/// segments, and by all deaths among all.
///
/// One finding an id: the second view repeats what the first has seen.
fn one_lives(
    found: &mut Vec<VerifyFinding>,
    parts: &[Part<'_>],
    mut rows: Vec<(u64, At)>,
    flushed_seq: u64,
) {
    rows.sort_unstable();
    for (upto, settled_alone) in [(flushed_seq, true), (u64::MAX, false)] {
        let of_view = |at: &At| !settled_alone || parts[at.part as usize].is_settled;
        let Some((newest_seq, newest)) = rows.iter().rfind(|(_, at)| of_view(at)) else {
            continue;
        };
        for (seq, at) in rows.iter().filter(|(_, at)| of_view(at) && at != newest) {
            let deaths = parts[at.part as usize].deaths;
            if !deaths.dead_at(upto).contains(at.row) {
                let message = format!(
                    "row {} of seq {seq} lives though {} of seq {newest_seq} has its id",
                    at.row,
                    show(parts, *newest)
                );
                push(found, parts, *at, message);
                return;
            }
        }
    }
}

fn push(found: &mut Vec<VerifyFinding>, parts: &[Part<'_>], at: At, message: String) {
    if found.len() < FINDINGS_MAX {
        let file = &parts[at.part as usize].file;
        found.push(VerifyFinding::damage(file, "rows", message));
    }
}

fn show(parts: &[Part<'_>], at: At) -> String {
    format!("row {} of {}", at.row, parts[at.part as usize].file)
}

fn key_hash(rows: &dyn Partition, row: u32) -> Result<u64, SegmentError> {
    let scope = xxh3_64_with_seed(&rows.scope_key(row)?, 0);
    Ok(xxh3_64_with_seed(rows.id(row)?.as_bytes(), scope))
}

/// A scope key ends with NUL and has no empty component, so this splits in one way.
fn key(rows: &dyn Partition, row: u32) -> Result<Vec<u8>, SegmentError> {
    Ok([&rows.scope_key(row)?, &b"\0"[..], rows.id(row)?.as_bytes()].concat())
}
