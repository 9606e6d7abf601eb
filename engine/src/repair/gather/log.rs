//! What does the log give to the ledger, and what of it is missing?

use chronolith_segments::{DeathKind, Op, Scope, decode_batch};
use chronolith_wal::{FrameReader, LogSalvage, SalvagedFrame, epoch_of, log_name};

use super::super::ledger::Place;
use super::super::report::{Missing, RepairReport};
use super::{Gathered, Hole};
use crate::tag_graph::TagEdge;

/// A put in a frame whose operations a flush has settled.
pub(super) struct SettledPut {
    pub(super) scope: Scope,
    pub(super) id: String,
    pub(super) seq: u64,
    pub(super) event_time_us: i64,
    pub(super) place: Place,
}

impl Gathered {
    /// Seqs of the log that are gone. Deletes among them are gone too.
    pub(super) fn find_log_holes(
        &mut self,
        log: &LogSalvage,
        flushed_seq: Option<u64>,
        report: &mut RepairReport,
    ) {
        for gap in &log.gaps {
            let offset = Some(gap.offset).filter(|_| gap.bytes > 0);
            let section = format!("frame at {}", gap.offset);
            report.damage(format!("wal/{}", gap.file), &section, offset, &gap.why);
        }
        let above = flushed_seq.unwrap_or(0);
        let in_doubt = log.in_doubt.iter();
        for frame in in_doubt.filter(|frame| frame.last_seq() > above) {
            self.holes.push(log_hole(Missing {
                file: Some(format!("wal/{}", log_name(frame.file))),
                first_seq: Some(frame.first_seq),
                last_seq: Some(frame.last_seq()),
                records: Some(u64::from(frame.ops)),
                why: format!(
                    "in doubt: a whole frame at offset {} behind damage, and the header that would \
                     say whether it was dropped is lost; it is left out",
                    frame.offset
                ),
            }));
        }
        for lost in lost_ranges(log, flushed_seq) {
            let LostRange { file, first, last } = lost;
            self.holes.push(log_hole(Missing {
                file,
                first_seq: Some(first),
                last_seq: last,
                // Between two epochs most seqs were never given.
                records: last
                    .filter(|last| epoch_of(*last) == epoch_of(first))
                    .map(|last| last - first + 1),
                why: "frames of the log are lost".into(),
            }));
        }
    }

    /// Where frames are known to be lost from there on, that names the file.
    pub(super) fn take_lost_begin(&mut self, lost: Option<Missing>) {
        let Some(lost) = lost else { return };
        let known = self.holes.iter_mut().find(|hole| {
            let missing = &hole.missing;
            let reaches = missing.last_seq.is_none() || missing.last_seq >= lost.last_seq;
            hole.is_log && missing.first_seq == lost.first_seq && reaches
        });
        match known {
            Some(hole) => hole.missing.file = hole.missing.file.take().or(lost.file),
            None => self.holes.push(log_hole(lost)),
        }
    }

    /// Takes what counts; returns the puts that a flush has settled.
    pub(super) fn take_log(
        &mut self,
        log: &LogSalvage,
        flushed_seq: Option<u64>,
        report: &mut RepairReport,
    ) -> Vec<SettledPut> {
        let mut reader = log.reader();
        let mut settled = Vec::new();
        let wants_settled = self.has_damaged_content || !self.holes.is_empty();
        for (frame, found) in log.frames.iter().enumerate() {
            report.log_frames += 1;
            let ops = match read_ops(&mut reader, found) {
                Ok(ops) => ops,
                Err(why) => {
                    self.lose_frame(found, why, report);
                    continue;
                }
            };
            report.log_operations += ops.len() as u64;
            for ((index, op), seq) in ops.into_iter().enumerate().zip(found.first_seq..) {
                let place = Place::Operation { frame, index };
                let counts = flushed_seq.is_none_or(|flushed_seq| seq > flushed_seq);
                if counts {
                    self.take_op(op, seq, place);
                } else {
                    let put = self.take_settled(op, seq, place);
                    settled.extend(put.filter(|_| wants_settled));
                }
            }
        }
        settled
    }

    /// Takes an operation that is in no segment.
    fn take_op(&mut self, op: Op, seq: u64, place: Place) {
        match op {
            Op::Put { record, .. } => {
                self.ledger.put(&record.scope, &record.id, seq, Some(place));
            }
            Op::Delete { scope, id } => self.ledger.end(&scope, &id, seq, DeathKind::Deleted),
            Op::LinkTag {
                scope,
                parent,
                child,
            } => self.set_edge(scope, parent, child, true),
            Op::UnlinkTag {
                scope,
                parent,
                child,
            } => self.set_edge(scope, parent, child, false),
        }
    }

    /// Of an operation that a flush has settled a delete still counts: the delete set that knows
    /// of it may be lost. A put may fill a hole later.
    fn take_settled(&mut self, op: Op, seq: u64, place: Place) -> Option<SettledPut> {
        match op {
            Op::Put { record, .. } => Some(SettledPut {
                scope: record.scope,
                id: record.id,
                seq,
                event_time_us: record.event_time_us,
                place,
            }),
            Op::Delete { scope, id } => {
                self.ledger.end(&scope, &id, seq, DeathKind::Deleted);
                None
            }
            Op::LinkTag { .. } | Op::UnlinkTag { .. } => None,
        }
    }

    fn set_edge(&mut self, scope: Scope, parent: String, child: String, is_there: bool) {
        let edge = TagEdge {
            scope,
            parent,
            child,
        };
        if !is_there || self.graph.check(&edge).is_ok() {
            self.graph.set(&edge, is_there);
        }
    }

    fn lose_frame(&mut self, frame: &SalvagedFrame, why: String, report: &mut RepairReport) {
        let file = format!("wal/{}", log_name(frame.file));
        let section = format!("frame at {}", frame.offset);
        report.damage(&file, &section, Some(frame.offset), &why);
        self.holes.push(log_hole(Missing {
            file: Some(file),
            first_seq: Some(frame.first_seq),
            last_seq: Some(frame.last_seq()),
            records: Some(u64::from(frame.ops)),
            why,
        }));
    }
}

/// Seqs whose frames are gone; `last: None` where nobody knows how far.
struct LostRange {
    file: Option<String>,
    first: u64,
    last: Option<u64>,
}

/// What is proved to be lost, and what gaps are likely to have held, as one range where they meet.
fn lost_ranges(log: &LogSalvage, flushed_seq: Option<u64>) -> Vec<LostRange> {
    let proven = log.missing(flushed_seq).into_iter();
    let mut ranges: Vec<LostRange> = proven
        .map(|(first, last)| LostRange {
            file: None,
            first,
            last: Some(last),
        })
        .collect();
    let above = flushed_seq.unwrap_or(0);
    for gap in &log.gaps {
        let Some(seqs) = gap.seqs else { continue };
        let file = format!("wal/{}", gap.file);
        let meets = |range: &&mut LostRange| {
            seqs.first <= range.last.unwrap_or(u64::MAX)
                && range.first <= seqs.last.unwrap_or(u64::MAX)
        };
        match ranges.iter_mut().find(meets) {
            Some(range) => {
                range.file = range.file.take().or(Some(file));
                // What is proved to be lost may be of a later epoch than the begin.
                range.first = seqs.first.max(above + 1).min(range.first);
                // A missing file may have held more than what is proved of it.
                if gap.offset == 0 && gap.bytes == 0 {
                    range.last = range.last.zip(seqs.last).map(|(a, b)| a.max(b));
                }
            }
            None if seqs.last.is_none_or(|last| last > above) => ranges.push(LostRange {
                file: Some(file),
                first: seqs.first.max(above + 1),
                last: seqs.last,
            }),
            None => {}
        }
    }
    ranges
}

/// The operations of a frame, or why they cannot be had.
fn read_ops(reader: &mut FrameReader<'_>, found: &SalvagedFrame) -> Result<Vec<Op>, String> {
    let frame = reader.read(found).map_err(|error| error.to_string())?;
    let batch = decode_batch(&frame.body).map_err(|error| error.to_string())?;
    match batch.ops.len() == found.ops as usize {
        true => Ok(batch.ops),
        false => Err("holds another number of operations than it says".to_owned()),
    }
}

/// Frames of the log that are gone.
fn log_hole(missing: Missing) -> Hole {
    Hole {
        missing,
        event_time_us: None,
        is_log: true,
        named: Vec::new(),
        is_covered: false,
    }
}
