//! How do the terms of all inputs become one dictionary with its postings?

use std::cmp::Ordering;

use super::order::Merge;
use super::{ROW_DROPPED, Result};
use crate::format::SectionSink;
use crate::format::bytes::index;
use crate::read::TermStream;
use crate::terms::{TermsBytes, TermsWriter};

/// Totals of what was written.
#[derive(Debug, Default)]
pub(super) struct TermCounts {
    pub(super) terms: u64,
    pub(super) postings: u64,
}

/// One input's stream and the term it stands at.
struct Head<'a> {
    stream: Box<dyn TermStream + 'a>,
    term: Vec<u8>,
    input: usize,
}

impl Head<'_> {
    /// Moves on; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(term) = self.stream.next_term()? else {
            return Ok(false);
        };
        assert!(
            self.term.is_empty() || *term > *self.term,
            "terms of an input ascend"
        );
        self.term.clear();
        self.term.extend_from_slice(term);
        Ok(true)
    }
}

/// Writes all terms that a kept row holds; look-ups in them will hash with `seed`.
pub(super) fn write_terms(
    sink: &mut dyn SectionSink,
    merge: &Merge<'_>,
    seed: u64,
) -> Result<(TermsBytes, TermCounts)> {
    let mut heads = Vec::new();
    for (input, source) in merge.inputs().iter().enumerate() {
        let mut head = Head {
            stream: source.partition.terms()?,
            term: Vec::new(),
            input,
        };
        if head.advance()? {
            heads.push(head);
        }
    }
    let (mut writer, mut counts) = (
        TermsWriter::new(seed, &merge.lengths),
        TermCounts::default(),
    );
    let (mut postings, mut equal) = (TermPostings::default(), Vec::new());
    while !heads.is_empty() {
        find_least(&heads, &mut equal);
        postings.clear();
        for at in &equal {
            postings.take(&mut heads[*at], merge)?;
        }
        let (rows, freqs) = postings.settle();
        if !rows.is_empty() {
            writer.add(sink, &heads[equal[0]].term, rows, freqs)?;
            counts.terms += 1;
            counts.postings += rows.len() as u64;
        }
        for at in equal.iter().rev() {
            if !heads[*at].advance()? {
                // Those that follow it are done with.
                heads.swap_remove(*at);
            }
        }
    }
    Ok((writer.finish(sink)?, counts))
}

/// Replaces `equal` by the heads that stand at the least term, ascending. Inputs are few: a look
/// at every head is cheaper than a heap of terms.
fn find_least(heads: &[Head<'_>], equal: &mut Vec<usize>) {
    equal.clear();
    for (at, head) in heads.iter().enumerate() {
        let order = match equal.first() {
            Some(least) => head.term.cmp(&heads[*least].term),
            None => Ordering::Equal,
        };
        if order.is_lt() {
            equal.clear();
        }
        if order.is_le() {
            equal.push(at);
        }
    }
}

/// The kept postings of one term; its memory is used for the next one again.
#[derive(Debug, Default)]
struct TermPostings {
    /// Row in the upper half, frequency in the lower one.
    pairs: Vec<u64>,
    rows: Vec<u32>,
    freqs: Vec<u32>,
}

impl TermPostings {
    fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Adds what an input has for its current term.
    fn take(&mut self, head: &mut Head<'_>, merge: &Merge<'_>) -> Result<()> {
        let Self { pairs, rows, freqs } = self;
        head.stream.read_postings(rows, freqs)?;
        assert_eq!(
            rows.len(),
            freqs.len(),
            "a posting is a row and a frequency"
        );
        let remap = merge.remap(head.input);
        for (row, freq) in rows.iter().zip(freqs) {
            let to = remap[index(*row)];
            if to != ROW_DROPPED {
                pairs.push(u64::from(to) << 32 | u64::from(*freq));
            }
        }
        Ok(())
    }

    /// Rows, ascending, and their frequencies.
    fn settle(&mut self) -> (&[u32], &[u32]) {
        let Self { pairs, rows, freqs } = self;
        // A segment's rows come in order; several segments' rows are as many stretches, which a
        // stable sort finds.
        if !pairs.is_sorted() {
            pairs.sort();
        }
        let halves = |pair: &u64| {
            let [low, high] = [*pair & u64::from(u32::MAX), *pair >> 32];
            [low, high].map(|half| u32::try_from(half).expect("half of a pair"))
        };
        rows.clear();
        freqs.clear();
        rows.extend(pairs.iter().map(|pair| halves(pair)[1]));
        freqs.extend(pairs.iter().map(|pair| halves(pair)[0]));
        assert!(rows.is_sorted_by(|a, b| a < b), "a row holds a term once");
        (rows, freqs)
    }
}
