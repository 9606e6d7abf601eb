//! How do segments, delete sets and log become one ledger, and what stays missing?
//!
//! First everything that counts goes in. What is then known to be missing is a hole: rows of a
//! damaged segment, seqs of damaged frames. Only into holes go rows of files that no longer
//! count (a segment that was replaced, a frame that was flushed): a row that was dropped
//! because it is dead lies in them too, and nothing but a hole says that it was not.

mod log;

use std::collections::BTreeMap;

use chronolith_segments::{DeathKind, RowIdentity, SalvagedSegment, Scope};
use chronolith_wal::{LogSalvage, SalvagedFrame};

use super::identity::Origin;
use super::ledger::{Entry, Ledger, Place};
use super::report::{DeletesAtRisk, LostId, Missing, RepairReport};
use super::sources::SourceSegment;
use crate::tag_graph::TagGraph;
use log::SettledPut;

/// Something that is missing, and how much of it was found elsewhere.
#[derive(Debug)]
struct Hole {
    missing: Missing,
    /// Event times it may hold, µs; `None` = any.
    event_time_us: Option<(i64, i64)>,
    /// True for frames that no flush had settled: what fills it is not in doubt.
    is_log: bool,
    /// Rows that carry an id in what is left of them.
    named: Vec<LostId>,
    /// True where the log holds every operation since: puts that are missing here and deletes
    /// of them are all in the ledger, so what was refilled is all there was.
    is_covered: bool,
}

/// Everything that was gathered.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) ledger: Ledger,
    pub(super) graph: TagGraph,
    holes: Vec<Hole>,
    /// True where content of a row that counts is damaged.
    has_damaged_content: bool,
}

/// Builds the ledger.
pub(super) fn gather(
    origin: &Origin,
    segments: &[SourceSegment],
    log: &LogSalvage,
    lost_begin: Option<Missing>,
    graph: TagGraph,
    report: &mut RepairReport,
) -> Gathered {
    let mut gathered = Gathered {
        ledger: Ledger::default(),
        graph,
        holes: Vec::new(),
        has_damaged_content: false,
    };
    for (index, segment) in segments.iter().enumerate() {
        if segment.is_live {
            report.segments += u64::from(segment.rows.is_some());
            gathered.take_segment(index, segment, report);
        } else {
            report.segments_set_aside += u64::from(segment.rows.is_some());
        }
    }
    let flushed_seq = origin.listed.as_ref().map(|manifest| manifest.flushed_seq);
    gathered.find_log_holes(log, flushed_seq, report);
    gathered.take_lost_begin(lost_begin);
    let settled = gathered.take_log(log, flushed_seq, report);
    if gathered.has_damaged_content || !gathered.holes.is_empty() {
        gathered.refill(segments, &settled);
    }
    let upto = flushed_seq.or(log.frames.last().map(SalvagedFrame::last_seq));
    for hole in gathered.holes.iter_mut().filter(|hole| !hole.is_log) {
        let range = hole.missing.first_seq.zip(upto);
        hole.is_covered = range.is_some_and(|(first, upto)| log.covers(first, upto));
    }
    gathered
}

impl Gathered {
    fn take_segment(&mut self, index: usize, segment: &SourceSegment, report: &mut RepairReport) {
        let Some(rows) = &segment.rows else {
            self.holes.push(hole_of_whole(segment));
            return;
        };
        let zone = rows.meta().zone;
        report.rows_read += u64::from(zone.rows);
        let is_whole = rows.damage().is_empty();
        let mut unreadable = 0;
        let mut named = Vec::new();
        for row in 0..zone.rows {
            let identity = rows.identity(row);
            let death = segment.deaths.get(&row);
            self.note_death(&identity, death);
            if death.is_some() {
                continue;
            }
            let RowIdentity {
                scope: Some(scope),
                id: Some(id),
                commit_seq: Some(seq),
                ..
            } = identity
            else {
                unreadable += 1;
                named.extend(named_by(&identity));
                continue;
            };
            let is_readable = is_whole || rows.record(row).is_ok();
            self.has_damaged_content |= !is_readable;
            let place = is_readable.then_some(Place::Row {
                segment: index,
                row,
            });
            self.ledger.put(&scope, &id, seq, place);
        }
        if unreadable > 0 {
            let why = format!("{unreadable} rows of {} cannot be read", segment.name());
            self.holes.push(Hole {
                missing: Missing {
                    file: Some(segment.name()),
                    first_seq: Some(zone.commit_seq.0),
                    last_seq: Some(zone.commit_seq.1),
                    records: Some(unreadable),
                    why,
                },
                event_time_us: Some(zone.event_time_us),
                is_log: false,
                named,
                is_covered: false,
            });
        }
    }

    fn note_death(&mut self, identity: &RowIdentity, death: Option<&(u64, DeathKind)>) {
        if let (Some((seq, kind)), Some(scope), Some(id)) = (death, &identity.scope, &identity.id) {
            self.ledger.end(scope, id, *seq, *kind);
        }
    }

    /// Looks in files that no longer count for what the holes hold.
    fn refill(&mut self, segments: &[SourceSegment], settled: &[SettledPut]) {
        let aside = segments.iter().enumerate();
        for (index, segment) in aside.filter(|(_, segment)| !segment.is_live) {
            let Some(rows) = &segment.rows else { continue };
            for row in 0..rows.meta().zone.rows {
                let identity = rows.identity(row);
                let death = segment.deaths.get(&row);
                self.note_death(&identity, death);
                if death.is_none() {
                    self.refill_row(index, row, rows, identity);
                }
            }
        }
        for put in settled {
            self.refill_put(&put.scope, &put.id, put.seq, put.event_time_us, put.place);
        }
    }

    fn refill_row(&mut self, segment: usize, row: u32, rows: &SalvagedSegment, id: RowIdentity) {
        if let RowIdentity {
            scope: Some(scope),
            id: Some(id),
            commit_seq: Some(seq),
            event_time_us: Some(time),
        } = id
            && rows.record(row).is_ok()
        {
            self.refill_put(&scope, &id, seq, time, Place::Row { segment, row });
        }
    }

    fn refill_put(&mut self, scope: &Scope, id: &str, seq: u64, time_us: i64, place: Place) {
        if self.ledger.also_at(scope, id, seq, place) {
            return;
        }
        let known = self.ledger.get(scope, id);
        let is_stale = known.is_some_and(|entry| entry.put > seq || entry.newest() > seq);
        let is_dead = known.is_some_and(|entry| entry.deleted >= seq);
        if is_stale || is_dead {
            return;
        }
        let hole = self.holes.iter().position(|hole| {
            let in_time = hole
                .event_time_us
                .is_none_or(|(first, last)| (first..=last).contains(&time_us));
            in_time && hole.missing.may_hold(seq)
        });
        if let Some(hole) = hole {
            self.ledger.refill(scope, id, seq, place, hole);
        }
    }

    /// Says what is missing now that the holes were filled. Returns ids known to be lost.
    pub(super) fn settle(&self, report: &mut RepairReport) -> Vec<LostId> {
        let filled = self.count_filled();
        let newest = self.ledger.entries.values().map(Entry::newest).max();
        let mut lost = Vec::new();
        for (index, hole) in self.holes.iter().enumerate() {
            let filled = filled.get(&index).copied().unwrap_or(0);
            let missing = &hole.missing;
            let is_filled = filled > 0 && missing.records == Some(filled);
            if hole.is_covered || (hole.is_log && is_filled) {
                continue;
            }
            if hole.is_log {
                report.order_has_holes |= missing.first_seq < newest;
                report.deletes_at_risk.push(DeletesAtRisk {
                    file: missing.file.clone(),
                    count: missing.records.map(|ops| ops.saturating_sub(filled)),
                    first_seq: missing.first_seq,
                    last_seq: missing.last_seq,
                    why: "frames of the log are lost; deletes may have been among them".into(),
                });
            }
            if filled > 0 && !hole.is_log {
                report.deletes_at_risk.push(DeletesAtRisk {
                    file: missing.file.clone(),
                    count: Some(filled),
                    first_seq: missing.first_seq,
                    last_seq: missing.last_seq,
                    why: "records were taken from files that no longer count; a file that \
                          cannot be read may have said that they are deleted"
                        .into(),
                });
            }
            let unreadable = hole.named.iter().filter(|id| !self.is_back(id));
            lost.extend(unreadable.cloned());
            if is_filled {
                continue;
            }
            report.missing.push(Missing {
                records: missing
                    .records
                    .map(|records| records.saturating_sub(filled)),
                ..missing.clone()
            });
        }
        lost.extend(self.replaced_by_lost());
        lost
    }

    /// How much of each hole was found elsewhere: rows of a segment as they were taken, frames
    /// by every put with a seq of theirs.
    fn count_filled(&self) -> BTreeMap<usize, u64> {
        let mut filled: BTreeMap<usize, u64> = BTreeMap::new();
        for entry in self.ledger.entries.values() {
            if let Some(hole) = entry.refills.filter(|_| entry.is_current()) {
                *filled.entry(hole).or_default() += 1;
            }
        }
        for (index, hole) in self.holes.iter().enumerate().filter(|(_, h)| h.is_log) {
            let puts = self.ledger.entries.values().map(|entry| entry.put);
            let found = puts.filter(|seq| hole.missing.may_hold(*seq)).count();
            filled.insert(index, found as u64);
        }
        filled
    }

    /// True where what a damaged row named is in the ledger after all.
    fn is_back(&self, lost: &LostId) -> bool {
        let scope = lost
            .scope
            .as_deref()
            .and_then(|path| Scope::parse(path).ok());
        scope
            .and_then(|scope| self.ledger.get(&scope, &lost.id))
            .is_some_and(|entry| entry.is_current() && !entry.places.is_empty())
    }

    /// Ids whose newest version is known to have been, and lies in a hole.
    fn replaced_by_lost(&self) -> impl Iterator<Item = LostId> {
        let entries = self.ledger.entries.iter();
        entries.filter_map(|((scope, id), entry)| {
            let newer = entry.superseded;
            let is_lost = newer > entry.put
                && newer > entry.deleted
                && self.holes.iter().any(|hole| hole.missing.may_hold(newer));
            is_lost.then(|| LostId {
                scope: Scope::from_key(scope).map(|scope| scope.path()),
                id: id.to_string(),
                seq: Some(newer),
            })
        })
    }
}

/// What a row with a readable id says of itself.
fn named_by(identity: &RowIdentity) -> Option<LostId> {
    Some(LostId {
        scope: identity.scope.as_ref().map(Scope::path),
        id: identity.id.clone()?,
        seq: identity.commit_seq,
    })
}

/// A segment of which nothing can be proved.
fn hole_of_whole(segment: &SourceSegment) -> Hole {
    let entry = segment.entry.as_ref();
    let dead = entry
        .and_then(|entry| entry.deletes)
        .map_or(0, |side| side.entries);
    Hole {
        missing: Missing {
            file: Some(segment.name()),
            first_seq: entry.map(|entry| entry.first_seq),
            last_seq: entry.map(|entry| entry.last_seq),
            records: entry.map(|entry| u64::from(entry.rows).saturating_sub(dead)),
            why: format!("nothing of {} can be read", segment.name()),
        },
        event_time_us: entry.map(|entry| (entry.event_time_min_us, entry.event_time_max_us)),
        is_log: false,
        named: Vec::new(),
        is_covered: false,
    }
}
