//! Do the indexes of a segment say what its rows say: postings, tags, lengths, token costs?

use hashbrown::HashMap;
use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64;

use super::Found;
use crate::analyze::{Analyzed, Analyzer, Fields};
use crate::codec::RowTerms;
use crate::format::SectionKind;
use crate::format::bytes::index;
use crate::postings::{BLOCK_LEN, ListPlace, TermInfo};
use crate::read::{Partition, Stored, TermStream};
use crate::segment::{Result, Segment};

/// Rows between two calls of the progress.
const PROGRESS_ROWS: u32 = 256;
/// Any odd number: it spreads a frequency over 64 bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The words of each row, as one number: the sum of [`word`] over its terms. Two different
/// sets of words have the same sum by chance only, once in 2^64.
type Words = Vec<u64>;

fn word(term_hash: u64, freq: u32) -> u64 {
    (term_hash ^ u64::from(freq).wrapping_mul(MIX)).wrapping_mul(MIX)
}

impl Segment {
    /// Postings agree with the footer; texts can be read and, with `content`, have the words
    /// that the postings say.
    pub(super) fn check_words(
        &self,
        found: &mut Found,
        content: bool,
        at_row: &mut dyn FnMut(u32),
    ) -> Result<()> {
        let words = match self.check_terms(found) {
            Ok(words) => Some(words).filter(|_| content),
            Err(error) => {
                found.note(Err(error));
                None
            }
        };
        self.check_texts(found, content, words.as_deref(), at_row)
    }

    /// Postings ascend inside the segment and add up to the footer's counts. Returns what the
    /// rows' words are by them.
    fn check_terms(&self, found: &mut Found) -> Result<Words> {
        let mut words = vec![0_u64; index(self.scopes.rows())];
        let lengths: Vec<u32> = (0..self.scopes.rows())
            .map(|row| self.length(row))
            .collect::<Result<_>>()?;
        let (mut stream, mut before) = (self.terms()?.stream(), Vec::new());
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let (mut terms, mut postings) = (0_u64, 0_u64);
        while let Some(term) = stream.next_term()? {
            if !before.is_empty() && *term <= *before {
                let message = format!("term {terms} is not above the one before");
                found.damage(self, SectionKind::Terms, message);
            }
            before.clear();
            before.extend_from_slice(term);
            stream.read_postings(&mut rows, &mut freqs)?;
            let info = self.terms()?.get(&before)?;
            let df = info.map_or(0, |info| info.df);
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
                found.damage(self, SectionKind::Postings, message);
            }
            let pairs = rows.iter().zip(&freqs).map(|(row, freq)| {
                let length = lengths.get(index(*row)).copied().unwrap_or(0);
                (*freq, length)
            });
            if let Some((kind, message)) = self.low_bound(info, &pairs.collect::<Vec<_>>())? {
                found.damage(
                    self,
                    kind,
                    format!("a bound of term {terms} is too low: {message}"),
                );
            }
            let hash = xxh3_64(&before);
            for (row, freq) in rows.iter().zip(&freqs) {
                if let Some(sum) = words.get_mut(index(*row)) {
                    *sum = sum.wrapping_add(word(hash, *freq));
                }
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
            found.damage(self, SectionKind::Terms, message);
        }
        Ok(words)
    }

    /// The first posting, given as frequency and length, that is above what bounds it: the
    /// term's bounds, or those of its block. With the section that holds the bound.
    fn low_bound(
        &self,
        info: Option<TermInfo>,
        pairs: &[(u32, u32)],
    ) -> Result<Option<(SectionKind, String)>> {
        let Some(info) = info else {
            return Ok(None);
        };
        let entry = self.entry_of(&info)?;
        let blocks = self.terms()?.block_bounds(&info)?;
        let above = pairs.iter().enumerate().find(|(at, (freq, length))| {
            let block = blocks.get(at / BLOCK_LEN);
            let in_block = block.is_none_or(|bounds| bounds.covers(*freq, *length));
            !in_block || !entry.bounds.covers(*freq, *length)
        });
        let kind = match info.place {
            ListPlace::Long { .. } => SectionKind::PostingsSkip,
            ListPlace::One { .. } | ListPlace::Short { .. } => SectionKind::Terms,
        };
        Ok(above.map(|(at, (freq, length))| {
            let message = format!("posting {at} stands {freq} times in a row of length {length}");
            (kind, message)
        }))
    }

    /// Texts can be read, cost what the columns say, and have the words that the postings
    /// say. The last is left out for an analyzer that this build does not know.
    fn check_texts(
        &self,
        found: &mut Found,
        content: bool,
        words: Option<&[u64]>,
        at_row: &mut dyn FnMut(u32),
    ) -> Result<()> {
        let analyzer = Analyzer::parse_id(self.analyzer_id()).ok();
        let mut scratch = Analyzed::new();
        let mut summaries = 0;
        for row in 0..self.scopes.rows() {
            let stored = self.stored(row)?;
            summaries += u32::from(stored.summary.is_some());
            if content {
                self.check_costs(found, row, &stored)?;
            }
            if let (Some(analyzer), Some(words)) = (&analyzer, words) {
                self.check_row_words(found, row, &stored, analyzer, &mut scratch, words)?;
            }
            if row % PROGRESS_ROWS == 0 {
                at_row(row);
            }
        }
        if summaries != self.counts().summaries {
            let message = format!(
                "{summaries} summaries, the footer has {}",
                self.counts().summaries
            );
            found.damage(self, SectionKind::Distilled, message);
        }
        Ok(())
    }

    fn check_costs(&self, found: &mut Found, row: u32, stored: &Stored) -> Result<()> {
        let (fields, counter) = (self.fields(row)?, self.token_counter());
        let summary = stored.summary.as_deref().map_or(0, |s| counter.cost(s));
        let costs = (counter.cost(&stored.text), summary);
        if costs != (fields.text_tokens, fields.summary_tokens) {
            let message = format!(
                "row {row} costs {:?} tokens by its columns, its text and summary {costs:?}",
                (fields.text_tokens, fields.summary_tokens)
            );
            found.damage(self, SectionKind::Columns, message);
        }
        Ok(())
    }

    fn check_row_words(
        &self,
        found: &mut Found,
        row: u32,
        stored: &Stored,
        analyzer: &Analyzer,
        scratch: &mut Analyzed,
        words: &[u64],
    ) -> Result<()> {
        let fields = Fields {
            text: &stored.text,
            summary: stored.summary.as_deref(),
            speaker: stored.speaker.as_deref(),
            event_time_us: Some(self.event_time_us(row)?),
        };
        analyzer.analyze_fields(&fields, scratch);
        let length = self.length(row)?;
        if scratch.length() != length {
            let message = format!(
                "row {row} has length {length}, its text has {}",
                scratch.length()
            );
            found.damage(self, SectionKind::Columns, message);
        }
        let terms = RowTerms::new(scratch, &stored.impacts);
        let sum = terms.terms().fold(0_u64, |sum, (term, freq)| {
            sum.wrapping_add(word(xxh3_64(term), freq))
        });
        if sum != words[index(row)] {
            let message = format!("the postings of row {row} are not the words of its text");
            found.damage(self, SectionKind::Postings, message);
        }
        Ok(())
    }

    /// Tags by row and rows by tag say the same, and the untagged rows are those without.
    pub(super) fn check_tags(&self, found: &mut Found) -> Result<()> {
        let mut pairs = 0_u64;
        for tag in self.tags()?.names()? {
            pairs += self.tags()?.rows_of(&tag)?.map_or(0, |rows| rows.len());
        }
        let untagged = self.tags()?.untagged()?;
        let mut sets: HashMap<String, RoaringBitmap> = HashMap::new();
        let mut matched = 0_u64;
        for row in 0..self.scopes.rows() {
            let tags = self.tags()?.of_row(row)?;
            if tags.is_empty() != untagged.contains(row) || !tags.is_sorted_by(|a, b| a < b) {
                let message = format!(
                    "row {row} has {} tags and stands in the wrong set, or they are out of order",
                    tags.len()
                );
                found.damage(self, SectionKind::TagSets, message);
            }
            for tag in tags {
                if !sets.contains_key(&tag) {
                    sets.insert(tag.clone(), self.tags()?.rows_of(&tag)?.unwrap_or_default());
                }
                if sets[&tag].contains(row) {
                    matched += 1;
                } else {
                    let message = format!("a tag of row {row} does not have it");
                    found.damage(self, SectionKind::TagSets, message);
                }
            }
        }
        if pairs != matched {
            let message = format!("tags have {pairs} rows, rows have {matched} of these tags");
            found.damage(self, SectionKind::TagSets, message);
        }
        Ok(())
    }
}
