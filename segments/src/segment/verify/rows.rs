//! Do the fixed-width parts of a segment agree: columns, scopes, timelines, ids, vectors?

use std::ops::Range;

use super::Found;
use crate::format::SectionKind;
use crate::format::bytes::index;
use crate::ids::{IdFilter, id_hash};
use crate::read::Partition;
use crate::segment::{Result, Segment};

impl Segment {
    /// Sums and ranges of scope directory and zone are those of the columns; rows are in order.
    pub(super) fn check_columns(&self, found: &mut Found) -> Result<()> {
        let zone = self.zone();
        let (mut seqs, mut class_max) = ((u64::MAX, 0), 0);
        let mut times = (i64::MAX, i64::MIN);
        for scope in 0..self.scopes.len() {
            let entry = self.scopes.entry(scope);
            let (mut length_sum, mut scope_times, mut before) = (0_u64, (i64::MAX, i64::MIN), None);
            for row in self.scopes.rows_of(scope) {
                let fields = self.fields(row)?;
                self.source_id(row)?;
                let place = (fields.cluster, fields.event_time_us, fields.commit_seq);
                if before.is_some_and(|before| before > place) {
                    let message = format!("row {row} is out of order by cluster, time and seq");
                    found.damage(self, SectionKind::Columns, message);
                }
                before = Some(place);
                length_sum += u64::from(fields.length);
                scope_times = widened(scope_times, fields.event_time_us);
                seqs = (seqs.0.min(fields.commit_seq), seqs.1.max(fields.commit_seq));
                class_max = class_max.max(fields.source_class);
            }
            if length_sum != entry.population.length_sum {
                let message = format!(
                    "lengths of scope {scope} sum to {}, its rows' to {length_sum}",
                    entry.population.length_sum
                );
                found.damage(self, SectionKind::Scopes, message);
            }
            if scope_times != entry.event_time_us {
                let message = format!(
                    "event times of scope {scope} are {:?}, its rows' {scope_times:?}",
                    entry.event_time_us
                );
                found.damage(self, SectionKind::Scopes, message);
            }
            times = (times.0.min(scope_times.0), times.1.max(scope_times.1));
        }
        let (of_rows, of_zone) = (
            (seqs, times, class_max),
            (zone.commit_seq, zone.event_time_us, zone.source_class_max),
        );
        if of_rows != of_zone {
            let message = format!(
                "seqs, times and source class of the rows are {of_rows:?}, the footer has {of_zone:?}"
            );
            found.damage(self, SectionKind::Columns, message);
        }
        Ok(())
    }

    /// Every timeline holds each of its rows once, in order of event time.
    pub(super) fn check_timeline(&self, found: &mut Found) -> Result<()> {
        let rows = self.scopes.rows();
        let whole = self.timeline.whole_len();
        self.check_order(found, whole, 0..rows, |at| {
            self.timeline.whole_row(at, rows)
        })?;
        for scope in 0..self.scopes.len() {
            let own = self.scopes.rows_of(scope);
            match self.scopes.timeline_at(scope) {
                Some(start) => self.check_order(found, own.end - own.start, own.clone(), |at| {
                    self.timeline.local_row(start + at, &own)
                })?,
                // Without one the rows themselves must stand in order of time.
                None => self.check_order(found, own.end - own.start, own.clone(), |at| {
                    Ok(own.start + at)
                })?,
            }
        }
        Ok(())
    }

    /// The `len` rows that `row_at` gives are distinct rows of `own`, ascending by time.
    fn check_order(
        &self,
        found: &mut Found,
        len: u32,
        own: Range<u32>,
        row_at: impl Fn(u32) -> Result<u32>,
    ) -> Result<()> {
        let (mut seen, mut before) = (vec![false; own.len()], (i64::MIN, 0));
        for at in 0..len {
            let row = row_at(at)?;
            let place = (self.event_time_us(row)?, row);
            let twice = std::mem::replace(&mut seen[index(row - own.start)], true);
            if twice || place < before {
                let message = format!("row {row} stands twice or out of order of time");
                found.note(Err(self.timeline.corrupt(message)));
            }
            before = place;
        }
        Ok(())
    }

    /// Every id leads back to its row, and passes the filter.
    pub(super) fn check_ids(&self, found: &mut Found) -> Result<()> {
        let filter = IdFilter::open(&self.loaded.section(SectionKind::IdFilter)?)?;
        for scope in 0..self.scopes.len() {
            let own = self.scopes.rows_of(scope);
            let mut before: Option<(String, u64)> = None;
            for at in own.clone() {
                let row = self.ids.row_at(at, &own)?;
                let place = (self.ids.get(row)?, self.columns.commit_seq(row)?);
                if before.as_ref().is_some_and(|before| *before >= place) {
                    let message = format!("row {row} is out of order by id and seq");
                    found.note(Err(self.ids.corrupt(message)));
                }
                if place.0.is_empty() || !filter.may_hold(id_hash(scope, &place.0))? {
                    let message = format!("the id of row {row} is empty or does not pass");
                    found.damage(self, SectionKind::IdFilter, message);
                }
                before = Some(place);
            }
        }
        Ok(())
    }
}

fn widened(range: (i64, i64), time_us: i64) -> (i64, i64) {
    (range.0.min(time_us), range.1.max(time_us))
}
