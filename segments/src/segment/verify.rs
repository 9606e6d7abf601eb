//! Is every byte of a segment what was written, and do its parts agree with each other?

use roaring::RoaringBitmap;

use super::{Result, Segment};
use crate::error::SegmentError;
use crate::format::SectionKind;
use crate::format::bytes::index;
use crate::ids::IdFilter;
use crate::read::{Partition, TermStream};

/// Findings after which a scrub stops: a file that is damaged all over needs no longer list.
const FINDINGS_MAX: usize = 1000;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// File name inside the store.
    pub file: String,
    /// Section of the file.
    pub section: &'static str,
    /// Byte offset in the file.
    pub offset: u64,
    /// Found against expected.
    pub message: String,
}

/// What a scrub saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scrub {
    /// Checksum blocks that were read.
    pub blocks: u64,
    /// What is wrong; empty for a sound file.
    pub findings: Vec<Finding>,
}

impl Segment {
    /// Reads every block anew, then compares the sections with each other. The comparison is
    /// left out where a block is damaged: it would only repeat that.
    pub fn verify_all(&self) -> Scrub {
        let mut scrub = Scrub::default();
        for section in &self.loaded.sections {
            for block in 0..section.blocks() {
                scrub.blocks += 1;
                self.note(&mut scrub, section.scrub_block(block));
                if scrub.findings.len() >= FINDINGS_MAX {
                    return scrub;
                }
            }
        }
        if scrub.findings.is_empty() {
            let checks: [fn(&Self) -> Result<()>; 7] = [
                Self::check_columns,
                Self::check_timeline,
                Self::check_ids,
                Self::check_terms,
                Self::check_tags,
                Self::check_vectors,
                Self::check_texts,
            ];
            for check in checks {
                self.note(&mut scrub, check(self));
            }
        }
        scrub
    }

    fn note(&self, scrub: &mut Scrub, result: Result<()>) {
        let Err(error) = result else {
            return;
        };
        scrub.findings.push(match error {
            SegmentError::Corrupt {
                file,
                section,
                offset,
                message,
            } => Finding {
                file,
                section,
                offset,
                message,
            },
            other => Finding {
                file: self.file_name().to_owned(),
                section: "file",
                offset: 0,
                message: other.to_string(),
            },
        });
    }

    fn damage(&self, kind: SectionKind, message: String) -> SegmentError {
        match self.loaded.section(kind) {
            Ok(section) => section.corrupt(0, message),
            Err(missing) => missing,
        }
    }

    /// Sums and ranges of scope directory and zone are those of the columns; rows are in order.
    fn check_columns(&self) -> Result<()> {
        let zone = self.zone();
        let damage = |message| Err(self.damage(SectionKind::Columns, message));
        let (mut seqs, mut class_max) = ((u64::MAX, 0), 0);
        let mut times = (i64::MAX, i64::MIN);
        for scope in 0..self.scopes.len() {
            let entry = self.scopes.entry(scope);
            let (mut length_sum, mut scope_times, mut before) = (0, (i64::MAX, i64::MIN), None);
            for row in self.scopes.rows_of(scope) {
                let fields = self.fields(row)?;
                self.source_id(row)?;
                let place = (fields.cluster, fields.event_time_us, fields.commit_seq);
                if before.is_some_and(|before| before > place) {
                    return damage(format!("row {row} is out of order"));
                }
                before = Some(place);
                length_sum += u64::from(fields.length);
                scope_times = (
                    scope_times.0.min(fields.event_time_us),
                    scope_times.1.max(fields.event_time_us),
                );
                seqs = (seqs.0.min(fields.commit_seq), seqs.1.max(fields.commit_seq));
                class_max = class_max.max(fields.source_class);
            }
            if length_sum != entry.population.length_sum || scope_times != entry.event_time_us {
                return damage(format!(
                    "lengths or times of scope {scope} are not those of the scope directory"
                ));
            }
            times = (times.0.min(scope_times.0), times.1.max(scope_times.1));
        }
        if seqs != zone.commit_seq
            || times != zone.event_time_us
            || class_max != zone.source_class_max
        {
            return damage("times, seqs or source classes are not those of the footer".into());
        }
        Ok(())
    }

    /// Every timeline holds each of its rows once, in order of event time.
    fn check_timeline(&self) -> Result<()> {
        let rows = self.scopes.rows();
        let whole = self.timeline.whole_len();
        self.check_order(whole, rows, |at| self.timeline.whole_row(at, rows))?;
        for scope in 0..self.scopes.len() {
            let own = self.scopes.rows_of(scope);
            if let Some(start) = self.scopes.timeline_at(scope) {
                self.check_order(own.end - own.start, rows, |at| {
                    self.timeline.local_row(start + at, &own)
                })?;
            }
        }
        Ok(())
    }

    fn check_order(&self, len: u32, rows: u32, row_at: impl Fn(u32) -> Result<u32>) -> Result<()> {
        let (mut seen, mut before) = (vec![false; index(rows)], (i64::MIN, 0));
        for at in 0..len {
            let row = row_at(at)?;
            let place = (self.event_time_us(row)?, row);
            if std::mem::replace(&mut seen[index(row)], true) || place < before {
                return Err(self
                    .timeline
                    .corrupt(format!("row {row} stands twice or out of order")));
            }
            before = place;
        }
        Ok(())
    }

    /// Every id leads back to its row, and passes the filter.
    fn check_ids(&self) -> Result<()> {
        let filter = IdFilter::open(&self.loaded.section(SectionKind::IdFilter)?)?;
        for scope in 0..self.scopes.len() {
            let own = self.scopes.rows_of(scope);
            let mut before: Option<(String, u64)> = None;
            for at in own.clone() {
                let row = self.ids.row_at(at, &own)?;
                let place = (self.ids.get(row)?, self.columns.commit_seq(row)?);
                if before.as_ref().is_some_and(|before| *before >= place) {
                    return Err(self.ids.corrupt(format!("row {row} is out of order by id")));
                }
                if place.0.is_empty() || !filter.may_hold(crate::ids::id_hash(scope, &place.0))? {
                    return Err(self.damage(
                        SectionKind::IdFilter,
                        format!("the id of row {row} does not pass"),
                    ));
                }
                before = Some(place);
            }
        }
        Ok(())
    }

    /// Postings ascend inside the segment and add up to the footer's counts.
    fn check_terms(&self) -> Result<()> {
        let (mut stream, mut before) = (self.terms.stream(), Vec::new());
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let (mut terms, mut postings) = (0_u64, 0_u64);
        while let Some(term) = stream.next_term()? {
            if !before.is_empty() && *term <= *before {
                return Err(self.damage(
                    SectionKind::Terms,
                    format!("term {terms} is not above the one before"),
                ));
            }
            before.clear();
            before.extend_from_slice(term);
            stream.read_postings(&mut rows, &mut freqs)?;
            let df = self.terms.get(&before)?.map_or(0, |info| info.df);
            let inside = rows.last().is_some_and(|row| *row < self.scopes.rows());
            let ascend = rows.is_sorted_by(|a, b| a < b);
            if rows.len() != index(df)
                || rows.len() != freqs.len()
                || !inside
                || !ascend
                || freqs.contains(&0)
            {
                let message = format!(
                    "postings of term {terms}: {} rows for df {df}, or not in order",
                    rows.len()
                );
                return Err(self.damage(SectionKind::Postings, message));
            }
            terms += 1;
            postings += rows.len() as u64;
        }
        let counts = self.counts();
        if terms != counts.terms || postings != counts.postings {
            let message = format!(
                "{terms} terms and {postings} postings, the footer has {} and {}",
                counts.terms, counts.postings
            );
            return Err(self.damage(SectionKind::Terms, message));
        }
        Ok(())
    }

    /// Tags by row and rows by tag say the same.
    fn check_tags(&self) -> Result<()> {
        let damage = |message| Err(self.damage(SectionKind::TagSets, message));
        let mut pairs = 0_u64;
        for tag in self.tags.names()? {
            pairs += self.tags.rows_of(&tag)?.map_or(0, |rows| rows.len());
        }
        let untagged = self.tags.untagged()?;
        let mut sets: hashbrown::HashMap<String, RoaringBitmap> = hashbrown::HashMap::new();
        for row in 0..self.scopes.rows() {
            let tags = self.tags.of_row(row)?;
            if tags.is_empty() != untagged.contains(row) || !tags.is_sorted_by(|a, b| a < b) {
                return damage(format!(
                    "row {row} has {} tags, or they are out of order",
                    tags.len()
                ));
            }
            for tag in tags {
                if !sets.contains_key(&tag) {
                    sets.insert(tag.clone(), self.tags.rows_of(&tag)?.unwrap_or_default());
                }
                if !sets[&tag].contains(row) {
                    return damage(format!("a tag of row {row} does not have it"));
                }
                pairs -= 1;
            }
        }
        if pairs != 0 {
            return damage(format!("{pairs} rows of tags do not have them"));
        }
        Ok(())
    }

    fn check_vectors(&self) -> Result<()> {
        let mut vectors = 0;
        for row in 0..self.scopes.rows() {
            vectors += u32::from(self.vector(row)?.is_some());
        }
        if vectors != self.zone().vectors {
            let message = format!("{vectors} vectors, the footer has {}", self.zone().vectors);
            return Err(self.damage(SectionKind::VectorRows, message));
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<()> {
        let mut summaries = 0;
        for row in 0..self.scopes.rows() {
            summaries += u32::from(self.stored(row)?.summary.is_some());
        }
        if summaries != self.counts().summaries {
            let message = format!(
                "{summaries} summaries, the footer has {}",
                self.counts().summaries
            );
            return Err(self.damage(SectionKind::Distilled, message));
        }
        Ok(())
    }
}
