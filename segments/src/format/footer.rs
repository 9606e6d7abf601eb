//! What does a segment say about itself?
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | sections | u32 count, then 24 each: kind u16, zero u16, blocks u32, offset u64, len u64 | up to 1,024; offsets ascend, 64-aligned, inside the file | `decode` |
//! | analyzer id, vector model | varint + UTF-8 | up to 1,024 bytes | `decode`; the engine compares |
//! | vector space | u8 present; dim u32, format u8, normalised u8 | dim 1 to 4,096 | `decode` |
//! | or, in version 4, vector spaces | u8 2; u8 count, then each: number u8, name, model, dim, format, normalised, vectors u32 | 1 to 8, numbers ascend | `decode`, `Vectors::open` |
//! | token counter | u8 | 0, 1 | `decode` |
//! | bucket | level u8, start i64, end i64 | start < end | `decode` |
//! | zone | rows, vectors, scopes u32; event time, commit seq 8 each; class u8 | rows up to 2^30; time inside the bucket and the years 1 to 9999 | `decode`, `Segment::verify_all` |
//! | counts | summaries u32; terms, postings, length sum u64 | - | `Segment::verify_all` |
//! | lineage | u32 count, u64 each | up to 65,536 | `decode` |

use super::bytes::{Put, Take};
use super::frame::HEADER_BYTES;
use super::spaces::{put_spaces, take_spaces};
use super::{BLOCK_BYTES, SECTION_ALIGN};
use crate::error::SegmentError;
use crate::limits::{NAME_BYTES_MAX, ROWS_MAX};
use crate::prepared::TokenCounter;
use crate::read::Zone;
use crate::record::{TIME_MAX_US, TIME_MIN_US};
use crate::space::NumberedSpace;

type Result<T> = std::result::Result<T, SegmentError>;

/// Most sections of a file.
const SECTIONS_MAX: u32 = 1024;
/// Most segments that one segment replaces.
pub(crate) const LINEAGE_MAX: usize = 1 << 16;
/// Largest footer, bytes.
pub(crate) const FOOTER_BYTES_MAX: u32 = 16 << 20;
const ENTRY_BYTES: usize = 24;

const _: () = assert!(ENTRY_BYTES == 2 + 2 + 4 + 8 + 8);
const _: () = assert!(
    SECTIONS_MAX as usize * ENTRY_BYTES + LINEAGE_MAX * 8 + 8192 < FOOTER_BYTES_MAX as usize
);

/// A half-open window of event time at one level of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// Level of the ladder, as the engine numbers them.
    pub level: u8,
    /// First event time inside, µs.
    pub start_us: i64,
    /// First event time after it, µs.
    pub end_us: i64,
}

impl Bucket {
    /// True if the time lies inside.
    pub fn contains(&self, event_time_us: i64) -> bool {
        (self.start_us..self.end_us).contains(&event_time_us)
    }
}

/// One line of the section table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionEntry {
    /// Number of the kind; may be one that this build does not know.
    pub(crate) kind: u16,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: u64,
}

impl SectionEntry {
    /// Checksum blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK_BYTES as u64)
    }
}

/// Totals that a scrub compares with what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows with a summary.
    pub summaries: u32,
    /// Distinct terms.
    pub terms: u64,
    /// (term, row) pairs.
    pub postings: u64,
    /// Sum of exact lengths in counted tokens.
    pub length_sum: u64,
}

/// A vector space of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FooterSpace {
    pub(crate) own: NumberedSpace,
    /// Rows with a vector in it.
    pub(crate) vectors: u32,
}

/// All facts of a segment that need no section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) sections: Vec<SectionEntry>,
    pub(crate) analyzer_id: String,
    /// Ascending by number.
    pub(crate) spaces: Vec<FooterSpace>,
    pub(crate) token_counter: TokenCounter,
    pub(crate) bucket: Bucket,
    pub(crate) zone: Zone,
    pub(crate) counts: Counts,
    pub(crate) lineage: Vec<u64>,
}

impl Footer {
    /// Encodes the footer.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(count(self.sections.len()));
        for entry in &self.sections {
            out.put_u16(entry.kind);
            out.put_u16(0);
            out.put_u32(
                u32::try_from(entry.blocks())
                    .expect("a file of 2^40 bytes has at most 2^26 blocks"),
            );
            out.put_u64(entry.offset);
            out.put_u64(entry.len);
        }
        out.put_prefixed(self.analyzer_id.as_bytes());
        put_spaces(&mut out, &self.spaces);
        out.put_u8(match self.token_counter {
            TokenCounter::BytesOverFour => 0,
            TokenCounter::Characters => 1,
        });
        out.put_u8(self.bucket.level);
        out.put_i64(self.bucket.start_us);
        out.put_i64(self.bucket.end_us);
        put_zone(&mut out, &self.zone);
        out.put_u32(self.counts.summaries);
        out.put_u64(self.counts.terms);
        out.put_u64(self.counts.postings);
        out.put_u64(self.counts.length_sum);
        out.put_u32(count(self.lineage.len()));
        for number in &self.lineage {
            out.put_u64(*number);
        }
        out
    }

    /// Decodes the footer, which starts at `base` of the file; sections end before
    /// `tail_offset` and have `table_bytes / 4` blocks together.
    ///
    /// # Errors
    /// `Corrupt` naming the first field out of its range.
    pub(crate) fn decode(
        file: &str,
        base: u64,
        bytes: &[u8],
        tail_offset: u64,
        table_bytes: u32,
    ) -> Result<Self> {
        let mut take = Take::of_file(file, "footer", base, bytes);
        let sections = take_sections(&mut take, tail_offset, table_bytes)?;
        let analyzer_id = take.text("analyzer id", NAME_BYTES_MAX)?.to_owned();
        let spaces = take_spaces(&mut take)?;
        let token_counter = match take.u8()? {
            0 => TokenCounter::BytesOverFour,
            1 => TokenCounter::Characters,
            other => return Err(take.corrupt(format!("token counter {other} is none"))),
        };
        let bucket = Bucket {
            level: take.u8()?,
            start_us: take.i64()?,
            end_us: take.i64()?,
        };
        let zone = take_zone(&mut take, &bucket)?;
        let counts = Counts {
            summaries: take.u32()?,
            terms: take.u64()?,
            postings: take.u64()?,
            length_sum: take.u64()?,
        };
        let lineage_count = take.u32()? as usize;
        if lineage_count > LINEAGE_MAX {
            return Err(take.corrupt(format!(
                "{lineage_count} replaced segments; at most {LINEAGE_MAX}"
            )));
        }
        let lineage = (0..lineage_count)
            .map(|_| take.u64())
            .collect::<Result<_>>()?;
        take.end()?;
        let spaces = spaces.fit(&take, &zone)?;
        Ok(Self {
            sections,
            analyzer_id,
            spaces,
            token_counter,
            bucket,
            zone,
            counts,
            lineage,
        })
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("sections and lineage are bounded by the writer")
}

fn take_sections(
    take: &mut Take<'_>,
    tail_offset: u64,
    table_bytes: u32,
) -> Result<Vec<SectionEntry>> {
    let count = take.u32()?;
    if count > SECTIONS_MAX {
        return Err(take.corrupt(format!("{count} sections; at most {SECTIONS_MAX}")));
    }
    let mut sections: Vec<SectionEntry> = Vec::with_capacity(count as usize);
    let (mut end, mut blocks) = (HEADER_BYTES as u64, 0_u64);
    for _ in 0..count {
        let kind = take.u16()?;
        take.u16()?;
        let entry_blocks = u64::from(take.u32()?);
        let entry = SectionEntry {
            kind,
            offset: take.u64()?,
            len: take.u64()?,
        };
        let entry_end = entry
            .offset
            .checked_add(entry.len)
            .filter(|end| *end <= tail_offset);
        let Some(entry_end) = entry_end else {
            return Err(take.corrupt(format!("section {kind} ends outside the file")));
        };
        if entry.offset < end
            || !entry.offset.is_multiple_of(SECTION_ALIGN)
            || entry_blocks != entry.blocks()
        {
            return Err(take.corrupt(format!(
                "section {kind} overlaps, is not aligned or miscounts its blocks"
            )));
        }
        if sections.iter().any(|other| other.kind == kind) {
            return Err(take.corrupt(format!("section {kind} stands twice")));
        }
        end = entry_end;
        blocks += entry_blocks;
        sections.push(entry);
    }
    if blocks * 4 != u64::from(table_bytes) {
        return Err(take.corrupt(format!(
            "{blocks} blocks and a checksum table of {table_bytes} bytes disagree"
        )));
    }
    Ok(sections)
}

fn put_zone(out: &mut Vec<u8>, zone: &Zone) {
    out.put_u32(zone.rows);
    out.put_u32(zone.vectors);
    out.put_u32(zone.scopes);
    out.put_i64(zone.event_time_us.0);
    out.put_i64(zone.event_time_us.1);
    out.put_u64(zone.commit_seq.0);
    out.put_u64(zone.commit_seq.1);
    out.put_u8(zone.source_class_max);
}

fn take_zone(take: &mut Take<'_>, bucket: &Bucket) -> Result<Zone> {
    let zone = Zone {
        rows: take.u32()?,
        vectors: take.u32()?,
        scopes: take.u32()?,
        event_time_us: (take.i64()?, take.i64()?),
        commit_seq: (take.u64()?, take.u64()?),
        source_class_max: take.u8()?,
    };
    let (first, last) = zone.event_time_us;
    if first < TIME_MIN_US || last >= TIME_MAX_US {
        return Err(take.corrupt("event times lie outside the years 1 to 9999"));
    }
    if zone.rows == 0 || zone.rows > ROWS_MAX {
        return Err(take.corrupt(format!("{} rows; 1 to {ROWS_MAX}", zone.rows)));
    }
    if zone.vectors > zone.rows || zone.scopes > zone.rows || zone.scopes == 0 {
        return Err(take.corrupt("vectors or scopes outnumber the rows, or there is no scope"));
    }
    if first > last || !bucket.contains(first) || !bucket.contains(last) {
        return Err(take.corrupt("event times leave the bucket"));
    }
    if zone.commit_seq.0 > zone.commit_seq.1 {
        return Err(take.corrupt("commit seqs are in the wrong order"));
    }
    Ok(zone)
}
