//! Which stretch of the text is analysed at once, and which raw bytes does a folded byte come from?
//!
//! A chunk is a maximal run without white space and control characters. Words and identifiers never cross a
//! chunk's end and normalisation does not either, so chunks are folded one at a time into reused buffers.

use std::ops::Range;

use super::class::{self, CONT, LOWER, MARK, UPPER};
use super::fold::{is_gap, is_ignorable, push_folded, starts_segment};

/// One folded chunk: text, classes beside it, and the way back to the raw text.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// Folded text (marks not yet stripped).
    pub(super) text: String,
    /// One class for each byte of `text`.
    pub(super) classes: Vec<u8>,
    /// Every class present, as bits.
    pub(super) present: u16,
    /// Start of each segment in `text` and in the raw text; empty where both run in step.
    segments: Vec<(usize, usize)>,
    uppers: Vec<bool>,
    raw: Range<usize>,
}

/// The next chunk of `text` at or after `from`, and whether it is ASCII.
pub(super) fn next_chunk(text: &str, from: usize) -> Option<(Range<usize>, bool)> {
    let start = from + text[from..].find(|c| !is_gap(c))?;
    let bytes = text.as_bytes();
    let mut at = start;
    let mut ascii = true;
    while let Some(&b) = bytes.get(at) {
        if b < 0x80 {
            if b <= b' ' || b == 0x7f {
                break;
            }
            at += 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else {
            break;
        };
        if is_gap(c) {
            break;
        }
        ascii = false;
        at += c.len_utf8();
    }
    Some((start..at, ascii))
}

impl Chunk {
    /// Folds an ASCII chunk.
    pub(super) fn fill_ascii(&mut self, raw: &str, range: Range<usize>) {
        self.clear(range);
        self.text.push_str(raw);
        self.text.make_ascii_lowercase();
        for b in raw.bytes() {
            let class = class::ASCII[usize::from(b & 0x7f)];
            self.present |= class::bit(class);
            self.classes.push(class);
        }
    }

    /// Folds any chunk, segment by segment; `mapped` keeps the way back to raw bytes.
    pub(super) fn fill(&mut self, raw: &str, range: Range<usize>, mapped: bool) {
        let base = range.start;
        self.clear(range);
        let mut at = 0;
        while at < raw.len() {
            let end = segment_end(raw, at);
            if mapped {
                self.segments.push((self.text.len(), base + at));
            }
            self.push_segment(&raw[at..end]);
            at = end;
        }
    }

    fn clear(&mut self, raw: Range<usize>) {
        self.text.clear();
        self.classes.clear();
        self.segments.clear();
        self.present = 0;
        self.raw = raw;
    }

    fn push_segment(&mut self, segment: &str) {
        if let [b] = segment.as_bytes() {
            self.text.push(char::from(b.to_ascii_lowercase()));
            self.push_class(class::ASCII[usize::from(b & 0x7f)], 1);
            return;
        }
        let from = self.text.len();
        self.uppers.clear();
        push_folded(segment, &mut self.text, &mut self.uppers);
        let mut uppers = 0;
        for at in from..self.text.len() {
            let Some(c) = self.text.get(at..).and_then(|t| t.chars().next()) else {
                continue; // inside a character
            };
            let mut class = class::of_folded(c);
            if class != MARK {
                let upper = self.uppers.get(uppers).is_some_and(|u| *u);
                uppers += 1;
                if upper && class == LOWER {
                    class = UPPER;
                }
            }
            self.push_class(class, c.len_utf8());
        }
    }

    fn push_class(&mut self, class: u8, len: usize) {
        self.present |= class::bit(class);
        self.classes.push(class);
        self.classes.extend((1..len).map(|_| CONT));
    }

    /// Raw bytes behind `start..end` of the folded text, widened to whole segments.
    pub(super) fn raw_range(&self, start: usize, end: usize) -> Range<usize> {
        if self.segments.is_empty() {
            return self.raw.start + start..self.raw.start + end;
        }
        let first = self.segments.partition_point(|s| s.0 <= start);
        let next = self.segments.partition_point(|s| s.0 < end);
        let from = first
            .checked_sub(1)
            .map_or(self.raw.start, |i| self.segments[i].1);
        let to = self.segments.get(next).map_or(self.raw.end, |s| s.1);
        from..to
    }

    /// Gives back memory that only an unusual text needed.
    pub(super) fn shrink(&mut self, bytes_max: usize) {
        self.text.shrink_to(bytes_max);
        self.classes.shrink_to(bytes_max);
        self.segments.shrink_to(bytes_max);
        self.uppers.shrink_to(bytes_max);
    }
}

/// End of the segment at `at`: the next character that joins nothing before it. Ignorables join.
fn segment_end(raw: &str, at: usize) -> usize {
    let mut seen = false;
    for (i, c) in raw[at..].char_indices() {
        if is_ignorable(c) {
            continue;
        }
        if seen && starts_segment(c) {
            return at + i;
        }
        seen = true;
    }
    raw.len()
}
